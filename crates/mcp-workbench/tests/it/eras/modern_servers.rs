//! Modern servers behind the workbench, for a legacy client: questions, tasks and notifications.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::{
    asking_back::{ASKED_BY_FS, connect},
    harness::{Journal, Script, Setup, TIMEOUT, Workbench, poll},
};

fn modern(names: &[&str]) -> Script {
    Script::named(names).set("era", r#""modern""#)
}

/// One that runs calls as tasks.
fn with_tasks(names: &[&str]) -> Script {
    let capabilities = r#"{"tools":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}"#;
    modern(names).set("capabilities", capabilities)
}

fn received(journal: &Journal, method: &str) -> Vec<Value> {
    let received = journal.received(method);
    let params = received
        .iter()
        .map(|it| it.params.as_deref().unwrap().get());
    params.map(|it| serde_json::from_str(it).unwrap()).collect()
}

/// Waits until a server has got so many requests of a method.
fn wait(journal: &Journal, method: &str, count: usize) -> Vec<Value> {
    let all = poll(TIMEOUT, || {
        let all = received(journal, method);
        (all.len() >= count).then_some(all)
    });
    all.unwrap_or_else(|| panic!("no {count} {method}: {}", journal.lines().join("\n")))
}

fn answer(workbench: &mut Workbench, method: &str, result: &str) -> Value {
    let question = workbench.notification(method);
    let id = question.id().unwrap();
    workbench.send_line(&format!(
        r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#
    ));
    serde_json::from_str(question.params.as_deref().unwrap().get()).unwrap()
}

#[test]
fn every_request_has_client_info_and_capabilities() {
    let script = modern(&["x"]).answers("x", r#"{"resultType":"complete","content":[],"n":1e400}"#);
    let mut workbench = connect(Setup::one(&script), &json!({"elicitation": {}}));
    let result = workbench.use_tool("x", "{}");
    assert!(
        result.raw.contains(r#"{"content":[],"n":1e400}"#),
        "{}",
        result.raw
    );
    let journal = workbench.journal("dev", "fs");
    for method in ["server/discover", "tools/list", "tools/call"] {
        let meta = &received(&journal, method)[0]["_meta"];
        let member = |name: &str| &meta[format!("io.modelcontextprotocol/{name}")];
        assert_eq!(member("protocolVersion"), "2026-07-28", "{method}");
        assert_eq!(member("clientInfo")["name"], "mcp-workbench", "{method}");
        let capabilities = &member("clientCapabilities");
        assert_eq!(capabilities["elicitation"], json!({}), "{method}");
    }
    assert!(journal.received("initialize").is_empty());
    assert!(journal.received("notifications/initialized").is_empty());
}

#[test]
fn progress_grows_over_all_rounds_of_a_call() {
    let rounds = r#"[{"progress":{"progress":5}},
        {"rounds":{"rounds":[{"requestState":"s1"},{"requestState":"s2"}],
            "then":[{"progress":{"progress":7}},{"answer":{"content":[]}}]}}]"#;
    let script = modern(&["ask"]).on_call("ask", rounds);
    let mut workbench = connect(Setup::one(&script), &json!({}));
    let identifier = json!({"toolbox": "dev", "server": "fs", "tool": "ask"});
    let params = json!({
        "name": "use_tool", "arguments": {"tool": identifier},
        "_meta": {"progressToken": "t"},
    });
    workbench.ask("tools/call", &params.to_string());
    let calls = received(&workbench.journal("dev", "fs"), "tools/call");
    assert_eq!(calls.len(), 3);
    let told = workbench.said();
    let told = told.matches("notifications/progress").count();
    assert_eq!(told, 2, "{}", workbench.said());
}

#[test]
fn questions_reach_a_legacy_client_round_by_round() {
    let rounds = r#"[{"rounds":{"rounds":[
        {"inputRequests":{"a":{"method":"elicitation/create","params":{"message":"1"}},"b":{"method":"sampling/createMessage","params":{"messages":[]}}},
         "requestState":"s1"},
        {"requestState":"s2"},
        {"inputRequests":{"c":{"method":"elicitation/create","params":{"message":"2"}}}}
    ]}}]"#;
    let script = modern(&["ask"]).on_call("ask", rounds);
    let capabilities = json!({"elicitation": {}, "sampling": {}});
    let mut workbench = connect(Setup::one(&script), &capabilities);
    let call = workbench.send_use("ask", r#"{"x":1}"#);
    let decline = r#"{"action":"decline"}"#;
    let sampled = r#"{"role":"assistant","content":{"type":"text","text":"hi"},"model":"m"}"#;
    answer(&mut workbench, "elicitation/create", decline);
    answer(&mut workbench, "sampling/createMessage", sampled);
    assert_eq!(
        answer(&mut workbench, "elicitation/create", decline)["message"],
        format!("{ASKED_BY_FS}2")
    );
    let result = workbench.tool_result(&call);
    assert!(!result.raw.contains("resultType"), "{}", result.raw);
    let calls = received(&workbench.journal("dev", "fs"), "tools/call");
    assert_eq!(calls.len(), 4);
    assert!(
        calls
            .iter()
            .all(|call| call["arguments"] == json!({"x": 1}))
    );
    let sampled: Value = serde_json::from_str(sampled).unwrap();
    let first = json!({"a": {"action": "decline"}, "b": sampled});
    assert_eq!(calls[1]["inputResponses"], first);
    assert_eq!(calls[1]["requestState"], "s1");
    assert_eq!(
        (calls[2].get("inputResponses"), &calls[2]["requestState"]),
        (None, &json!("s2"))
    );
    assert_eq!(calls[3].get("requestState"), None);
    assert_eq!(
        calls[3]["inputResponses"]["c"],
        json!({"action": "decline"})
    );
}

#[test]
fn an_error_names_the_missing_client_capability() {
    let rounds = r#"[{"rounds":{"rounds":[
        {"inputRequests":{"a":{"method":"elicitation/create","params":{"mode":"url","url":"https://x"}}}}]}}]"#;
    let script = modern(&["ask"]).on_call("ask", rounds);
    let mut workbench = connect(Setup::one(&script), &json!({"elicitation": {}}));
    let result = workbench.use_tool("ask", "{}");
    let reason = "the client cannot answer what the server asks";
    assert!(result.raw.contains(reason), "{}", result.raw);
    let journal = workbench.journal("dev", "fs");
    assert_eq!(received(&journal, "tools/call").len(), 1);
}

#[test]
fn a_url_elicitation_gets_an_id_for_a_legacy_client() {
    let rounds = r#"[{"rounds":{"rounds":[
        {"inputRequests":{"a":{"method":"elicitation/create","params":{"mode":"url","url":"https://x"}}}}]}}]"#;
    let script = modern(&["ask"]).on_call("ask", rounds);
    let mut workbench = connect(Setup::one(&script), &json!({"elicitation": {"url": {}}}));
    let call = workbench.send_use("ask", "{}");
    let asked = answer(
        &mut workbench,
        "elicitation/create",
        r#"{"action":"accept"}"#,
    );
    assert_eq!(asked["elicitationId"].as_str().unwrap().len(), 32);
    workbench.tool_result(&call);
}

#[test]
fn configured_roots_are_answered_without_asking_the_client() {
    let rounds = r#"[{"rounds":{"rounds":[{"inputRequests":{"r":{"method":"roots/list"}}}]}}]"#;
    let script = modern(&["ask"]).on_call("ask", rounds);
    let setup = Setup::one(&script).top("roots", json!(["file:///x"]));
    let mut workbench = connect(setup, &json!({}));
    workbench.use_tool("ask", "{}");
    let calls = received(&workbench.journal("dev", "fs"), "tools/call");
    let roots = json!({"roots": [{"uri": "file:///x"}]});
    assert_eq!(calls[1]["inputResponses"], json!({"r": roots}));
}

#[test]
fn results_of_an_unknown_type_are_refused() {
    let script = modern(&["x"]).answers("x", r#"{"resultType":"later","content":[]}"#);
    let mut workbench = connect(Setup::one(&script), &json!({}));
    let result = workbench.use_tool("x", "{}");
    assert!(
        result.raw.contains("unknown or incomplete resultType"),
        "{}",
        result.raw
    );
}

#[test]
fn a_task_is_followed_to_its_result_and_its_questions_are_asked_once() {
    let task = r#"[{"task":{"pollIntervalMs":100,"steps":[
        {"status":"working"},
        {"status":"input_required","inputRequests":{"q":{"method":"elicitation/create","params":{"message":"m"}}}},
        {"status":"completed","result":{"resultType":"complete","content":[],"done":true}}]}}]"#;
    let script = with_tasks(&["slow"]).on_call("slow", task);
    let mut workbench = connect(Setup::one(&script), &json!({"elicitation": {}}));
    let call = workbench.send_use("slow", "{}");
    answer(
        &mut workbench,
        "elicitation/create",
        r#"{"action":"accept","content":{}}"#,
    );
    let result = workbench.tool_result(&call);
    assert!(
        result.raw.contains(r#"{"content":[],"done":true}"#),
        "{}",
        result.raw
    );
    let journal = workbench.journal("dev", "fs");
    let updates = received(&journal, "tasks/update");
    assert_eq!(updates.len(), 1);
    assert_eq!(
        updates[0]["inputResponses"],
        json!({"q": {"action": "accept", "content": {}}})
    );
    assert!(journal.received("tasks/cancel").is_empty());
}

#[test]
fn a_failed_task_fails_its_call_and_an_abandoned_task_is_cancelled() {
    let failed = r#"[{"task":{"pollIntervalMs":100,"steps":[
        {"status":"failed","error":{"code":-32000,"message":"no luck"}}]}}]"#;
    let endless = r#"[{"task":{"pollIntervalMs":100,"steps":[{"status":"working"}]}}]"#;
    let script = with_tasks(&["fails", "endless"])
        .on_call("fails", failed)
        .on_call("endless", endless);
    let mut workbench = connect(Setup::one(&script), &json!({}));
    let result = workbench.use_tool("fails", "{}");
    assert!(result.raw.contains("no luck"), "{}", result.raw);
    let journal = workbench.journal("dev", "fs");
    let call = workbench.send_use("endless", "{}");
    wait(&journal, "tasks/get", 2);
    workbench.notify(
        "notifications/cancelled",
        &format!(r#"{{"requestId":{call}}}"#),
    );
    wait(&journal, "tasks/cancel", 1);
}

#[test]
fn a_tool_list_change_is_followed_and_the_subscription_reopens() {
    for end in ["graceful", "cancelled", "abrupt"] {
        let add =
            r#"{"setTools":[{"name":"add","inputSchema":{}},{"name":"new","inputSchema":{}}]}"#;
        let change = r#"{"change":{"method":"notifications/tools/list_changed"}}"#;
        let done = r#"{"answer":{"content":[]}}"#;
        let script = modern(&["add", "end"])
            .on_call("add", &format!("[{add},{change},{done}]"))
            .on_call("end", &format!(r#"[{{"endListens":"{end}"}},{done}]"#));
        let mut workbench = connect(Setup::one(&script), &json!({}));
        let journal = workbench.journal("dev", "fs");
        let listen = &wait(&journal, "subscriptions/listen", 1)[0];
        assert_eq!(
            listen["notifications"],
            json!({"toolsListChanged": true}),
            "{end}"
        );
        workbench.use_tool("end", "{}");
        wait(&journal, "subscriptions/listen", 2);
        // Everything may have changed meanwhile.
        wait(&journal, "tools/list", 2);
        workbench.use_tool("add", "{}");
        wait(&journal, "tools/list", 3);
        assert_eq!(workbench.open("dev").tool_names(), ["add", "new"], "{end}");
    }
}

#[test]
fn a_cancel_reaches_the_server() {
    let script = modern(&["wait"]).on_call("wait", r#"[{"journal":"waits"},"awaitCancel"]"#);
    let mut workbench = connect(Setup::one(&script), &json!({}));
    let call = workbench.send_use("wait", "{}");
    let journal = workbench.journal("dev", "fs");
    journal.wait("note", 1);
    workbench.notify(
        "notifications/cancelled",
        &format!(r#"{{"requestId":{call}}}"#),
    );
    wait(&journal, "notifications/cancelled", 1);
}

#[test]
fn a_resource_subscription_widens_the_filter_instead_of_being_sent() {
    let touch = r#"[{"change":{"method":"notifications/resources/updated","params":{"uri":"u:1"}}},{"answer":{"content":[]}}]"#;
    let script = modern(&["touch"])
        .set("resources", r#"[{"uri":"u:1","name":"one"}]"#)
        .set(
            "capabilities",
            r#"{"tools":{},"resources":{"subscribe":true},"logging":{}}"#,
        )
        .on_call("touch", touch);
    let setup = Setup::one(&script)
        .top("toolMode", json!("native"))
        .top("nativeToolbox", json!("dev"));
    let mut workbench = setup.connect();
    workbench.ask("tools/list", "{}");
    let journal = workbench.journal("dev", "fs");
    let granted = workbench.ask("resources/subscribe", r#"{"uri":"u:1"}"#);
    assert!(granted.line.contains(r#""result":{}"#), "{}", granted.line);
    let listen = &wait(&journal, "subscriptions/listen", 1)[0];
    assert_eq!(
        listen["notifications"],
        json!({"resourceSubscriptions": ["u:1"]})
    );
    workbench.ask("tools/call", r#"{"name":"touch","arguments":{}}"#);
    let updated = workbench.notification("notifications/resources/updated");
    assert_eq!(updated.params.as_deref().unwrap().get(), r#"{"uri":"u:1"}"#);
    workbench.ask("logging/setLevel", r#"{"level":"debug"}"#);
    workbench.ask("resources/unsubscribe", r#"{"uri":"u:1"}"#);
    wait(&journal, "notifications/cancelled", 1);
    for method in [
        "resources/subscribe",
        "resources/unsubscribe",
        "logging/setLevel",
    ] {
        assert!(journal.received(method).is_empty(), "{method}");
    }
}
