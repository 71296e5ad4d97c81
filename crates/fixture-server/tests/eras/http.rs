//! Both eras over HTTP.

use serde_json::{Value, json};

use crate::client::{Http, modern, request};

fn call(name: &str) -> Value {
    modern(1, "tools/call", json!({"name": name}), json!({}))
}

#[test]
fn a_modern_answer_is_json_or_a_stream_if_there_is_more() {
    let server = Http::start(&json!({"era": "modern", "onCall": {
        "log": [{"progress": {"progress": 1}}, {"answer": {}}],
    }}));
    let mut plain = server.modern(&modern(1, "server/discover", json!({}), json!({})));
    assert_eq!((plain.status, plain.is_stream()), (200, false));
    assert_eq!(plain.json()["result"]["resultType"], "complete");
    let meta = json!({"progressToken": 5});
    let log = json!({"name": "log", "_meta": meta});
    let mut stream = server.modern(&modern(2, "tools/call", log, json!({})));
    assert!(stream.is_stream());
    assert_eq!(
        stream.event().expect("an event")["params"]["progressToken"],
        5
    );
    assert_eq!(stream.event().expect("an event")["id"], 2);
    assert_eq!(stream.event(), Some(Value::Null));
    let heads = server.process.journal("http");
    assert!(
        heads[0].contains(r#""mcp-method":"server/discover""#),
        "{heads:?}"
    );
    let always = Http::start(&json!({"era": "modern", "sse": true}));
    let mut stream = always.modern(&call("echo"));
    assert!(stream.is_stream());
    assert_eq!(stream.event().expect("an event")["id"], 1);
}

#[test]
fn modern_headers_must_match_the_body() {
    let tool = json!({"name": "t", "inputSchema": {"type": "object", "properties": {
        "place": {"type": "string", "x-mcp-header": "Place"},
    }}});
    let server =
        Http::start(&json!({"era": "modern", "tools": [tool], "onCall": {"t": [{"answer": {}}]}}));
    let params = json!({"name": "t", "arguments": {"place": "ü"}});
    let body = modern(1, "tools/call", params, json!({})).to_string();
    let version = ("MCP-Protocol-Version", "2026-07-28");
    let method = ("Mcp-Method", "tools/call");
    let name = ("Mcp-Name", "t");
    let place = ("Mcp-Param-Place", "=?base64?w7w=?=");
    let rows: [(&[_], u16); 6] = [
        (&[version, method, name, place], 200),
        (&[method, name, place], 400),
        (&[version, name, place], 400),
        (&[version, method, place], 400),
        (&[version, method, ("Mcp-Name", "T"), place], 400),
        (&[version, method, name], 400),
    ];
    for (headers, status) in rows {
        let mut answer = server.send("POST", headers, &body);
        assert_eq!(answer.status, status, "{headers:?}");
        if status == 400 {
            assert_eq!(answer.json()["error"]["code"], -32020);
        }
    }
}

#[test]
fn modern_errors_have_an_http_status() {
    let server = Http::start(&json!({"era": "modern", "onCall": {
        "need": [{"require": {"sampling": {}}}],
    }}));
    let initialize = request(1, "initialize", json!({"protocolVersion": "2025-11-25"}));
    let headers = [
        ("MCP-Protocol-Version", "2026-07-28"),
        ("Mcp-Method", "tools/list"),
    ];
    let bare = request(1, "tools/list", json!({})).to_string();
    let rows = [
        (
            server.send("POST", &[], &initialize.to_string()),
            400,
            -32022,
        ),
        (server.send("POST", &headers, &bare), 400, -32602),
        (server.modern(&call("need")), 400, -32021),
        (
            server.modern(&modern(1, "ping", json!({}), json!({}))),
            404,
            -32601,
        ),
        (server.modern(&call("nobody")), 200, -32602),
    ];
    for (mut answer, status, code) in rows {
        assert_eq!(answer.status, status, "{code}");
        assert_eq!(answer.json()["error"]["code"], code);
    }
    assert_eq!(server.send("GET", &[], "").status, 405);
    let note = json!({"jsonrpc": "2.0", "method": "notifications/x"}).to_string();
    let headers = [
        ("MCP-Protocol-Version", "2026-07-28"),
        ("Mcp-Method", "notifications/x"),
    ];
    assert_eq!(server.send("POST", &headers, &note).status, 202);
}

#[test]
fn closing_the_stream_of_a_modern_request_cancels_it() {
    let server = Http::start(&json!({"era": "modern", "onCall": {"wait": [
        {"notify": {"method": "notifications/message", "params": {}}},
        "awaitCancel", {"journal": "given up"},
    ]}}));
    let mut stream = server.modern(&call("wait"));
    stream.event().expect("an event");
    drop(stream);
    assert_eq!(server.process.wait("cancelled"), ["1"]);
    assert_eq!(server.process.wait("note"), ["given up"]);
}

#[test]
fn a_modern_listen_is_a_stream_that_ends_either_way() {
    let server = Http::start(&json!({"era": "modern", "onCall": {
        "change": [{"change": {"method": "notifications/tools/list_changed"}}, {"answer": {}}],
        "graceful": [{"endListens": "graceful"}, {"answer": {}}],
        "abrupt": [{"endListens": "abrupt"}, {"answer": {}}],
    }}));
    let params = json!({"notifications": {"toolsListChanged": true}});
    let listen = modern(5, "subscriptions/listen", params, json!({}));
    for (how, end) in [("graceful", Some(Value::Null)), ("abrupt", None)] {
        let mut stream = server.modern(&listen);
        let acknowledged = stream.event().expect("an event");
        assert_eq!(
            acknowledged["method"],
            "notifications/subscriptions/acknowledged"
        );
        server.modern(&call("change"));
        let heard = stream.event().expect("an event");
        assert_eq!(
            heard["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"],
            5
        );
        server.modern(&call(how));
        if end.is_some() {
            assert_eq!(stream.event().expect("an event")["id"], 5);
        }
        assert_eq!(stream.event(), end, "{how}");
    }
}

#[test]
fn legacy_requests_belong_to_a_session_and_ask_on_their_stream() {
    let told = json!({"line": r#"{"jsonrpc":"2.0","id":$ID,"result":{"told":$REPLY}}"#});
    let server = Http::start(&json!({"onCall": {
        "ask": [{"request": {"method": "roots/list"}}, told],
        "change": [{"change": {"method": "notifications/tools/list_changed"}}, {"answer": {}}],
    }}));
    let params = json!({"protocolVersion": "2025-11-25"});
    let initialize = request(0, "initialize", params).to_string();
    let begun = server.send("POST", &[], &initialize);
    let session = begun.header("mcp-session-id").expect("a session");
    let headers = [("Mcp-Session-Id", session)];
    let call = |name: &str| request(1, "tools/call", json!({"name": name})).to_string();
    assert_eq!(server.send("POST", &[], &call("ask")).status, 400);
    let probe = modern(1, "server/discover", json!({}), json!({}));
    assert_eq!(server.modern(&probe).status, 400);
    let other = [("Mcp-Session-Id", "x")];
    assert_eq!(server.send("POST", &other, &call("ask")).status, 404);

    let mut stream = server.send("POST", &headers, &call("ask"));
    let question = stream.event().expect("an event");
    assert_eq!(question["method"], "roots/list");
    let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": {"roots": []}});
    assert_eq!(
        server.send("POST", &headers, &answer.to_string()).status,
        202
    );
    let done = stream.event().expect("an event");
    assert_eq!(done["result"]["told"]["result"], json!({"roots": []}));

    let mut listening = server.send("GET", &headers, "");
    assert!(listening.is_stream());
    server.send("POST", &headers, &call("change"));
    let heard = listening.event().expect("an event");
    assert_eq!(heard["method"], "notifications/tools/list_changed");
    assert_eq!(server.send("DELETE", &headers, "").status, 200);
    assert_eq!(server.send("POST", &headers, &call("ask")).status, 404);
}

#[test]
fn closing_the_stream_of_a_legacy_request_does_not_cancel_it() {
    let server = Http::start(&json!({"onCall": {"wait": [
        {"notify": {"method": "notifications/message", "params": {}}},
        "awaitCancel", {"journal": "given up"},
    ]}}));
    let initialize = request(0, "initialize", json!({})).to_string();
    let begun = server.send("POST", &[], &initialize);
    let headers = [(
        "Mcp-Session-Id",
        begun.header("mcp-session-id").expect("a session"),
    )];
    let call = request(1, "tools/call", json!({"name": "wait"})).to_string();
    let mut stream = server.send("POST", &headers, &call);
    stream.event().expect("an event");
    drop(stream);
    assert_eq!(server.process.wait("disconnected"), ["1"]);
    assert_eq!(server.process.journal("cancelled"), [""; 0]);
    let cancel =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
    server.send("POST", &headers, &cancel.to_string());
    assert_eq!(server.process.wait("note"), ["given up"]);
}
