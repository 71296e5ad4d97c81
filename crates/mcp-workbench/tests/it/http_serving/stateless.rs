//! Requests without a session: headers and body match, and each request is independent.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::harness::{
    HttpConnection, HttpRequest, Message, Script, Served, Setup, ToolResult, initialize_params,
    request_text,
};

const VERSION: &str = "mcp-protocol-version";

fn meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "it", "version": "1"},
        "progressToken": "t",
    })
}

/// A request without a session, with its headers.
pub(super) fn asking(served: &Served, method: &str, mut params: Value) -> HttpRequest {
    params["_meta"] = meta();
    let request = served
        .post(&request_text("5", method, &params.to_string()))
        .header(VERSION, "2026-07-28")
        .header("mcp-method", method);
    match params["name"].as_str() {
        Some(name) => request.header("mcp-name", name),
        None => request,
    }
}

fn calling(served: &Served, server: &str, tool: &str) -> HttpRequest {
    let target = json!({"toolbox": "dev", "server": server, "tool": tool});
    let arguments = json!({"tool": target, "arguments": {}});
    let params = json!({"name": "use_tool", "arguments": arguments});
    asking(served, "tools/call", params)
}

pub(super) fn open(served: &Served) {
    let params = json!({"name": "open_toolbox", "arguments": {"toolbox": "dev"}});
    let opened = served
        .connection()
        .ask(&asking(served, "tools/call", params));
    assert_eq!(opened.head.status, 200, "{opened:?}");
}

pub(super) fn begin(served: &Served, tool: &str) -> HttpConnection {
    begin_at(served, "fs", tool)
}

pub(super) fn begin_at(served: &Served, server: &str, tool: &str) -> HttpConnection {
    let mut connection = served.connection();
    connection.send(&calling(served, server, tool));
    connection
}

fn code_of(message: &Message) -> Option<i64> {
    message.is_error().then(|| message.error().code)
}

/// Asks, and compares the status and the code of an error; 0 stands for a result.
fn check(served: &Served, (name, request, status, code): (&str, HttpRequest, u16, i64)) {
    let response = served.connection().ask(&request);
    assert_eq!(response.head.status, status, "{name}: {}", response.body);
    let message = response.message();
    assert!(message.answers("5"), "{name}: {}", message.line);
    assert_eq!(code_of(&message).unwrap_or(0), code, "{name}");
    assert_eq!(response.head.header("mcp-session-id"), None, "{name}");
}

#[test]
fn the_revision_is_required_in_header_and_body() {
    let served = Setup::new().serve();
    let list = || asking(&served, "tools/list", json!({}));
    let body = |params: &str| request_text("5", "tools/list", params);
    let other = meta().to_string().replace("2026-07-28", "v999");
    let other = body(&format!(r#"{{"_meta":{other}}}"#));
    let mut loud = meta();
    loud["io.modelcontextprotocol/logLevel"] = json!("loud");
    let loud = body(&json!({"_meta": loud}).to_string());
    let session = list().header("mcp-session-id", "x");
    let duplicate = list().header(VERSION, "2026-07-28");
    let unknown = list().with(VERSION, "v999").body(&other);
    for case in [
        ("nothing wrong", list(), 200, 0),
        ("session", session.header("last-event-id", "1-1"), 200, 0),
        ("no version", list().without(VERSION), 400, -32020),
        ("two versions", duplicate, 400, -32020),
        ("another", list().with(VERSION, "2025-11-25"), 400, -32020),
        ("another in the body", list().body(&other), 400, -32020),
        ("unknown", unknown, 400, -32022),
        ("no _meta", list().body(&body("{}")), 400, -32602),
        ("unknown level", list().body(&loud), 400, -32602),
    ] {
        check(&served, case);
    }
}

#[test]
fn method_and_name_are_required_in_header_and_body() {
    const METHOD: &str = "mcp-method";
    const NAME: &str = "mcp-name";
    let served = Setup::new().serve();
    let list = || asking(&served, "tools/list", json!({}));
    let params = json!({"name": "open_toolbox", "arguments": {"toolbox": "x"}});
    let call = || asking(&served, "tools/call", params.clone());
    let capitals = list().without(METHOD).header("MCP-METHOD", "tools/list");
    let broken = call().with(NAME, "=?base64?b3Blbl90b29sYm94=?=");
    let unknown = asking(&served, "no/such", json!({}));
    for case in [
        (
            "space around",
            call().with(NAME, "  open_toolbox  "),
            200,
            0,
        ),
        ("capitals", capitals, 200, 0),
        ("no method", list().without(METHOD), 400, -32020),
        ("another", list().with(METHOD, "ping"), 400, -32020),
        ("shouted", list().with(METHOD, "TOOLS/LIST"), 400, -32020),
        ("no name", call().without(NAME), 400, -32020),
        ("another name", call().with(NAME, "use_tool"), 400, -32020),
        (
            "two names",
            call().header(NAME, "open_toolbox"),
            400,
            -32020,
        ),
        ("broken name", broken, 400, -32020),
        ("unknown method", unknown, 404, -32601),
    ] {
        check(&served, case);
    }
}

#[test]
fn notifications_and_responses_are_accepted_or_refused_at_once() {
    let served = Setup::new().serve();
    let post = |body: &str| served.post(body).header(VERSION, "2026-07-28");
    let list = asking(&served, "tools/list", json!({}));
    let array = r#"[{"jsonrpc":"2.0","id":1,"method":"tools/list"}]"#;
    let note = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}"#;
    let answer = r#"{"jsonrpc":"2.0","id":5,"result":{}}"#;
    for (request, status, code) in [
        (post(note), 202, None),
        (post(answer), 400, Some("-32000")),
        (served.post(answer), 400, Some("-32000")),
        (served.post(note), 400, Some("-32000")),
        (list.body(array), 400, Some("-32600")),
        (post("{"), 400, Some("-32700")),
    ] {
        let response = served.connection().ask(&request);
        assert_eq!(response.head.status, status, "{}", response.body);
        let code = code.map_or(String::new(), |code| format!(r#""code":{code},"#));
        assert!(response.body.contains(&code), "{}", response.body);
    }
    for method in ["GET", "DELETE"] {
        let bare = served.request(method, "/mcp").header(VERSION, "2026-07-28");
        for request in [bare.clone(), bare.header("mcp-session-id", "x")] {
            let head = served.connection().ask(&request).head;
            assert_eq!((head.status, head.header("allow")), (405, Some("POST")));
        }
    }
}

#[test]
fn initialize_starts_a_session_regardless_of_the_headers() {
    let served = Setup::new().serve();
    let body = request_text("1", "initialize", &initialize_params("2026-07-28"));
    let request = served.post(&body).header(VERSION, "2026-07-28");
    let response = served.connection().ask(&request);
    assert_eq!(response.head.status, 200);
    assert!(response.head.header("mcp-session-id").is_some());
    let result = response.message().result();
    assert_eq!(result["protocolVersion"], "2025-11-25");
}

#[test]
fn both_eras_are_served_at_once_and_modern_requests_ignore_sessions() {
    let served = Setup::one(&Script::new()).serve();
    let mut client = served.client();
    open(&served);
    assert!(!client.use_tool("pid", "{}").failed());
    let within = calling(&served, "fs", "pid").header("mcp-session-id", &client.session);
    let response = served.connection().ask(&within);
    assert_eq!(response.head.status, 200, "{}", response.body);
    assert!(!ToolResult::of(&response.message()).failed());
    let header_alone = client.posting(&request_text("1", "ping", "{}"));
    let header_alone = header_alone.header(VERSION, "2026-07-28");
    assert_eq!(served.connection().ask(&header_alone).head.status, 400);
    // The body alone says it too, so the headers have to follow, escaped or not.
    for key in [
        "io.modelcontextprotocol/logLevel",
        r"io.modelcontextprotocol\u002flogLevel",
    ] {
        let params = format!(r#"{{"_meta":{{"{key}":"info"}}}}"#);
        let response = client.post(&request_text("1", "ping", &params));
        assert_eq!(response.head.status, 400, "{}", response.body);
        assert_eq!(response.message().error().code, -32020);
    }
    assert_eq!(client.ask("ping", "{}").raw_result(), "{}");
}

/// A tool that reports progress, waits for a file, reports again and answers.
pub(super) fn with_steps() -> Setup {
    let setup = Setup::new();
    let actions = json!([
        {"progress": {"progress": 1}},
        {"awaitFile": setup.path("gate")},
        {"progress": {"progress": 2}},
        {"answer": {"content": [], "done": true}},
    ]);
    let script = Script::named(&["work", "hang"]).on_call("work", &actions.to_string());
    setup.toolbox("dev", "d").server("fs", &script)
}

#[test]
fn a_modern_stream_has_no_event_ids_and_ends_with_the_answer() {
    let served = with_steps().serve();
    open(&served);
    let mut stream = begin(&served, "work");
    let head = stream.head();
    assert!(head.is_stream());
    assert_eq!(head.header("x-accel-buffering"), Some("no"));
    assert_eq!(head.header("mcp-session-id"), None);
    let first = stream.event().unwrap();
    assert_eq!(first.message().params()["progress"], 1);
    served.workbench.setup.write("gate", "");
    let second = stream.event().unwrap();
    assert_eq!(second.message().params()["progress"], 2);
    let answer = stream.event().unwrap();
    assert_eq!(answer.message().result()["done"], true);
    assert_eq!(stream.event(), None, "the answer ends the stream");
    for event in [first, second, answer] {
        assert_eq!((event.id.as_str(), event.retry), ("", None));
    }
    let journal = served.workbench.journal("dev", "fs");
    assert!(journal.received("notifications/cancelled").is_empty());
}

#[test]
fn the_headers_of_arguments_are_checked_where_a_schema_marks_them() {
    let region = json!({"type": "string", "x-mcp-header": "Region"});
    let schema = json!({"type": "object", "properties": {"region": region}});
    let tools = json!([{"name": "near", "inputSchema": schema}]).to_string();
    let answer = r#"{"content":[]}"#;
    let script = Script::new().tools(&tools).answers("near", answer);
    let setup = Setup::one(&script)
        .top("toolMode", json!("native"))
        .top("nativeToolbox", json!("dev"));
    let served = setup.serve();
    served.client();
    let call = asking(
        &served,
        "tools/call",
        json!({"name": "near", "arguments": {"region": "eu"}}),
    );
    let given = |value: &str| call.clone().header("mcp-param-region", value);
    for (request, status) in [
        (given("eu"), 200),
        (given("=?base64?ZXU=?="), 200),
        (given("eu").header("mcp-param-other", "x"), 200),
        (given("us"), 400),
        (given("=?base64?ZXU?="), 400),
        (given("eu").header("mcp-param-region", "eu"), 400),
        (call.clone(), 400),
    ] {
        let response = served.connection().ask(&request);
        assert_eq!(response.head.status, status, "{}", response.body);
        let expected = (status == 400).then_some(-32020);
        assert_eq!(code_of(&response.message()), expected);
    }
    let called = served.workbench.journal("dev", "fs").called();
    assert_eq!(called.len(), 3, "what is refused reaches no server");
}
