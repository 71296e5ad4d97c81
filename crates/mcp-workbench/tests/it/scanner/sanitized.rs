//! `"sanitize": true`: hidden characters in what servers answer are shown, and nothing else changes.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::harness::{
    ModernClient, ModernRequest, RemoteFixture, Script, Setup, Workbench, raw_string,
};

/// A result with hidden characters raw and escaped, in strings and keys, among what must stay as it is.
const RESULT: &str = "{ \"content\":[{\"type\":\"text\",\"text\":\"\\u001b[2Ja\\r\\n\\tb\u{202e}c\\udb40\\udc41\u{7f} ❤️ \u{200f}\"}],\"structuredContent\":{\"k\\u0000\":1.00,\"n\":12345678901234567890}}";
const CLEAN: &str = "{ \"content\":[{\"type\":\"text\",\"text\":\"⟦U+001B⟧[2Ja\\r\\n\\tb⟦U+202E⟧c⟦U+E0041⟧⟦U+007F⟧ ❤️ \u{200f}\"}],\"structuredContent\":{\"k⟦U+0000⟧\":1.00,\"n\":12345678901234567890}}";

/// A server whose tool `t` answers with the result, in an era.
fn script(era: &str) -> Script {
    let line = format!(
        r#"{{"jsonrpc":"2.0","id":$ID,"result":{}}}"#,
        result_in(era, RESULT)
    );
    Script::named(&["t"])
        .set("era", &raw_string(era))
        .on_call("t", &json!([{"line": line}]).to_string())
}

/// A modern result says that it is complete.
fn result_in(era: &str, result: &str) -> String {
    match era {
        "modern" => result.replacen('{', r#"{"resultType":"complete","#, 1),
        _ => result.to_owned(),
    }
}

/// Returns the result of a call of `t` through a meta-tool.
fn called(workbench: &mut Workbench) -> String {
    workbench.open("dev");
    workbench.use_tool("t", "{}").raw
}

#[track_caller]
fn is_clean(raw: &str) {
    let expected: String = CLEAN.split_whitespace().collect();
    let raw: String = raw.split_whitespace().collect();
    assert!(raw.contains(expected.trim_start_matches('{')), "{raw}");
}

#[track_caller]
fn is_verbatim(raw: &str) {
    let expected: String = RESULT.split_whitespace().collect();
    let raw: String = raw.split_whitespace().collect();
    assert!(raw.contains(expected.trim_start_matches('{')), "{raw}");
}

#[test]
fn results_are_cleaned_in_both_eras_and_over_both_transports() {
    for era in ["legacy", "modern"] {
        let clean = json!({"sanitize": true});
        let setup = Setup::new().toolbox("dev", "d");
        is_clean(&called(
            &mut setup.server_with("fs", &script(era), &clean).connect(),
        ));
        let mut modern = Setup::new()
            .toolbox("dev", "d")
            .server_with("fs", &script(era), &clean)
            .start();
        modern.call_modern(&ModernRequest::open("dev"));
        is_clean(&modern.call_modern(&ModernRequest::use_tool("t", "{}")).raw);

        let remote = RemoteFixture::start(&script(era));
        let setup = Setup::new().toolbox("dev", "d");
        let setup = setup.entry("fs", json!({"url": remote.url(), "sanitize": true}));
        is_clean(&called(&mut setup.connect()));
        // Without the key everything is as the server sent it.
        is_verbatim(&called(&mut remote.setup().connect()));
        is_verbatim(&called(&mut Setup::one(&script(era)).connect()));
    }
}

#[test]
fn the_setting_of_an_entry_wins_over_the_file() {
    let mut workbench = Setup::one(&script("legacy"))
        .top("sanitize", json!(true))
        .server_with("raw", &script("legacy"), &json!({"sanitize": false}))
        .connect();
    is_clean(&called(&mut workbench));
    is_verbatim(&workbench.use_tool_of(["dev", "raw", "t"], "{}").raw);
}

#[test]
fn results_are_cleaned_in_dynamic_and_native_mode() {
    let setup = Setup::one(&script("legacy")).top("sanitize", json!(true));
    let mut workbench = setup.top("toolMode", json!("dynamic")).connect();
    workbench.open("dev");
    is_clean(&workbench.call("dev__fs__t", "{}").raw);

    let script = script("legacy")
        .set("prompts", r#"[{"name":"p"}]"#)
        .on_method(
            "prompts/get",
            r#"[{"answer":{"messages":[],"text":"\u202e"}}]"#,
        );
    let setup = Setup::one(&script).top("sanitize", json!(true));
    let setup = setup.top("toolMode", json!("native"));
    let mut workbench = setup.top("nativeToolbox", json!("dev")).connect();
    is_clean(&workbench.call("t", "{}").raw);
    let prompt = workbench.ask("prompts/get", r#"{"name":"p"}"#);
    assert_eq!(prompt.raw_result(), r#"{"messages":[],"text":"⟦U+202E⟧"}"#);
}

#[test]
fn progress_log_messages_and_errors_are_cleaned_too() {
    let error = json!({"code": -32001, "message": "no", "data": {"a": "\u{1b}"}});
    let actions = json!([
        {"progress": {"progress": 1, "message": "\u{1b}[1m"}},
        {"notify": {"method": "notifications/message", "params": {"level": "error", "data": "\u{202e}"}}},
        {"error": error},
    ]);
    let script = Script::named(&["t"]).on_call("t", &actions.to_string());
    let setup = Setup::one(&script).top("sanitize", json!(true));
    let setup = setup.top("toolMode", json!("native"));
    let mut workbench = setup.top("nativeToolbox", json!("dev")).connect();
    let params = r#"{"name":"t","arguments":{},"_meta":{"progressToken":7}}"#;
    let id = workbench.request("tools/call", params);
    let progress = workbench.notification("notifications/progress").params();
    assert_eq!(progress["message"], "⟦U+001B⟧[1m");
    let log = workbench.notification("notifications/message").params();
    assert_eq!(log["data"], "⟦U+202E⟧");
    let answer = workbench.response(&id).line;
    assert!(answer.contains("⟦U+001B⟧"), "{answer}");
    assert!(!answer.contains("u001b"), "{answer}");
}

#[test]
fn a_changed_setting_applies_to_a_running_server() {
    let setup = Setup::one(&script("legacy"));
    let mut config: Value = serde_json::from_str(&setup.config_text()).unwrap();
    let file = setup.config();
    let mut workbench = setup.connect();
    is_verbatim(&called(&mut workbench));
    config["sanitize"] = json!(true);
    std::fs::write(file, config.to_string()).unwrap();
    workbench.wait_stderr("configuration reloaded");
    is_clean(&called(&mut workbench));
    let journal = workbench.journal("dev", "fs");
    assert_eq!(
        journal.received("initialize").len(),
        1,
        "it was not started again"
    );
}

#[test]
fn an_invalid_value_is_a_problem_with_its_location() {
    let setup = Setup::one(&Script::new()).top("sanitize", json!("yes"));
    let finished = setup.start().finish();
    assert!(!finished.status.success());
    let text = &finished.stderr;
    assert!(
        text.contains("sanitize: expected a boolean, found a string"),
        "{text}"
    );
}
