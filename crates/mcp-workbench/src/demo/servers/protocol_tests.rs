use std::io::Cursor;

use pretty_assertions::assert_eq;

use super::*;

/// Plays a server in memory: the lines in, the answers out.
fn play(server: DemoServer, lines: &[&str]) -> Vec<Value> {
    let mut output = Vec::new();
    run(server, Cursor::new(lines.join("\n")), &mut output).unwrap();
    let output = String::from_utf8(output).unwrap();
    output
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn request(server: DemoServer, method: &str, params: &Value) -> Value {
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let mut answers = play(server, &[&message.to_string()]);
    assert_eq!(answers.len(), 1);
    answers.remove(0)
}

#[test]
fn the_revision_is_echoed_where_it_is_known() {
    for (asked, answered) in [
        (json!("2024-11-05"), "2024-11-05"),
        (json!("2025-03-26"), "2025-03-26"),
        (json!("2025-06-18"), "2025-06-18"),
        (json!("2025-11-25"), "2025-11-25"),
        (json!("2026-07-28"), "2025-11-25"),
        (json!("1"), "2025-11-25"),
        (json!(null), "2025-11-25"),
    ] {
        let answer = request(
            DemoServer::Clock,
            "initialize",
            &json!({"protocolVersion": asked}),
        );
        assert_eq!(answer["result"]["protocolVersion"], answered);
    }
    let answer = request(DemoServer::Calculator, "initialize", &json!({}));
    assert_eq!(
        answer["result"],
        json!({
            "protocolVersion": "2025-11-25",
            "capabilities": { "tools": {} },
            "serverInfo": {
                "name": "demo-calculator",
                "title": "Calculator",
                "version": env!("CARGO_PKG_VERSION")
            }
        })
    );
    let answer = request(DemoServer::Notes, "initialize", &json!({}));
    assert_eq!(
        answer["result"]["instructions"],
        "Notes are kept in memory and are gone when this server stops."
    );
}

#[test]
fn every_kind_of_input_gets_its_answer() {
    let table = [
        (
            r#"{"jsonrpc":"2.0","id":"a","method":"ping"}"#,
            Some((json!("a"), None)),
        ),
        (
            r#"{"jsonrpc":"2.0","id":7,"method":"ping","params":{}}"#,
            Some((json!(7), None)),
        ),
        (
            r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
            None,
        ),
        (
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":[1]}"#,
            None,
        ),
        (r#"{"jsonrpc":"2.0","id":9,"result":{}}"#, None),
        ("   ", None),
        ("{", Some((json!(null), Some(-32700)))),
        ("3", Some((json!(null), Some(-32600)))),
        ("[]", Some((json!(null), Some(-32600)))),
        (
            r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#,
            Some((json!(null), Some(-32600))),
        ),
        (
            r#"{"id":1,"method":"ping"}"#,
            Some((json!(1), Some(-32600))),
        ),
        (
            r#"{"jsonrpc":"2.0","id":2}"#,
            Some((json!(2), Some(-32600))),
        ),
        (
            r#"{"jsonrpc":"2.0","id":2,"method":5}"#,
            Some((json!(2), Some(-32600))),
        ),
        (
            r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
            Some((json!(null), Some(-32600))),
        ),
        (
            r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#,
            Some((json!(null), Some(-32600))),
        ),
        (
            r#"{"jsonrpc":"2.0","id":3,"method":"ping","params":[]}"#,
            Some((json!(3), Some(-32602))),
        ),
        (
            r#"{"jsonrpc":"2.0","id":4,"method":"prompts/list"}"#,
            Some((json!(4), Some(-32601))),
        ),
        (
            r#"{"jsonrpc":"2.0","id":5,"method":"tools/list","params":{"cursor":"x"}}"#,
            Some((json!(5), Some(-32602))),
        ),
        (
            r#"{"jsonrpc":"2.0","id":6,"method":"tools/call","params":{}}"#,
            Some((json!(6), Some(-32602))),
        ),
        (
            r#"{"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"name":"nope"}}"#,
            Some((json!(6), Some(-32602))),
        ),
    ];
    for (line, expected) in table {
        let answers = play(DemoServer::Notes, &[line]);
        let expected: Vec<_> = expected.into_iter().collect();
        let found: Vec<_> = answers
            .iter()
            .map(|answer| (answer["id"].clone(), answer["error"]["code"].as_i64()))
            .collect();
        assert_eq!(found, expected, "{line}");
    }
}

#[test]
fn bad_input_does_not_end_the_server() {
    let too_long = "x".repeat(MAX_LINE + 5);
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let answers = play(DemoServer::Clock, &["nonsense", &too_long, ping]);
    let codes: Vec<_> = answers
        .iter()
        .map(|answer| answer["error"]["code"].as_i64())
        .collect();
    assert_eq!(codes, [Some(-32700), Some(-32600), None]);
}

#[test]
fn batches_are_answered_in_the_one_revision_that_has_them() {
    let initialize = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-03-26"}}"#;
    let batch = r#"[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"x"},4]"#;
    let silent = r#"[{"jsonrpc":"2.0","method":"x"}]"#;
    let answers = play(DemoServer::Clock, &[initialize, batch, silent, "[]"]);
    assert_eq!(answers.len(), 3);
    assert_eq!(
        answers[1][0],
        json!({"jsonrpc": "2.0", "id": 1, "result": {}})
    );
    assert_eq!(answers[1][1]["error"]["code"], -32600);
    assert_eq!(answers[2]["error"]["code"], -32600);
}

#[test]
fn results_are_structured_and_errors_are_results() {
    let call = |params| request(DemoServer::Calculator, "tools/call", &params)["result"].clone();
    assert_eq!(
        call(json!({"name": "evaluate", "arguments": {"expression": "6*7"}})),
        json!({
            "content": [{"type": "text", "text": r#"{"expression":"6 * 7","value":42}"#}],
            "structuredContent": {"expression": "6 * 7", "value": 42}
        })
    );
    for (params, text) in [
        (
            json!({"name": "evaluate", "arguments": {"expression": "1/0"}}),
            "division by zero: `0` is 0; check it, or remove this division",
        ),
        (
            json!({"name": "evaluate"}),
            "argument `expression` is required: it must be a string",
        ),
        (
            json!({"name": "evaluate", "arguments": "1+1"}),
            "`arguments` must be an object, not a string",
        ),
    ] {
        let expected = json!({"content": [{"type": "text", "text": text}], "isError": true});
        assert_eq!(call(params), expected);
    }
}

#[test]
fn notes_last_as_long_as_the_process() {
    let add = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add","arguments":{"text":"x"}}}"#;
    let list = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"list"}}"#;
    let notes =
        |answers: &[Value]| answers[answers.len() - 1]["result"]["structuredContent"].clone();
    assert_eq!(
        notes(&play(DemoServer::Notes, &[add, list])),
        json!({"notes": [{"id": 1, "text": "x"}]})
    );
    assert_eq!(
        notes(&play(DemoServer::Notes, &[list])),
        json!({"notes": []})
    );
}

#[test]
fn every_definition_is_complete() {
    let mut names = Vec::new();
    for server in DemoServer::ALL {
        let answer = request(server, "tools/list", &json!({}));
        for tool in answer["result"]["tools"].as_array().unwrap() {
            let name = tool["name"].as_str().unwrap();
            names.push(format!("{server} {name}"));
            for member in ["title", "description"] {
                assert!(
                    tool[member].as_str().is_some_and(|text| !text.is_empty()),
                    "{name}"
                );
            }
            assert!(tool["annotations"]["readOnlyHint"].is_boolean(), "{name}");
            for schema in [&tool["inputSchema"], &tool["outputSchema"]] {
                check_schema(name, schema);
            }
        }
    }
    assert_eq!(
        names,
        [
            "clock now",
            "clock convert",
            "clock days_between",
            "calculator evaluate",
            "notes add",
            "notes list",
            "notes search",
            "notes remove"
        ]
    );
}

fn check_schema(name: &str, schema: &Value) {
    assert_eq!(
        (&schema["type"], &schema["additionalProperties"]),
        (&json!("object"), &json!(false))
    );
    for required in schema["required"].as_array().into_iter().flatten() {
        let property = &schema["properties"][required.as_str().unwrap()];
        assert!(property["type"].is_string(), "{name}: {required}");
    }
}
