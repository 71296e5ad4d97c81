//! The forms of responses: empty, JSON or events. Clients never get each other's.

use pretty_assertions::assert_eq;
use serde_json::json;

use crate::harness::{
    Fault, Script, Setup, ToolResult, call_params, initialize_params, request_text, use_params,
};

#[test]
fn notifications_get_202_and_immediate_answers_are_json() {
    let served = Setup::one(&Script::new()).serve();
    let mut client = served.client();
    for body in [
        r#"{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}"#,
        r#"{"jsonrpc":"2.0","id":77,"result":{}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":9}}"#,
    ] {
        let response = client.post(body);
        assert_eq!((response.head.status, response.body.as_str()), (202, ""));
    }
    let response = client.post(&request_text("\"a\"", "ping", "{}"));
    assert_eq!(response.head.status, 200);
    assert_eq!(
        response.body,
        "{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"result\":{}}\n"
    );
    assert_eq!(
        response.head.header("content-type"),
        Some("application/json")
    );
    let unknown = client.post(&request_text("5", "no/such", "{}"));
    assert_eq!(unknown.head.status, 200);
    assert_eq!(unknown.message().error().code, -32601);
}

#[test]
fn invalid_messages_are_refused_and_the_session_continues() {
    let served = Setup::new().serve();
    let mut client = served.client();
    for (body, code) in [
        ("", -32700),
        ("{", -32700),
        ("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\nb\"}", -32700),
        ("[]", -32600),
        (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, -32600),
        (r#"{"id":1}"#, -32600),
        ("7", -32600),
    ] {
        let response = client.post(body);
        assert_eq!(response.head.status, 400, "{body}");
        assert_eq!(response.message().error().code, code, "{body}");
    }
    assert_eq!(client.ask("ping", "{}").raw_result(), "{}");
}

#[test]
fn a_batch_gets_one_response_if_the_revision_has_batches() {
    let served = Setup::new().serve();
    let mut client = served.client_with(&initialize_params("2025-03-26"));
    let ping = |id: u32| request_text(&id.to_string(), "ping", "{}");
    let note = r#"{"jsonrpc":"2.0","method":"notifications/x"}"#;
    let response = client.post(&format!("[{},{note},{}]", ping(1), ping(2)));
    let answers: serde_json::Value = serde_json::from_str(&response.body).unwrap();
    let mut ids: Vec<u64> = answers
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["id"].as_u64().unwrap())
        .collect();
    ids.sort_unstable();
    assert_eq!(ids, [1, 2]);
    assert_eq!(client.post(&format!("[{note},{note}]")).head.status, 202);
    assert_eq!(
        client.listen(None).head().status,
        200,
        "a batch ends no other stream"
    );
}

#[test]
fn arguments_are_put_on_one_line_and_results_are_unchanged() {
    let result = r#"{"content":[],"z":1e400,"a":[ 1 ,2],"text":"ü\u00fc\n"}"#;
    let script = Script::named(&["odd"]).answers("odd", result);
    let served = Setup::one(&script).serve();
    let mut client = served.client();
    client.open();
    let params = "{\n \"name\": \"use_tool\",\r\n \"arguments\": {\"tool\":{\"toolbox\":\"dev\",\"server\":\"fs\",\"tool\":\"odd\"},\n\"arguments\":{\"a\":\n1,\r\n\"b\":\"\\n\"}}}";
    assert_eq!(client.ask("tools/call", params).raw_result(), result);
    let journal = served.workbench.journal("dev", "fs");
    assert_eq!(journal.arguments(), [r#"{"a": 1,  "b":"\n"}"#]);
}

#[test]
fn headers_that_name_a_different_tool_are_ignored() {
    let fault = Fault::within(
        8,
        "T28",
        "headers name a harmless method and an allowed tool, the body calls a disabled one",
        "the body alone decides: the call is refused and never reaches the server",
    );
    let nothing = r#"{"content":[]}"#;
    let script = Script::named(&["safe", "evil"]);
    let script = script.answers("safe", nothing).answers("evil", nothing);
    let keys = json!({"disabledTools": ["evil"]});
    let setup = Setup::new().toolbox("dev", "d");
    let served = setup.server_with("fs", &script, &keys).serve();
    let mut client = served.client();
    client.open();
    let ask = |tool: &str, method: &str, name: &str| {
        let body = request_text("1", "tools/call", &use_params(tool, "{}"));
        let request = client.posting(&body);
        let request = request.header("mcp-method", method);
        let response = served.connection().ask(&request.header("mcp-name", name));
        ToolResult::of(&response.message())
    };
    for (method, name) in [("ping", ""), ("tools/call", "safe"), ("tools/list", "evil")] {
        let refused = ask("evil", method, name);
        let reason = "Tool 'evil' not found";
        assert!(refused.error().starts_with(reason), "{}", refused.raw);
        let allowed = ask("safe", method, name);
        assert_eq!(allowed.raw, nothing);
    }
    let called = served.workbench.journal("dev", "fs").called();
    assert_eq!(called, [r#""safe""#; 3]);
    fault.ends();
}

#[test]
fn two_clients_with_the_same_ids_never_get_each_others_answers() {
    let fault = Fault::within(
        15,
        "T30a",
        "two clients call one server at the same time under the same ids, and one cancels",
        "each gets its own answers; the cancel does not reach the other",
    );
    let served = Setup::one(&Script::new()).serve();
    let mut clients = [served.client(), served.client()];
    clients[0].open();
    let mut connections = Vec::new();
    for round in 0..20 {
        for (index, client) in clients.iter().enumerate() {
            let arguments = format!(
                r#"{{"tool":{{"toolbox":"dev","server":"fs","tool":"echo"}},"arguments":{{"of":{index}}}}}"#
            );
            let params = call_params("use_tool", &arguments);
            let connection = client.begin(&round.to_string(), "tools/call", &params);
            connections.push((round, index, connection));
        }
    }
    for (round, index, mut connection) in connections {
        let answer = connection.response().message();
        assert!(answer.answers(&round.to_string()), "{}", answer.line);
        let echoed = ToolResult::of(&answer).structured();
        assert_eq!(echoed["arguments"]["of"], index, "{}", answer.line);
    }
    let pids: Vec<u32> = served.workbench.journal("dev", "fs").pids();
    assert_eq!(pids.len(), 1, "one workbench, one server");
    // A cancel of the one does not reach the other.
    let mut other = clients[1].begin("7", "tools/call", &use_params("sleep", "{}"));
    clients[0]
        .post(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}"#);
    assert!(other.response().message().answers("7"));
    fault.ends();
}

#[test]
fn large_results_arrive_whole() {
    let served = Setup::one(&Script::new()).serve();
    let mut client = served.client();
    client.open();
    let result = client.use_tool("big", r#"{"size":5000000}"#);
    assert_eq!(result.text().len(), 5_000_000);
}
