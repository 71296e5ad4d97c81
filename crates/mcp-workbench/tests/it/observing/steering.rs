//! The commands of a running workbench.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::{command, document, served, stdout};
use crate::harness::{HttpClient, Served, TIMEOUT, poll, use_arguments};

/// A client that can be asked, with the toolbox open.
fn asked_client(served: &Served) -> HttpClient {
    let params = r#"{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"asker","version":"1"}}"#;
    let mut client = served.client_with(params);
    client.open();
    client
}

fn pending(served: &Served) -> Vec<Value> {
    let document = document(served, &["live", "approvals", "--json"]);
    document["approvals"].as_array().unwrap().clone()
}

/// Waits until a call waits for a decision.
fn waiting(served: &Served) -> Value {
    let found = poll(TIMEOUT, || pending(served).into_iter().next());
    found.expect("a call that waits")
}

#[test]
fn servers_are_shown_stopped_and_started() {
    let served = served();
    let state = || document(&served, &["live", "servers", "--json"])["servers"][0].clone();
    assert_eq!(state()["state"], "resting");
    stdout(&served, &["live", "start", "dev", "fs"]);
    let up = state();
    assert_eq!((&up["state"], &up["tools"]), (&json!("up"), &json!(2)));
    let first = up["pid"].as_u64().unwrap();
    stdout(&served, &["live", "restart", "dev", "fs"]);
    assert_ne!(state()["pid"].as_u64().unwrap(), first);
    stdout(&served, &["live", "stop", "dev", "fs"]);
    assert_eq!(state()["state"], "resting");
    let unknown = command(&served, &["live", "stop", "dev", "nobody"]);
    assert!(!unknown.status.success());
}

#[test]
fn calls_are_shown_with_the_messages_of_both_hops() {
    let served = served();
    document(&served, &["live", "calls", "--json"]);
    let mut client = served.client();
    client.open();
    client.use_tool("read", r#"{"path":"/x"}"#);
    let calls = document(&served, &["live", "calls", "--json"]);
    let last = calls["calls"].as_array().unwrap().last().unwrap().clone();
    assert_eq!(
        (
            &last["toolbox"],
            &last["server"],
            &last["tool"],
            &last["outcome"]
        ),
        (&json!("dev"), &json!("fs"), &json!("read"), &json!("ok"))
    );
    assert_eq!(last["request"], Value::Null, "the list has no messages");
    let whole = document(&served, &["live", "calls", &last["id"].to_string()]);
    assert_eq!(whole["request"]["name"], "use_tool");
    assert_eq!(whole["arguments"], json!({"path": "/x"}));
    let hop = &whole["hops"][0];
    assert_eq!(
        hop["request"],
        json!({"name": "read", "arguments": {"path": "/x"}})
    );
    assert_eq!(hop["result"], whole["reply"]);
}

#[test]
fn calls_are_filtered_as_on_the_page() {
    let served = served();
    document(&served, &["live", "calls", "--json"]);
    let mut client = served.client();
    client.open();
    client.use_tool("read", "{}");
    client.use_tool("nothing", "{}");
    let found = |options: &[&str]| {
        let arguments = [&["live", "calls", "--json"], options].concat();
        let calls = document(&served, &arguments)["calls"].clone();
        let names = calls.as_array().unwrap().iter();
        let names = names.map(|it| [&it["tool"], &it["target"], &it["method"]].map(Clone::clone));
        names
            .map(|it| it.into_iter().find(Value::is_string).unwrap())
            .collect::<Vec<_>>()
    };
    assert_eq!(found(&["--tool", "READ"]), ["read"]);
    assert_eq!(found(&["--server", "dev/fs"]), ["read", "nothing"]);
    assert_eq!(
        found(&["--server", "fs", "--outcome", "error"]),
        ["nothing"]
    );
    assert!(found(&["--client", "nobody"]).is_empty());
    assert_eq!(found(&["--tool", "initialize"]), ["initialize"]);
}

#[test]
fn a_call_has_the_sizes_of_its_messages_and_the_command_that_repeats_it() {
    let served = served();
    document(&served, &["live", "calls", "--json"]);
    let mut client = served.client();
    client.open();
    client.use_tool("read", "{\n\"id\": 9007199254740993, \"it's\": 1.0}");
    let calls = document(&served, &["live", "calls", "--json"]);
    let last = calls["calls"].as_array().unwrap().last().unwrap().clone();
    assert!(last["request_bytes"].as_u64().unwrap() > 50, "{last}");
    let hop = &last["hops"][0];
    assert!(hop["request_bytes"].as_u64() < last["request_bytes"].as_u64());
    assert_eq!(hop["result_bytes"], last["result_bytes"]);
    let printed = stdout(&served, &["live", "calls", &last["id"].to_string()]);
    assert!(printed.contains("9007199254740993"), "{printed}");
    let whole: Value = serde_json::from_str(&printed).unwrap();
    let repeated = whole["command"].as_str().unwrap();
    assert!(
        repeated.starts_with("mcp-workbench --config "),
        "{repeated}"
    );
    let arguments = r#"call dev fs read '{"id":9007199254740993,"it'\''s":1.0}'"#;
    assert!(repeated.ends_with(arguments), "{repeated}");
}

#[test]
fn a_call_is_decided_by_a_command_or_by_its_client_whichever_is_first() {
    for (decision, text) in [
        ("once", Some("gone")),
        ("session", Some("gone")),
        ("deny", None),
    ] {
        let served = served();
        let client = asked_client(&served);
        let arguments = use_arguments(["dev", "fs", "wipe"], Some(r#"{"path":"/"}"#));
        let params = format!(r#"{{"name":"use_tool","arguments":{arguments}}}"#);
        let mut call = client.begin("7", "tools/call", &params);
        let pending = waiting(&served);
        assert_eq!(pending["arguments"], r#"{"path":"/"}"#);
        assert_eq!(pending["client"], "asker");
        assert_eq!(pending["reason"], "no rule under 'allow' matches it");
        let id = pending["id"].to_string();
        stdout(&served, &["live", "decide", &id, decision]);
        // The question comes first on the stream, then the answer.
        let response = call.response();
        let answer = response.events().last().unwrap().message();
        assert!(answer.answers("7"), "{}", answer.line);
        match text {
            Some(text) => assert!(answer.line.contains(text), "{}", answer.line),
            None => assert!(
                answer.line.contains("permission_refused"),
                "{}",
                answer.line
            ),
        }
        let again = command(&served, &["live", "decide", &id, "once"]);
        assert!(!again.status.success(), "decided twice");
    }
}

#[test]
fn the_answer_of_the_client_ends_the_question_everywhere() {
    let served = served();
    let mut client = asked_client(&served);
    let arguments = use_arguments(["dev", "fs", "wipe"], Some("{}"));
    let params = format!(r#"{{"name":"use_tool","arguments":{arguments}}}"#);
    let mut call = client.begin("7", "tools/call", &params);
    call.head();
    // The first event has no data; it says where to resume.
    call.event();
    let question = call.message();
    waiting(&served);
    let id = question.id().expect("a question has an id");
    let answer = format!(
        r#"{{"jsonrpc":"2.0","id":{id},"result":{{"action":"accept","content":{{"decision":"once"}}}}}}"#
    );
    assert_eq!(client.post(&answer).head.status, 202);
    assert!(call.message().line.contains("gone"));
    assert!(pending(&served).is_empty());
}

#[test]
fn without_a_workbench_the_commands_say_how_to_start_one() {
    let served = served();
    let setup = &served.workbench.setup;
    let mut alone = setup.command();
    alone.env("XDG_STATE_HOME", setup.path("elsewhere"));
    let output = alone.args(["live", "servers"]).output().unwrap();
    assert!(!output.status.success());
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains("mcp-workbench serve --http"), "{stderr}");
}
