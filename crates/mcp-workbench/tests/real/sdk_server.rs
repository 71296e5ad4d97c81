//! A server of the official TypeScript SDK in native mode, in one era, with clients of the other and of the same: they
//! see what a client sees that talks to the server itself.

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
    client
        .take_with(&command(Era::Modern, Transport::Stdio), &steps())
        .steps
});

/// The command that starts the server.
fn command(era: Era, transport: Transport) -> Command {
    let mut node = Command::new("node");
    node.arg(packages::beside("servers/typescript.mjs"))
        .arg(packages::folder())
        .arg(era.word())
        .arg(match transport {
            Transport::Stdio => "stdio",
            Transport::Http => "http",
        });
    node
}

/// The entry of the server. It ends with the process, if it has one.
pub(crate) fn entry(era: Era, transport: Transport) -> (Value, Option<Process>) {
    let command = command(era, transport);
    match transport {
        Transport::Stdio => {
            let args: Vec<_> = command.get_args().map(|it| it.to_str().unwrap()).collect();
            (json!({ "command": "node", "args": args }), None)
        }
        Transport::Http => {
            let (url, process) = listening(command);
            (json!({ "type": "http", "url": url }), Some(process))
        }
    }
}

fn listening(command: Command) -> (String, Process) {
    let mut process = Process::start(command);
    let url = process.read_line().unwrap();
    (url, process)
}

/// The step that a modern client takes only with a modern server: a legacy one cannot say for which of its calls it asks.
const ONLY_MODERN: &str = "ask at the same time";

/// Returns the steps with the server.
pub(crate) fn steps() -> Vec<Step> {
    let list = |what: &'static str| Step::new(what, json!({ "do": what }));
    let read = |name, uri: &str| Step::new(name, json!({ "do": "read", "uri": uri }));
    vec![
        list("tools"),
        Step::call("add", "add").with("arguments", json!({ "a": 1, "b": 2.5 })),
        Step::call("add wrongly", "add").with("arguments", json!({ "a": "one" })),
        Step::call("fail", "fail"),
        Step::call("count", "count").with("progress", true),
        Step::call("say", "say").with("log", "info"),
        Step::call("say at a higher level", "say").with("log", "error"),
        Step::call("accept", "ask_user"),
        Step::call("decline", "ask_user").with("answer", "decline"),
        Step::call("cancel", "ask_user").with("answer", "cancel"),
        Step::call("ask the model", "ask_model"),
        Step::call("ask for roots", "ask_roots"),
        Step::call("ask all at once", "ask_all"),
        Step::call("ask one after the other", "ask_twice"),
        Step::call("count after a question", "ask_and_count")
            .with("progress", true)
            .with("log", "info"),
        Step::call("grow", "grow")
            .with("do", "listen")
            .with("filter", json!({ "toolsListChanged": true })),
        Step::new("tools then", json!({ "do": "tools" })),
        Step::call("more", "more"),
        Step::call("touch", "touch").with("do", "listen").with(
            "filter",
            json!({ "resourceSubscriptions": ["note:///one"] }),
        ),
        list("resources"),
        list("templates"),
        read("read", "note:///one"),
        read("read by a template", "note:///number/7"),
        read("read what is not there", "note:///none"),
        list("prompts"),
        Step::new(
            "prompt",
            json!({ "do": "prompt", "name": "greet", "arguments": { "name": "Ada" } }),
        ),
        Step::call("wait", "wait").with("do", "cancel"),
        Step::call("what was cancelled", "cancelled"),
        Step::new(
            ONLY_MODERN,
            json!({ "do": "together", "names": ["count", "ask_user", "ask_twice", "ask_user"] }),
        ),
        Step::call("accept after that", "ask_user"),
    ]
}

/// Returns the expected outcomes of the steps, except the lists.
pub(crate) fn expected() -> Map<String, Value> {
    let content = |text: &str| json!([{ "type": "text", "text": text }]);
    let says = |text: &str| json!({ "content": content(text) });
    let told = |text: &str| json!({ "result": says(text) });
    let failed = |text: &str| json!({ "result": { "content": content(text), "isError": true } });
    let with = |mut outcome: Value, name: &str, value: Value| {
        outcome[name] = value;
        outcome
    };
    let asked = |text: &str, asked: Value| with(told(text), "asked", asked);
    let user = json!({ "elicitation": "What is your name?" });
    let model = json!({ "sampling": "What is the capital of France?" });
    let roots = json!({ "roots": true });
    let accepted = r#"{"action":"accept","content":{"name":"Ada"}}"#;
    let text = |uri: &str, text: &str| json!({ "uri": uri, "text": text });
    let note = with(
        text("note:///one", "First note"),
        "mimeType",
        json!("text/plain"),
    );
    let numbered = text("note:///number/7", "Note number 7");
    let greeting = json!({ "type": "text", "text": "Say hello to Ada" });
    let expected = json!({
        "add": { "result": with(says("3.5"), "structuredContent", json!({ "sum": 3.5 })) },
        "add wrongly": failed("Input validation error: Invalid arguments for tool add: a: Invalid input: \
            expected number, received string, b: Invalid input: expected number, received undefined"),
        "fail": failed("It did not work"),
        "count": with(told("counted"), "progress", json!(["1/3", "2/3"])),
        "say": with(told("said"), "log", json!([{ "level": "warning", "data": "loud" }])),
        "say at a higher level": told("said"),
        "accept": asked(&format!("[[{accepted}]]"), json!([user])),
        "decline": asked(r#"[[{"action":"decline","content":null}]]"#, json!([user])),
        "cancel": asked(r#"[[{"action":"cancel","content":null}]]"#, json!([user])),
        "ask the model": asked(r#"[["Paris"]]"#, json!([model])),
        "ask for roots": asked(r#"[[["file:///home/ada"]]]"#, json!([roots])),
        "ask all at once": asked(
            &format!(r#"[[{accepted},"Paris",["file:///home/ada"]]]"#),
            json!([user, roots, model]),
        ),
        "ask one after the other": asked(&format!(r#"[[{accepted}],["Paris"]]"#), json!([user, model])),
        "count after a question": {
            "result": says(&format!("[[{accepted}]]")),
            "asked": [user],
            "progress": ["1/3", "2/3"],
            "log": [{ "level": "warning", "data": "counted" }],
        },
        "grow": with(told("grown"), "heard", json!(["tools/list_changed"])),
        "more": told("more"),
        "touch": with(told("touched"), "heard", json!(["resources/updated note:///one"])),
        "read": { "result": { "contents": [note] } },
        "read by a template": { "result": { "contents": [numbered] } },
        "read what is not there": { "error": { "code": -32602, "message": "Resource not found: note:///none" } },
        "prompt": { "result": { "messages": [{ "role": "user", "content": greeting }] } },
        "wait": { "cancelled": true },
        "what was cancelled": told("1"),
        "ask at the same time": {
            "results": [
                content("counted"),
                content(&format!("[[{accepted}]]")),
                content(&format!(r#"[[{accepted}],["Paris"]]"#)),
                content(&format!("[[{accepted}]]")),
            ],
            "asked": [user, user, user, model],
        },
        "accept after that": asked(&format!("[[{accepted}]]"), json!([user])),
    });
    let Value::Object(expected) = expected else {
        unreachable!("it is written as an object");
    };
    expected
}

/// The names in the list of a step.
fn names(seen: &Map<String, Value>, step: &str, list: &str) -> Vec<String> {
    let items = seen[step]["result"][list].as_array().unwrap();
    let name = |item: &Value| item["name"].as_str().unwrap().to_owned();
    items.iter().map(name).collect()
}

#[test]
fn without_the_workbench_it_gives_the_expected_answers() {
    let lists = ["tools", "tools then", "resources", "templates", "prompts"];
    let mut seen = DIRECT.clone();
    seen.retain(|name, _| !lists.contains(&name.as_str()));
    assert_same(&seen, &expected(), "without the workbench");
    let before = names(&DIRECT, "tools", "tools");
    assert!(before.contains(&"ask_twice".to_owned()), "{before:?}");
    assert!(!before.contains(&"more".to_owned()), "{before:?}");
    assert!(names(&DIRECT, "tools then", "tools").contains(&"more".to_owned()));
    assert_eq!(names(&DIRECT, "resources", "resources"), ["one"]);
    assert_eq!(
        names(&DIRECT, "templates", "resourceTemplates"),
        ["numbered"]
    );
    assert_eq!(names(&DIRECT, "prompts", "prompts"), ["greet"]);
}

#[test]
fn over_http_without_the_workbench_it_gives_the_same_answers() {
    let (url, _process) = listening(command(Era::Modern, Transport::Http));
    let client = Client {
        language: Language::Python,
        era: Era::Modern,
    };
    let seen = client.take_at(&url, &steps()).steps;
    assert_same(&seen, &DIRECT, "over HTTP");
}

/// Takes the steps in native mode. A modern server is reached the way the workbench is.
fn natively(language: Language, client: Era, server: Era, transport: Transport) {
    let reached = match server {
        Era::Legacy => Transport::Stdio,
        Era::Modern => transport,
    };
    let (entry, _process) = entry(server, reached);
    let client = Client {
        language,
        era: client,
    };
    let servers = json!({ "typescript": entry });
    let (mut steps, mut expected) = (steps(), DIRECT.clone());
    if server == Era::Legacy {
        steps.retain(|step| step.name() != ONLY_MODERN);
        expected.retain(|step, _| step != ONLY_MODERN);
    }
    let seen = client.take_through(&servers, Shows::Native, transport, &steps);
    assert_eq!(seen.greeting["server"], "mcp-workbench");
    assert_eq!(seen.greeting["instructions"], "Ask away");
    let who = format!("{client:?} {transport:?}, the server {server:?}");
    assert_same(&seen.steps, &expected, &who);
}

#[test]
fn modern_typescript_client_with_a_legacy_server_over_stdio() {
    natively(
        Language::TypeScript,
        Era::Modern,
        Era::Legacy,
        Transport::Stdio,
    );
}

#[test]
fn modern_typescript_client_with_a_legacy_server_over_http() {
    natively(
        Language::TypeScript,
        Era::Modern,
        Era::Legacy,
        Transport::Http,
    );
}

#[test]
fn modern_python_client_with_a_legacy_server_over_stdio() {
    natively(Language::Python, Era::Modern, Era::Legacy, Transport::Stdio);
}

#[test]
fn modern_python_client_with_a_legacy_server_over_http() {
    natively(Language::Python, Era::Modern, Era::Legacy, Transport::Http);
}

#[test]
fn legacy_typescript_client_with_a_modern_server_over_stdio() {
    natively(
        Language::TypeScript,
        Era::Legacy,
        Era::Modern,
        Transport::Stdio,
    );
}

#[test]
fn legacy_typescript_client_with_a_modern_server_over_http() {
    natively(
        Language::TypeScript,
        Era::Legacy,
        Era::Modern,
        Transport::Http,
    );
}

#[test]
fn legacy_python_client_with_a_modern_server_over_stdio() {
    natively(Language::Python, Era::Legacy, Era::Modern, Transport::Stdio);
}

#[test]
fn legacy_python_client_with_a_modern_server_over_http() {
    natively(Language::Python, Era::Legacy, Era::Modern, Transport::Http);
}

#[test]
fn modern_typescript_client_with_a_modern_server_over_stdio() {
    natively(
        Language::TypeScript,
        Era::Modern,
        Era::Modern,
        Transport::Stdio,
    );
}

#[test]
fn modern_typescript_client_with_a_modern_server_over_http() {
    natively(
        Language::TypeScript,
        Era::Modern,
        Era::Modern,
        Transport::Http,
    );
}

#[test]
fn modern_python_client_with_a_modern_server_over_stdio() {
    natively(Language::Python, Era::Modern, Era::Modern, Transport::Stdio);
}

#[test]
fn modern_python_client_with_a_modern_server_over_http() {
    natively(Language::Python, Era::Modern, Era::Modern, Transport::Http);
}
