//! What `tools/list` says in proxy mode.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::harness::{Script, Setup, Workbench};

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
    assert_eq!(toolbox["type"], "string");
    assert_eq!(toolbox["enum"], json!(["zeta", "alpha"]));
    let description = open["description"].as_str().unwrap();
    for name in ["zeta", "alpha"] {
        assert!(description.contains(name), "{description}");
    }
}

#[test]
fn use_tool_says_what_it_takes() {
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
        assert_eq!(tool["properties"][part]["type"], "string", "{part}");
    }
}

#[test]
fn descriptions_fit_every_client() {
    let mut setup = Setup::new();
    for n in 0..300 {
        setup = setup.toolbox(&format!("toolbox-with-a-long-name-{n}"), "d");
    }
    let mut workbench = setup.connect();
    for tool in tools(&mut workbench) {
        let description = tool["description"].as_str().unwrap();
        assert!(description.chars().count() <= 2048, "{description}");
    }
}
