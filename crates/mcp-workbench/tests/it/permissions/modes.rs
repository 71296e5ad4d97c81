//! The same rules under registered names, under native names, and after a change of the file.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::{ONCE, answer, called, setup};
use crate::{
    asking_back,
    harness::{Setup, TIMEOUT, Workbench, poll},
};

fn forms() -> Value {
    json!({"elicitation": {}})
}

fn names(workbench: &mut Workbench) -> Vec<String> {
    let list = workbench.ask("tools/list", "{}").result();
    let tools = list["tools"].as_array().unwrap().iter();
    tools
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect()
}

fn rules() -> Value {
    json!({"ask": ["wipe"], "deny": ["add"]})
}

#[test]
fn registered_names_follow_the_rules() {
    let setup = setup(&rules()).top("toolMode", json!("dynamic"));
    let mut workbench = asking_back::connect(setup, &forms());
    let listed = names(&mut workbench);
    assert!(
        !listed.iter().any(|name| name == "dev__fs__add"),
        "{listed:?}"
    );
    let call = workbench.send_call("dev__fs__wipe", "{}");
    answer(&mut workbench, ONCE);
    assert!(!workbench.tool_result(&call).failed());
    assert!(!workbench.call("dev__fs__read", "{}").failed());
    assert!(workbench.call("dev__fs__add", "{}").failed());
    assert_eq!(called(&workbench), ["wipe", "read"]);
}

#[test]
fn a_registered_name_is_denied_after_the_rules_change() {
    let setup = setup(&json!({})).top("toolMode", json!("dynamic"));
    let mut workbench = asking_back::connect(setup, &forms());
    assert!(!workbench.call("dev__fs__add", "{}").failed());
    change(&mut workbench, &rules());
    let refused = workbench.call("dev__fs__add", "{}");
    assert_eq!(refused.failure()["code"], "permission_denied");
}

fn natively() -> Setup {
    setup(&rules())
        .top("toolMode", json!("native"))
        .top("nativeToolbox", json!("dev"))
}

#[test]
fn native_names_follow_the_rules() {
    let mut workbench = natively().start();
    let params = json!({
        "protocolVersion": "2025-11-25", "capabilities": forms(), "clientInfo": {"name": "it", "version": "1"},
    });
    workbench.ask("initialize", &params.to_string());
    workbench.notify("notifications/initialized", "{}");
    assert_eq!(names(&mut workbench), ["read", "wipe", "@readOnly"]);
    let call = workbench.send_call("wipe", "{}");
    answer(&mut workbench, ONCE);
    assert!(!workbench.tool_result(&call).failed());
    let refused = workbench.call("add", "{}");
    assert_eq!(refused.failure()["code"], "permission_denied");
    assert!(!workbench.call("read", "{}").failed());
    let twice = r#"{"name":"wipe","arguments":{"a":1},"arguments":{"b":2}}"#;
    assert!(
        workbench.ask("tools/call", twice).is_error(),
        "the user would see only one of them"
    );
    assert_eq!(called(&workbench), ["wipe", "read"]);
}

/// Gives the server other permissions, and waits until they are taken up.
fn change(workbench: &mut Workbench, permissions: &Value) {
    let file = workbench.setup.config();
    let text = std::fs::read_to_string(&file).unwrap();
    let mut config: Value = serde_json::from_str(&text).unwrap();
    config["toolboxes"]["dev"]["mcpServers"]["fs"]["permissions"] = permissions.clone();
    let before = workbench.stderr().matches("configuration reloaded").count();
    let beside = file.with_extension("new");
    std::fs::write(&beside, config.to_string()).unwrap();
    std::fs::rename(beside, &file).unwrap();
    let taken_up = poll(TIMEOUT, || {
        (workbench.stderr().matches("configuration reloaded").count() > before).then_some(())
    });
    assert!(taken_up.is_some(), "the file was not reloaded");
}

#[test]
fn changed_rules_apply_without_a_restart_of_the_server() {
    let mut workbench = asking_back::connect(setup(&json!({})), &forms());
    assert!(!workbench.use_tool("wipe", "{}").failed());
    change(&mut workbench, &json!({"deny": ["wipe"]}));
    assert_eq!(
        workbench.use_tool("wipe", "{}").failure()["code"],
        "permission_denied"
    );
    assert_eq!(
        workbench.open("dev").tool_names(),
        ["read", "add", "@readOnly"]
    );
    change(&mut workbench, &json!({"ask": ["wipe"]}));
    let call = workbench.send_use("wipe", "{}");
    answer(&mut workbench, ONCE);
    assert!(!workbench.tool_result(&call).failed());
    change(&mut workbench, &json!({}));
    assert!(!workbench.use_tool("wipe", "{}").failed());
    assert_eq!(
        workbench.open("dev").tool_names(),
        ["read", "add", "wipe", "@readOnly"]
    );
    assert_eq!(
        workbench.journal("dev", "fs").pids().len(),
        1,
        "it was started once"
    );
}
