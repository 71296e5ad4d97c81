//! Denied tools: not listed, not callable, and reported with their reason.

use pretty_assertions::assert_eq;
use serde_json::json;

use super::{asked, called, setup};

#[test]
fn a_denied_tool_is_withheld_and_refused_with_the_next_step() {
    let mut workbench = asked(&json!({"deny": ["wi*", "\\@*"]}));
    let opened = workbench.open("dev");
    assert_eq!(opened.tool_names(), ["read", "add"]);
    let withheld = json!([
        {"server": "fs", "tool": "wipe", "reason": "not permitted by the configuration: rule 'wi*' under 'deny'"},
        {"server": "fs", "tool": "@readOnly", "reason": "not permitted by the configuration: rule '\\@*' under 'deny'"},
    ]);
    assert_eq!(opened.json()["withheld"], withheld);
    let refused = workbench.use_tool("wipe", "{}");
    assert!(
        refused.error().contains("does not permit this tool"),
        "{}",
        refused.error()
    );
    assert!(
        refused.error().contains("tell the user"),
        "{}",
        refused.error()
    );
    assert_eq!(
        *refused.failure(),
        json!({"code": "permission_denied", "outcome": "not_sent", "toolbox": "dev", "server": "fs", "tool": "wipe"})
    );
    assert!(!workbench.use_tool("read", "{}").failed());
    assert_eq!(called(&workbench), ["read"]);
}

#[test]
fn a_denied_name_without_a_tool_is_unknown() {
    let mut workbench = asked(&json!({"deny": ["gone"]}));
    let unknown = workbench.use_tool("gone", "{}");
    assert_eq!(unknown.failure()["code"], "tool_unknown");
}

#[test]
fn a_rule_that_matches_nothing_is_warned_about() {
    let workbench = asked(&json!({"deny": ["wpie", "wipe"], "ask": ["*"]}));
    workbench.wait_stderr("permission rule 'wpie' matches no tool");
    let said = workbench.stderr();
    assert_eq!(said.matches("matches no tool").count(), 1, "{said}");
}

#[test]
fn without_rules_nothing_is_different() {
    for permissions in [json!({}), json!(null)] {
        let mut workbench = asked(&permissions);
        let opened = workbench.open("dev");
        assert_eq!(opened.tool_names(), ["read", "add", "wipe", "@readOnly"]);
        assert_eq!(opened.json()["withheld"], json!(null));
        assert!(!workbench.use_tool("wipe", "{}").failed());
    }
}

#[test]
fn invalid_rules_are_problems_with_their_location() {
    let setup = setup(&json!({"deny": ["@readonly", "!x"], "ask": "all", "alow": []}));
    setup.write_config();
    let config = setup.config();
    let mut check = setup.start_with(&["check", "--config", config.to_str().unwrap()]);
    let finished = check.finish();
    assert!(!finished.status.success());
    let place = "toolboxes.dev.mcpServers.fs.permissions";
    let said = [
        format!("{place}.deny[0]: unknown value `@readonly`"),
        "did you mean `@readOnly`?".to_owned(),
        format!("{place}.deny[1]: `!x` is not a valid rule for `permissions`"),
        format!("{place}.ask: expected an array of strings, found a string"),
        format!("{place}.alow: unknown key `alow`"),
    ];
    for said in said {
        assert!(
            finished.stderr.contains(&said),
            "{said}\n{}",
            finished.stderr
        );
    }
}
