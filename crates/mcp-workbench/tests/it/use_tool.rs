//! The arguments of `use_tool`, and the messages about invalid ones.

use pretty_assertions::assert_eq;

use crate::harness::{Script, Setup, ToolResult, Workbench};

/// `development` is open, `production` is not.
fn workbench() -> Workbench {
    let mut workbench = Setup::new()
        .toolbox("development", "d")
        .server("filesystem", &Script::new())
        .toolbox("production", "p")
        .server("filesystem", &Script::new())
        .connect();
    workbench.open("development");
    workbench
}

/// The raw arguments of `use_tool`, and the text of the error.
const ERRORS: &[(&str, &str)] = &[
    // Lookups.
    (
        r#"{"tool":{"toolbox":"x","server":"filesystem","tool":"echo"}}"#,
        "Error: Toolbox 'x' not found. Available toolboxes: development, production",
    ),
    (
        r#"{"tool":{"toolbox":"production","server":"filesystem","tool":"echo"}}"#,
        "Error: Toolbox 'production' is not open. Call open_toolbox first.",
    ),
    (
        r#"{"tool":{"toolbox":"development","server":"database","tool":"echo"}}"#,
        "Server 'database' not found in toolbox 'development'",
    ),
    (
        r#"{"tool":{"toolbox":"development","server":"filesystem","tool":"delete_all"}}"#,
        "Tool 'delete_all' not found in server 'filesystem' (toolbox 'development')",
    ),
    // Empty parts.
    (
        r#"{"tool":{"toolbox":"","server":"filesystem","tool":"echo"}}"#,
        "Invalid tool identifier: toolbox cannot be empty",
    ),
    (
        r#"{"tool":{"toolbox":"development","server":"","tool":"echo"}}"#,
        "Invalid tool identifier: server cannot be empty",
    ),
    (
        r#"{"tool":{"toolbox":"development","server":"filesystem","tool":""}}"#,
        "Invalid tool identifier: tool cannot be empty",
    ),
    (
        r#"{"tool":{"toolbox":"","server":"","tool":""}}"#,
        "Invalid tool identifier: toolbox cannot be empty; server cannot be empty; tool cannot be empty",
    ),
    // Missing parts.
    (
        r#"{"tool":{"server":"filesystem","tool":"echo"}}"#,
        "Invalid parameters: tool.toolbox: Required",
    ),
    (
        r#"{"tool":{"toolbox":"development","tool":"echo"}}"#,
        "Invalid parameters: tool.server: Required",
    ),
    (
        r#"{"tool":{"toolbox":"development","server":"filesystem"}}"#,
        "Invalid parameters: tool.tool: Required",
    ),
    ("{}", "Invalid parameters: tool: Required"),
    // Wrong types.
    (
        r#"{"tool":"echo"}"#,
        "Invalid parameters: tool: Expected object, received string",
    ),
    (
        r#"{"tool":{"toolbox":"development","server":7,"tool":"echo"}}"#,
        "Invalid parameters: tool.server: Expected string, received number",
    ),
    (
        r#"{"tool":{"toolbox":"development","server":"filesystem","tool":"echo"},"arguments":"text"}"#,
        "Invalid parameters: arguments: Expected object, received string",
    ),
    (
        r#"{"tool":{"toolbox":"development","server":"filesystem","tool":"echo"},"arguments":"[1]"}"#,
        "Invalid parameters: arguments: Expected object, received string",
    ),
    (
        r#"{"tool":{"toolbox":"development","server":"filesystem","tool":"echo"},"arguments":[1]}"#,
        "Invalid parameters: arguments: Expected object, received array",
    ),
    (
        r#"{"tool":{"toolbox":"development","server":"filesystem","tool":"echo"},"arguments":1}"#,
        "Invalid parameters: arguments: Expected object, received number",
    ),
    (
        r#"{"tool":{"toolbox":"development","server":"filesystem","tool":"echo"},"arguments":false}"#,
        "Invalid parameters: arguments: Expected object, received boolean",
    ),
    // Other keys.
    (
        r#"{"tool":{"toolbox":"development","server":"filesystem","tool":"echo"},"extra_field":1}"#,
        "Invalid parameters: Unrecognized key: 'extra_field'",
    ),
    (
        r#"{"tool":{"toolbox":"development","server":"filesystem","tool":"echo","extra":1}}"#,
        "Invalid parameters: tool: Unrecognized key: 'extra'",
    ),
    // Several problems.
    (
        r#"{"tool":{}}"#,
        "Invalid parameters: tool.toolbox: Required; tool.server: Required; tool.tool: Required",
    ),
    (
        r#"{"tool":{"tool":"","server":5,"toolbox":""},"arguments":[]}"#,
        "Invalid parameters: tool.toolbox: cannot be empty; tool.server: Expected string, received number; tool.tool: cannot be empty; arguments: Expected object, received array",
    ),
    (
        r#"{"arguments":5,"tool":{"tool":"echo","server":"","toolbox":"development"},"extra_field":1}"#,
        "Invalid parameters: Unrecognized key: 'extra_field'; tool.server: cannot be empty; arguments: Expected object, received number",
    ),
    (
        r#"{"tool":{"toolbox":"development","server":"","tool":"echo","extra":1}}"#,
        "Invalid parameters: tool: Unrecognized key: 'extra'; tool.server: cannot be empty",
    ),
    (
        r#"{"tool":{"toolbox":"development","server":"filesystem"},"one":1,"two":2}"#,
        "Invalid parameters: Unrecognized key: 'one'; Unrecognized key: 'two'; tool.tool: Required",
    ),
];

#[test]
fn errors_have_the_texts_of_the_contract() {
    let mut workbench = workbench();
    for (arguments, text) in ERRORS {
        let result = workbench.call("use_tool", arguments);
        assert_eq!(result.error(), *text, "{arguments}");
    }
    assert!(
        workbench
            .journal("development", "filesystem")
            .received("tools/call")
            .is_empty(),
        "nothing of this reached the server"
    );
}

#[test]
fn missing_arguments_are_a_missing_tool() {
    let mut workbench = workbench();
    let id = workbench.request("tools/call", r#"{"name":"use_tool"}"#);
    let result = workbench.tool_result(&id);
    assert_eq!(result.error(), "Invalid parameters: tool: Required");
}

#[test]
fn the_old_form_gets_a_hint() {
    let mut workbench = workbench();
    let old = r#"{"toolbox_name":"development","tool_name":"echo","arguments":{}}"#;
    let result = workbench.call("use_tool", old);
    let text = result.error();
    assert!(
        text.starts_with("Invalid parameters: Unrecognized key: 'toolbox_name'"),
        "{text}"
    );
    assert!(text.contains("Unrecognized key: 'tool_name'"), "{text}");
    assert!(text.contains("server"), "the new form is hinted at: {text}");
}

#[test]
fn a_near_name_may_be_suggested_after_the_text() {
    let rows = [
        (
            ["developmnt", "filesystem", "echo"],
            "Error: Toolbox 'developmnt' not found. Available toolboxes: development, production",
            "development",
        ),
        (
            ["development", "filesytem", "echo"],
            "Server 'filesytem' not found in toolbox 'development'",
            "filesystem",
        ),
        (
            ["development", "filesystem", "ecko"],
            "Tool 'ecko' not found in server 'filesystem' (toolbox 'development')",
            "echo",
        ),
    ];
    let mut workbench = workbench();
    for (identifier, text, near) in rows {
        let result = workbench.use_tool_of(identifier, "{}");
        let longer = format!("{text}. Did you mean '{near}'?");
        assert!(
            [text, &longer].contains(&result.error()),
            "{}",
            result.error()
        );
    }
}

#[test]
fn lookups_go_toolbox_then_server_then_tool() {
    let mut workbench = workbench();
    let rows = [
        (
            ["x", "y", "z"],
            "Error: Toolbox 'x' not found. Available toolboxes: development, production",
        ),
        (
            ["development", "yyyy", "zzzz"],
            "Server 'yyyy' not found in toolbox 'development'",
        ),
        (
            ["production", "yyyy", "zzzz"],
            "Error: Toolbox 'production' is not open. Call open_toolbox first.",
        ),
    ];
    for (identifier, text) in rows {
        assert_eq!(workbench.use_tool_of(identifier, "{}").error(), text);
    }
}

#[test]
fn duplicate_keys_are_rejected() {
    let rows = [
        r#"{"tool":{"toolbox":"development","server":"filesystem","tool":"echo"},"tool":{"toolbox":"development","server":"filesystem","tool":"pid"}}"#,
        r#"{"tool":{"toolbox":"development","server":"filesystem","tool":"echo","tool":"pid"}}"#,
        r#"{"tool":{},"tool":{"toolbox":"development","server":"filesystem","tool":"echo"}}"#,
        r#"{"tool":{"toolbox":"development","server":"filesystem","tool":"echo"},"arguments":{"a":1},"arguments":{"a":2}}"#,
    ];
    let mut workbench = workbench();
    for arguments in rows {
        let id = workbench.send_call("use_tool", arguments);
        let answer = workbench.response(&id);
        let rejected = answer.is_error() || ToolResult::of(&answer).failed();
        assert!(rejected, "{}", answer.line);
    }
    let journal = workbench.journal("development", "filesystem");
    assert!(journal.received("tools/call").is_empty());
}

#[test]
fn duplicate_keys_of_the_call_are_rejected() {
    let tool = r#"{"tool":{"toolbox":"development","server":"filesystem","tool":"echo"}}"#;
    let rows = [
        format!(r#"{{"name":"use_tool","arguments":{{}},"arguments":{tool}}}"#),
        format!(r#"{{"name":"open_toolbox","name":"use_tool","arguments":{tool}}}"#),
        format!(r#"{{"name":"use_tool","_meta":{{}},"arguments":{tool},"_meta":{{}}}}"#),
    ];
    let mut workbench = workbench();
    for params in rows {
        let id = workbench.request("tools/call", &params);
        let answer = workbench.response(&id);
        assert!(answer.is_error(), "{}", answer.line);
    }
    let journal = workbench.journal("development", "filesystem");
    assert!(journal.received("tools/call").is_empty());
}

#[test]
fn unusual_spellings_of_a_call_are_accepted() {
    let rows = [
        r#"{"arguments":{"arguments":{"a":1},"tool":{"tool":"echo","server":"filesystem","toolbox":"development"}},"name":"use_tool"}"#,
        r#" { "name" : "use_tool" , "other" : [1,{}] , "arguments" : { "tool" : { "toolbox" : "development" , "server" : "filesystem" , "tool" : "echo" } , "arguments" : {"a":1} } } "#,
        r#"{"n\u0061me":"use\u005ftool","arguments":{"t\u006fol":{"toolbox":"dev\u0065lopment","server":"filesystem","tool":"ech\u006f"},"arguments":{"a":1}}}"#,
        r#"{"name":"use_tool","arguments":{"tool":{"toolbox":"development","server":"filesystem","tool":"echo"},"arguments":"{\"a\":1}"}}"#,
    ];
    let mut workbench = workbench();
    for params in rows {
        let id = workbench.request("tools/call", params);
        let answer = workbench.response(&id);
        assert!(!answer.is_error(), "{}", answer.line);
    }
    let journal = workbench.journal("development", "filesystem");
    assert_eq!(journal.arguments(), [r#"{"a":1}"#; 4]);
}

#[test]
fn a_tool_name_on_two_servers_is_routed_by_the_server() {
    let mut workbench = Setup::new()
        .toolbox("dev", "d")
        .server(
            "one",
            &Script::named(&["who"]).answers("who", r#"{"content":[],"who":1}"#),
        )
        .server(
            "two",
            &Script::named(&["who"]).answers("who", r#"{"content":[],"who":2}"#),
        )
        .connect();
    workbench.open("dev");
    for (server, result) in [
        ("one", r#"{"content":[],"who":1}"#),
        ("two", r#"{"content":[],"who":2}"#),
    ] {
        assert_eq!(
            workbench.use_tool_of(["dev", server, "who"], "{}").raw,
            result
        );
    }
}
