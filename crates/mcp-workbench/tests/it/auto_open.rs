//! `autoOpen`: a call opens its toolbox by itself.

use pretty_assertions::assert_eq;
use serde_json::json;

use crate::harness::{Script, Setup, TIMEOUT, poll, use_arguments};

fn opening(setup: Setup) -> Setup {
    setup.top("autoOpen", json!(true))
}

#[test]
fn without_auto_open_a_call_to_a_closed_toolbox_is_refused() {
    for setup in [
        Setup::one(&Script::new()),
        Setup::one(&Script::new()).top("autoOpen", json!(false)),
    ] {
        let mut workbench = setup.connect();
        assert_eq!(
            workbench.use_tool("echo", "{}").error(),
            "Error: Toolbox 'dev' is not open. Call open_toolbox first."
        );
        assert!(workbench.journal("dev", "fs").pids().is_empty());
    }
}

#[test]
fn concurrent_calls_open_the_toolbox_once() {
    let setup = Setup::one(&Script::new()).server("two", &Script::new());
    let mut workbench = opening(setup).connect();
    let calls: Vec<String> = (0..8).map(|_| workbench.send_use("pid", "{}")).collect();
    let answers = calls.iter().map(|id| workbench.tool_result(id));
    let answers: Vec<String> = answers.map(|it| it.text().to_owned()).collect();
    assert!(answers.iter().all(|it| *it == answers[0]), "{answers:?}");
    // The whole toolbox is open.
    let opened = workbench.open("dev").json();
    assert_eq!(opened["servers_connected"], 2);
    for server in ["fs", "two"] {
        assert_eq!(workbench.journal("dev", server).pids().len(), 1, "{server}");
    }
}

#[test]
fn a_call_waits_for_its_own_server_only() {
    let silent = Script::new().on_method("initialize", "[]");
    let setup = Setup::one(&Script::new()).server("slow", &silent);
    let mut workbench = opening(setup).connect();
    for _ in 0..2 {
        assert!(!workbench.use_tool("echo", "{}").failed());
    }
    workbench.journal("dev", "slow").wait("start", 1);
}

#[test]
fn a_failed_server_is_reported_and_does_not_affect_others() {
    let setup = Setup::one(&Script::new()).entry("bad", json!({"command": "/no/such/program"}));
    let mut workbench = opening(setup).connect();
    let failed = workbench.use_tool_of(["dev", "bad", "echo"], "{}");
    assert_eq!(
        failed.error(),
        "Error executing tool 'echo' in server 'bad' (toolbox 'dev'): failed to connect: \
         command '/no/such/program' not found"
    );
    assert!(!workbench.use_tool("echo", "{}").failed());
}

#[test]
fn unknown_toolboxes_servers_and_tools_are_refused() {
    let mut workbench = opening(Setup::one(&Script::new())).connect();
    let rows = [
        (
            ["x", "fs", "echo"],
            "Error: Toolbox 'x' not found. Available toolboxes: dev",
        ),
        (
            ["dev", "other", "echo"],
            "Server 'other' not found in toolbox 'dev'",
        ),
        (
            ["dev", "fs", "nothing"],
            "Tool 'nothing' not found in server 'fs' (toolbox 'dev')",
        ),
    ];
    for (identifier, text) in rows {
        assert_eq!(workbench.use_tool_of(identifier, "{}").error(), text);
    }
}

#[test]
fn dynamic_mode_registers_the_tools_of_a_toolbox_opened_by_a_call() {
    let setup = Setup::one(&Script::named(&["echo"])).top("toolMode", json!("dynamic"));
    let mut workbench = opening(setup).connect();
    let arguments = use_arguments(["dev", "fs", "echo"], None);
    assert!(!workbench.call("use_tool", &arguments).failed());
    workbench.notification("notifications/tools/list_changed");
    let registered = poll(TIMEOUT, || {
        (!workbench.call("dev__fs__echo", "{}").failed()).then_some(())
    });
    assert!(registered.is_some());
}

#[test]
fn auto_open_can_be_enabled_by_a_reload() {
    let setup = Setup::one(&Script::new());
    let text = setup.config_text().replacen('{', r#"{"autoOpen":true,"#, 1);
    let mut workbench = setup.connect();
    assert!(workbench.use_tool("echo", "{}").failed());
    std::fs::write(workbench.setup.config(), text).unwrap();
    workbench.wait_stderr("configuration reloaded");
    assert!(!workbench.use_tool("echo", "{}").failed());
}
