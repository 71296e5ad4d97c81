//! V: the value of a variable in what we compose. Each row puts one into the entry of a server and
//! makes the server fail in a way that would tell it. That neither stdout nor the log at trace holds
//! its beginning is checked for all rows.

use std::time::Duration;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::{After, Bench, Failed, Row, bench::CANARY, faults, table::timed};
use crate::harness::{Script, Setup};

faults![
    in_the_command,
    in_the_directory,
    in_arguments_and_on_stderr,
    cut_in_the_middle,
    in_a_refusal,
    in_an_error,
    in_other_notations,
    on_stderr_in_a_call,
    in_garbage,
    in_a_url_and_headers,
];

const SOON: Duration = Duration::from_secs(4);
const VARIABLE: &str = "${WB_CANARY_TOKEN}";

/// A server with these keys in its entry, and a log of everything.
fn with(setup: Setup, script: &Script, keys: &Value) -> Setup {
    logged(setup).server_with("fs", script, keys)
}

fn logged(setup: Setup) -> Setup {
    let setup = setup.argument("--log-level").argument("trace");
    setup.env("WB_CANARY_TOKEN", CANARY)
}

/// A server that has the variable in its environment and does this in its call `t`.
fn calling(setup: Setup, actions: &Value) -> Setup {
    let script = Script::named(&["t", "pid"]).on_call("t", &actions.to_string());
    with(setup, &script, &json!({"env": {"TOKEN": VARIABLE}}))
}

/// A text of a server that tells the secret.
fn telling() -> String {
    format!("the token {CANARY} is not valid")
}

/// Opens the toolbox without the server, for a reason that holds this.
fn fails_for(bench: &mut Bench, part: &str) -> Duration {
    timed(|| {
        let reason = bench.open_without();
        assert!(reason.contains(part), "{reason}");
    })
}

fn in_the_command() -> Row {
    Row {
        number: "V1",
        fault: "a variable in a command that does not exist",
        outcome: "[redacted] in _errors; nowhere in stdout or the log at trace",
        bound: SOON,
        faulty: |setup| {
            let keys = json!({"command": format!("/opt/{VARIABLE}/server")});
            with(setup, &Script::new(), &keys)
        },
        act: |bench| fails_for(bench, "command '/opt/[redacted]/server' not found"),
        after: After::StaysDown,
    }
}

fn in_the_directory() -> Row {
    Row {
        number: "V2",
        fault: "a variable in a cwd that does not exist",
        outcome: "[redacted] in _errors; nowhere in stdout or the log at trace",
        bound: SOON,
        faulty: |setup| {
            let keys = json!({"cwd": format!("/no/such/{VARIABLE}")});
            with(setup, &Script::new(), &keys)
        },
        act: |bench| fails_for(bench, "working directory '/no/such/[redacted]' not found"),
        after: After::StaysDown,
    }
}

fn in_arguments_and_on_stderr() -> Row {
    Row {
        number: "V3",
        fault: "a variable in the arguments of a server that echoes it on stderr and exits at start",
        outcome: "[redacted] in _errors; nowhere in stdout or the log at trace",
        bound: SOON,
        faulty: |setup| {
            let actions = json!([{"stderr": telling()}, {"exit": 2}]);
            let script = Script::new().set("onStart", &actions.to_string());
            let keys = json!({"args": ["--token", VARIABLE, format!("--url=x?k={VARIABLE}")]});
            with(setup, &script, &keys)
        },
        act: |bench| fails_for(bench, "the token [redacted] is not valid"),
        after: After::StaysDown,
    }
}

fn cut_in_the_middle() -> Row {
    Row {
        number: "V4",
        fault: "echoes a variable on long lines of stderr, each time at another place, and exits",
        outcome: "no part of it anywhere, wherever lines and tails are cut",
        bound: SOON,
        faulty: |setup| {
            let lengths = [100, 480, 490, 980, 1000, 1985, 1990, 4080, 4090, 65_525];
            let mut actions: Vec<Value> = lengths
                .iter()
                .map(|length| json!({"stderr": format!("{}{CANARY}", "x".repeat(*length))}))
                .collect();
            actions.push(json!({"stderr": format!("{}{CANARY}", "x".repeat(1989))}));
            actions.push(json!({"exit": 2}));
            let script = Script::new().set("onStart", &Value::from(actions).to_string());
            with(setup, &script, &json!({"env": {"TOKEN": VARIABLE}}))
        },
        act: |bench| fails_for(bench, "exited with code 2"),
        after: After::StaysDown,
    }
}

fn in_a_refusal() -> Row {
    Row {
        number: "V5",
        fault: "refuses initialize with words that tell a variable",
        outcome: "[redacted] in _errors; nowhere in stdout or the log at trace",
        bound: SOON,
        faulty: |setup| {
            let actions = json!([{"error": {"code": -32000, "message": telling()}}]);
            let script = Script::new().on_method("initialize", &actions.to_string());
            with(setup, &script, &json!({"env": {"TOKEN": VARIABLE}}))
        },
        act: |bench| fails_for(bench, "the token [redacted] is not valid"),
        after: After::StaysDown,
    }
}

fn in_an_error() -> Row {
    Row {
        number: "V6",
        fault: "answers a call with an error that tells a variable",
        outcome: "[redacted] in the error; nowhere in stdout or the log at trace",
        bound: SOON,
        faulty: |setup| {
            let error = json!({"code": -32000, "message": telling()});
            calling(setup, &json!([{"error": error}]))
        },
        act: |bench| {
            bench.open();
            timed(|| {
                let result = bench.fails("t", &Failed::answered("server_error"));
                assert_eq!(
                    result.error(),
                    "Error executing tool 't' in server 'fs' (toolbox 'dev'): the token [redacted] is not valid"
                );
            })
        },
        after: After::Recovers,
    }
}

fn in_other_notations() -> Row {
    Row {
        number: "V6b",
        fault: "answers a call with an error that tells a variable percent-encoded, escaped for JSON and broken over lines",
        outcome: "[redacted] in the error; nowhere in stdout or the log at trace",
        bound: SOON,
        faulty: |setup| {
            let escaped = |escape: fn(u8) -> String| -> String {
                let escapes: Vec<String> = CANARY.bytes().map(escape).collect();
                escapes.concat()
            };
            let percent = escaped(|byte| format!("%{byte:02x}"));
            let json = escaped(|byte| format!("\\u{byte:04x}"));
            let (first, second) = CANARY.split_at(CANARY.len() / 2);
            let message = format!("{percent}, {json}, {first}\r{second}");
            calling(
                setup,
                &json!([{"error": {"code": -32000, "message": message}}]),
            )
        },
        act: |bench| {
            bench.open();
            timed(|| {
                let result = bench.fails("t", &Failed::answered("server_error"));
                let text = result.error();
                let expected = "(toolbox 'dev'): [redacted], [redacted], [redacted]";
                assert!(text.ends_with(expected), "{text}");
            })
        },
        after: After::Recovers,
    }
}

fn on_stderr_in_a_call() -> Row {
    Row {
        number: "V7",
        fault: "echoes a variable on stderr and exits in a call",
        outcome: "[redacted] in the error; nowhere in stdout or the log at trace",
        bound: SOON,
        faulty: |setup| calling(setup, &json!([{"stderr": telling()}, {"exit": 1}])),
        act: |bench| {
            bench.open();
            timed(|| {
                let result = bench.fails("t", &Failed::unknown("server_exited"));
                let text = result.error();
                assert!(text.contains("the token [redacted] is not valid"), "{text}");
            })
        },
        after: After::Recovers,
    }
}

fn in_garbage() -> Row {
    Row {
        number: "V8",
        fault: "tells a variable in garbage and in the methods of notifications and requests",
        outcome: "nowhere in stdout or the log at trace",
        bound: SOON,
        faulty: |setup| {
            let method = format!(r#"{{"jsonrpc":"2.0","method":"{CANARY}"}}"#);
            let request = json!({"method": CANARY});
            let answer = json!({"answer": {"content": []}});
            let actions =
                json!([{"line": telling()}, {"line": method}, {"request": request}, answer]);
            calling(setup, &actions)
        },
        act: |bench| {
            bench.open();
            timed(|| drop(bench.succeeds("t")))
        },
        after: After::Recovers,
    }
}

fn in_a_url_and_headers() -> Row {
    Row {
        number: "V9",
        fault: "a variable in the url and the headers of a server that cannot be reached",
        outcome: "opens without it; nowhere in stdout or the log at trace",
        bound: Duration::from_secs(15),
        faulty: |setup| {
            let entry = json!({
                "url": format!("http://127.0.0.1:9/mcp?key={VARIABLE}"),
                "headers": {"Authorization": format!("Bearer {VARIABLE}")},
            });
            logged(setup).entry("fs", entry)
        },
        act: |bench| timed(|| drop(bench.open_without())),
        after: After::StaysDown,
    }
}
