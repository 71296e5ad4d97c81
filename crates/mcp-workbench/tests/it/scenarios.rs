//! Whole sessions, as a client has them: each follows one scenario of the original program from the first request to the
//! last.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::harness::{Script, Setup, Workbench};

/// A server with one tool, whose answer says which server it is.
fn speaking(tool: &str, answer: &str) -> Script {
    let result = json!({"content": [{"type": "text", "text": answer}]});
    Script::named(&[tool]).answers(tool, &result.to_string())
}

/// Calls a tool with the fields of its definition in the result of `open_toolbox`, as they are.
fn use_listed(workbench: &mut Workbench, tool: &Value) -> String {
    let identifier = json!({
        "toolbox": tool["toolbox"],
        "server": tool["server"],
        "tool": tool["name"],
    });
    let arguments = json!({"tool": identifier, "arguments": {}});
    let result = workbench.call("use_tool", &arguments.to_string());
    result.text().to_owned()
}

#[test]
fn a_session_from_the_instructions_to_a_result() {
    let mut workbench = Setup::new()
        .toolbox("development", "Development environment tools")
        .server("filesystem", &speaking("read_file", "contents"))
        .start();
    let introduced = workbench.initialize();
    let instructions = introduced["instructions"].as_str().unwrap();
    assert!(instructions.contains("- **development** (1 server): Development environment tools"));
    let tools = workbench.ask("tools/list", "{}").result();
    let names: Vec<&Value> = tools["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["name"])
        .collect();
    assert_eq!(names, ["open_toolbox", "use_tool"]);
    let refused = workbench.use_tool_of(["development", "filesystem", "read_file"], "{}");
    assert_eq!(
        refused.error(),
        "Error: Toolbox 'development' is not open. Call open_toolbox first."
    );
    assert!(
        workbench
            .journal("development", "filesystem")
            .pids()
            .is_empty()
    );
    let opened = workbench.open("development").json();
    assert_eq!(use_listed(&mut workbench, &opened["tools"][0]), "contents");
}

#[test]
fn calls_are_routed_by_the_three_fields() {
    let mut setup = Setup::new();
    for toolbox in ["dev", "prod"] {
        setup = setup.toolbox(toolbox, "d");
        for server in ["a", "b"] {
            setup = setup.server(server, &speaking("get", &format!("{toolbox} {server}")));
        }
    }
    let mut workbench = setup.connect();
    let listed = ["dev", "prod"].map(|toolbox| workbench.open(toolbox).json()["tools"].clone());
    let listed = listed.iter().flat_map(|tools| tools.as_array().unwrap());
    let answers: Vec<String> = listed
        .map(|tool| use_listed(&mut workbench, tool))
        .collect();
    assert_eq!(answers, ["dev a", "dev b", "prod a", "prod b"]);
}

#[test]
fn names_with_the_old_separator_are_not_split() {
    let names = ["a__b", "b__c", "c__d__e"];
    let mut workbench = Setup::new()
        .toolbox(names[0], "d")
        .server(names[1], &speaking(names[2], "found"))
        .toolbox("a", "d")
        .server("b__b", &speaking("c__c__d__e", "another"))
        .connect();
    for (toolbox, answer) in [(names[0], "found"), ("a", "another")] {
        let opened = workbench.open(toolbox).json();
        assert_eq!(use_listed(&mut workbench, &opened["tools"][0]), answer);
    }
    let joined = workbench.call("use_tool", r#"{"tool":"a__b__b__c__c__d__e"}"#);
    assert_eq!(
        joined.error(),
        "Invalid parameters: tool: Expected object, received string"
    );
}

#[test]
fn opening_other_toolboxes_leaves_open_ones_open() {
    let mut workbench = Setup::new()
        .toolbox("one", "d")
        .server("s", &speaking("t", "one"))
        .toolbox("two", "d")
        .server("s", &speaking("t", "two"))
        .toolbox("broken", "d")
        .entry("s", json!({"command": "no-such-command-anywhere"}))
        .connect();
    let first = workbench.open("one").raw;
    workbench.open("two");
    assert_eq!(
        workbench.open("broken").error(),
        "Error opening toolbox 'broken': Failed to connect to server 's' in toolbox 'broken': command 'no-such-command-anywhere' not found"
    );
    workbench.open("missing").error();
    assert_eq!(workbench.open("one").raw, first);
    for toolbox in ["one", "two"] {
        let result = workbench.use_tool_of([toolbox, "s", "t"], "{}");
        assert_eq!(result.text(), toolbox);
        assert_eq!(workbench.journal(toolbox, "s").pids().len(), 1);
    }
}

#[test]
fn definitions_are_passed_on_unchanged() {
    let schema = json!({
        "type": "object",
        "properties": {
            "path": {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/path"}]},
            "options": {"type": "object", "properties": {"depth": {"type": "integer", "default": 3}}},
        },
        "required": ["path"],
        "$defs": {"path": {"type": "array", "items": {"type": "string"}}},
    });
    let tools = json!([
        {"name": "plain", "inputSchema": {"type": "object"}},
        {"name": "deep", "description": "Looks deep", "inputSchema": schema},
    ]);
    let mut workbench = Setup::one(&Script::new().tools(&tools.to_string())).connect();
    let mut expected = tools;
    for tool in expected.as_array_mut().unwrap() {
        tool["server"] = json!("fs");
        tool["toolbox"] = json!("dev");
    }
    assert_eq!(workbench.open("dev").json()["tools"], expected);
}

#[test]
fn errors_name_toolbox_server_and_tool_separately() {
    let failing = Script::named(&["query"]).on_call(
        "query",
        r#"[{"error":{"code":-32000,"message":"syntax error"}}]"#,
    );
    let mut workbench = Setup::new()
        .toolbox("dev", "d")
        .server("database", &failing)
        .server_with(
            "filtered",
            &Script::named(&["a"]),
            &json!({"toolFilters": []}),
        )
        .connect();
    workbench.open("dev");
    let rows = [
        (
            ["ops", "database", "query"],
            "Error: Toolbox 'ops' not found. Available toolboxes: dev",
        ),
        (
            ["dev", "cache", "query"],
            "Server 'cache' not found in toolbox 'dev'",
        ),
        (
            ["dev", "database", "drop_everything"],
            "Tool 'drop_everything' not found in server 'database' (toolbox 'dev')",
        ),
        (
            ["dev", "filtered", "a"],
            "Tool 'a' not found in server 'filtered' (toolbox 'dev')",
        ),
        (
            ["dev", "database", "query"],
            "Error executing tool 'query' in server 'database' (toolbox 'dev'): syntax error",
        ),
    ];
    for (names, text) in rows {
        assert_eq!(workbench.use_tool_of(names, "{}").error(), text);
    }
}
