//! A server of the official Python SDK in native mode: it speaks both eras, and the workbench takes the modern one
//! unless the entry of the server says otherwise.

use std::process::Command;
use std::sync::LazyLock;

use pretty_assertions::assert_eq;
use serde_json::{Map, Value, json};

use crate::packages;
use crate::process::Process;
use crate::steps::{Client, Era, Language, Shows, Step, Transport, assert_same};

/// The observations without the workbench.
static DIRECT: LazyLock<Map<String, Value>> = LazyLock::new(|| {
    let client = Client {
        language: Language::TypeScript,
        era: Era::Modern,
    };
    client.take_with(&command("stdio"), &steps()).steps
});

fn command(transport: &str) -> Command {
    let mut python = Command::new(packages::python());
    python
        .arg(packages::beside("servers/python.py"))
        .arg(transport);
    python
}

/// The entry of the server over stdio.
fn entry() -> Value {
    let command = command("stdio");
    let args: Vec<_> = command.get_args().map(|it| it.to_str().unwrap()).collect();
    json!({ "command": command.get_program().to_str().unwrap(), "args": args })
}

fn steps() -> Vec<Step> {
    let list = |what: &'static str| Step::new(what, json!({ "do": what }));
    let listen = |name, filter: Value| {
        let step = Step::call(name, name).with("do", "listen");
        step.with("filter", filter)
    };
    vec![
        list("tools"),
        Step::call("add", "add").with("arguments", json!({ "a": 1, "b": 2.5 })),
        Step::call("fail", "fail"),
        Step::call("count", "count").with("progress", true),
        Step::call("say", "say").with("log", "info"),
        Step::call("accept", "ask_user"),
        Step::call("decline", "ask_user").with("answer", "decline"),
        Step::call("ask all at once", "ask_all"),
        Step::call("ask one after the other", "ask_twice"),
        listen("grow", json!({ "toolsListChanged": true })),
        Step::call("more", "more"),
        listen("touch", json!({ "resourceSubscriptions": ["note:///one"] })),
        list("resources"),
        Step::new("read", json!({ "do": "read", "uri": "note:///one" })),
        Step::new(
            "read nothing",
            json!({ "do": "read", "uri": "note:///none" }),
        ),
        list("prompts"),
        Step::new(
            "prompt",
            json!({ "do": "prompt", "name": "greet", "arguments": { "name": "Ada" } }),
        ),
        Step::call("wait", "wait").with("do", "cancel"),
        Step::call("cancelled", "cancelled"),
    ]
}

/// Takes the steps but for some, which a legacy peer cannot take with this server.
fn natively(client: Client, entry: &Value, transport: Transport, but_for: &[&str]) {
    let mut steps = steps();
    steps.retain(|step| !but_for.contains(&step.name()));
    let mut expected = DIRECT.clone();
    expected.retain(|step, _| !but_for.contains(&step.as_str()));
    let servers = json!({ "python": entry });
    let seen = client.take_through(&servers, Shows::Native, transport, &steps);
    assert_same(&seen.steps, &expected, &format!("{client:?}"));
}

#[test]
fn without_the_workbench_it_gives_the_expected_answers() {
    let text = |step: &str| DIRECT[step]["result"]["content"][0]["text"].clone();
    assert_eq!(text("add"), "3.5");
    assert_eq!(DIRECT["count"]["progress"], json!(["1/3", "2/3"]));
    let log = json!([{ "level": "warning", "data": "loud" }]);
    assert_eq!(DIRECT["say"]["log"], log);
    assert_eq!(
        text("accept"),
        r#"{"action": "accept", "content": {"name": "Ada"}}"#
    );
    assert_eq!(text("decline"), r#"{"action": "decline", "content": null}"#);
    assert_eq!(
        text("ask all at once"),
        r#"["accept", "Paris", ["file:///home/ada"]]"#
    );
    assert_eq!(DIRECT["grow"]["heard"], json!(["tools/list_changed"]));
    let touched = json!(["resources/updated note:///one"]);
    assert_eq!(DIRECT["touch"]["heard"], touched);
    assert_eq!(DIRECT["wait"], json!({ "cancelled": true }));
    assert_eq!(text("cancelled"), "cancelled");
}

#[test]
fn legacy_client_with_the_server_over_http() {
    let mut server = Process::start(command("http"));
    let url = server.read_line().unwrap();
    let client = Client {
        language: Language::TypeScript,
        era: Era::Legacy,
    };
    // The server does not say that it logs, so that a legacy client may not choose a level.
    let entry = json!({ "type": "http", "url": url });
    natively(client, &entry, Transport::Stdio, &["say"]);
}

#[test]
fn modern_client_with_the_server_over_http() {
    let mut server = Process::start(command("http"));
    let url = server.read_line().unwrap();
    let client = Client {
        language: Language::Python,
        era: Era::Modern,
    };
    let entry = json!({ "type": "http", "url": url });
    natively(client, &entry, Transport::Http, &[]);
}

#[test]
fn legacy_client_with_the_server_over_stdio() {
    let client = Client {
        language: Language::Python,
        era: Era::Legacy,
    };
    natively(client, &entry(), Transport::Http, &["say"]);
}

#[test]
fn modern_client_with_the_server_fixed_to_the_legacy_era() {
    let client = Client {
        language: Language::TypeScript,
        era: Era::Modern,
    };
    let mut entry = entry();
    entry["era"] = json!("legacy");
    // What has changed, the SDK tells only who listens as the modern era does.
    let but_for = ["say", "grow", "more", "touch"];
    natively(client, &entry, Transport::Stdio, &but_for);
}
