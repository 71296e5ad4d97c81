//! F22, F23, T12: servers that say or ask far too much. They are never killed for it.

use std::time::Duration;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::{After, Bench, Row, faults, table::timed};
use crate::harness::{Script, Setup, use_arguments};

faults![
    notifications,
    log_messages,
    progress,
    requests,
    requests_without_reading,
];

const WHILE: Duration = Duration::from_mins(1);
const ANSWER: &str = r#"{"answer":{"content":[],"plain":true}}"#;

/// A server with the tools `t`, which does this and answers, and `pid`.
fn tool(setup: Setup, flood: &Value) -> Setup {
    let script = Script::named(&["t", "pid"]).on_call("t", &format!("[{flood},{ANSWER}]"));
    setup.server("fs", &script)
}

/// So many times the same line.
fn lines(line: &str, times: u32) -> Value {
    json!({"fill": {"stream": "stdout", "text": format!("{line}\n"), "times": times}})
}

/// A call that succeeds with flat memory and without a new process; gives the time that it took.
fn withstands(bench: &mut Bench) -> Duration {
    bench.open();
    let base = bench.memory();
    let took = timed(|| {
        assert_eq!(bench.call("t").raw, r#"{"content":[],"plain":true}"#);
    });
    bench.flat_since(base);
    bench.succeeds("pid");
    assert_eq!(bench.starts(), 1, "a flood is no reason to end a server");
    took
}

fn notifications() -> Row {
    Row {
        number: "F22",
        fault: "sends 100,000 notifications during a call",
        outcome: "the call succeeds; memory < base + 64 MiB; the server stays",
        bound: WHILE,
        faulty: |setup| {
            let line =
                r#"{"jsonrpc":"2.0","method":"notifications/unheard_of","params":{"a":[1]}}"#;
            tool(setup, &lines(line, 100_000))
        },
        act: withstands,
        after: After::Recovers,
    }
}

fn log_messages() -> Row {
    Row {
        number: "T12a",
        fault: "sends 100,000 log messages during a call",
        outcome: "the call succeeds; memory < base + 64 MiB; the server stays",
        bound: WHILE,
        faulty: |setup| {
            let line = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"again and again"}}"#;
            tool(setup, &lines(line, 100_000))
        },
        act: withstands,
        after: After::Recovers,
    }
}

fn progress() -> Row {
    Row {
        number: "T12b",
        fault: "reports progress 50,000 times during a call",
        outcome: "the client gets some of it, in order and never after the answer, which comes",
        bound: WHILE,
        faulty: |setup| {
            let line = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":$TOKEN,"progress":$ROUND}}"#;
            let flood = json!({"repeat": {"times": 50_000, "actions": [{"line": line}]}});
            tool(setup, &flood)
        },
        act: |bench| {
            bench.open();
            let base = bench.memory();
            let arguments = use_arguments(["dev", "fs", "t"], None);
            let params = format!(
                r#"{{"name":"use_tool","arguments":{arguments},"_meta":{{"progressToken":"p"}}}}"#
            );
            let mut reports = Vec::new();
            let took = timed(|| {
                let id = bench.workbench.request("tools/call", &params);
                bench.healthy();
                loop {
                    let message = bench.workbench.next_message();
                    if message.answers(&id) {
                        break;
                    }
                    let params = message.params();
                    assert_eq!(params["progressToken"], "p", "{}", message.line);
                    reports.push(params["progress"].as_u64().expect("a number"));
                }
            });
            bench.flat_since(base);
            assert!(reports.is_sorted_by(|one, next| one < next), "reordered");
            assert!(!reports.is_empty(), "no progress at all");
            assert!(reports.len() < 5000, "{} reports", reports.len());
            bench.healthy();
            let late = bench.workbench.untaken().len();
            assert_eq!(late, 0, "progress after the answer");
            took
        },
        after: After::Recovers,
    }
}

fn requests() -> Row {
    Row {
        number: "F23a",
        fault: "asks the client 10,000 things during a call",
        outcome: "each is answered or refused; the call succeeds; memory < base + 64 MiB",
        bound: WHILE,
        faulty: |setup| {
            let line = r#"{"jsonrpc":"2.0","id":"r$ROUND","method":"roots/list"}"#;
            let flood = json!({"repeat": {"times": 10_000, "actions": [{"line": line}]}});
            tool(setup, &flood)
        },
        act: |bench| {
            let took = withstands(bench);
            let replies = bench.journal().events("in").into_iter();
            let replies: Vec<String> = replies.filter(|line| line.contains("\"r")).collect();
            assert!(!replies.is_empty(), "no request was answered");
            let refused = replies.iter().all(|line| line.contains("\"error\""));
            assert!(refused, "{:?}", replies.first());
            took
        },
        after: After::Recovers,
    }
}

fn requests_without_reading() -> Row {
    Row {
        number: "F23b",
        fault: "asks the client 10,000 things and reads no answer",
        outcome: "the call succeeds; memory < base + 64 MiB; the next call times out or succeeds",
        bound: WHILE,
        faulty: |setup| {
            let line = r#"{"jsonrpc":"2.0","id":"r$ROUND","method":"roots/list"}"#;
            let flood = json!({"repeat": {"times": 10_000, "actions": [{"line": line}]}});
            let script = Script::named(&["t", "pid"])
                .on_call("t", &format!(r#"["stopReading",{flood},{ANSWER}]"#));
            setup.server_with("fs", &script, &json!({"callTimeoutMs": 10_000}))
        },
        act: |bench| {
            bench.open();
            let base = bench.memory();
            let took = timed(|| drop(bench.succeeds("t")));
            bench.flat_since(base);
            took
        },
        after: After::Either,
    }
}
