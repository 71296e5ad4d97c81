//! With `"connect": "on-use"` tools are shown without starting their server: only approved ones are shown, and the
//! launch of a server is checked when it starts.

use std::fs;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::{World, names, tool};
use crate::harness::{TIMEOUT, poll};

fn before() -> Value {
    json!([tool("add", "Adds"), tool("sub", "Subtracts")])
}

/// A world in which `add` has changed and `new` is new since they were approved. The catalogue has both.
fn changed() -> World {
    let world = World::pinned("off", &before());
    world.set_tools(&json!([
        tool("add", "Adds, and more"),
        tool("sub", "Subtracts"),
        tool("new", "New")
    ]));
    world.edit(|config| {
        config["connect"] = json!("on-use");
        config["metaTools"] = json!(["open_toolbox", "use_tool", "search_tools"]);
    });
    world.run(&["warm"]);
    assert_eq!(names(&world.open()), ["add", "sub", "new"]);
    world.set_pin("enforce");
    world
}

#[test]
fn cached_tools_are_checked_against_the_lock_file() {
    let world = changed();
    let starts = world.starts();
    let mut workbench = world.connect();
    let opened = workbench.open("dev").json();
    assert_eq!(opened["servers_connected"], 0);
    assert_eq!(names(&opened), ["sub"]);
    let withheld = opened["withheld"].as_array().unwrap();
    let withheld: Vec<&str> = withheld
        .iter()
        .map(|it| it["tool"].as_str().unwrap())
        .collect();
    assert_eq!(withheld, ["add", "new"]);
    let mut found = |word: &str| {
        let query = json!({ "query": word }).to_string();
        let found = workbench.call("search_tools", &query);
        found.text().contains(&format!("dev fs {word}("))
    };
    assert!(found("sub"));
    assert!(!found("add"));
    assert!(!found("new"));
    assert_eq!(world.starts(), starts, "nothing was started so far");
    for name in ["add", "new"] {
        let refused = workbench.use_tool(name, "{}");
        assert_eq!(refused.failure()["code"], "tool_not_approved");
    }
    assert!(world.setup.journal("dev", "fs").called().is_empty());
}

#[test]
fn native_mode_checks_cached_tools_against_the_lock_file() {
    let world = changed();
    world.edit(|config| {
        config["toolMode"] = json!("native");
        config["nativeToolbox"] = json!("dev");
    });
    let mut workbench = world.connect();
    let listed = workbench.ask("tools/list", "{}").result();
    assert_eq!(names(&listed), ["sub"]);
    let refused = workbench.call("add", "{}");
    assert_eq!(refused.failure()["code"], "tool_not_approved");
    assert!(world.setup.journal("dev", "fs").called().is_empty());
}

#[test]
fn a_definition_manipulated_in_the_cache_is_not_shown() {
    let world = World::pinned("enforce", &before());
    world.edit(|config| config["connect"] = json!("on-use"));
    let folder = world.setup.path("cache/mcp-workbench/servers");
    let files = fs::read_dir(folder).unwrap().map(|it| it.unwrap().path());
    let mut files = files.filter(|it| it.extension().is_some_and(|it| it == "json"));
    let file = files.next().unwrap();
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("Subtracts", "Obeys")).unwrap();
    let starts = world.starts();
    assert_eq!(names(&world.open()), ["add"]);
    assert_eq!(world.starts(), starts);
}

#[test]
fn approvals_and_revocations_apply_to_cached_tools() {
    let world = changed();
    let mut workbench = world.connect();
    assert_eq!(names(&workbench.open("dev").json()), ["sub"]);
    world.trusted(&["approve", "dev", "fs", "add", "--yes"]);
    let starts = world.starts();
    let mut shows = |expected: &[&str]| {
        let seen = poll(TIMEOUT, || {
            (names(&workbench.open("dev").json()) == expected).then_some(())
        });
        assert!(seen.is_some(), "{}", workbench.stderr());
    };
    shows(&["add", "sub"]);
    assert_eq!(world.starts(), starts);
    world.trusted(&["revoke", "dev", "fs", "sub", "--yes"]);
    shows(&["add"]);
}

#[test]
fn no_command_starts_an_unapproved_server() {
    let world = changed();
    world.edit(|config| World::entry(config)["cwd"] = json!(".."));
    let starts = world.starts();
    for arguments in [&["warm"][..], &["search", "add"]] {
        let output = world.command(arguments).output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8(said).unwrap();
        let reason = "it is not what was approved: 'cwd' changed";
        assert!(said.contains(reason), "{arguments:?}: {said}");
    }
    assert_eq!(world.starts(), starts);
}
