//! F29, F31: messages cut, joined and dressed in every way, and bytes that are no text.

use std::time::Duration;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::{After, Bench, Row, faults, table::timed};
use crate::harness::{Script, Setup};

faults![
    line_ends_and_marks,
    byte_by_byte,
    many_in_one_write,
    nul_bytes,
    invalid_utf8,
];

const SOON: Duration = Duration::from_secs(4);
const ANSWER: &str = r#"{"jsonrpc":"2.0","id":$ID,"result":{"content":[],"plain":true}}"#;
const PLAIN: &str = r#"{"content":[],"plain":true}"#;

fn tool(setup: Setup, actions: &Value) -> Setup {
    let script = Script::named(&["t", "pid"]).on_call("t", &actions.to_string());
    setup.server("fs", &script)
}

fn plain_answer(bench: &mut Bench) -> Duration {
    bench.open();
    timed(|| assert_eq!(bench.call("t").raw, PLAIN))
}

fn line_ends_and_marks() -> Row {
    Row {
        number: "F29a",
        fault: "begins with a byte order mark, ends lines with CRLF, writes blank lines",
        outcome: "transparent",
        bound: SOON,
        faulty: |setup| {
            let actions = json!([{"stdout": format!("\r\n  \n\t\r\n{ANSWER}\r\n\n")}]);
            let script = Script::named(&["t", "pid"])
                .set("onStart", r#"[{"stdout":"$xef$xbb$xbf"}]"#)
                .on_call("t", &actions.to_string());
            setup.server("fs", &script)
        },
        act: plain_answer,
        after: After::Recovers,
    }
}

fn byte_by_byte() -> Row {
    Row {
        number: "F29b",
        fault: "writes its answer byte by byte, a letter of two bytes included",
        outcome: "transparent",
        bound: SOON,
        faulty: |setup| {
            let answer = r#"{"jsonrpc":"2.0","id":$ID,"result":{"content":[],"letter":"ü"}}"#;
            tool(setup, &json!([{"bytewise": format!("{answer}\n")}]))
        },
        act: |bench| {
            bench.open();
            timed(|| assert_eq!(bench.call("t").raw, r#"{"content":[],"letter":"ü"}"#))
        },
        after: After::Recovers,
    }
}

fn many_in_one_write() -> Row {
    Row {
        number: "F29c",
        fault: "writes a thousand notifications, garbage and its answer at once",
        outcome: "transparent",
        bound: SOON,
        faulty: |setup| {
            let note = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/unheard_of\"}\n";
            let text = format!("{}garbage\n{ANSWER}\n{note}", note.repeat(1000));
            tool(setup, &json!([{"stdout": text}]))
        },
        act: plain_answer,
        after: After::Recovers,
    }
}

fn nul_bytes() -> Row {
    Row {
        number: "F31a",
        fault: "writes NUL bytes, on lines of their own and inside the text of its answer",
        outcome: "the call is answered at once: repaired, or invalid_response",
        bound: SOON,
        faulty: |setup| {
            let text = r#"{"jsonrpc":"2.0","id":$ID,"result":{"content":[{"type":"text","text":"a$x00b"}]}}"#;
            tool(
                setup,
                &json!([{"line": "$x00$x00$x00"}, {"line": text}, {"line": "$x00"}]),
            )
        },
        act: |bench| {
            bench.open();
            timed(|| {
                let result = bench.call("t");
                if result.failed() {
                    assert_eq!(result.failure()["code"], "invalid_response");
                } else {
                    assert!(["a\u{fffd}b", "a\0b"].contains(&result.text()));
                }
            })
        },
        after: After::Recovers,
    }
}

fn invalid_utf8() -> Row {
    Row {
        number: "F31b",
        fault: "writes every byte from 80 to FF and a lone surrogate inside the text of its answer",
        outcome: "the answer is delivered with U+FFFD in their place",
        bound: SOON,
        faulty: |setup| {
            let bytes = (0x80..=0xff_u32).map(|byte| format!("-$x{byte:02x}"));
            let bytes = bytes.collect::<Vec<_>>().concat();
            let text = format!(
                r#"{{"jsonrpc":"2.0","id":$ID,"result":{{"content":[{{"type":"text","text":"{bytes}-\ud83d"}}]}}}}"#
            );
            tool(setup, &json!([{"line": text}]))
        },
        act: |bench| {
            bench.open();
            timed(|| {
                let result = bench.call("t");
                assert_eq!(result.text(), "-\u{fffd}".repeat(129));
            })
        },
        after: After::Recovers,
    }
}
