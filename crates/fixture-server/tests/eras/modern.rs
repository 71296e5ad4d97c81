//! The modern era over stdio.

use serde_json::{Value, json};

use crate::client::{Lines, modern, request};

fn call(id: u64, params: Value) -> Value {
    modern(id, "tools/call", params, json!({"elicitation": {}}))
}

#[test]
fn discover_and_lists_have_the_members_of_the_era() {
    let mut server = Lines::start(&json!({"era": "modern", "tools": [], "instructions": "i"}));
    let found = server.ask(&modern(1, "server/discover", json!({}), json!({})));
    let info = json!({"name": "fixture-server", "version": "1.0.0"});
    assert_eq!(
        found["result"],
        json!({
            "resultType": "complete", "ttlMs": 60000, "cacheScope": "public",
            "supportedVersions": ["2026-07-28"],
            "capabilities": {"tools": {"listChanged": true}}, "instructions": "i",
            "_meta": {"io.modelcontextprotocol/serverInfo": info},
        })
    );
    let listed = server.ask(&modern(2, "tools/list", json!({}), json!({})));
    let hints =
        json!({"resultType": "complete", "ttlMs": 60000, "cacheScope": "public", "tools": []});
    assert_eq!(listed["result"], hints);
}

#[test]
fn requests_that_are_not_modern_are_refused() {
    let mut server = Lines::start(&json!({"era": "modern"}));
    let refused = server.ask(&request(
        1,
        "initialize",
        json!({"protocolVersion": "2025-11-25"}),
    ));
    let data = json!({"supported": ["2026-07-28"], "requested": "2025-11-25"});
    assert_eq!(refused["error"]["code"], -32022);
    assert_eq!(refused["error"]["data"], data);
    let bare = server.ask(&request(2, "tools/list", json!({})));
    assert_eq!(bare["error"]["code"], -32602);
    let mut odd = modern(3, "tools/list", json!({}), json!({}));
    odd["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2027-01-01");
    assert_eq!(server.ask(&odd)["error"]["code"], -32022);
    let ping = server.ask(&modern(4, "ping", json!({}), json!({})));
    assert_eq!(ping["error"]["code"], -32601);
}

#[test]
fn a_server_of_both_eras_answers_each_message_by_itself() {
    let mut server = Lines::start(&json!({"era": "both"}));
    let answer = server.ask(&modern(1, "tools/list", json!({}), json!({})));
    assert_eq!(answer["result"]["resultType"], "complete");
    let params = json!({"protocolVersion": "2025-11-25"});
    let answer = server.ask(&request(2, "initialize", params));
    assert_eq!(answer["result"]["protocolVersion"], "2025-11-25");
    let answer = server.ask(&request(3, "tools/list", json!({})));
    assert_eq!(answer["result"].get("resultType"), None);
}

#[test]
fn rounds_are_identified_by_their_state() {
    let question = json!({"method": "elicitation/create", "params": {"message": "who?"}});
    let mut server = Lines::start(
        &json!({"era": "modern", "onCall": {"ask": [{"rounds": {"rounds": [
            {"inputRequests": {"a": question}, "requestState": "s-$N"},
            {"requestState": "t-$N"},
            {"inputRequests": {"b": question}, "requestState": "u-$N"},
        ]}}]}}),
    );
    let asked = server.ask(&call(1, json!({"name": "ask"})));
    let first = json!({"resultType": "input_required", "inputRequests": {"a": question}, "requestState": "s-1"});
    assert_eq!(asked["result"], first);
    let other = server.ask(&call(2, json!({"name": "ask"})));
    assert_eq!(other["result"]["requestState"], "s-2");
    let retry = |id, responses: Value, state: &str| {
        call(
            id,
            json!({"name": "ask", "inputResponses": responses, "requestState": state}),
        )
    };
    let waits = server.ask(&retry(3, json!({"a": 1}), "s-1"));
    assert_eq!(
        waits["result"],
        json!({"resultType": "input_required", "requestState": "t-3"})
    );
    let asked = server.ask(&call(4, json!({"name": "ask", "requestState": "t-3"})));
    assert_eq!(asked["result"]["requestState"], "u-4");
    let done = server.ask(&retry(5, json!({"b": 2}), "u-4"));
    let told = json!({"told": [{"a": 1}, null, {"b": 2}], "requestState": "u-4"});
    assert_eq!(done["result"]["structuredContent"], told);
    assert_eq!(done["result"]["resultType"], "complete");
    let forged = server.ask(&retry(6, json!({"b": 2}), "u-5"));
    assert_eq!(forged["error"]["code"], -32602);
    let lost = server.ask(&call(7, json!({"name": "ask", "inputResponses": {"a": 1}})));
    assert_eq!(lost["error"]["code"], -32602);
}

#[test]
fn rounds_without_a_state_are_identified_by_their_keys() {
    let question = json!({"method": "roots/list"});
    let rounds =
        json!({"rounds": [{"inputRequests": {"a": question}}, {"inputRequests": {"b": question}}]});
    let mut server = Lines::start(&json!({"era": "modern", "prompts": [],
        "onPrompt": {"ask": [{"rounds": rounds}]}}));
    let get = |id, responses: Value| {
        let params = json!({"name": "ask", "inputResponses": responses});
        modern(id, "prompts/get", params, json!({}))
    };
    let asked = server.ask(&get(1, Value::Null));
    assert_eq!(asked["result"]["inputRequests"], json!({"a": question}));
    let asked = server.ask(&get(2, json!({"a": 1})));
    assert_eq!(asked["result"]["inputRequests"], json!({"b": question}));
    let done = server.ask(&get(3, json!({"b": 2})));
    let text = &done["result"]["messages"][0]["content"]["text"];
    assert_eq!(text, r#"{"told":[{"b":2}],"requestState":null}"#);
}

#[test]
fn a_missing_capability_is_named() {
    let required = json!({"elicitation": {"url": {}}});
    let mut server = Lines::start(&json!({"era": "modern", "onCall": {"need": [
        {"require": required}, {"answer": {"content": []}},
    ]}}));
    let refused = server.ask(&call(1, json!({"name": "need"})));
    assert_eq!(refused["error"]["code"], -32021);
    assert_eq!(
        refused["error"]["data"],
        json!({"requiredCapabilities": required})
    );
    let able = modern(2, "tools/call", json!({"name": "need"}), required);
    assert_eq!(server.ask(&able)["result"]["resultType"], "complete");
}

#[test]
fn a_task_advances_with_each_poll_and_waits_for_input() {
    let tasks = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
    let mut server = Lines::start(&json!({"era": "modern", "onCall": {"work": [{"task": {
        "pollIntervalMs": 10,
        "steps": [
            {"status": "working"},
            {"status": "input_required", "inputRequests": {"q": {"method": "roots/list"}}},
            {"status": "completed", "result": {"structuredContent": {"told": "$TOLD"}}},
        ],
    }}]}}));
    let created = server.ask(&modern(
        1,
        "tools/call",
        json!({"name": "work"}),
        tasks.clone(),
    ));
    assert_eq!(created["result"]["resultType"], "task");
    assert_eq!(created["result"]["pollIntervalMs"], 10);
    let id = created["result"]["taskId"].clone();
    let mut about = |method: &str, mut params: Value| {
        params["taskId"] = id.clone();
        server.ask(&modern(2, method, params, tasks.clone()))["result"].clone()
    };
    for status in ["working", "input_required", "input_required"] {
        assert_eq!(about("tasks/get", json!({}))["status"], status);
    }
    let update = about(
        "tasks/update",
        json!({"inputResponses": {"q": {"roots": []}}}),
    );
    assert_eq!(update, json!({"resultType": "complete"}));
    for _ in 0..2 {
        let done = about("tasks/get", json!({}));
        assert_eq!(done["status"], "completed");
        assert_eq!(
            done["result"]["structuredContent"]["told"][0]["q"],
            json!({"roots": []})
        );
    }
    assert_eq!(
        about("tasks/cancel", json!({})),
        json!({"resultType": "complete"})
    );
    assert_eq!(about("tasks/get", json!({}))["status"], "cancelled");
    let unable = server.ask(&call(3, json!({"name": "work"})));
    assert_eq!(unable["error"]["code"], -32021);
}

#[test]
fn logs_below_the_level_of_the_request_are_dropped() {
    let mut server = Lines::start(&json!({"era": "modern", "onCall": {"log": [
        {"log": {"level": "info", "data": 1}}, {"log": {"level": "error", "data": 2}},
        {"progress": {"progress": 1}}, {"answer": {}},
    ]}}));
    let quiet = server.ask(&call(1, json!({"name": "log"})));
    assert_eq!(quiet["result"], json!({"resultType": "complete"}));
    let meta = json!({"io.modelcontextprotocol/logLevel": "warning", "progressToken": "t"});
    server.send(&call(2, json!({"name": "log", "_meta": meta})));
    assert_eq!(
        server.next()["params"],
        json!({"level": "error", "data": 2})
    );
    assert_eq!(
        server.next()["params"],
        json!({"progressToken": "t", "progress": 1})
    );
    assert_eq!(server.next()["id"], 2);
    let loud = json!({"io.modelcontextprotocol/logLevel": "loud"});
    let refused = server.ask(&call(3, json!({"name": "log", "_meta": loud})));
    assert_eq!(refused["error"]["code"], -32602);
}

#[test]
fn subscriptions_get_what_they_asked_for_until_they_end() {
    let tools = json!({"change": {"method": "notifications/tools/list_changed"}});
    let updated =
        json!({"change": {"method": "notifications/resources/updated", "params": {"uri": "a:b"}}});
    let mut server = Lines::start(&json!({"era": "modern", "onCall": {
        "change": [tools, updated, {"answer": {}}],
        "graceful": [{"endListens": "graceful"}, {"answer": {}}],
        "abrupt": [{"endListens": "abrupt"}, {"answer": {}}],
    }}));
    let wanted = json!({"notifications": {"resourceSubscriptions": ["a:b"]}});
    let heard = server.ask(&modern(
        7,
        "subscriptions/listen",
        wanted.clone(),
        json!({}),
    ));
    let tag = json!({"io.modelcontextprotocol/subscriptionId": 7});
    assert_eq!(heard["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(
        heard["params"],
        json!({"_meta": tag, "notifications": wanted["notifications"]})
    );
    let heard = server.ask(&call(8, json!({"name": "change"})));
    assert_eq!(heard["params"], json!({"_meta": tag, "uri": "a:b"}));
    assert_eq!(server.next()["id"], 8);
    let ended = server.ask(&call(9, json!({"name": "graceful"})));
    assert_eq!(ended["id"], 7);
    assert_eq!(
        ended["result"],
        json!({"resultType": "complete", "_meta": tag})
    );
    assert_eq!(server.next()["id"], 9);
    server.ask(&modern(
        10,
        "subscriptions/listen",
        wanted.clone(),
        json!({}),
    ));
    let cut = server.ask(&call(11, json!({"name": "abrupt"})));
    assert_eq!(
        (&cut["id"], &cut["error"]["code"]),
        (&json!(10), &json!(-32603))
    );
    server.next();
    server.ask(&modern(12, "subscriptions/listen", wanted, json!({})));
    let cancel = json!({"requestId": 12});
    server.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancel}));
    assert_eq!(server.ask(&call(13, json!({"name": "change"})))["id"], 13);
}

#[test]
fn a_missing_resource_is_an_invalid_parameter() {
    let mut server = Lines::start(&json!({"era": "modern", "resources": []}));
    let read = modern(1, "resources/read", json!({"uri": "a:b"}), json!({}));
    let error = server.ask(&read)["error"].clone();
    assert_eq!(
        (&error["code"], &error["data"]),
        (&json!(-32602), &json!({"uri": "a:b"}))
    );
}
