//! The tool list in proxy mode.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::harness::{ModernClient, ModernRequest, Script, Setup, Workbench};

fn two_toolboxes() -> Setup {
    Setup::new()
        .toolbox("zeta", "Last letter")
        .server("fs", &Script::named(&["a"]))
        .toolbox("alpha", "First letter")
}

fn tools(workbench: &mut Workbench) -> Vec<Value> {
    let result = workbench.ask("tools/list", "{}").result();
    result["tools"].as_array().unwrap().clone()
}

fn named<'a>(tools: &'a [Value], name: &str) -> &'a Value {
    tools.iter().find(|tool| tool["name"] == name).unwrap()
}

#[test]
fn the_meta_tools_are_listed_before_and_after_an_open() {
    let mut workbench = two_toolboxes().connect();
    let before = tools(&mut workbench);
    let names: Vec<_> = before.iter().map(|tool| tool["name"].as_str()).collect();
    assert_eq!(names[..2], [Some("open_toolbox"), Some("use_tool")]);
    workbench.open("zeta");
    assert_eq!(tools(&mut workbench), before);
    assert!(workbench.untaken().is_empty(), "{:?}", workbench.untaken());
}

#[test]
fn open_toolbox_names_the_toolboxes_in_its_definition() {
    let mut workbench = two_toolboxes().connect();
    let tools = tools(&mut workbench);
    let open = named(&tools, "open_toolbox");
    let schema = &open["inputSchema"];
    let toolbox = &schema["properties"]["toolbox"];
    assert_eq!(schema["type"], "object");
    assert_eq!(schema["required"], json!(["toolbox"]));
    assert_eq!(schema["additionalProperties"], json!(false));
    assert_eq!(
        *toolbox,
        json!({
            "type": "string",
            "description": "Toolbox to open",
            "minLength": 1,
            "enum": ["zeta", "alpha"],
        })
    );
    let description = open["description"].as_str().unwrap();
    for name in ["zeta", "alpha"] {
        assert!(description.contains(name), "{description}");
    }
}

#[test]
fn use_tool_describes_its_parameters() {
    let mut workbench = two_toolboxes().connect();
    let tools = tools(&mut workbench);
    let schema = &named(&tools, "use_tool")["inputSchema"];
    assert_eq!(schema["type"], "object");
    assert_eq!(schema["required"], json!(["tool"]));
    assert_eq!(schema["additionalProperties"], json!(false));
    assert_eq!(schema["properties"]["arguments"]["type"], "object");
    let tool = &schema["properties"]["tool"];
    assert_eq!(tool["type"], "object");
    assert_eq!(tool["required"], json!(["toolbox", "server", "tool"]));
    assert_eq!(tool["additionalProperties"], json!(false));
    for part in ["toolbox", "server", "tool"] {
        let part = &tool["properties"][part];
        assert_eq!(part["type"], "string", "{part}");
        assert_eq!(part["minLength"], 1, "{part}");
        assert!(part["description"].is_string(), "{part}");
    }
}

#[test]
fn meta_tools_that_call_nothing_are_annotated_as_read_only() {
    let all = json!([
        "open_toolbox",
        "use_tool",
        "search_tools",
        "read_result",
        "run_code"
    ]);
    let setup = two_toolboxes().top("metaTools", all);
    let mut workbench = setup.top("maxResultChars", json!(1000)).connect();
    let tools = tools(&mut workbench);
    assert_eq!(tools.len(), 5);
    let read_only = json!({"readOnlyHint": true, "idempotentHint": true, "destructiveHint": false});
    for tool in &tools {
        let expected = match tool["name"].as_str() {
            Some("use_tool" | "run_code") => None,
            _ => Some(&read_only),
        };
        assert_eq!(tool.get("annotations"), expected, "{tool}");
    }
}

#[test]
fn texts_fit_every_client_with_any_number_of_toolboxes() {
    let description = "What this toolbox is for, in many words. ".repeat(20);
    for count in [0, 1, 50, 1000] {
        let mut setup = Setup::new();
        for n in 0..count {
            setup = setup.toolbox(&format!("toolbox-with-a-long-name-{n}"), &description);
        }
        let mut workbench = setup.start();
        let introduced = workbench.initialize();
        let tools = tools(&mut workbench);
        let texts = tools.iter().map(|tool| &tool["description"]);
        for text in texts.chain([&introduced["instructions"]]) {
            let units = text.as_str().unwrap().encode_utf16().count();
            assert!((60..=2048).contains(&units), "{count}: {units}: {text}");
        }
        let open = named(&tools, "open_toolbox");
        let names = &open["inputSchema"]["properties"]["toolbox"]["enum"];
        assert_eq!(names.as_array().map_or(0, Vec::len), count);
        let told = [
            (&open["description"], 1000),
            (&introduced["instructions"], 50),
        ];
        for (text, too_many) in told {
            let text = text.as_str().unwrap();
            let has_first = text.contains("toolbox-with-a-long-name-0");
            assert_eq!(has_first, count > 0, "{count}: {text}");
            let is_short = text.contains("… and ");
            assert_eq!(is_short, count >= too_many, "{count}: {text}");
        }
    }
}

#[test]
fn clients_that_hide_tools_are_asked_to_load_the_meta_tools() {
    for mode in ["proxy", "dynamic"] {
        let mut workbench = two_toolboxes().top("toolMode", json!(mode)).connect();
        let modern = workbench
            .ask_modern(&ModernRequest::new("tools/list"))
            .result();
        let modern: Vec<Value> = modern["tools"].as_array().unwrap().clone();
        let legacy = tools(&mut workbench);
        for tools in [legacy, modern] {
            for name in ["open_toolbox", "use_tool"] {
                let meta = &named(&tools, name)["_meta"];
                assert_eq!(
                    *meta,
                    json!({"anthropic/alwaysLoad": true}),
                    "{mode}, {name}"
                );
            }
        }
    }
}
