//! T8, F30: messages that are larger than a message may be, and lines that never end.

use std::time::{Duration, Instant};

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::{After, Bench, Failed, Row, faults, table::timed};
use crate::harness::{Script, Setup, TIMEOUT, poll};

faults![
    one_large_answer,
    id_at_the_end,
    never_ending_line,
    never_ending_line_with_many_calls,
    never_ending_line_while_idle,
    large_list,
    largest_answer,
];

const TOO_LARGE: Failed = Failed::unknown("frame_too_large");
const SEVERAL_SECONDS: Duration = Duration::from_secs(75);

/// So many megabytes of text on stdout, in one line.
fn megabytes(count: u32) -> Value {
    json!({"fill": {"stream": "stdout", "text": "0123456789", "times": count * 100_000}})
}

/// A server with the tools `t`, which does this with stdout for itself, `hold`, which waits for the
/// file `gate`, and `pid`.
fn tool(setup: Setup, actions: &Value) -> Setup {
    let hold = json!([{"awaitFile": setup.path("gate")}, {"answer": {"content": []}}]);
    let script = Script::named(&["t", "hold", "pid"])
        .on_call("t", &json!([{"alone": actions}]).to_string())
        .on_call("hold", &hold.to_string());
    setup.server("fs", &script)
}

/// A call of `t` that fails as too large, with memory that stays flat; gives the time that it took.
fn too_large(bench: &mut Bench) -> Duration {
    let base = bench.memory();
    let took = timed(|| {
        let result = bench.fails("t", &TOO_LARGE);
        assert!(result.error().contains("16 MiB"), "{}", result.error());
    });
    bench.flat_since(base);
    took
}

/// Waits until a call succeeds on another process. Calls that the endless line hits fail meanwhile.
fn replaced(bench: &mut Bench) {
    let replaced = poll(TIMEOUT, || (!bench.call("pid").failed()).then_some(()));
    assert!(replaced.is_some(), "the server is never replaced");
    assert_eq!(bench.starts(), 2);
}

fn one_large_answer() -> Row {
    Row {
        number: "T8a",
        fault: "answers with 100 MB in one line, its id first, the only call in flight",
        outcome: "fails at once: frame_too_large, unknown; memory < base + 64 MiB; the server stays",
        bound: Duration::from_secs(30),
        faulty: |setup| {
            let head = r#"{"jsonrpc":"2.0","id":$ID,"result":{"content":[{"type":"text","text":""#;
            tool(
                setup,
                &json!([{"stdout": head}, megabytes(100), {"line": "\"}]}}"}]),
            )
        },
        act: |bench| {
            bench.open();
            let took = too_large(bench);
            bench.succeeds("pid");
            assert_eq!(bench.starts(), 1);
            took
        },
        after: After::Recovers,
    }
}

fn id_at_the_end() -> Row {
    Row {
        number: "T8b",
        fault: "answers with 100 MB in one line, its id at the end, four calls in flight",
        outcome: "only that call fails: frame_too_large, unknown; memory < base + 64 MiB",
        bound: SEVERAL_SECONDS,
        faulty: |setup| {
            let head = r#"{"result":{"content":[{"type":"text","text":""#;
            let end = r#""}]},"jsonrpc":"2.0","id":$ID}"#;
            tool(
                setup,
                &json!([{"stdout": head}, megabytes(100), {"line": end}]),
            )
        },
        act: |bench| {
            bench.open();
            let held: Vec<String> = (0..3).map(|_| bench.send("hold")).collect();
            bench.wait_calls(3);
            let took = too_large(bench);
            bench.workbench.setup.write("gate", "");
            for id in held {
                let result = bench.workbench.tool_result(&id);
                assert!(!result.failed(), "{}", result.raw);
            }
            assert_eq!(bench.starts(), 1);
            took
        },
        after: After::Recovers,
    }
}

#[test]
fn calls_wait_until_a_message_that_is_too_large_has_ended() {
    let setup = Setup::new().toolbox("dev", "d");
    let gate = setup.path("end");
    let head = r#"{"jsonrpc":"2.0","id":$ID,"result":{"content":[{"type":"text","text":""#;
    let actions = json!([{"stdout": head}, megabytes(20), {"awaitFile": gate}, {"line": "\"}]}}"}]);
    let mut workbench = tool(setup, &actions).connect();
    workbench.open("dev");
    // The call fails as soon as the message is known to be too large.
    let failed = workbench.use_tool("t", "{}");
    assert_eq!(
        failed.failure()["code"],
        "frame_too_large",
        "{}",
        failed.raw
    );
    let held = workbench.send_use("pid", "{}");
    let cancelled = workbench.send_use("pid", "{}");
    let cancel = format!(r#"{{"requestId":{cancelled}}}"#);
    workbench.notify("notifications/cancelled", &cancel);
    workbench.ask("ping", "{}");
    let journal = workbench.journal("dev", "fs");
    assert_eq!(journal.called(), [r#""t""#]);
    workbench.setup.write("end", "");
    let done = workbench.tool_result(&held);
    assert!(!done.failed(), "{}", done.raw);
    assert_eq!(
        journal.called(),
        [r#""t""#, r#""pid""#],
        "one was cancelled"
    );
    assert!(journal.received("notifications/cancelled").is_empty());
}

fn never_ending_line() -> Row {
    Row {
        number: "T8c",
        fault: "answers with a line that never ends, its id first, the only call in flight",
        outcome: "fails: frame_too_large, unknown; the next call waits for another process; memory < base + 64 MiB",
        bound: SEVERAL_SECONDS,
        faulty: |setup| {
            let head = r#"{"jsonrpc":"2.0","id":$ID,"result":{"content":[{"type":"text","text":""#;
            tool(
                setup,
                &json!([{"stdout": head}, megabytes(40_000), {"line": ""}]),
            )
        },
        act: |bench| {
            bench.open();
            let base = bench.memory();
            let took = too_large(bench);
            bench.succeeds("pid");
            assert_eq!(bench.starts(), 2);
            bench.flat_since(base);
            took
        },
        after: After::Recovers,
    }
}

fn never_ending_line_with_many_calls() -> Row {
    Row {
        number: "T8d",
        fault: "writes a line that never ends and has no id, four calls in flight",
        outcome: "all four fail, unknown; the server is replaced; memory < base + 64 MiB",
        bound: SEVERAL_SECONDS,
        faulty: |setup| tool(setup, &json!([megabytes(40_000)])),
        act: |bench| {
            bench.open();
            let base = bench.memory();
            let start = Instant::now();
            let mut ids: Vec<String> = (0..3).map(|_| bench.send("hold")).collect();
            bench.wait_calls(3);
            ids.push(bench.send("t"));
            bench.healthy();
            for id in ids {
                let result = bench.workbench.tool_result(&id);
                let failure = result.failure();
                assert_eq!(failure["outcome"], "unknown", "{}", result.raw);
                assert_eq!(failure["code"], "frame_too_large", "{}", result.raw);
            }
            let took = start.elapsed();
            bench.succeeds("pid");
            assert_eq!(bench.starts(), 2);
            bench.flat_since(base);
            took
        },
        after: After::Recovers,
    }
}

fn never_ending_line_while_idle() -> Row {
    Row {
        number: "T8e",
        fault: "begins a line that never ends while no call is in flight",
        outcome: "the next call fails, unknown, or succeeds; the server is replaced; memory < base + 64 MiB",
        bound: SEVERAL_SECONDS,
        faulty: |setup| {
            let answer = json!({"answer": {"content": []}});
            tool(setup, &json!([answer, megabytes(40_000)]))
        },
        act: |bench| {
            bench.open();
            let base = bench.memory();
            bench.succeeds("t");
            bench.healthy();
            let start = Instant::now();
            let id = bench.send("pid");
            bench.healthy();
            let result = bench.workbench.tool_result(&id);
            let took = start.elapsed();
            if result.failed() {
                assert_eq!(result.failure()["outcome"], "unknown", "{}", result.raw);
            }
            replaced(bench);
            bench.flat_since(base);
            took
        },
        after: After::Recovers,
    }
}

fn large_list() -> Row {
    Row {
        number: "F30",
        fault: "answers tools/list with 40 MB in one line",
        outcome: "opens without it, with the reason; memory < base + 64 MiB",
        bound: Duration::from_secs(30),
        faulty: |setup| {
            let head = r#"{"jsonrpc":"2.0","id":$ID,"result":{"tools":[{"name":""#;
            let end = r#"","inputSchema":{"type":"object"}}]}}"#;
            let actions = json!([{"stdout": head}, megabytes(40), {"line": end}]);
            let script = Script::new().on_method("tools/list", &actions.to_string());
            setup.server("fs", &script)
        },
        act: |bench| {
            let base = bench.memory();
            let took = timed(|| drop(bench.open_without()));
            bench.flat_since(base);
            took
        },
        after: After::StaysDown,
    }
}

fn largest_answer() -> Row {
    Row {
        number: "T8f",
        fault: "answers with 15 MB, which is large, but allowed",
        outcome: "the call succeeds; memory < base + 64 MiB",
        bound: SEVERAL_SECONDS,
        faulty: |setup| setup.server("fs", &Script::new()),
        act: |bench| {
            bench.open();
            let base = bench.memory();
            let took = timed(|| {
                let id = bench.workbench.send_use("big", r#"{"size":15000000}"#);
                bench.healthy();
                assert_eq!(bench.workbench.tool_result(&id).text().len(), 15_000_000);
            });
            bench.flat_since(base);
            took
        },
        after: After::Recovers,
    }
}
