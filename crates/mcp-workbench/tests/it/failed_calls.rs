//! Calls that fail downstream, deadlines, and servers that are not up. Crashes and idle servers are rows of
//! the fault suite.

use std::time::{Duration, Instant};

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::harness::{Script, Setup, ToolResult, Workbench};

fn opened(script: &Script, keys: &Value) -> Workbench {
    let mut workbench = Setup::new()
        .toolbox("dev", "d")
        .server_with("fs", script, keys)
        .connect();
    workbench.open("dev");
    workbench
}

/// Checks the label and the machine-readable names of a failed call. Returns the reason.
fn reason<'a>(result: &'a ToolResult, tool: &str) -> &'a str {
    let label = format!("Error executing tool '{tool}' in server 'fs' (toolbox 'dev'): ");
    let reason = result.error().strip_prefix(&label);
    let reason = reason.unwrap_or_else(|| panic!("no {label:?} in {}", result.error()));
    assert!(!reason.trim().is_empty(), "{}", result.raw);
    let failure = result.failure();
    let names = [&failure["toolbox"], &failure["server"], &failure["tool"]];
    assert_eq!(names, [&json!("dev"), &json!("fs"), &json!(tool)]);
    let code = failure["code"].as_str();
    assert!(code.is_some_and(|code| !code.is_empty()), "{}", result.raw);
    reason
}

#[test]
fn a_protocol_error_keeps_the_message_of_the_server() {
    let script = Script::named(&["t"]).on_call(
        "t",
        r#"[{"error":{"code":-32001,"message":"Traceback:\n\tthe disk is on fire","data":{"a":1}}}]"#,
    );
    let mut workbench = opened(&script, &json!({}));
    let result = workbench.use_tool("t", "{}");
    assert_eq!(reason(&result, "t"), "Traceback:\n\tthe disk is on fire");
}

#[test]
fn a_call_without_an_answer_times_out() {
    let mut workbench = opened(&Script::new(), &json!({"callTimeoutMs": 300}));
    let start = Instant::now();
    let result = workbench.use_tool("hang", "{}");
    assert!(start.elapsed() >= Duration::from_millis(300));
    reason(&result, "hang");
    assert_eq!(result.failure()["outcome"], "unknown");
    assert!(
        !workbench.use_tool("pid", "{}").failed(),
        "the server lives on"
    );
    assert_eq!(workbench.journal("dev", "fs").pids().len(), 1);
}

/// A tool that reports progress every 300 ms, `times` times, and then answers.
fn progressing(times: u32) -> Script {
    let actions = format!(
        r#"[{{"repeat":{{"times":{times},"actions":[{{"sleepMs":300}},{{"progress":{{"progress":1}}}}]}}}},{{"answer":{{"content":[]}}}}]"#
    );
    Script::named(&["work", "pid"]).on_call("work", &actions)
}

fn use_with_token(workbench: &mut Workbench, tool: &str) -> ToolResult {
    let arguments = format!(r#"{{"tool":{{"toolbox":"dev","server":"fs","tool":"{tool}"}}}}"#);
    let params =
        format!(r#"{{"name":"use_tool","arguments":{arguments},"_meta":{{"progressToken":"p"}}}}"#);
    let id = workbench.request("tools/call", &params);
    workbench.tool_result(&id)
}

#[test]
fn progress_resets_the_timeout_of_a_call() {
    let mut workbench = opened(&progressing(12), &json!({"callTimeoutMs": 3000}));
    let result = use_with_token(&mut workbench, "work");
    assert_eq!(result.raw, r#"{"content":[]}"#);
}

#[test]
fn nothing_resets_the_maximum_time_of_a_call() {
    let mut workbench = opened(&progressing(100), &json!({"maxCallMs": 1000}));
    let start = Instant::now();
    let result = use_with_token(&mut workbench, "work");
    let took = start.elapsed();
    assert!(
        took >= Duration::from_secs(1) && took < Duration::from_secs(20),
        "{took:?}"
    );
    reason(&result, "work");
}

#[test]
fn a_call_tries_to_start_a_server_that_is_not_up() {
    let setup = Setup::new();
    let tried = setup.path("tried");
    let once = json!([{"once": {"file": tried, "actions": [{"exit": 1}]}}]).to_string();
    let mut workbench = setup
        .toolbox("dev", "d")
        .server("steady", &Script::named(&["a"]))
        .server_with(
            "shaky",
            &Script::new().set("onStart", &once),
            &json!({"era": "legacy"}),
        )
        .server_with(
            "never",
            &Script::new(),
            &json!({"command": "no-such-command-anywhere"}),
        )
        .connect();
    assert_eq!(workbench.open("dev").json()["servers_connected"], 1);

    let result = workbench.use_tool_of(["dev", "shaky", "pid"], "{}");
    assert!(
        !result.failed(),
        "the second start succeeds: {}",
        result.raw
    );

    let result = workbench.use_tool_of(["dev", "never", "query"], "{}");
    assert_eq!(
        result.error(),
        "Error executing tool 'query' in server 'never' (toolbox 'dev'): failed to connect: command 'no-such-command-anywhere' not found"
    );
    assert_eq!(result.failure()["outcome"], "not_sent");
    assert_eq!(result.failure()["server"], "never");
}

/// A server that closes its stdin before it is up: no call can ever be sent to it.
#[test]
fn a_call_to_a_server_that_closed_its_stdin_fails_as_not_sent() {
    let script = r#"read a; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}'
        read b; read c; exec 0<&-; echo '{"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"x","inputSchema":{"type":"object"}}]}}'
        sleep 100"#;
    let entry = json!({"command": "sh", "args": ["-c", script], "era": "legacy"});
    let mut workbench = Setup::new()
        .toolbox("dev", "d")
        .entry("deaf", entry)
        .connect();
    workbench.open("dev");
    let result = workbench.use_tool_of(["dev", "deaf", "x"], "{}");
    assert!(result.failed(), "{}", result.raw);
    assert!(
        result.raw.contains(r#""outcome":"not_sent""#),
        "{}",
        result.raw
    );
}
