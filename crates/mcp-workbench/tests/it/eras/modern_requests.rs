//! The requests of a modern client: tasks in every mode, and the differences in native mode.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::{modern, natively, silent, telling};
use crate::harness::{Script, Setup, Workbench};

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

/// The workbench does not read a description again that has the text of the first one. Every other `_meta` counts.
#[test]
fn every_meta_counts_whatever_the_client_has_sent_before() {
    let script = Script::named(&["x"])
        .set("era", r#""modern""#)
        .answers("x", r#"{"resultType":"complete","content":[]}"#);
    let mut workbench = Setup::one(&script).start();
    let described = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"roots":{}}"#;
    let meta = |more: &str| format!("{{{described}{more}}}");
    let usual = meta("");
    let tool = json!({"toolbox": "dev", "server": "fs", "tool": "x"});
    let ask = |workbench: &mut Workbench, name: &str, arguments: &Value, meta: &str| {
        let params = format!(r#"{{"name":"{name}","arguments":{arguments},"_meta":{meta}}}"#);
        workbench.ask("tools/call", &params)
    };
    let opened = json!({ "toolbox": "dev" });
    assert!(!ask(&mut workbench, "open_toolbox", &opened, &usual).is_error());
    let used = json!({ "tool": tool });
    let trace = r#","traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01""#;
    // The `_meta` of the client, and what the server gets besides the description of the client.
    let relayed = [
        (usual.clone(), json!({})),
        (usual.clone(), json!({})),
        (
            meta(r#","io.modelcontextprotocol/logLevel":"error""#),
            json!({"io.modelcontextprotocol/logLevel": "error"}),
        ),
        (
            meta(trace),
            serde_json::from_str(&format!("{{{}}}", &trace[1..])).unwrap(),
        ),
        (usual.clone(), json!({})),
        (usual.replace("roots", "sampling"), json!({})),
        (usual.replace(':', " : "), json!({})),
    ];
    for (index, (meta, more)) in relayed.iter().enumerate() {
        assert!(
            !ask(&mut workbench, "use_tool", &used, meta).is_error(),
            "{meta}"
        );
        let calls = workbench.journal("dev", "fs").received("tools/call");
        assert_eq!(calls.len(), index + 1);
        let got: Value =
            serde_json::from_str(calls[index].params.as_deref().unwrap().get()).unwrap();
        let mut got = got["_meta"].as_object().unwrap().clone();
        got.remove("io.modelcontextprotocol/protocolVersion");
        got.remove("io.modelcontextprotocol/clientInfo");
        let capabilities = got
            .remove("io.modelcontextprotocol/clientCapabilities")
            .unwrap();
        let question = if meta.contains("sampling") {
            "sampling"
        } else {
            "roots"
        };
        assert_eq!(capabilities, json!({ question: {} }), "{meta}");
        assert_eq!(Value::Object(got), *more, "{meta}");
    }
    let refused = [
        (usual.replace("2026-07-28", "1999-01-01"), -32022),
        (usual.replace("clientCapabilities", "other"), -32602),
        (meta(&format!(",{described}")), -32602),
        ("{}".to_owned(), -32602),
    ];
    for (meta, code) in refused {
        let answer = ask(&mut workbench, "use_tool", &used, &meta);
        assert_eq!(answer.error().code, code, "{meta}");
    }
    assert_eq!(
        workbench.journal("dev", "fs").received("tools/call").len(),
        relayed.len()
    );
}
