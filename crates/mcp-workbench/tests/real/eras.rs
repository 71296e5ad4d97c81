//! One toolbox with servers of both eras, used through `open_toolbox` and `use_tool` by clients of both eras: each
//! tool says what it says to a client that talks to its server itself.

use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;

use pretty_assertions::assert_eq;
use serde_json::{Map, Value, json};

use crate::packages::Entry;
use crate::steps::{Client, Era, Language, Shows, Step, Transport, assert_same};
use crate::workbench::{PROGRAM, TOOLBOX};
use crate::{everything, sdk_server};

/// The observations of the conformance fixture without the workbench.
static CONFORMANCE: LazyLock<Map<String, Value>> = LazyLock::new(|| {
    let client = Client {
        language: Language::TypeScript,
        era: Era::Modern,
    };
    client
        .take_with(&conformance_server(), &conformance_steps())
        .steps
});

/// The fixture of the conformance suite, a server of the Rust SDK, in the modern era.
fn conformance_server() -> Command {
    let program = Path::new(PROGRAM).with_file_name("conformance-server");
    assert!(program.exists(), "run `cargo build --workspace` first");
    let mut command = Command::new(program);
    command.args(["stdio", "--era", "modern"]);
    command
}

fn conformance_steps() -> Vec<Step> {
    vec![
        Step::call("conformance text", "test_simple_text"),
        Step::call("conformance contents", "test_multiple_content_types"),
        Step::call("conformance failure", "test_error_handling"),
        Step::call("conformance progress", "test_tool_with_progress").with("progress", true),
        Step::call("conformance log", "test_tool_with_logging").with("log", "info"),
        Step::call("conformance accept", "test_elicitation")
            .with("arguments", json!({ "message": "Who are you?" })),
        Step::call("conformance decline", "test_elicitation")
            .with("arguments", json!({ "message": "Who are you?" }))
            .with("answer", "decline"),
        Step::call("conformance sampling", "test_sampling")
            .with("arguments", json!({ "prompt": "Say Paris" })),
        Step::call("conformance roots", "test_input_required_result_list_roots"),
        Step::call(
            "conformance state",
            "test_input_required_result_request_state",
        ),
        Step::call(
            "conformance questions",
            "test_input_required_result_multiple_inputs",
        ),
        Step::call(
            "conformance rounds",
            "test_input_required_result_multi_round",
        ),
    ]
}

#[test]
fn the_conformance_server_gives_the_expected_answers() {
    let text = |step: &str| CONFORMANCE[step]["result"]["content"][0]["text"].clone();
    assert_eq!(
        text("conformance accept"),
        r#"User response: action=accept, content={"name":"Ada"}"#
    );
    assert_eq!(
        text("conformance decline"),
        "User response: action=decline, content=null"
    );
    assert_eq!(text("conformance sampling"), "LLM response: Paris");
    assert_eq!(text("conformance state"), "state-ok");
    assert_eq!(text("conformance questions"), "Hello, Ada!");
    assert_eq!(
        CONFORMANCE["conformance questions"]["asked"]
            .as_array()
            .unwrap()
            .len(),
        3
    );
    assert_eq!(
        CONFORMANCE["conformance rounds"]["asked"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
    assert_eq!(
        CONFORMANCE["conformance progress"]["progress"],
        json!(["0/100", "50/100"])
    );
    assert_eq!(
        CONFORMANCE["conformance log"]["log"]
            .as_array()
            .unwrap()
            .len(),
        3
    );
}

/// Takes the steps of all servers that can be taken through `use_tool`, and compares what came of them.
fn through_use_tool(language: Language, era: Era, transport: Transport) {
    let (typescript, _process) = sdk_server::entry(Era::Modern, transport);
    let conformance = conformance_server();
    let args: Vec<_> = conformance
        .get_args()
        .map(|it| it.to_str().unwrap())
        .collect();
    let servers = json!({
        "everything": Entry::everything().config(),
        "typescript": typescript,
        "conformance": { "command": conformance.get_program().to_str().unwrap(), "args": args },
    });

    let open = Step::call("open", "open_toolbox").with("arguments", json!({ "toolbox": TOOLBOX }));
    let mut steps = vec![Step::new("meta-tools", json!({ "do": "tools" })), open];
    let mut refused = everything::steps();
    refused.push(everything::refused_at_first());
    let all = [
        ("everything", refused),
        ("typescript", sdk_server::steps()),
        ("conformance", conformance_steps()),
    ];
    for (server, its_steps) in &all {
        // A tool that comes with a change may be called once the change was told, and here it is not.
        let its_steps = its_steps.iter().filter(|step| step.name() != "more");
        steps.extend(its_steps.filter_map(|step| step.through_use_tool(server)));
    }

    let client = Client { language, era };
    let mut seen = client
        .take_through(&servers, Shows::MetaTools, transport, &steps)
        .steps;
    check_introduction(&mut seen);
    everything::check_refused_at_first(era, &seen.remove("refused at first").unwrap());
    everything::forget_own_clock(&mut seen);
    let mut expected = everything::DIRECT.clone();
    expected.extend(sdk_server::expected());
    expected.extend(CONFORMANCE.clone());
    expected.retain(|step, _| seen.contains_key(step));
    assert_same(&seen, &expected, &format!("{client:?}"));
}

/// Checks the list of meta-tools and the opened toolbox, and takes them out.
fn check_introduction(seen: &mut Map<String, Value>) {
    let tools = seen.remove("meta-tools").unwrap();
    let tools = tools["result"]["tools"].as_array().unwrap();
    let named = |name: &str| tools.iter().any(|tool| tool["name"] == name);
    assert!(named("open_toolbox") && named("use_tool"), "{tools:?}");
    let opened = seen.remove("open").unwrap();
    let opened = opened["result"]["content"][0]["text"].as_str().unwrap();
    let opened: Value = serde_json::from_str(opened).unwrap();
    assert_eq!(opened["servers_connected"], 3, "{opened}");
}

#[test]
fn legacy_typescript_client_over_stdio() {
    through_use_tool(Language::TypeScript, Era::Legacy, Transport::Stdio);
}

#[test]
fn legacy_typescript_client_over_http() {
    through_use_tool(Language::TypeScript, Era::Legacy, Transport::Http);
}

#[test]
fn legacy_python_client_over_stdio() {
    through_use_tool(Language::Python, Era::Legacy, Transport::Stdio);
}

#[test]
fn legacy_python_client_over_http() {
    through_use_tool(Language::Python, Era::Legacy, Transport::Http);
}

#[test]
fn modern_typescript_client_over_stdio() {
    through_use_tool(Language::TypeScript, Era::Modern, Transport::Stdio);
}

#[test]
fn modern_typescript_client_over_http() {
    through_use_tool(Language::TypeScript, Era::Modern, Transport::Http);
}

#[test]
fn modern_python_client_over_stdio() {
    through_use_tool(Language::Python, Era::Modern, Transport::Stdio);
}

#[test]
fn modern_python_client_over_http() {
    through_use_tool(Language::Python, Era::Modern, Transport::Http);
}
