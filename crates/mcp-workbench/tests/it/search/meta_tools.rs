//! `metaTools`: the choice of our own tools.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::{search, two_toolboxes};
use crate::harness::{ModernClient, ModernRequest, Script, Setup, Workbench};

const LIST_CHANGED: &str = "notifications/tools/list_changed";

fn names(workbench: &mut Workbench) -> Vec<String> {
    let listed = workbench.ask("tools/list", "{}").result();
    names_in(&listed)
}

fn names_in(listed: &Value) -> Vec<String> {
    let tools = listed["tools"].as_array().unwrap().iter();
    tools
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn disabled_meta_tools_are_neither_listed_nor_callable() {
    let off = [
        (None, vec!["open_toolbox", "use_tool"], "search_tools"),
        (
            Some(json!(["search_tools", "use_tool"])),
            vec!["search_tools", "use_tool"],
            "open_toolbox",
        ),
    ];
    for (configured, listed, off) in off {
        let mut setup = Setup::one(&Script::new());
        if let Some(configured) = configured {
            setup = setup.top("metaTools", configured);
        }
        let mut workbench = setup.connect();
        assert_eq!(names(&mut workbench), listed);
        let modern = workbench
            .ask_modern(&ModernRequest::new("tools/list"))
            .result();
        assert_eq!(names_in(&modern), listed);
        let call = format!(r#"{{"name":"{off}","arguments":{{"toolbox":"dev","query":"x"}}}}"#);
        let answer = workbench.ask("tools/call", &call);
        let refused = answer.error();
        assert_eq!(refused.code, -32602);
        assert_eq!(refused.message, format!("Unknown tool: {off}"));
    }
}

#[test]
fn without_open_toolbox_all_texts_name_search_tools() {
    let setup = two_toolboxes().top("metaTools", json!(["search_tools", "use_tool"]));
    let mut workbench = setup.start();
    let introduced = workbench.initialize();
    let instructions = introduced["instructions"].as_str().unwrap();
    assert!(!instructions.contains("open_toolbox"), "{instructions}");
    assert!(instructions.ends_with("call `search_tools` with what it should do"));
    let listed = workbench.ask("tools/list", "{}").result();
    assert!(!listed.to_string().contains("open_toolbox"), "{listed}");
    let toolbox = "/tools/0/inputSchema/properties/toolbox/enum";
    assert_eq!(listed.pointer(toolbox), Some(&json!(["dev", "life"])));
    assert_eq!(
        workbench.use_tool("read_file", "{}").error(),
        "Error: Toolbox 'dev' is not open. Call search_tools first."
    );
    let nothing = search(&mut workbench, "zzzz");
    assert!(!nothing.contains("open_toolbox"), "{nothing}");
}

#[test]
fn with_all_meta_tools_the_instructions_name_both_ways() {
    let mut workbench = two_toolboxes().start();
    let introduced = workbench.initialize();
    let instructions = introduced["instructions"].as_str().unwrap();
    assert!(
        instructions.ends_with(
            "2. Inspect the returned tools array for available operations\n\n\
             To find a tool in all toolboxes: call `search_tools` with what it should do"
        ),
        "{instructions}"
    );
    assert_eq!(
        names(&mut workbench),
        ["open_toolbox", "use_tool", "search_tools"]
    );
}

#[test]
fn meta_tools_can_be_changed_by_a_reload() {
    let setup = Setup::one(&Script::new());
    let plain = setup.config_text();
    let three = plain.replacen(
        '{',
        r#"{"metaTools":["open_toolbox","use_tool","search_tools"],"#,
        1,
    );
    let mut workbench = setup.connect();
    assert_eq!(names(&mut workbench), ["open_toolbox", "use_tool"]);
    for (text, count) in [(three, 3), (plain, 2)] {
        std::fs::write(workbench.setup.config(), text).unwrap();
        workbench.notification(LIST_CHANGED);
        assert_eq!(names(&mut workbench).len(), count);
    }
    assert!(workbench.stderr().contains("meta-tools changed"));
}

#[test]
fn the_default_detail_can_be_changed_by_a_reload() {
    let setup = Setup::one(&Script::new());
    let compact = setup
        .config_text()
        .replacen('{', r#"{"openDetail":"compact","#, 1);
    let mut workbench = setup.connect();
    std::fs::write(workbench.setup.config(), compact).unwrap();
    workbench.notification(LIST_CHANGED);
    let listed = workbench.ask("tools/list", "{}").result();
    let default = "/tools/0/inputSchema/properties/detail/default";
    assert_eq!(listed.pointer(default), Some(&json!("compact")));
}

#[test]
fn native_mode_has_no_meta_tools() {
    let setup = two_toolboxes()
        .top("toolMode", json!("native"))
        .top("nativeToolbox", json!("dev"));
    let mut workbench = setup.connect();
    assert_eq!(names(&mut workbench), ["read_file", "delete_file"]);
    let call = r#"{"name":"search_tools","arguments":{"query":"x"}}"#;
    let answer = workbench.ask("tools/call", call);
    assert_eq!(answer.error().message, "Unknown tool: search_tools");
}

#[test]
fn an_unusable_list_of_meta_tools_stops_the_start() {
    let setup = two_toolboxes().top("metaTools", json!(["open_toolbox", "serch_tools"]));
    let finished = setup.start().finish();
    assert!(!finished.status.success());
    let said = &finished.stderr;
    let expected =
        "metaTools[1]: unknown value `serch_tools`\n  hint: did you mean `search_tools`?";
    assert!(said.contains(expected), "{said}");
}
