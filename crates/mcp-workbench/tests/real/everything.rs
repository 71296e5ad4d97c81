//! The everything server, which only speaks the legacy era, in native mode with modern clients: they see what a legacy
//! client sees that talks to the server itself.

use std::sync::LazyLock;

use pretty_assertions::assert_eq;
use serde_json::{Map, Value, json};

use crate::packages::Entry;
use crate::steps::{Client, Era, Language, Shows, Step, Transport, assert_same};

/// The observations without the workbench.
pub(crate) static DIRECT: LazyLock<Map<String, Value>> = LazyLock::new(|| {
    let client = Client {
        language: Language::TypeScript,
        era: Era::Legacy,
    };
    let mut seen = client
        .take_with(&Entry::everything().command(), &steps())
        .steps;
    forget_own_clock(&mut seen);
    seen
});

/// The steps whose outcome is the same in both eras.
pub(crate) fn steps() -> Vec<Step> {
    let url =
        json!({ "url": "https://example.org/", "message": "Sign in", "elicitationId": "one" });
    let completed = json!({
        "ref": { "type": "ref/prompt", "name": "completable-prompt" },
        "argument": { "name": "department", "value": "S" },
    });
    let read = |name, uri: &str| Step::new(name, json!({ "do": "read", "uri": uri }));
    vec![
        // First, because the server asks for roots later where it has not got them: a call that is answered with
        // a question hears of no progress until it goes on.
        Step::call("roots", "get-roots-list"),
        Step::call("echo", "echo").with("arguments", json!({ "message": "Grüße, \u{1f44b}" })),
        Step::call("sum wrongly", "get-sum").with("arguments", json!({ "a": "two" })),
        Step::call("structured", "get-structured-content")
            .with("arguments", json!({ "location": "New York" })),
        Step::call("links", "get-resource-links").with("arguments", json!({ "count": 2 })),
        Step::call("image", "get-tiny-image"),
        Step::call("work", "trigger-long-running-operation")
            .with("arguments", json!({ "duration": 0.2, "steps": 4 }))
            .with("progress", true),
        Step::call("accept a form", "trigger-elicitation-request"),
        Step::call("decline a form", "trigger-elicitation-request").with("answer", "decline"),
        Step::call("accept an address", "trigger-url-elicitation").with("arguments", url.clone()),
        Step::call("decline an address", "trigger-url-elicitation")
            .with("arguments", url)
            .with("answer", "decline"),
        Step::call("sample", "trigger-sampling-request").with(
            "arguments",
            json!({ "prompt": "Say Paris", "maxTokens": 10 }),
        ),
        Step::new("every tool", json!({ "do": "tools" })),
        Step::new("every prompt", json!({ "do": "prompts" })),
        Step::new("every resource", json!({ "do": "resources" })),
        Step::new("every template", json!({ "do": "templates" })),
        Step::new(
            "a prompt",
            json!({ "do": "prompt", "name": "args-prompt", "arguments": { "city": "Paris" } }),
        ),
        Step::new("complete", json!({ "do": "complete", "params": completed })),
        read("document", "demo://resource/static/document/features.md"),
        read("no document", "demo://nowhere"),
    ]
}

/// The server asks for roots, and logs that it has them, a while after it was greeted: in whatever step that is.
pub(crate) fn forget_own_clock(seen: &mut Map<String, Value>) {
    let steps = steps();
    for step in steps.iter().map(Step::name) {
        let Some(outcome) = seen.get_mut(step).and_then(Value::as_object_mut) else {
            continue;
        };
        outcome.remove("log");
        if let Some(asked) = outcome.get_mut("asked").and_then(Value::as_array_mut) {
            asked.retain(|question| question.get("roots").is_none());
        }
        outcome.retain(|_, value| *value != json!([]));
    }
}

/// The call that a legacy server refuses until its user has been somewhere. A modern client is sent there.
pub(crate) fn refused_at_first() -> Step {
    let arguments = json!({
        "url": "https://example.org/",
        "message": "Sign in",
        "elicitationId": "two",
        "errorPath": true,
    });
    Step::call("refused at first", "trigger-url-elicitation").with("arguments", arguments)
}

/// Checks what came of it.
pub(crate) fn check_refused_at_first(era: Era, outcome: &Value) {
    match era {
        Era::Legacy => {
            let text = outcome["result"]["content"][0]["text"].as_str().unwrap();
            assert!(text.contains("): MCP error -32042: "), "{outcome}");
        }
        Era::Modern => {
            let prerequisite =
                "Open this link to satisfy the prerequisite, then retry the request.";
            for asked in [prerequisite, "Sign in"] {
                let asked = json!({ "elicitation": asked });
                let all = outcome["asked"].as_array().unwrap();
                assert!(all.contains(&asked), "{outcome}");
            }
            let text = outcome["result"]["content"][0]["text"].as_str().unwrap();
            assert!(text.contains("User completed"), "{text}");
        }
    }
}

#[test]
fn without_the_workbench_it_gives_the_expected_answers() {
    let text = |step: &str| DIRECT[step]["result"]["content"][0]["text"].clone();
    assert_eq!(text("echo"), "Echo: Grüße, \u{1f44b}");
    assert_eq!(DIRECT["work"]["progress"], json!(["1/4", "2/4", "3/4"]));
    let form = json!([{ "elicitation": "Please provide inputs for the following fields:" }]);
    assert_eq!(DIRECT["accept a form"]["asked"], form);
    assert_eq!(DIRECT["decline a form"]["asked"], form);
    assert_ne!(text("accept a form"), text("decline a form"));
    assert_eq!(
        DIRECT["accept an address"]["asked"],
        json!([{ "elicitation": "Sign in" }])
    );
    assert_ne!(text("accept an address"), text("decline an address"));
    assert!(text("sample").as_str().unwrap().contains("Paris"));
    assert!(text("roots").as_str().unwrap().contains("file:///home/ada"));
    assert!(DIRECT["no document"]["error"]["code"].is_i64());
    let completed = json!(["Sales", "Support"]);
    assert_eq!(
        DIRECT["complete"]["result"]["completion"]["values"],
        completed
    );
}

fn natively(language: Language, transport: Transport) {
    let client = Client {
        language,
        era: Era::Modern,
    };
    let servers = json!({ "everything": Entry::everything().config() });
    let mut steps = steps();
    steps.push(refused_at_first());
    let mut seen = client
        .take_through(&servers, Shows::Native, transport, &steps)
        .steps;
    check_refused_at_first(Era::Modern, &seen.remove("refused at first").unwrap());
    forget_own_clock(&mut seen);
    assert_same(&seen, &DIRECT, &format!("{client:?}"));
}

#[test]
fn modern_typescript_client_over_stdio() {
    natively(Language::TypeScript, Transport::Stdio);
}

#[test]
fn modern_python_client_over_http() {
    natively(Language::Python, Transport::Http);
}
