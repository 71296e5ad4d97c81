//! The clients that are offered `run_code`, and the progress of a long run.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::{called, code, with_run_code};
use crate::harness::{ModernClient, ModernRequest, Script, Setup, TIMEOUT, poll};

const TASKS: &str =
    r#"{"elicitation":{"form":{}},"extensions":{"io.modelcontextprotocol/tasks":{}}}"#;

fn names(result: &Value) -> Vec<&str> {
    let tools = result["tools"].as_array().unwrap();
    tools
        .iter()
        .map(|it| it["name"].as_str().unwrap())
        .collect()
}

#[test]
fn clients_with_a_code_mode_of_their_own_are_not_offered_another() {
    let rows = [
        ("claude-code", true),
        ("codex-mcp-client", false),
        ("opencode", false),
        ("qwen-cli-mcp-client-workbench", false),
        ("opencodeish", true),
    ];
    for (client, is_offered) in rows {
        let mut workbench = with_run_code(Setup::one(&Script::named(&["a"]))).start();
        let params = format!(
            r#"{{"protocolVersion":"2025-11-25","capabilities":{{}},"clientInfo":{{"name":"{client}","version":"1"}}}}"#
        );
        workbench.ask("initialize", &params);
        let listed = workbench.ask("tools/list", "{}").result();
        assert_eq!(names(&listed).contains(&"run_code"), is_offered, "{client}");
        let info = format!(r#"{{"name":"{client}","version":"1"}}"#);
        let request =
            ModernRequest::new("tools/list").meta("io.modelcontextprotocol/clientInfo", &info);
        let listed = workbench.ask_modern(&request).result();
        assert_eq!(names(&listed).contains(&"run_code"), is_offered, "{client}");
        assert_eq!(listed["cacheScope"], "private");
    }
}

#[test]
fn a_long_run_becomes_a_task_that_is_asked_for_its_state_and_its_result() {
    let script = Script::named(&["sleep", "ask"])
        .answers("ask", r#"{"content":[{"type":"text","text":"asked"}]}"#);
    let permissions = json!({"permissions": {"ask": ["ask"]}});
    let setup = Setup::new()
        .toolbox("dev", "d")
        .server_with("fs", &script, &permissions);
    let mut workbench = with_run_code(setup).start();
    workbench.call_modern(&ModernRequest::open("dev").capabilities(TASKS));
    let run = "await tools.fs.sleep({ms: 10500}); return await tools.fs.ask({})";
    let request = ModernRequest::call("run_code", &code(run)).capabilities(TASKS);
    let created = workbench.ask_modern(&request).result();
    assert_eq!(
        (&created["resultType"], &created["status"]),
        (&json!("task"), &json!("working"))
    );
    let id = created["taskId"].to_string();
    let about = |method: &str| {
        ModernRequest::new(method)
            .param("taskId", &id)
            .capabilities(TASKS)
    };
    let asked = poll(TIMEOUT, || {
        let task = workbench.ask_modern(&about("tasks/get")).result();
        (task["status"] == "input_required").then_some(task)
    });
    let asked = asked.expect("the run asks");
    let (key, question) = asked["inputRequests"]
        .as_object()
        .unwrap()
        .iter()
        .next()
        .unwrap();
    assert_eq!(question["method"], "elicitation/create");
    let responses = json!({key: {"action": "accept", "content": {"decision": "once"}}});
    workbench.ask_modern(&about("tasks/update").param("inputResponses", &responses.to_string()));
    let done = poll(TIMEOUT, || {
        let task = workbench.ask_modern(&about("tasks/get")).result();
        (task["status"] == "completed").then_some(task)
    });
    let done = done.expect("the run ends");
    assert_eq!(done["result"]["structuredContent"]["result"], "asked");
    assert_eq!(done["createdAt"], asked["createdAt"]);
    assert_eq!(called(&workbench), ["sleep", "ask"]);
}

#[test]
fn a_task_can_be_cancelled_and_belongs_to_its_principal() {
    let mut workbench = with_run_code(Setup::one(&Script::named(&["hang"]))).start();
    workbench.call_modern(&ModernRequest::open("dev").capabilities(TASKS));
    let request =
        ModernRequest::call("run_code", &code("await tools.fs.hang({})")).capabilities(TASKS);
    let created = workbench.ask_modern(&request).result();
    let id = created["taskId"].to_string();
    let about = |id: &str, method: &str| {
        ModernRequest::new(method)
            .param("taskId", id)
            .capabilities(TASKS)
    };
    workbench.ask_modern(&about(&id, "tasks/cancel"));
    workbench.journal("dev", "fs").wait("cancelled", 1);
    let task = workbench.ask_modern(&about(&id, "tasks/get")).result();
    assert_eq!(task["status"], "cancelled");
    let unknown = workbench.ask_modern(&about(r#""MQ.forged""#, "tasks/get"));
    assert!(unknown.line.contains("Unknown task"), "{}", unknown.line);
}

#[test]
fn a_client_without_tasks_gets_progress_of_a_long_run() {
    let mut workbench = super::opened(&Script::named(&["sleep"]));
    let params = json!({
        "name": "run_code",
        "arguments": {"code": "await tools.fs.sleep({ms: 1}); await tools.fs.sleep({ms: 10500}); return 1"},
        "_meta": {"progressToken": "p"},
    });
    let id = workbench.request("tools/call", &params.to_string());
    let progress = workbench.notification("notifications/progress");
    let params: Value = serde_json::from_str(progress.params.unwrap().get()).unwrap();
    assert_eq!(params["progressToken"], "p");
    assert_eq!(params["message"], "1 call completed, 1 running");
    assert!(!workbench.tool_result(&id).failed());
}

#[test]
fn the_progress_of_a_call_is_progress_of_the_run() {
    let rows = [
        (
            r#"{"progress":1,"total":3,"message":"one"}"#,
            "tools.fs.work: one",
        ),
        (r#"{"progress":2.5,"total":3}"#, "tools.fs.work: 2.5 of 3"),
    ];
    for (progress, message) in rows {
        let actions = format!(r#"[{{"progress":{progress}}},{{"answer":{{"content":[]}}}}]"#);
        let script = Script::named(&["work"]).on_call("work", &actions);
        let mut workbench = super::opened(&script);
        let params = json!({
            "name": "run_code",
            "arguments": {"code": "await tools.fs.work({}); return 1"},
            "_meta": {"progressToken": "p"},
        });
        let id = workbench.request("tools/call", &params.to_string());
        let reported = workbench.notification("notifications/progress").params();
        assert_eq!(reported["progressToken"], "p");
        assert_eq!(reported["message"], message);
        assert!(!workbench.tool_result(&id).failed());
    }
}
