//! The result of `open_toolbox` and the text of its errors.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::harness::{Script, Setup, TIMEOUT, ToolResult, poll, raw_string};

/// The text of an opened toolbox `dev` with one server `fs`, around its raw tools.
fn opened(tools: &str) -> String {
    format!(
        r#"{{"toolbox":"dev","description":"Development tools","servers_connected":1,"tools":[{tools}]}}"#
    )
}

#[test]
fn the_result_is_one_minified_text_with_every_server_in_the_order_of_the_file() {
    let first = r#"{"name":"read_file","description":"Read a file","inputSchema":{"type":"object","properties":{"path":{"type":"string"}}}}"#;
    let second = r#"{"name":"query","inputSchema":{"type":"object"}}"#;
    let mut workbench = Setup::new()
        .toolbox("dev", "Development environment tools")
        .server(
            "z-files",
            &Script::new().tools(&format!("[{first},{second}]")),
        )
        .server("database", &Script::new().tools(&format!("[{second}]")))
        .connect();
    let result = workbench.open("dev");
    assert_eq!(
        result.text(),
        r#"{"toolbox":"dev","description":"Development environment tools","servers_connected":2,"tools":[{"name":"read_file","description":"Read a file","inputSchema":{"type":"object","properties":{"path":{"type":"string"}}},"server":"z-files","toolbox":"dev"},{"name":"query","inputSchema":{"type":"object"},"server":"z-files","toolbox":"dev"},{"name":"query","inputSchema":{"type":"object"},"server":"database","toolbox":"dev"}]}"#
    );
    assert!(!result.is_structured(), "the text is not repeated");
}

#[test]
fn a_definition_keeps_everything_that_its_server_said() {
    let rows = [
        // Unknown members, at every level, in their order.
        r#"{"zebra":1,"name":"t","inputSchema":{"type":"object","x-b":1,"x-a":{"z":[],"a":null}},"apple":{}}"#,
        // Everything that the protocol knows.
        r#"{"name":"t","title":"T","description":"d","inputSchema":{"type":"object"},"outputSchema":{"type":"object"},"annotations":{"readOnlyHint":true},"icons":[{"src":"data:,"}],"_meta":{"a/b":{"c":1}}}"#,
        // Every digit of a number.
        r#"{"name":"t","inputSchema":{"type":"object","maximum":123456789012345678901234567890,"minimum":1e400,"multipleOf":0.10,"x":-0}}"#,
        // Letters as they were written.
        r#"{"name":"t","description":"ü \u00fc \/ \\ 工 😀 \ud83d\ude00","inputSchema":{"type":"object"}}"#,
        // Duplicate keys in the parts that we do not read.
        r#"{"name":"t","inputSchema":{"type":"object","a":1,"a":2}}"#,
        // Our member names, but not at the top level.
        r#"{"name":"t","inputSchema":{"type":"object","server":"x","toolbox":"y"},"_meta":{"server":"z"}}"#,
    ];
    for row in rows {
        let script = Script::new().tools(&format!("[{row}]"));
        let mut workbench = Setup::one(&script).connect();
        let expected = row.strip_suffix('}').unwrap();
        let expected = format!(r#"{expected},"server":"fs","toolbox":"dev"}}"#);
        assert_eq!(workbench.open("dev").text(), opened(&expected));
    }
}

#[test]
fn no_server_can_pose_as_another() {
    let rows = [
        r#"{"server":"bank","name":"t","inputSchema":{"type":"object"}}"#,
        r#"{"name":"t","toolbox":{"a":[1,"}"]},"inputSchema":{"type":"object"},"server":"bank"}"#,
        r#"{"name":"t","inputSchema":{"type":"object"},"toolbox":"other","server":null}"#,
        r#"{"name":"t","s\u0065rver":"bank","inputSchema":{"type":"object"}}"#,
    ];
    for row in rows {
        let script = Script::new().tools(&format!("[{row}]"));
        let mut workbench = Setup::one(&script).connect();
        let tool = r#"{"name":"t","inputSchema":{"type":"object"},"server":"fs","toolbox":"dev"}"#;
        assert_eq!(workbench.open("dev").text(), opened(tool), "{row}");
    }
}

#[test]
fn white_space_between_the_tokens_of_a_definition_is_removed() {
    let spaced = r#"[ { "name" : "t" , "description" : "two  spaces", "inputSchema" : { "type": "object" } } ]"#;
    let mut workbench = Setup::one(&Script::new().tools(spaced)).connect();
    let tool = r#"{"name":"t","description":"two  spaces","inputSchema":{"type":"object"},"server":"fs","toolbox":"dev"}"#;
    assert_eq!(workbench.open("dev").text(), opened(tool));
}

#[test]
fn invalid_text_in_a_definition_is_repaired() {
    let tool = r#"{\"name\":\"t\",\"description\":\"a\\ud800b$xffc\",\"inputSchema\":{\"type\":\"object\"}}"#;
    let answer = format!(
        r#"[{{"line":"{{\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":{{\"tools\":[{tool}]}}}}"}}]"#
    );
    let script = Script::new().on_method("tools/list", &answer);
    let mut workbench = Setup::one(&script).connect();
    let opened = workbench.open("dev").json();
    assert_eq!(opened["tools"][0]["description"], "a\u{fffd}b\u{fffd}c");
}

#[test]
fn all_pages_are_read_in_order() {
    let page = |names: &[&str]| {
        let tools: Vec<String> = names
            .iter()
            .map(|name| format!(r#"{{"name":"{name}","inputSchema":{{"type":"object"}}}}"#))
            .collect();
        format!("[{}]", tools.join(","))
    };
    let pages = [page(&["c", "a"]), page(&[]), page(&["b"])].join(",");
    let script = Script::new().set("pages", &format!("[{pages}]"));
    let mut workbench = Setup::one(&script).connect();
    assert_eq!(workbench.open("dev").tool_names(), ["c", "a", "b"]);
    assert_eq!(
        workbench.journal("dev", "fs").received("tools/list").len(),
        3
    );
}

#[test]
fn errors_have_the_texts_of_the_contract() {
    let rows = [
        (
            r#"{"toolbox":"x"}"#,
            "Error: Toolbox 'x' not found. Available toolboxes: development, production",
        ),
        (
            r#"{"toolbox":"PRODUCTION SYSTEMS"}"#,
            "Error: Toolbox 'PRODUCTION SYSTEMS' not found. Available toolboxes: development, production",
        ),
        (
            r#"{"toolbox":""}"#,
            "Invalid parameters: toolbox cannot be empty. Available toolboxes: development, production",
        ),
        (
            r#"{"toolbox":" \t\n"}"#,
            "Invalid parameters: toolbox cannot be empty. Available toolboxes: development, production",
        ),
        (
            "{}",
            "Invalid parameters: toolbox: Required. Available toolboxes: development, production",
        ),
        (
            r#"{"toolbox":5}"#,
            "Invalid parameters: toolbox: Expected string, received number. Available toolboxes: development, production",
        ),
        (
            r#"{"toolbox":true}"#,
            "Invalid parameters: toolbox: Expected string, received boolean. Available toolboxes: development, production",
        ),
        (
            r#"{"toolbox":["development"]}"#,
            "Invalid parameters: toolbox: Expected string, received array. Available toolboxes: development, production",
        ),
        (
            r#"{"toolbox":{}}"#,
            "Invalid parameters: toolbox: Expected string, received object. Available toolboxes: development, production",
        ),
        (
            r#"{"toolbox":"development","extra_field":1}"#,
            "Invalid parameters: Unrecognized key: 'extra_field'",
        ),
        (
            r#"{"toolbox":null}"#,
            "Invalid parameters: toolbox: Expected string, received null. Available toolboxes: development, production",
        ),
        (
            r#"{"toolbox":5,"extra_field":1}"#,
            "Invalid parameters: Unrecognized key: 'extra_field'; toolbox: Expected string, received number. Available toolboxes: development, production",
        ),
        (
            r#"{"toolbox":"x","extra_field":1}"#,
            "Invalid parameters: Unrecognized key: 'extra_field'. Available toolboxes: development, production",
        ),
        (
            r#"{"toolbox":"development","detail":"all"}"#,
            "Invalid parameters: detail: Expected 'names' | 'brief' | 'signature' | 'compact' | 'full', received 'all'",
        ),
        (
            r#"{"toolbox_name":"development"}"#,
            "Invalid parameters: Unrecognized key: 'toolbox_name' (did you mean 'toolbox'?); toolbox: Required. Available toolboxes: development, production",
        ),
    ];
    let mut workbench = Setup::new()
        .toolbox("development", "d")
        .toolbox("production", "p")
        .connect();
    for (arguments, text) in rows {
        let result = workbench.call("open_toolbox", arguments);
        assert_eq!(result.error(), text, "{arguments}");
    }
    let id = workbench.request("tools/call", r#"{"name":"open_toolbox"}"#);
    assert_eq!(
        workbench.tool_result(&id).error(),
        "Invalid parameters: toolbox: Required. Available toolboxes: development, production"
    );
}

#[test]
fn the_old_parameter_name_gets_a_hint() {
    let mut workbench = Setup::new().toolbox("dev", "d").connect();
    let result = workbench.call("open_toolbox", r#"{"toolbox_name":"dev"}"#);
    let begin = "Invalid parameters: Unrecognized key: 'toolbox_name' (did you mean 'toolbox'?)";
    assert!(result.error().starts_with(begin), "{}", result.error());
}

#[test]
fn a_near_name_may_be_suggested_after_the_text() {
    let mut workbench = Setup::new().toolbox("development", "d").connect();
    let result = workbench.open("developmnt");
    let text = "Error: Toolbox 'developmnt' not found. Available toolboxes: development";
    let longer = format!("{text}. Did you mean 'development'?");
    assert!(
        [text, &longer].contains(&result.error()),
        "{}",
        result.error()
    );
}

#[test]
fn duplicate_keys_are_rejected() {
    let mut workbench = Setup::one(&Script::new()).connect();
    let id = workbench.send_call("open_toolbox", r#"{"toolbox":"dev","toolbox":"dev"}"#);
    let answer = workbench.response(&id);
    let rejected = answer.is_error() || ToolResult::of(&answer).failed();
    assert!(rejected, "{}", answer.line);
    assert_eq!(workbench.journal("dev", "fs").lines(), Vec::<String>::new());
}

#[test]
fn a_toolbox_without_servers_opens() {
    let mut workbench = Setup::new().toolbox("empty", "Nothing yet").connect();
    assert_eq!(
        workbench.open("empty").text(),
        r#"{"toolbox":"empty","description":"Nothing yet","servers_connected":0,"tools":[]}"#
    );
}

#[test]
fn a_server_without_tools_is_connected_and_counted() {
    let mut workbench = Setup::one(&Script::new().tools("[]")).connect();
    assert_eq!(workbench.open("dev").text(), opened(""));
}

#[test]
fn instructions_of_servers_are_passed_on() {
    let said = "Call \"a\" first.\nThen b: ü";
    let mut workbench = Setup::one(&Script::named(&["a"]).set("instructions", &raw_string(said)))
        .server("quiet", &Script::named(&["b"]))
        .connect();
    let opened = workbench.open("dev").json();
    assert_eq!(opened["instructions"], json!({"fs": said}));
}

#[test]
fn tools_that_are_not_offered_are_listed_as_withheld() {
    let tools = r#"[{"name":"good","inputSchema":{"type":"object"}},{"name":"broken","inputSchema":5},{"name":"twice","description":"first","inputSchema":{"type":"object"}},{"name":"twice","description":"second","inputSchema":{"type":"object"}},{"name":"last","inputSchema":{"type":"object"}}]"#;
    let mut workbench = Setup::one(&Script::new().tools(tools)).connect();
    let result = workbench.open("dev");
    assert_eq!(result.tool_names(), ["good", "twice", "last"]);
    let opened = result.json();
    assert_eq!(opened["tools"][1]["description"], "first");
    let withheld = opened["withheld"].as_array().unwrap();
    let names: Vec<_> = withheld
        .iter()
        .map(|entry| (&entry["server"], &entry["tool"]))
        .collect();
    assert_eq!(
        names,
        [
            (&json!("fs"), &json!("broken")),
            (&json!("fs"), &json!("twice"))
        ]
    );
    for entry in withheld {
        assert!(
            entry["reason"].as_str().is_some_and(|it| !it.is_empty()),
            "{entry}"
        );
        assert_eq!(entry.as_object().unwrap().len(), 3, "{entry}");
    }
}

#[test]
fn a_truncated_list_gets_a_notice() {
    let loops = r#"[{"answer":{"tools":[{"name":"a","inputSchema":{"type":"object"}}],"nextCursor":"again"}}]"#;
    let mut workbench = Setup::one(&Script::new().on_method("tools/list", loops)).connect();
    let result = workbench.open("dev");
    assert_eq!(result.tool_names(), ["a"]);
    let opened = result.json();
    let notices = opened["notices"].as_array().expect("notices");
    assert!(
        !notices.is_empty() && notices.iter().all(Value::is_string),
        "{notices:?}"
    );
}

#[test]
fn the_next_open_shows_a_changed_list() {
    let changed = r#"[{"setTools":[{"name":"new","inputSchema":{"type":"object"}}]},{"notify":{"method":"notifications/tools/list_changed"}},{"answer":{"content":[]}}]"#;
    let script = Script::named(&["change", "old"]).on_call("change", changed);
    let mut workbench = Setup::one(&script).connect();
    assert_eq!(workbench.open("dev").tool_names(), ["change", "old"]);
    workbench.use_tool("change", "{}");
    let seen = poll(TIMEOUT, || {
        (workbench.open("dev").tool_names() == ["new"]).then_some(())
    });
    assert!(seen.is_some(), "the new list never came");
    let result = workbench.use_tool("old", "{}");
    assert_eq!(
        result.error(),
        "Tool 'old' not found in server 'fs' (toolbox 'dev')"
    );
}
