//! Searches after changes of lists and configurations.

use pretty_assertions::assert_eq;
use serde_json::Value;

use super::{FILES, search, two_toolboxes};
use crate::harness::{Script, Setup, TIMEOUT, Workbench, poll};

/// The names of the hits of a search.
fn hits(workbench: &mut Workbench, query: &str) -> Vec<String> {
    let found = search(workbench, query);
    let lines = found.lines().skip(1).filter(|line| line.contains('('));
    let names = lines.filter_map(|line| line.split('(').next());
    names.map(str::to_owned).collect()
}

#[test]
fn a_changed_list_is_indexed_again() {
    let changed = r#"[{"setTools":[{"name":"paint","description":"Paint a fence","inputSchema":{"type":"object"}}]},{"notify":{"method":"notifications/tools/list_changed"}},{"answer":{"content":[]}}]"#;
    let script = Script::new().tools(FILES).on_call("delete_file", changed);
    let setup = Setup::one(&script).top("metaTools", super::all_three());
    let mut workbench = setup.connect();
    assert_eq!(hits(&mut workbench, "paint a fence"), Vec::<String>::new());
    search(&mut workbench, "file");
    assert!(!workbench.use_tool("delete_file", "{}").failed());
    let found = poll(TIMEOUT, || {
        let found = hits(&mut workbench, "paint a fence");
        (found == ["dev fs paint"]).then_some(())
    });
    assert!(found.is_some());
    assert_eq!(hits(&mut workbench, "delete_file"), Vec::<String>::new());
}

#[test]
fn removed_servers_and_toolboxes_are_not_found() {
    let setup = two_toolboxes();
    let mut config: Value = serde_json::from_str(&setup.config_text()).unwrap();
    let mut workbench = setup.connect();
    assert_eq!(hits(&mut workbench, "forecast"), ["life sky forecast"]);

    // Another name is another toolbox, which nobody has opened.
    let toolboxes = config["toolboxes"].as_object_mut().unwrap();
    let life = toolboxes.remove("life").unwrap();
    toolboxes.insert("outside".to_owned(), life);
    std::fs::write(workbench.setup.config(), config.to_string()).unwrap();
    workbench.wait_stderr("added toolbox 'outside'");
    let closed = workbench.use_tool_of(["outside", "sky", "forecast"], "{}");
    assert_eq!(
        closed.error(),
        "Error: Toolbox 'outside' is not open. Call open_toolbox first."
    );
    assert_eq!(hits(&mut workbench, "forecast"), ["outside sky forecast"]);
    let used = workbench.use_tool_of(["outside", "sky", "forecast"], "{}");
    assert!(!used.failed(), "{}", used.raw);

    let servers = config["toolboxes"]["outside"]["mcpServers"].as_object_mut();
    servers.unwrap().remove("sky");
    std::fs::write(workbench.setup.config(), config.to_string()).unwrap();
    workbench.wait_stderr("removed 'sky'");
    assert_eq!(hits(&mut workbench, "forecast"), Vec::<String>::new());
}
