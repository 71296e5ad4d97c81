//! The harness itself: a fixture server over HTTP, asked directly and through a legacy workbench.

use pretty_assertions::assert_eq;
use serde_json::json;

use super::{
    HttpConnection, InputRequired, ModernClient, ModernRequest, RemoteFixture, Script, ToolResult,
    asks,
};

/// A modern server whose tool `ask` asks two rounds.
fn asking() -> Script {
    let rounds = r#"[{"rounds":{"rounds":[
        {"inputRequests":{"a":{"method":"elicitation/create","params":{"message":"who?"}}},"requestState":"s-$N"},
        {"requestState":"t-$N"},
        {"inputRequests":{"b":{"method":"roots/list"}},"requestState":"u-$N"}]}}]"#;
    Script::named(&["ask"])
        .set("era", r#""modern""#)
        .on_call("ask", rounds)
}

#[test]
fn a_modern_request_is_asked_round_by_round() {
    let mut server = RemoteFixture::start(&asking());
    let request = ModernRequest::call("ask", "{}").capabilities(r#"{"elicitation":{}}"#);
    let asked = server.ask_for_questions(&request);
    let (key, question) = asked.only();
    assert_eq!((key, &question["params"]["message"]), ("a", &json!("who?")));
    let waits = server.ask_modern(&request.retry(&asked, r#"{"a":1}"#));
    assert!(asks(&waits));
    let asked = server.ask_for_questions(&request.retry_bare(&InputRequired::of(&waits)));
    let result = server.call_modern(&request.retry(&asked, r#"{"b":2}"#));
    let told = &result.structured()["told"];
    assert_eq!(told, &json!([{"a": 1}, null, {"b": 2}]));

    let last = server.answer_all(&request, |key, _| format!(r#"{{"of":"{key}"}}"#));
    let told = ToolResult::of(&last).structured()["told"].clone();
    assert_eq!(told[2], json!({"b": {"of": "b"}}));
    let calls = server.journal().received("tools/call");
    let meta = &calls[0].params()["_meta"];
    let declared = &meta["io.modelcontextprotocol/clientCapabilities"];
    assert_eq!(declared, &json!({"elicitation": {}}));
    assert_eq!(server.headers()[0]["mcp-name"], "ask");
}

#[test]
fn tests_control_the_meta_of_modern_requests() {
    let log = r#"[{"log":{"level":"error","data":1}},{"progress":{"progress":1}},{"answer":{}}]"#;
    let script = Script::named(&["log"])
        .set("era", r#""modern""#)
        .on_call("log", log);
    let mut server = RemoteFixture::start(&script);
    let request = ModernRequest::call("log", "{}");
    let loud = request.clone().log_level("info").progress_token("7");
    let response = HttpConnection::open(server.address).ask(&server.modern_post("1", &loud));
    assert_eq!(response.events().len(), 3);
    let bare = server.ask_modern(&request.clone().without_meta("clientCapabilities"));
    assert_eq!(bare.error().code, -32602);
    let odd = server.ask_modern(&request.version("2027-01-01"));
    assert_eq!(odd.error().code, -32022);
}

#[test]
fn a_legacy_fixture_over_http_asks_through_the_workbench() {
    let ask = r#"[{"request":{"method":"roots/list"}},
        {"line":"{\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":{\"content\":[],\"told\":$REPLY}}"}]"#;
    let server = RemoteFixture::start(&Script::named(&["ask"]).on_call("ask", ask));
    let setup = server.setup().top("roots", json!(["file:///z"]));
    let mut workbench = setup.connect();
    workbench.open("dev");
    let result = workbench.use_tool("ask", "{}");
    assert!(result.raw.contains("file:///z"), "{}", result.raw);
}

#[test]
fn meta_tools_are_called_by_requests_with_headers() {
    let rows = [
        (ModernRequest::open("dev"), "open_toolbox"),
        (
            ModernRequest::use_tool("read", r#"{"z":1e400}"#),
            "use_tool",
        ),
    ];
    for (request, name) in rows {
        let headers = [
            ("mcp-method", "tools/call".to_owned()),
            ("mcp-protocol-version", "2026-07-28".to_owned()),
            ("mcp-name", name.to_owned()),
        ];
        assert_eq!(request.headers(), headers);
    }
}
