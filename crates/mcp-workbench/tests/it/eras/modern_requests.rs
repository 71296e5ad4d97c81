//! The requests of a modern client: tasks in every mode, and the differences in native mode.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::{modern, natively, silent, telling};
use crate::harness::Setup;

const TASKS: &str = "io.modelcontextprotocol/tasks";

#[test]
fn tasks_are_offered_only_to_clients_that_declare_them() {
    let mut workbench = Setup::one(&silent()).start();
    workbench.initialize();
    let filter = json!({"notifications": {"taskIds": ["t"]}});
    for (method, params) in [
        ("subscriptions/listen", filter),
        ("tasks/get", json!({"taskId": "t"})),
        ("tasks/update", json!({"taskId": "t", "inputResponses": {}})),
        ("tasks/cancel", json!({"taskId": "t"})),
    ] {
        let refused = workbench.ask(method, &modern(params, &json!({})));
        assert_eq!(refused.error().code, -32021, "{method}");
        let required = json!({"extensions": {TASKS: {}}});
        let data = json!({"requiredCapabilities": required});
        let line: Value = serde_json::from_str(&refused.line).unwrap();
        assert_eq!(line["error"]["data"], data, "{method}");
    }
}

#[test]
fn a_task_that_was_not_given_to_the_client_is_unknown() {
    let capabilities = json!({"extensions": {TASKS: {}}});
    let mut workbench = Setup::one(&silent()).start();
    let introduction = json!({
        "protocolVersion": "2025-11-25", "capabilities": capabilities,
        "clientInfo": {"name": "it", "version": "1"},
    });
    workbench.ask("initialize", &introduction.to_string());
    for (task, message) in [
        (json!("t"), "Unknown task: t"),
        (json!("e30.e30"), "Unknown task: e30.e30"),
        (json!(7), "taskId: Expected string"),
    ] {
        let params = modern(json!({"taskId": task}), &capabilities);
        let refused = workbench.ask("tasks/get", &params);
        let error = refused.error();
        assert_eq!((error.code, error.message.as_str()), (-32602, message));
    }
    let filter = json!({"notifications": {"taskIds": ["t"]}});
    workbench.send_request("70", "subscriptions/listen", &modern(filter, &capabilities));
    let first = workbench.notification("notifications/subscriptions/acknowledged");
    assert_eq!(first.params()["notifications"], json!({}));
}

#[test]
fn a_modern_client_has_no_legacy_methods_and_gets_cache_hints() {
    let setup = natively(Setup::new().toolbox("dev", "d"));
    let setup = setup.server("a", &telling()).server("b", &silent());
    let mut workbench = setup.start();
    workbench.initialize();
    let plain = json!({}).to_string();
    let meta = modern(json!({}), &json!({}));
    for method in ["tools/list", "prompts/list", "resources/list"] {
        let result = workbench.ask(method, &meta).result();
        assert_eq!(
            (&result["ttlMs"], &result["cacheScope"]),
            (&json!(0), &json!("private")),
            "{method}"
        );
        assert_eq!(workbench.ask(method, &plain).result()["ttlMs"], Value::Null);
        for params in [r#"{"cursor":"x"}"#, r#"{"cursor":0}"#] {
            assert_eq!(workbench.ask(method, params).error().code, -32602);
        }
        assert!(!workbench.ask(method, r#"{"cursor":null}"#).is_error());
    }
    for method in [
        "resources/subscribe",
        "resources/unsubscribe",
        "logging/setLevel",
    ] {
        let params = modern(json!({"uri": "u:1", "level": "info"}), &json!({}));
        assert_eq!(workbench.ask(method, &params).error().code, -32601);
    }
    let unknown = modern(json!({"uri": "v:1"}), &json!({}));
    let refused = workbench.ask("resources/read", &unknown);
    assert_eq!(refused.error().code, -32602);
    let refused = workbench.ask("resources/read", r#"{"uri":"v:1"}"#);
    assert_eq!(refused.error().code, -32002);
}
