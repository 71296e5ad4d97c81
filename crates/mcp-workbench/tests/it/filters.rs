//! Which tools of a server are offered, and servers that are taken out.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::harness::{Script, Setup};

const TOOLS: [&str; 7] = [
    "read_file",
    "read_dir",
    "write_file",
    "delete_file",
    "a*b",
    "axb",
    "!bang",
];

fn check(keys: &Value, expected: &[&str]) {
    let mut workbench = Setup::new()
        .toolbox("dev", "d")
        .server_with("fs", &Script::named(&TOOLS), keys)
        .connect();
    let result = workbench.open("dev");
    assert_eq!(result.tool_names(), expected, "{keys}");
    assert_eq!(result.json()["servers_connected"], 1, "{keys}");
    for tool in TOOLS {
        let result = workbench.use_tool(tool, "{}");
        let hidden = format!("Tool '{tool}' not found in server 'fs' (toolbox 'dev')");
        let found = !result.error().starts_with(&hidden);
        assert_eq!(
            found,
            expected.contains(&tool),
            "{keys}: {}",
            result.error()
        );
    }
}

#[test]
fn tool_filters() {
    let rows: &[(Value, &[&str])] = &[
        (json!(["*"]), &TOOLS),
        (json!(["read_file", "axb"]), &["read_file", "axb"]),
        (json!(["axb", "read_file"]), &["read_file", "axb"]),
        (json!([]), &[]),
        (json!(["read_*"]), &["read_file", "read_dir"]),
        (
            json!(["*_file"]),
            &["read_file", "write_file", "delete_file"],
        ),
        (
            json!(["*e*_*i*"]),
            &["read_file", "read_dir", "write_file", "delete_file"],
        ),
        (
            json!(["*", "!delete_*"]),
            &["read_file", "read_dir", "write_file", "a*b", "axb", "!bang"],
        ),
        (
            json!(["!delete_*", "*"]),
            &["read_file", "read_dir", "write_file", "a*b", "axb", "!bang"],
        ),
        (json!(["!*_file"]), &["read_dir", "a*b", "axb", "!bang"]),
        (json!(["read_*", "!read_dir"]), &["read_file"]),
        (json!(["!read_dir", "read_*"]), &["read_file"]),
        (json!(["a*b"]), &["a*b", "axb"]),
        (json!(["a\\*b"]), &["a*b"]),
        (json!(["\\!bang"]), &["!bang"]),
        (
            json!(["*", "!\\!bang", "!a\\*b"]),
            &["read_file", "read_dir", "write_file", "delete_file", "axb"],
        ),
        (json!(["READ_FILE"]), &[]),
    ];
    check(&json!({}), &TOOLS);
    for (filters, expected) in rows {
        check(&json!({"toolFilters": filters}), expected);
    }
}

#[test]
fn filters_of_other_clients() {
    let without: &[&str] = &["read_file", "read_dir", "write_file", "a*b", "axb", "!bang"];
    check(
        &json!({"includeTools": ["read_file", "axb"]}),
        &["read_file", "axb"],
    );
    check(&json!({"excludeTools": ["delete_file"]}), without);
    check(&json!({"disabledTools": ["delete_file"]}), without);
}

#[test]
fn a_filter_that_matches_nothing_is_warned_about() {
    let keys = json!({"toolFilters": ["read_file", "raed_dir"]});
    let mut workbench = Setup::new()
        .toolbox("dev", "d")
        .server_with("fs", &Script::named(&TOOLS), &keys)
        .connect();
    workbench.open("dev");
    workbench.wait_stderr("raed_dir");
}

#[test]
fn a_disabled_server_appears_nowhere() {
    for keys in [json!({"disabled": true}), json!({"enabled": false})] {
        let mut workbench = Setup::one(&Script::named(&["a"]))
            .server_with("off", &Script::named(&["b"]), &keys)
            .connect();
        let result = workbench.open("dev");
        assert_eq!(result.tool_names(), ["a"], "{keys}");
        assert_eq!(result.json()["servers_connected"], 1, "{keys}");
        assert_eq!(result.json().get("_errors"), None, "{keys}");
        let result = workbench.use_tool_of(["dev", "off", "b"], "{}");
        assert_eq!(result.error(), "Server 'off' not found in toolbox 'dev'");
        assert!(workbench.journal("dev", "off").lines().is_empty(), "{keys}");
    }
}
