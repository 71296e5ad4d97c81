//! Scripts whose calls ask the user, with the official clients of both eras and servers of both eras: the run pauses, the
//! client is asked in its own way, and the answer resumes the run.

use std::path::Path;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::steps::{Client, Era, Language, Shows, Step, Transport};
use crate::workbench::{PROGRAM, TOOLBOX};

/// Asks by a server of each era, with calls before, between and after.
const SCRIPT: &str = "
    const texts = [await tools.modern.test_simple_text({})];
    texts.push(await tools.modern.test_elicitation({ message: 'Who are you?' }));
    texts.push(await tools.legacy.test_elicitation({ message: 'And you?' }));
    texts.push(await tools.legacy.test_simple_text({}));
    return texts;";

/// The fixture of the conformance suite in one era.
fn conformance(era: Era) -> Value {
    let program = Path::new(PROGRAM).with_file_name("conformance-server");
    assert!(program.exists(), "run `cargo build --workspace` first");
    json!({ "command": program.to_str().unwrap(), "args": ["stdio", "--era", era.word()] })
}

fn pauses_and_resumes(language: Language, era: Era, transport: Transport) {
    let config = json!({
        "attributeQuestions": false,
        "metaTools": ["open_toolbox", "use_tool", "run_code"],
        "toolboxes": { TOOLBOX: { "description": "Both eras", "mcpServers": {
            "modern": conformance(Era::Modern),
            "legacy": conformance(Era::Legacy),
        } } },
    });
    let open = Step::call("open", "open_toolbox").with("arguments", json!({ "toolbox": TOOLBOX }));
    let run = Step::call("run", "run_code").with("arguments", json!({ "code": SCRIPT }));
    let client = Client { language, era };
    let seen = client
        .take_configured(&config, Shows::MetaTools, transport, &[open, run])
        .steps;
    let run = &seen["run"];
    let asked = json!([{ "elicitation": "And you?" }, { "elicitation": "Who are you?" }]);
    assert_eq!(run["asked"], asked, "{client:?}: {run}");
    let accepted = r#"User response: action=accept, content={"name":"Ada"}"#;
    let plain = "This is a simple text response for testing.";
    let structured = &run["result"]["structuredContent"];
    assert_eq!(
        structured["result"],
        json!([plain, accepted, accepted, plain]),
        "{client:?}: {run}"
    );
    assert_eq!(
        structured["calls"],
        json!({ "total": 4, "failed": 0 }),
        "{client:?}"
    );
}

#[test]
fn runs_of_legacy_typescript_clients_pause_and_resume() {
    pauses_and_resumes(Language::TypeScript, Era::Legacy, Transport::Stdio);
}

#[test]
fn runs_of_modern_typescript_clients_pause_and_resume() {
    pauses_and_resumes(Language::TypeScript, Era::Modern, Transport::Stdio);
    pauses_and_resumes(Language::TypeScript, Era::Modern, Transport::Http);
}

#[test]
fn runs_of_legacy_python_clients_pause_and_resume() {
    pauses_and_resumes(Language::Python, Era::Legacy, Transport::Stdio);
}

#[test]
fn runs_of_modern_python_clients_pause_and_resume() {
    pauses_and_resumes(Language::Python, Era::Modern, Transport::Stdio);
    pauses_and_resumes(Language::Python, Era::Modern, Transport::Http);
}
