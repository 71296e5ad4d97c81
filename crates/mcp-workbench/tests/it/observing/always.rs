//! Rules that a decision "always" adds to the configuration.

use std::fs;

use serde_json::json;

use crate::harness::{Script, Setup};

fn allowed(permissions: &serde_json::Value, tool: &str) -> (bool, String, String) {
    let script = Script::named(&["read"]);
    let setup = Setup::new().toolbox("dev", "d");
    let setup = setup.server_with("fs", &script, &json!({ "permissions": permissions }));
    setup.write_config();
    let mut command = setup.command();
    command.arg("--config").arg(setup.config());
    let output = command.args(["allow", "dev", "fs", tool]).output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    let text = fs::read_to_string(setup.config()).unwrap();
    (output.status.success(), text, stderr)
}

#[test]
fn a_tool_is_added_to_what_is_allowed() {
    let cases = [
        ("wipe", json!(["read", "wipe"])),
        ("a*b", json!(["read", "a\\*b"])),
        ("@readOnly", json!(["read", "\\@readOnly"])),
    ];
    for (tool, expected) in cases {
        let (is_done, text, stderr) = allowed(&json!({"allow": ["read"]}), tool);
        assert!(is_done, "{tool}: {stderr}");
        let config: serde_json::Value = serde_json::from_str(&text).unwrap();
        let server = &config["toolboxes"]["dev"]["mcpServers"]["fs"];
        assert_eq!(server["permissions"]["allow"], expected, "{tool}");
    }
}

#[test]
fn a_tool_that_is_allowed_already_is_not_added_again() {
    for rules in [["wipe", "read"], ["read", "wipe"]] {
        let (is_done, text, stderr) = allowed(&json!({"allow": rules}), "wipe");
        assert!(is_done, "{stderr}");
        assert!(stderr.contains("nothing to change"), "{stderr}");
        let config: serde_json::Value = serde_json::from_str(&text).unwrap();
        let server = &config["toolboxes"]["dev"]["mcpServers"]["fs"];
        assert_eq!(server["permissions"]["allow"], json!(rules));
    }
}

#[test]
fn a_rule_that_wins_over_it_is_reported() {
    for rules in [
        json!({"ask": ["w*"]}),
        json!({"deny": ["wipe"]}),
        json!({"ask": ["@destructive"]}),
    ] {
        let (is_done, text, stderr) = allowed(&rules, "wipe");
        assert!(!is_done, "{rules}: {text}");
        assert!(stderr.contains("wins over \"allow\""), "{stderr}");
    }
}
