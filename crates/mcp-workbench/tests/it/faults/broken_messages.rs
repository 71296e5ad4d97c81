//! F5, F18 to F21, F33, T9, T10: answers that break the protocol, and lines that are no messages.

use std::time::Duration;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::{After, Bench, Failed, Row, faults, table::timed};
use crate::harness::{Message, Script, Setup, raw_string};

faults![
    banners,
    nearly_too_much_garbage,
    too_much_garbage,
    too_much_garbage_at_start,
    answered_twice,
    wrong_ids,
    out_of_order,
    result_and_error,
    neither_result_nor_error,
    result_is_no_object,
    duplicate_member,
    cut_off_message,
    deep_nesting,
    answers_after_a_cancel,
];

const SOON: Duration = Duration::from_secs(4);
const INVALID: Failed = Failed::unknown("invalid_response");
const PLAIN: &str = r#"{"content":[],"plain":true}"#;

/// A server with the tools `t`, which does this, `hold`, which waits for the file `gate`, and `pid`.
fn tool(setup: Setup, actions: &Value) -> Setup {
    let hold = json!([{"awaitFile": setup.path("gate")}, {"answer": {"content": []}}]);
    let script = Script::named(&["t", "hold", "pid"])
        .on_call("t", &actions.to_string())
        .on_call("hold", &hold.to_string());
    setup.server("fs", &script)
}

/// The lines that a server writes in a call, and then its answer.
fn before_the_answer(lines: &[&str]) -> Value {
    let lines = lines.iter().map(|line| json!({"line": line}));
    let answer = json!({"line": format!(r#"{{"jsonrpc":"2.0","id":$ID,"result":{PLAIN}}}"#)});
    lines.chain([answer]).collect()
}

/// So many lines of garbage.
fn garbage(lines: u32) -> Value {
    json!({"fill": {"stream": "stdout", "text": "INFO not a message at all\n", "times": lines}})
}

/// A call that succeeds with its plain answer; gives the time that it took.
fn plain_answer(bench: &mut Bench) -> Duration {
    bench.open();
    timed(|| assert_eq!(bench.call("t").raw, PLAIN))
}

/// A call that fails at once as invalid, while another one is in flight, which is answered.
fn invalid_answer(bench: &mut Bench) -> Duration {
    bench.open();
    let held = bench.send("hold");
    bench.wait_calls(1);
    let took = timed(|| drop(bench.fails("t", &INVALID)));
    bench.workbench.setup.write("gate", "");
    let result = bench.workbench.tool_result(&held);
    assert!(!result.failed(), "{}", result.raw);
    assert_eq!(bench.starts(), 1, "one answer is no reason to end a server");
    took
}

fn banners() -> Row {
    Row {
        number: "F5a",
        fault: "writes banners and JSON that is no message to stdout, at start and in a call",
        outcome: "all of it is skipped, the call succeeds, nothing is written back",
        bound: SOON,
        faulty: |setup| {
            let noise = [
                "Server listening on stdio",
                "[INFO] 12:00 ready {",
                r#"{"level":"info","msg":"ready"}"#,
                r#"{"level":30,"id":1,"msg":"a log line that has an id"}"#,
                "[]",
                "null",
                "5",
                r#"{"jsonrpc":"2.0"}"#,
                r#"{"jsonrpc":"1.0","method":"ping","id":1}"#,
                r#"{"jsonrpc":"2.0","method":5}"#,
            ];
            let start: Value = noise.iter().map(|line| json!({"line": line})).collect();
            let script = Script::named(&["t", "pid"])
                .set("onStart", &start.to_string())
                .on_call("t", &before_the_answer(&noise).to_string());
            setup.server("fs", &script)
        },
        act: |bench| {
            let took = plain_answer(bench);
            let received = bench.journal().events("in").into_iter();
            let methods: Vec<_> = received.map(|line| Message::parse(line).method).collect();
            let expected = [
                "server/discover",
                "initialize",
                "notifications/initialized",
                "tools/list",
                "tools/call",
            ];
            assert_eq!(methods, expected.map(|it| Some(it.to_owned())));
            took
        },
        after: After::Recovers,
    }
}

fn nearly_too_much_garbage() -> Row {
    Row {
        number: "F5b",
        fault: "999 lines of garbage, a notification, 999 lines more, the answer",
        outcome: "the call succeeds; the server is not given up",
        bound: Duration::from_secs(5),
        faulty: |setup| {
            let note = json!({"notify": {"method": "notifications/unheard_of"}});
            let answer = json!({"answer": {"content": [], "plain": true}});
            tool(setup, &json!([garbage(999), note, garbage(999), answer]))
        },
        act: |bench| {
            let took = plain_answer(bench);
            bench.succeeds("t");
            assert_eq!(bench.starts(), 1);
            took
        },
        after: After::Recovers,
    }
}

fn too_much_garbage() -> Row {
    Row {
        number: "F5c",
        fault: "1,000 lines of garbage in a row during a call",
        outcome: "given up: invalid_response, unknown; the next call starts it again",
        bound: Duration::from_secs(5),
        faulty: |setup| tool(setup, &json!([garbage(1000), "hang"])),
        act: |bench| {
            bench.open();
            let took = timed(|| drop(bench.fails("t", &INVALID)));
            bench.succeeds("pid");
            assert_eq!(bench.starts(), 2);
            took
        },
        after: After::Recovers,
    }
}

fn too_much_garbage_at_start() -> Row {
    Row {
        number: "F5d",
        fault: "1,000 lines of garbage in a row at start, and no word of the protocol",
        outcome: "opens without it at once, with the reason",
        bound: Duration::from_secs(5),
        faulty: |setup| {
            let start = json!([garbage(1000), "hang"]).to_string();
            setup.server("fs", &Script::new().set("onStart", &start))
        },
        act: |bench| timed(|| drop(bench.open_without())),
        after: After::StaysDown,
    }
}

fn answered_twice() -> Row {
    Row {
        number: "F18",
        fault: "answers a call twice",
        outcome: "the first answer counts, the second is dropped",
        bound: SOON,
        faulty: |setup| {
            let second = json!({"answer": {"content": [], "second": true}});
            let first = json!({"answer": {"content": [], "plain": true}});
            tool(setup, &json!([first, second]))
        },
        act: plain_answer,
        after: After::Recovers,
    }
}

fn wrong_ids() -> Row {
    Row {
        number: "F19",
        fault: "answers to ids of others, of another type and of none before the right one",
        outcome: "they are dropped; the right answer counts",
        bound: SOON,
        faulty: |setup| {
            let wrong = [
                r#""$ID""#, "$ID.0", "$IDe0", "-$ID", "99$ID", "null", "true", "[$ID]", "{}",
                r#""""#, "1e400",
            ];
            let lines = wrong.map(|id| {
                format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[],"wrong":true}}}}"#)
            });
            let none = r#"{"jsonrpc":"2.0","result":{"content":[],"wrong":true}}"#;
            let error = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"?"}}"#;
            let lines: Vec<&str> = lines
                .iter()
                .map(String::as_str)
                .chain([none, error])
                .collect();
            tool(setup, &before_the_answer(&lines))
        },
        act: plain_answer,
        after: After::Recovers,
    }
}

fn out_of_order() -> Row {
    Row {
        number: "F20",
        fault: "answers twenty calls in the reverse order",
        outcome: "each caller gets its own answer",
        bound: Duration::from_secs(6),
        faulty: |setup| setup.server("fs", &Script::new()),
        act: |bench| {
            bench.open();
            timed(|| {
                let ids: Vec<(u64, String)> = (0..20)
                    .map(|n| {
                        let arguments = json!({"ms": (20 - n) * 20, "n": n}).to_string();
                        (n, bench.workbench.send_use("sleep", &arguments))
                    })
                    .collect();
                bench.healthy();
                for (n, id) in ids {
                    let result = bench.workbench.tool_result(&id);
                    assert_eq!(result.structured()["arguments"]["n"], n);
                }
            })
        },
        after: After::Recovers,
    }
}

fn result_and_error() -> Row {
    Row {
        number: "F21a",
        fault: "answers with both a result and an error",
        outcome: "that call fails at once: invalid_response, unknown; the other one goes on",
        bound: SOON,
        faulty: |setup| {
            let line = r#"{"jsonrpc":"2.0","id":$ID,"result":{"content":[]},"error":{"code":1,"message":"m"}}"#;
            tool(setup, &json!([{"line": line}]))
        },
        act: invalid_answer,
        after: After::Recovers,
    }
}

fn neither_result_nor_error() -> Row {
    Row {
        number: "F21b",
        fault: "answers with neither a result nor an error",
        outcome: "that call fails at once: invalid_response, unknown; the other one goes on",
        bound: SOON,
        faulty: |setup| tool(setup, &json!([{"line": r#"{"jsonrpc":"2.0","id":$ID}"#}])),
        act: invalid_answer,
        after: After::Recovers,
    }
}

fn result_is_no_object() -> Row {
    Row {
        number: "F21c",
        fault: "answers with a result that is no object",
        outcome: "that call fails at once: invalid_response, unknown; the other one goes on",
        bound: SOON,
        faulty: |setup| {
            let line = r#"{"jsonrpc":"2.0","id":$ID,"result":[1,2]}"#;
            tool(setup, &json!([{"line": line}]))
        },
        act: invalid_answer,
        after: After::Recovers,
    }
}

fn duplicate_member() -> Row {
    Row {
        number: "T10a",
        fault: "answers with a message that has two results",
        outcome: "that call fails at once: invalid_response, unknown; the other one goes on",
        bound: SOON,
        faulty: |setup| {
            let line =
                r#"{"jsonrpc":"2.0","id":$ID,"result":{"content":[]},"result":{"content":[]}}"#;
            tool(setup, &json!([{"line": line}]))
        },
        act: invalid_answer,
        after: After::Recovers,
    }
}

fn cut_off_message() -> Row {
    Row {
        number: "T10b",
        fault: "answers with JSON that is cut off in the middle",
        outcome: "that call fails at once: invalid_response, unknown; the other one goes on",
        bound: SOON,
        faulty: |setup| {
            let line =
                r#"{"jsonrpc":"2.0","id":$ID,"result":{"content":[{"type":"text","text":"half"#;
            tool(setup, &json!([{"line": line}]))
        },
        act: invalid_answer,
        after: After::Recovers,
    }
}

fn deep_nesting() -> Row {
    Row {
        number: "T9",
        fault: "answers with a million nested arrays",
        outcome: "that call fails at once: invalid_response, unknown; the other one goes on; memory < base + 64 MiB",
        bound: Duration::from_secs(6),
        faulty: |setup| {
            let nest =
                |text| json!({"fill": {"stream": "stdout", "text": text, "times": 1_000_000}});
            let head = r#"{"jsonrpc":"2.0","id":$ID,"result":{"content":[],"deep":"#;
            let parts = json!([{"stdout": head}, nest("["), nest("]"), {"line": "}}"}]);
            tool(setup, &json!([{"alone": parts}]))
        },
        act: |bench| {
            let base = bench.memory();
            let took = invalid_answer(bench);
            bench.flat_since(base);
            took
        },
        after: After::Recovers,
    }
}

fn answers_after_a_cancel() -> Row {
    Row {
        number: "F33",
        fault: "answers a call that the client has cancelled",
        outcome: "the server is notified with its own id; the client gets nothing",
        bound: SOON,
        faulty: |setup| {
            let answer = json!({"answer": {"content": [], "late": true}});
            tool(setup, &json!(["awaitCancel", answer]))
        },
        act: |bench| {
            bench.open();
            let id = bench.send("t");
            bench.wait_calls(1);
            timed(|| {
                let params = format!(r#"{{"requestId":{id},"reason":{}}}"#, raw_string("enough"));
                bench.workbench.notify("notifications/cancelled", &params);
                let cancelled = bench.journal().wait("cancelled", 1);
                let calls = bench.journal().received("tools/call");
                assert_eq!(Some(cancelled[0].as_str()), calls[0].id());
            })
        },
        after: After::Recovers,
    }
}
