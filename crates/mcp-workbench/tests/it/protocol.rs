//! The protocol on the wire: malformed input, ids, revisions, batches, what is not offered.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::harness::{Message, Script, Setup};

#[test]
fn malformed_input_is_answered_and_the_process_continues() {
    let rows: &[(&str, i64, &str)] = &[
        ("not json", -32700, "null"),
        (r#"{"jsonrpc":"2.0","id":1,"#, -32700, "null"),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"ping"} x"#,
            -32700,
            "null",
        ),
        ("1", -32600, "null"),
        (r#""text""#, -32600, "null"),
        ("null", -32600, "null"),
        ("true", -32600, "null"),
        ("{}", -32600, "null"),
        ("[]", -32600, "null"),
        (
            r#"[{"jsonrpc":"2.0","id":5,"method":"ping"}]"#,
            -32600,
            "null",
        ),
        (r#"{"jsonrpc":"2.0","id":7}"#, -32600, "7"),
        (r#"{"jsonrpc":"1.0","id":8,"method":"ping"}"#, -32600, "8"),
        (r#"{"id":"nine","method":"ping"}"#, -32600, r#""nine""#),
        (r#"{"jsonrpc":"2.0","id":10,"method":5}"#, -32600, "10"),
        (
            r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#,
            -32600,
            "null",
        ),
        (
            r#"{"jsonrpc":"2.0","id":true,"method":"ping"}"#,
            -32600,
            "null",
        ),
    ];
    let mut workbench = Setup::new().connect();
    for (line, code, id) in rows {
        workbench.send_line(line);
        let answer = workbench.next_message();
        assert_eq!(
            (answer.error().code, answer.id()),
            (*code, Some(*id)),
            "{line}"
        );
        assert!(!answer.error().message.is_empty(), "{line}");
        assert_eq!(workbench.ask("ping", "{}").raw_result(), "{}");
    }
}

#[test]
fn unexpected_answers_and_unknown_notifications_are_ignored() {
    let rows = [
        r#"{"jsonrpc":"2.0","id":99,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":"x","error":{"code":1,"message":"m"}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/unheard_of"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/unheard_of","params":{"a":[1]}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}"#,
    ];
    let mut workbench = Setup::new().connect();
    for line in rows {
        workbench.send_line(line);
        let id = workbench.request("ping", "{}");
        assert!(workbench.next_message().answers(&id), "after {line}");
    }
}

#[test]
fn ids_are_returned_as_they_were_sent() {
    let ids = [
        "0",
        "-1",
        "7",
        r#""7""#,
        r#""""#,
        "9007199254740993",
        "123456789012345678901234567890",
        r#""a b/ü\"工""#,
        r#""0123456789012345678901234567890123456789012345678901234567890123456789""#,
    ];
    let mut workbench = Setup::one(&Script::new()).connect();
    workbench.open("dev");
    for id in ids {
        workbench.send_request(id, "ping", "{}");
        assert_eq!(workbench.next_message().id(), Some(id));
        let params = r#"{"name":"use_tool","arguments":{"tool":{"toolbox":"dev","server":"fs","tool":"pid"}}}"#;
        workbench.send_request(id, "tools/call", params);
        assert_eq!(workbench.next_message().id(), Some(id));
        workbench.send_request(id, "unheard/of", "{}");
        assert_eq!(workbench.next_message().id(), Some(id));
    }
}

#[test]
fn two_requests_in_flight_with_one_id_are_both_answered() {
    let mut workbench = Setup::one(&Script::new()).connect();
    workbench.open("dev");
    for n in [1, 2] {
        let arguments = format!(
            r#"{{"tool":{{"toolbox":"dev","server":"fs","tool":"sleep"}},"arguments":{{"ms":200,"n":{n}}}}}"#
        );
        let params = format!(r#"{{"name":"use_tool","arguments":{arguments}}}"#);
        workbench.send_request("\"same\"", "tools/call", &params);
    }
    let mut seen: Vec<Value> = (0..2)
        .map(|_| workbench.tool_result("\"same\"").structured()["arguments"]["n"].clone())
        .collect();
    seen.sort_by_key(Value::as_u64);
    assert_eq!(seen, [json!(1), json!(2)]);
}

#[test]
fn the_revision_is_negotiated() {
    let rows = [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("1999-01-01", "2025-11-25"),
        ("not a revision", "2025-11-25"),
    ];
    for (asked, answered) in rows {
        let mut workbench = Setup::new().start();
        let result = workbench.initialize_as(asked);
        assert_eq!(result["protocolVersion"], answered, "{asked}");
        assert_eq!(workbench.ask("ping", "{}").raw_result(), "{}");
    }
}

#[test]
fn initialize_names_the_workbench_and_its_capabilities() {
    let mut workbench = Setup::new().start();
    let result = workbench.initialize();
    assert_eq!(result["serverInfo"]["name"], "mcp-workbench");
    assert_eq!(result["serverInfo"]["version"], env!("CARGO_PKG_VERSION"));
    let capabilities = result["capabilities"].as_object().unwrap();
    for family in ["tools", "logging", "resources", "prompts", "completions"] {
        assert!(capabilities.contains_key(family), "{capabilities:?}");
    }
}

#[test]
fn ping_is_answered_before_the_handshake() {
    let mut workbench = Setup::new().start();
    assert_eq!(workbench.ask("ping", "{}").raw_result(), "{}");
    workbench.send_line(r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#);
    assert_eq!(workbench.response("\"p\"").raw_result(), "{}");
}

#[test]
fn methods_of_undeclared_capabilities_are_not_found() {
    let methods = [
        "resources/subscribe",
        "sampling/createMessage",
        "unheard/of",
        "",
    ];
    let mut workbench = Setup::new().connect();
    for method in methods {
        assert_eq!(
            workbench.ask(method, "{}").error().code,
            -32601,
            "{method:?}"
        );
    }
}

#[test]
fn batches_are_accepted_only_at_2025_03_26() {
    let mut workbench = Setup::new().start();
    workbench.initialize_as("2025-03-26");
    workbench.send_line(
        r#"[{"jsonrpc":"2.0","id":"a","method":"ping"},{"jsonrpc":"2.0","method":"notifications/unheard_of"},5,{"jsonrpc":"2.0","id":"b","method":"unheard/of"}]"#,
    );
    let mut answers = batch(&workbench.next_line());
    answers.sort_by_key(|answer| answer.id().map(str::to_owned));
    let ids: Vec<_> = answers.iter().map(Message::id).collect();
    assert_eq!(ids, [Some("\"a\""), Some("\"b\""), Some("null")]);
    assert_eq!(answers[0].raw_result(), "{}");
    assert_eq!(answers[1].error().code, -32601);
    assert_eq!(answers[2].error().code, -32600);

    // Nothing is said to a batch of notifications; an empty one is no batch.
    workbench.send_line(r#"[{"jsonrpc":"2.0","method":"notifications/unheard_of"}]"#);
    workbench.send_line("[]");
    let answer = workbench.next_message();
    assert_eq!((answer.error().code, answer.id()), (-32600, Some("null")));

    for version in ["2024-11-05", "2025-06-18", "2025-11-25"] {
        let mut workbench = Setup::new().start();
        workbench.initialize_as(version);
        workbench.send_line(r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#);
        assert_eq!(workbench.next_message().error().code, -32600, "{version}");
    }
}

fn batch(line: &str) -> Vec<Message> {
    let parts: Vec<Box<serde_json::value::RawValue>> =
        serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: no batch: {line}"));
    let parts = parts.iter().map(|part| part.get().to_owned());
    parts.map(Message::parse).collect()
}

#[test]
fn requests_run_concurrently() {
    let gated = |file: &str| format!(r#"[{{"awaitFile":"{file}"}},{{"answer":{{"content":[]}}}}]"#);
    let setup = Setup::new();
    let gate = setup.path("gate").to_str().unwrap().to_owned();
    let script = Script::named(&["slow", "echo"]).on_call("slow", &gated(&gate));
    let mut workbench = setup.toolbox("dev", "d").server("fs", &script).connect();
    workbench.open("dev");
    let slow = workbench.send_use("slow", "{}");
    let quick = workbench.send_use("echo", "{}");
    assert!(
        workbench.next_message().answers(&quick),
        "the second overtakes"
    );
    workbench.setup.write("gate", "");
    assert!(workbench.next_message().answers(&slow));
}

#[test]
fn in_proxy_mode_other_names_than_meta_tools_are_protocol_errors() {
    let mut workbench = Setup::one(&Script::named(&["read_file"])).connect();
    for round in ["closed", "open"] {
        for name in ["read_file", "dev__fs__read_file", "", "open_toolbox "] {
            let params = json!({"name": name, "arguments": {}}).to_string();
            let answer = workbench.ask("tools/call", &params);
            assert_eq!(answer.error().code, -32602, "{name:?}, {round}");
        }
        workbench.open("dev");
    }
}
