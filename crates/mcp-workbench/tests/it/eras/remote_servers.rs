//! Modern servers over HTTP behind the workbench, for a legacy client.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::harness::{Journal, RemoteFixture, Script, TIMEOUT, poll};

fn modern(names: &[&str]) -> Script {
    Script::named(names).set("era", r#""modern""#)
}

/// Waits until a server has got so many requests of a method.
fn wait(journal: &Journal, method: &str, count: usize) {
    let seen = poll(TIMEOUT, || {
        (journal.received(method).len() >= count).then_some(())
    });
    seen.unwrap_or_else(|| panic!("no {count} {method}: {}", journal.lines().join("\n")));
}

#[test]
fn a_modern_server_is_used_without_a_handshake_and_subscribed_to() {
    let change = r#"{"change":{"method":"notifications/tools/list_changed"}}"#;
    let add = format!(
        r#"[{{"setTools":[{{"name":"new","inputSchema":{{}}}}]}},{change},{{"answer":{{"content":[]}}}}]"#
    );
    let server = RemoteFixture::start(&modern(&["add"]).on_call("add", &add));
    let mut workbench = server.setup().connect();
    workbench.open("dev");
    let journal = server.journal();
    wait(journal, "subscriptions/listen", 1);
    let result = workbench.use_tool("add", "{}");
    assert_eq!(result.raw, r#"{"content":[]}"#);
    wait(journal, "tools/list", 2);
    assert_eq!(workbench.open("dev").tool_names(), ["new"]);
    assert!(journal.received("initialize").is_empty());
}

#[test]
fn a_legacy_server_gets_initialize_after_the_probe() {
    let script = Script::named(&["x"]).answers("x", r#"{"content":[]}"#);
    let server = RemoteFixture::start(&script);
    let mut workbench = server.setup().connect();
    workbench.open("dev");
    assert_eq!(workbench.use_tool("x", "{}").raw, r#"{"content":[]}"#);
    assert_eq!(server.journal().received("initialize").len(), 1);
}

#[test]
fn marked_arguments_are_sent_in_headers_and_tools_with_invalid_marks_are_withheld() {
    let tools = r#"[{"name":"good","inputSchema":{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"Region"}}}},{"name":"bad","inputSchema":{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"no name"}}}}]"#;
    let script = Script::new()
        .set("era", r#""modern""#)
        .tools(tools)
        .answers("good", r#"{"content":[]}"#);
    let server = RemoteFixture::start(&script);
    let mut workbench = server.setup().connect();
    assert_eq!(workbench.open("dev").tool_names(), ["good"]);
    workbench.wait_stderr("x-mcp-header is not a valid header name");
    let result = workbench.use_tool("good", r#"{"a":"eu"}"#);
    assert_eq!(result.raw, r#"{"content":[]}"#);
    let headers = server.headers();
    let call = headers.iter().find(|it| it["mcp-method"] == "tools/call");
    assert_eq!(call.unwrap()["mcp-param-region"], "eu");
}

#[test]
fn a_call_with_outdated_headers_is_repeated_with_the_new_ones() {
    let mismatch = r#"[{"setTools":[{"name":"x","inputSchema":{"properties":{"a":{"type":"string","x-mcp-header":"New"}}}}]},{"error":{"code":-32020,"message":"header mismatch"}}]"#;
    let turns = format!(r#"[{{"inTurn":[{mismatch},[{{"answer":{{"content":[]}}}}]]}}]"#);
    let server = RemoteFixture::start(&modern(&["x"]).on_call("x", &turns));
    let mut workbench = server.setup().connect();
    workbench.open("dev");
    let result = workbench.use_tool("x", r#"{"a":"v"}"#);
    assert_eq!(result.raw, r#"{"content":[]}"#);
    let headers = server.headers();
    let calls = headers.iter().filter(|it| it["mcp-method"] == "tools/call");
    let values: Vec<Value> = calls.map(|it| it["mcp-param-new"].clone()).collect();
    assert_eq!(values, [Value::Null, json!("v")]);
}

#[test]
fn a_call_whose_headers_are_refused_is_repeated_once() {
    let mismatch = r#"[{"error":{"code":-32020,"message":"header mismatch"}}]"#;
    let server = RemoteFixture::start(&modern(&["x"]).on_call("x", mismatch));
    let mut workbench = server.setup().connect();
    workbench.open("dev");
    for calls in [2, 4] {
        let result = workbench.use_tool("x", "{}");
        assert_eq!(result.failure()["code"], "server_error", "{}", result.raw);
        assert_eq!(server.journal().received("tools/call").len(), calls);
    }
}

#[test]
fn a_cancel_closes_the_stream_and_sends_no_notification() {
    let script = modern(&["wait"]).on_call(
        "wait",
        r#"[{"journal":"waits"},"awaitCancel",{"journal":"over"}]"#,
    );
    let server = RemoteFixture::start(&script);
    let mut workbench = server.setup().connect();
    workbench.open("dev");
    let call = workbench.send_use("wait", "{}");
    let journal = server.journal();
    journal.wait("note", 1);
    let params = format!(r#"{{"requestId":{call}}}"#);
    workbench.notify("notifications/cancelled", &params);
    journal.wait("note", 2);
    assert!(journal.received("notifications/cancelled").is_empty());
}

#[test]
fn a_server_replaced_by_one_of_the_other_era_is_reconnected() {
    let script = |era: &str| {
        let script = Script::named(&["x"]).set("era", &format!(r#""{era}""#));
        script.answers("x", r#"{"content":[]}"#)
    };
    for (before, after) in [("legacy", "modern"), ("modern", "legacy")] {
        let server = RemoteFixture::start(&script(before));
        let mut workbench = server.setup().connect();
        workbench.open("dev");
        assert_eq!(workbench.use_tool("x", "{}").raw, r#"{"content":[]}"#);
        let _server = server.replaced_by(&script(after));
        // That the first of them fail is what shows it.
        let answered = poll(TIMEOUT, || {
            (workbench.use_tool("x", "{}").raw == r#"{"content":[]}"#).then_some(())
        });
        assert!(answered.is_some(), "{before}: {}", workbench.stderr());
    }
}
