//! The audit log: what is noted of every call, and that nothing about it can hurt one.

mod reading;
mod trouble;

use std::{fs, path::PathBuf};

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::harness::{ModernClient, ModernRequest, Script, Setup, TIMEOUT, Workbench, poll};

/// A server whose tools end in every way.
fn script() -> Script {
    Script::named(&["read", "fails", "breaks", "waits", "wipe"])
        .answers("read", r#"{"content":[{"type":"text","text":"hi"}]}"#)
        .answers("fails", r#"{"content":[],"isError":true}"#)
        .on_call("breaks", r#"[{"error":{"code":-1,"message":"no"}}]"#)
        .on_call("waits", r#"[{"awaitCancel":null}]"#)
}

/// The toolbox `dev` with the server `fs`, and an audit log.
fn setup(audit: Value) -> Setup {
    let permissions = json!({"permissions": {"deny": ["wipe"]}});
    let toolbox = Setup::new().toolbox("dev", "d");
    toolbox
        .server_with("fs", &script(), &permissions)
        .top("audit", audit)
}

/// Returns the default path of the log.
fn file(workbench: &Workbench) -> PathBuf {
    workbench
        .setup
        .path("home/.local/state/mcp-workbench/audit.jsonl")
}

/// Waits until so many lines are in a file.
fn lines_of(file: &PathBuf, count: usize) -> Vec<Value> {
    let read = || {
        let text = fs::read_to_string(file).ok()?;
        (text.lines().count() >= count).then_some(text)
    };
    let text =
        poll(TIMEOUT, read).unwrap_or_else(|| panic!("no {count} lines in {}", file.display()));
    assert_eq!(text.lines().count(), count, "{text}");
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// The lines without what differs each time.
fn timeless(mut lines: Vec<Value>) -> Vec<Value> {
    for line in &mut lines {
        let line = line.as_object_mut().unwrap();
        let time = line.remove("time").unwrap();
        let time = time.as_str().unwrap();
        assert!(
            time.len() == 24 && time.ends_with('Z') && time.as_bytes()[10] == b'T',
            "{time}"
        );
        assert!(line.remove("duration_ms").unwrap().is_u64());
    }
    lines
}

#[test]
fn every_call_has_one_line() {
    let mut workbench = setup(json!(true)).connect();
    workbench.use_tool("read", "{}");
    workbench.open("dev");
    workbench.use_tool("read", r#"{"path":"/secret","n":1}"#);
    workbench.use_tool("fails", "{}");
    workbench.use_tool("breaks", "{}");
    workbench.use_tool("wipe", "{}");
    workbench.use_tool("gone", "{}");
    let call = workbench.send_use("waits", "{}");
    let journal = workbench.journal("dev", "fs");
    let arrived = poll(TIMEOUT, || (journal.called().len() == 4).then_some(()));
    assert!(arrived.is_some(), "the last call did not arrive");
    workbench.notify(
        "notifications/cancelled",
        &format!(r#"{{"requestId":{call}}}"#),
    );
    let lines = timeless(lines_of(&file(&workbench), 7));
    let client = json!({"name": "it", "version": "1", "principal": "local"});
    let line = |tool: &str, outcome: &str, more: Value| {
        let mut line = json!({
            "client": client, "toolbox": "dev", "server": "fs", "tool": tool, "outcome": outcome,
            "arguments_bytes": 2, "shape": {},
        });
        line.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        line
    };
    let shape = json!({"path": "string", "n": "number"});
    let expected = [
        line("read", "error", json!({"code": "toolbox_not_open"})),
        line(
            "read",
            "ok",
            json!({"arguments_bytes": 24, "result_bytes": 41, "shape": shape}),
        ),
        line("fails", "tool_error", json!({"result_bytes": 29})),
        line("breaks", "error", json!({"code": "server_error"})),
        line("wipe", "denied", json!({"code": "permission_denied"})),
        line("gone", "error", json!({"code": "tool_unknown"})),
        line("waits", "cancelled", json!({})),
    ];
    assert_eq!(lines, expected);
    let text = fs::read_to_string(file(&workbench)).unwrap();
    assert!(!text.contains("/secret"), "{text}");
}

#[test]
fn calls_in_every_mode_are_recorded() {
    let mut dynamic = setup(json!(true))
        .top("toolMode", json!("dynamic"))
        .connect();
    dynamic.open("dev");
    dynamic.call("dev__fs__read", "{}");
    assert_eq!(lines_of(&file(&dynamic), 1)[0]["tool"], "read");

    let native = setup(json!(true)).top("toolMode", json!("native"));
    let mut native = native.top("nativeToolbox", json!("dev")).connect();
    native.call("read", "{}");
    native.call("wipe", "{}");
    native.call("fails", "{}");
    let lines = lines_of(&file(&native), 3);
    let outcomes: Vec<_> = lines
        .iter()
        .map(|line| line["outcome"].as_str().unwrap())
        .collect();
    assert_eq!(outcomes, ["ok", "denied", "tool_error"]);
    assert_eq!(lines[0]["toolbox"], "dev");
    assert_eq!(lines[0]["server"], "fs");

    let mut modern = setup(json!(true)).start();
    modern.call_modern(&ModernRequest::open("dev"));
    modern.call_modern(&ModernRequest::use_tool("read", "{}"));
    let client = json!({"name": "it", "version": "1", "principal": "local"});
    assert_eq!(lines_of(&file(&modern), 1)[0]["client"], client);

    let mut served = setup(json!(true)).serve();
    served.call_modern(&ModernRequest::open("dev"));
    served.call_modern(&ModernRequest::use_tool("read", "{}"));
    let mut client = served.client();
    client.use_tool("read", "{}");
    let lines = lines_of(&file(&served.workbench), 2);
    assert!(
        lines
            .iter()
            .all(|line| line["client"]["principal"] == "token"),
        "{lines:?}"
    );
    let text = fs::read_to_string(file(&served.workbench)).unwrap();
    assert!(!text.contains(crate::harness::TOKEN), "{text}");

    let setup = setup(json!(true));
    setup.write_config();
    let config = setup.config();
    let mut call = setup.start_with(&[
        "call",
        "dev",
        "fs",
        "read",
        "--config",
        config.to_str().unwrap(),
    ]);
    assert!(call.finish().status.success());
    assert_eq!(
        lines_of(&file(&call), 1)[0]["client"]["name"],
        "mcp-workbench call"
    );
}

#[test]
fn argument_values_are_recorded_only_if_configured_and_without_secrets() {
    let toolbox = Setup::new().toolbox("dev", "d");
    let keys = json!({"env": {"TOKEN": "${CANARY}"}});
    let mut workbench = toolbox
        .server_with("fs", &script(), &keys)
        .top("audit", json!({"arguments": "values"}))
        .env("CANARY", "hunter2-hunter2")
        .connect();
    workbench.open("dev");
    workbench.use_tool("read", r#"{"q":"a hunter2-hunter2 b","hunter2-hunter2":1}"#);
    let big = format!(r#"{{"q":"{}"}}"#, "x".repeat(100_000));
    workbench.use_tool("read", &big);
    let lines = lines_of(&file(&workbench), 2);
    assert_eq!(
        lines[0]["arguments"],
        json!({"q": "a [redacted] b", "[redacted]": 1})
    );
    assert_eq!(
        lines[0]["shape"],
        json!({"q": "string", "[redacted]": "number"})
    );
    assert_eq!(lines[1]["arguments"], Value::Null, "too large");
    assert_eq!(lines[1]["shape"], json!({"q": "string"}));
    let text = fs::read_to_string(file(&workbench)).unwrap();
    assert!(!text.contains("hunter2"), "{text}");
}

#[test]
fn nothing_is_recorded_by_default() {
    for audit in [json!(false), json!(null)] {
        let mut workbench = setup(audit).connect();
        workbench.open("dev");
        workbench.use_tool("read", "{}");
        workbench.finish();
        assert!(!file(&workbench).exists());
    }
}

#[test]
fn pending_lines_are_written_at_shutdown() {
    let mut workbench = setup(json!(true)).connect();
    workbench.open("dev");
    for _ in 0..200 {
        workbench.send_use("read", "{}");
    }
    workbench.send_use("waits", "{}");
    workbench.finish();
    let text = fs::read_to_string(file(&workbench)).unwrap();
    assert_eq!(text.lines().count(), 201, "{text}");
}

#[test]
fn the_log_can_be_switched_on_while_the_workbench_runs() {
    let mut workbench = setup(json!(false)).connect();
    workbench.open("dev");
    workbench.use_tool("read", "{}");
    let config = workbench.setup.config();
    let text = fs::read_to_string(&config).unwrap();
    fs::write(&config, text.replace("\"audit\": false", "\"audit\": true")).unwrap();
    workbench.wait_stderr("configuration reloaded");
    workbench.use_tool("fails", "{}");
    assert_eq!(lines_of(&file(&workbench), 1)[0]["tool"], "fails");
    assert_eq!(
        workbench.journal("dev", "fs").pids().len(),
        1,
        "no server was touched"
    );
}
