//! The legacy era over stdio.

use serde_json::{Value, json};

use crate::client::{Lines, modern, request};

fn initialize() -> Value {
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}});
    request(0, "initialize", params)
}

#[test]
fn an_unknown_method_is_refused_ignored_or_fatal() {
    let probe = modern(1, "server/discover", json!({}), json!({}));
    let mut server = Lines::start(&json!({}));
    assert_eq!(server.ask(&probe)["error"]["code"], -32601);

    let mut server = Lines::start(&json!({"unknown": "silent"}));
    server.send(&probe);
    assert_eq!(server.ask(&initialize())["id"], 0);

    let mut server = Lines::start(&json!({"unknown": "exit"}));
    assert_eq!(server.ask(&probe), Value::Null);
    assert_eq!(server.process.exit_code(), Some(1));

    let mut server = Lines::start(&json!({"unknown": "exit"}));
    server.ask(&initialize());
    assert_eq!(server.ask(&probe)["error"]["code"], -32601);
}

#[test]
fn questions_come_in_rounds_or_at_once() {
    let ask = json!({"request": {"method": "elicitation/create", "params": {"message": "$ROUND"}}});
    let told = json!({"line": r#"{"jsonrpc":"2.0","id":$ID,"result":{"told":$REPLIES}}"#});
    let mut server = Lines::start(&json!({"onCall": {
        "rounds": [{"repeat": {"times": 2, "actions": [ask]}}, told],
        "both": [{"requests": [{"method": "roots/list"}, {"method": "sampling/createMessage"}]}, told],
    }}));
    server.send(&request(1, "tools/call", json!({"name": "rounds"})));
    for round in ["0", "1"] {
        let question = server.next();
        assert_eq!(question["params"]["message"], round);
        server.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": {"n": round}}));
    }
    let result = server.next();
    assert_eq!(result["result"]["told"][0]["result"], json!({"n": "0"}));
    assert_eq!(result["result"]["told"][1]["result"], json!({"n": "1"}));

    server.send(&request(2, "tools/call", json!({"name": "both"})));
    let (first, second) = (server.next(), server.next());
    for question in [&second, &first] {
        let answer = json!({"was": question["method"]});
        server.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": answer}));
    }
    let result = server.next();
    assert_eq!(result["result"]["told"][0]["result"]["was"], "roots/list");
    assert_eq!(
        result["result"]["told"][1]["result"]["was"],
        "sampling/createMessage"
    );
}

#[test]
fn a_tool_can_want_an_address_followed_before_its_second_call() {
    let error = json!({"code": -32042, "message": "m", "data": {"elicitations": [{"url": "u"}]}});
    let mut server = Lines::start(&json!({"onCall": {"pay": [
        {"inTurn": [[{"error": error}], [{"answer": {"content": []}}]]}
    ]}}));
    let call = request(1, "tools/call", json!({"name": "pay"}));
    assert_eq!(server.ask(&call)["error"], error);
    assert_eq!(server.ask(&call)["result"], json!({"content": []}));
    assert_eq!(server.ask(&call)["result"], json!({"content": []}));
}

#[test]
fn resources_prompts_logs_and_changes() {
    let mut server = Lines::start(&json!({
        "capabilities": {"logging": {}, "tools": {}},
        "resources": [{"uri": "a:b", "name": "b"}], "prompts": [{"name": "p"}],
        "onCall": {"speak": [
            {"log": {"level": "info", "data": 1}}, {"log": {"level": "error", "data": 2}},
            {"change": {"method": "notifications/tools/list_changed"}},
            {"answer": {}},
        ]},
    }));
    server.ask(&initialize());
    let read = |uri: &str| request(1, "resources/read", json!({"uri": uri}));
    let found = server.ask(&read("a:b"));
    assert_eq!(found["result"]["contents"][0]["text"], "The text of a:b");
    assert_eq!(server.ask(&read("a:c"))["error"]["code"], -32002);
    let listed = server.ask(&request(2, "prompts/list", json!({})));
    assert_eq!(listed["result"], json!({"prompts": [{"name": "p"}]}));
    let level = request(3, "logging/setLevel", json!({"level": "error"}));
    assert_eq!(server.ask(&level)["result"], json!({}));
    server.send(&request(4, "tools/call", json!({"name": "speak"})));
    assert_eq!(
        server.next()["params"],
        json!({"level": "error", "data": 2})
    );
    assert_eq!(server.next()["method"], "notifications/tools/list_changed");
    assert_eq!(server.next()["result"], json!({}));
}

#[test]
fn the_usual_list_can_come_after_other_actions() {
    let mut server = Lines::start(&json!({
        "tools": [{"name": "a"}],
        "onMethod": {"tools/list": [{"journal": "first"}, "listTools"]},
        "onCall": {"change": [{"setTools": [{"name": "b"}]}, {"answer": {"content": []}}]},
    }));
    let list = request(1, "tools/list", json!({}));
    assert_eq!(server.ask(&list)["result"]["tools"], json!([{"name": "a"}]));
    assert_eq!(server.process.journal("note"), ["first"]);
    server.ask(&request(2, "tools/call", json!({"name": "change"})));
    assert_eq!(server.ask(&list)["result"]["tools"], json!([{"name": "b"}]));
}
