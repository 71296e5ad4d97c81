//! Permissions for each tool: denied tools, tools that ask, and attempts to get around both.

mod asking;
mod attacks;
mod client_rules;
mod denied;
mod known;
mod modes;

use serde_json::{Value, json};

use crate::{
    asking_back,
    harness::{Message, Script, Setup, Workbench},
};

/// The answer that permits one call.
const ONCE: &str = r#"{"action":"accept","content":{"decision":"once"}}"#;
/// The answer that permits all calls of the tool.
const SESSION: &str = r#"{"action":"accept","content":{"decision":"for this session"}}"#;

/// A server with a tool that only reads, one that adds, one that says nothing of itself, and one of an odd name.
fn tools() -> Script {
    let tool = |name: &str, annotations: &str| {
        format!(r#"{{"name":"{name}","inputSchema":{{"type":"object"}}{annotations}}}"#)
    };
    let tools = [
        tool("read", r#","annotations":{"readOnlyHint":true}"#),
        tool("add", r#","annotations":{"destructiveHint":false}"#),
        tool("wipe", ""),
        tool("@readOnly", ""),
    ];
    let answer = r#"{"content":[{"type":"text","text":"done"}]}"#;
    let names = ["read", "add", "wipe", "@readOnly"];
    let script = Script::new().tools(&format!("[{}]", tools.join(",")));
    names
        .iter()
        .fold(script, |script, name| script.answers(name, answer))
}

/// The toolbox `dev` with the server `fs`, which has those tools and these permissions.
fn setup(permissions: &Value) -> Setup {
    setup_of(&tools(), permissions)
}

fn setup_of(script: &Script, permissions: &Value) -> Setup {
    let toolbox = Setup::new().toolbox("dev", "Development tools");
    toolbox.server_with("fs", script, &json!({ "permissions": permissions }))
}

/// A workbench whose client can be asked.
fn asked(permissions: &Value) -> Workbench {
    asking_back::connect(setup(permissions), &json!({"elicitation": {}}))
}

/// Waits for the question about a tool, and answers it.
fn answer(workbench: &mut Workbench, result: &str) -> Message {
    let question = workbench.notification("elicitation/create");
    let id = question.id().unwrap().to_owned();
    workbench.send_line(&format!(
        r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#
    ));
    question
}

fn message(question: &Message) -> String {
    question.params()["message"].as_str().unwrap().to_owned()
}

/// The names of tools that the server was called by.
fn called(workbench: &Workbench) -> Vec<String> {
    let called = workbench.journal("dev", "fs").called();
    called
        .iter()
        .map(|name| serde_json::from_str(name).unwrap())
        .collect()
}
