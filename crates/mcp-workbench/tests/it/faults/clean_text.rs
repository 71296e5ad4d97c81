//! S: escape sequences, controls, bidirectional overrides and TAG characters of servers in what we
//! compose. That the log of every row is free of them is checked for all rows.

use std::time::Duration;

use serde_json::json;

use super::{After, Failed, Row, bench::is_hidden, faults, table::timed};
use crate::harness::{Script, Setup};

faults![
    stderr_at_start,
    words_of_a_refusal,
    words_of_an_error,
    stderr_in_a_call,
    names_of_tools,
    garbage_in_the_log,
];

const SOON: Duration = Duration::from_secs(4);

/// One of each kind: escape sequence, bell, C1, override, isolate, TAG, NUL, delete, zero-width space, invisible operator,
/// blank Braille, default-ignorable, private use.
const HIDDEN: &str = "\u{1b}[31mred\u{7}\u{9b}0m\u{202e}evil\u{2066}\u{e0041}\u{0}\u{7f}\u{200b}\u{2062}\u{2800}\u{e0200}\u{e000}end";
const SHOWN: &str = "⟦U+001B⟧[31mred⟦U+0007⟧⟦U+009B⟧0m⟦U+202E⟧evil⟦U+2066⟧⟦U+E0041⟧⟦U+0000⟧⟦U+007F⟧⟦U+200B⟧⟦U+2062⟧⟦U+2800⟧⟦U+E0200⟧⟦U+E000⟧end";

/// A server whose row logs everything.
fn logged(setup: Setup, script: &Script) -> Setup {
    let setup = setup.argument("--log-level").argument("trace");
    setup.server("fs", script)
}

#[track_caller]
fn shown(text: &str) {
    assert!(text.contains(SHOWN), "not shown: {text:?}");
    assert!(!text.contains(is_hidden), "hidden characters: {text:?}");
}

fn stderr_at_start() -> Row {
    Row {
        number: "S1",
        fault: "exits at start with hidden characters on stderr",
        outcome: "they are visible in _errors and in the log",
        bound: SOON,
        faulty: |setup| {
            let actions = json!([{"stderr": HIDDEN}, {"exit": 1}]);
            logged(setup, &Script::new().set("onStart", &actions.to_string()))
        },
        act: |bench| {
            let took = timed(|| shown(&bench.open_without()));
            bench.workbench.wait_stderr(SHOWN);
            took
        },
        after: After::StaysDown,
    }
}

fn words_of_a_refusal() -> Row {
    Row {
        number: "S2",
        fault: "refuses initialize in hidden characters",
        outcome: "they are visible in _errors",
        bound: SOON,
        faulty: |setup| {
            let actions = json!([{"error": {"code": -32600, "message": HIDDEN}}]);
            let script = Script::new().on_method("initialize", &actions.to_string());
            logged(setup, &script)
        },
        act: |bench| timed(|| shown(&bench.open_without())),
        after: After::StaysDown,
    }
}

fn words_of_an_error() -> Row {
    Row {
        number: "S3",
        fault: "answers a call with an error in hidden characters",
        outcome: "they are visible in the error; the code says that the server answered",
        bound: SOON,
        faulty: |setup| {
            let actions = json!([{"error": {"code": -32001, "message": HIDDEN}}]);
            let script = Script::named(&["t", "pid"]).on_call("t", &actions.to_string());
            logged(setup, &script)
        },
        act: |bench| {
            bench.open();
            timed(|| {
                let result = bench.fails("t", &Failed::answered("server_error"));
                shown(result.error());
            })
        },
        after: After::Recovers,
    }
}

fn stderr_in_a_call() -> Row {
    Row {
        number: "S4",
        fault: "exits in a call with hidden characters on stderr",
        outcome: "they are visible in the error and in its details for programs",
        bound: SOON,
        faulty: |setup| {
            let actions = json!([{"stderr": HIDDEN}, {"exit": 1}]);
            let script = Script::named(&["t", "pid"]).on_call("t", &actions.to_string());
            logged(setup, &script)
        },
        act: |bench| {
            bench.open();
            timed(|| {
                let result = bench.fails("t", &Failed::unknown("server_exited"));
                shown(result.error());
                let lines = result.failure()["stderr"].as_array().cloned();
                let lines = lines.unwrap_or_default();
                let lines: Vec<&str> = lines.iter().filter_map(|line| line.as_str()).collect();
                shown(&lines.join(" | "));
            })
        },
        after: After::Recovers,
    }
}

fn names_of_tools() -> Row {
    Row {
        number: "S5",
        fault: "lists a broken tool whose name has hidden characters",
        outcome: "they are visible in withheld",
        bound: SOON,
        faulty: |setup| {
            let good = json!({"name": "pid", "inputSchema": {"type": "object"}});
            let broken = json!({"name": HIDDEN, "inputSchema": 5});
            let script = Script::new().tools(&json!([good, broken]).to_string());
            logged(setup, &script)
        },
        act: |bench| {
            timed(|| {
                let opened = bench.open();
                let name = opened["withheld"][0]["tool"].as_str();
                shown(name.expect("a withheld tool"));
            })
        },
        after: After::Recovers,
    }
}

fn garbage_in_the_log() -> Row {
    Row {
        number: "S6",
        fault: "writes hidden characters as garbage, in methods, in ids and in log messages",
        outcome: "the call succeeds; the log at trace has none of them",
        bound: SOON,
        faulty: |setup| {
            let text = json!(HIDDEN).to_string();
            let method = format!(r#"{{"jsonrpc":"2.0","method":{text}}}"#);
            let request = format!(r#"{{"jsonrpc":"2.0","id":{text},"method":{text}}}"#);
            let answer = format!(r#"{{"jsonrpc":"2.0","id":{text},"result":{{}}}}"#);
            let log = json!({"method": "notifications/message", "params": {"level": "error", "data": HIDDEN}});
            let actions = json!([
                {"line": HIDDEN}, {"line": method}, {"line": request}, {"line": answer},
                {"notify": log}, {"answer": {"content": []}},
            ]);
            let script = Script::named(&["t", "pid"]).on_call("t", &actions.to_string());
            logged(setup, &script)
        },
        act: |bench| {
            bench.open();
            timed(|| drop(bench.succeeds("t")))
        },
        after: After::Recovers,
    }
}
