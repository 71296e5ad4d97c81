//! Unfinished calls to modern servers: their reported effects, and the cancellation at the server.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::harness::{Script, Setup, TIMEOUT, ToolResult, Workbench, poll, raw_string};

const TASKS: &str = r#"{"tools":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}"#;

fn modern(names: &[&str]) -> Script {
    Script::named(names)
        .set("era", r#""modern""#)
        .set("capabilities", TASKS)
}

/// A workbench whose client can be asked for forms.
fn connect(setup: Setup) -> Workbench {
    let mut workbench = setup.start();
    let params = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {"elicitation": {}},
        "clientInfo": {"name": "it", "version": "1"},
    });
    workbench.ask("initialize", &params.to_string());
    workbench.notify("notifications/initialized", "{}");
    workbench.open("dev");
    workbench
}

/// The details of a failure that a program reads.
fn details(result: &ToolResult) -> Value {
    let result: Value = serde_json::from_str(&result.raw).unwrap();
    result["_meta"]["mcp-workbench/error"].clone()
}

/// A server that comes up once and never again.
fn only_once(setup: &Setup, script: Script) -> Script {
    let file = raw_string(setup.path("started").to_str().unwrap());
    let start =
        format!(r#"[{{"once":{{"file":{file},"actions":[],"otherwise":[{{"exit":1}}]}}}}]"#);
    script.set("onStart", &start)
}

#[test]
fn a_task_of_a_lost_server_may_have_run() {
    let setup = Setup::new().toolbox("dev", "Development tools");
    let task = r#"[{"task":{"pollIntervalMs":300,"steps":[{"status":"working"}]}},{"exit":1}]"#;
    let script = only_once(&setup, modern(&["slow"]).on_call("slow", task));
    let mut workbench = connect(setup.server("fs", &script));
    let result = workbench.use_tool("slow", "{}");
    assert_eq!(details(&result)["outcome"], "unknown", "{}", result.raw);
    assert_eq!(details(&result)["code"], "server_start_failed");
}

#[test]
fn a_task_that_its_server_has_forgotten_may_have_run() {
    let task = r#"[{"task":{"pollIntervalMs":300,"steps":[{"status":"working"}]}},{"exit":1}]"#;
    let script = modern(&["slow"]).on_call("slow", task);
    let mut workbench = connect(Setup::one(&script));
    let result = workbench.use_tool("slow", "{}");
    assert_eq!(details(&result)["outcome"], "unknown", "{}", result.raw);
    assert_eq!(details(&result)["code"], "server_error");
}

#[test]
fn a_call_whose_server_exits_between_rounds_may_have_run() {
    let setup = Setup::new().toolbox("dev", "Development tools");
    let rounds = r#"[{"rounds":{"rounds":[
        {"inputRequests":{"a":{"method":"elicitation/create","params":{"message":"1"}}}}]}}]"#;
    let script = modern(&["ask", "end"])
        .on_call("ask", rounds)
        .on_call("end", r#"[{"exit":1}]"#);
    let script = only_once(&setup, script);
    let mut workbench = connect(setup.server("fs", &script));
    let call = workbench.send_use("ask", "{}");
    let question = workbench.notification("elicitation/create");
    workbench.use_tool("end", "{}");
    let id = question.id().unwrap();
    workbench.send_line(&format!(
        r#"{{"jsonrpc":"2.0","id":{id},"result":{{"action":"decline"}}}}"#
    ));
    let result = workbench.tool_result(&call);
    assert_eq!(details(&result)["outcome"], "unknown", "{}", result.raw);
}

#[test]
fn a_cancelled_call_that_becomes_a_task_is_cancelled_as_a_task() {
    let task = r#"[{"journal":"waits"},"awaitCancel",{"task":{"pollIntervalMs":100,"steps":[{"status":"working"}]}}]"#;
    let script = modern(&["slow"]).on_call("slow", task);
    let mut workbench = connect(Setup::one(&script));
    let call = workbench.send_use("slow", "{}");
    let journal = workbench.journal("dev", "fs");
    journal.wait("note", 1);
    workbench.notify(
        "notifications/cancelled",
        &format!(r#"{{"requestId":{call}}}"#),
    );
    let cancelled = poll(TIMEOUT, || {
        (journal.received("tasks/cancel").len() == 1).then_some(())
    });
    assert!(cancelled.is_some(), "{}", journal.lines().join("\n"));
}

#[test]
fn a_list_refused_because_of_headers_is_not_requested_in_a_loop() {
    let refused = r#"[{"error":{"code":-32020,"message":"header mismatch"}}]"#;
    let list = r#"[{"answer":{"tools":[{"name":"change","inputSchema":{}},{"name":"later","inputSchema":{}}]}}]"#;
    let lists = format!(r#"[{{"inTurn":[{list},{refused},[{{"exit":1}}]]}}]"#);
    let change =
        r#"[{"change":{"method":"notifications/tools/list_changed"}},{"answer":{"content":[]}}]"#;
    let capabilities = r#"{"tools":{"listChanged":true}}"#;
    let script = Script::new()
        .set("era", r#""modern""#)
        .set("capabilities", capabilities)
        .on_method("tools/list", &lists)
        .on_call("change", change)
        .on_call("later", r#"[{"sleepMs":1500},{"answer":{"content":[]}}]"#);
    let mut workbench = connect(Setup::one(&script));
    let journal = workbench.journal("dev", "fs");
    poll(TIMEOUT, || {
        (journal.received("subscriptions/listen").len() == 1).then_some(())
    });
    workbench.use_tool("change", "{}");
    // A call that comes while the list is being read fails with it.
    workbench.wait_stderr("the changed ");
    assert_eq!(journal.received("tools/list").len(), 2);
    assert_eq!(workbench.use_tool("later", "{}").raw, r#"{"content":[]}"#);
}

#[test]
fn a_server_with_an_open_question_is_not_idle() {
    let rounds = r#"[{"rounds":{"rounds":[
        {"inputRequests":{"a":{"method":"elicitation/create","params":{"message":"1"}}}}]}}]"#;
    let script = modern(&["ask"]).on_call("ask", rounds);
    let other = Script::named(&["later"])
        .on_call("later", r#"[{"sleepMs":600},{"answer":{"content":[]}}]"#);
    let setup = Setup::new()
        .toolbox("dev", "Development tools")
        .server_with("fs", &script, &json!({"idleTimeoutMs": 200}))
        .server("other", &other);
    let mut workbench = connect(setup);
    let call = workbench.send_use("ask", "{}");
    let question = workbench.notification("elicitation/create");
    workbench.use_tool_of(["dev", "other", "later"], "{}");
    let id = question.id().unwrap();
    workbench.send_line(&format!(
        r#"{{"jsonrpc":"2.0","id":{id},"result":{{"action":"decline"}}}}"#
    ));
    workbench.tool_result(&call);
    let journal = workbench.journal("dev", "fs");
    let calls = journal.events("in");
    assert_eq!(journal.pids().len(), 1, "{}", calls.join("\n"));
}
