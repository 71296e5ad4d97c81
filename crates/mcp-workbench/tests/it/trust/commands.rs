//! `trust`: what it shows, what it asks, and what it changes.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::{World, names, tool};
use crate::{
    everyday::OnTerminal,
    harness::{Script, Setup},
};

fn before() -> Value {
    json!([tool("add", "Adds"), tool("sub", "Subtracts")])
}

fn states(states: &[(&str, &str)]) -> Vec<(String, String)> {
    let states = states.iter();
    states
        .map(|(tool, state)| ((*tool).to_owned(), (*state).to_owned()))
        .collect()
}

#[test]
fn the_list_has_every_state() {
    let world = World::pinned("notice", &before());
    world.set_tools(&json!([tool("add", "Adds, and more"), tool("new", "New")]));
    assert_eq!(
        world.states(),
        states(&[("add", "changed"), ("new", "new"), ("sub", "gone")])
    );
    let shown = world.trusted(&["list"]);
    let file = world.lock_file();
    let expected = format!(
        "{}\n\ndev/fs: pinned (pin: notice)\n  add  changed\n  new  new\n  sub  gone\n",
        file.display()
    );
    assert_eq!(shown, expected);
    world.edit(|config| config["toolboxes"]["dev"]["mcpServers"] = json!({}));
    let shown = world.trusted(&["list", "dev"]);
    assert!(
        shown.contains("dev/fs: gone\n  add  gone\n  sub  gone\n"),
        "{shown}"
    );
}

#[test]
fn diff_shows_hidden_characters() {
    let world = World::pinned("notice", &before());
    let hidden = "Adds\u{200B}\u{200F}\nline two";
    world.set_tools(&json!([tool("add", hidden), tool("sub", "Subtracts")]));
    let output = world.trust(&["diff", "dev", "fs", "add"]);
    assert_eq!(output.status.code(), Some(1), "as diff does");
    let shown = String::from_utf8(output.stdout).unwrap();
    assert_eq!(
        shown,
        "--- dev/fs/add\n+++ dev/fs/add\n@@ -1,4 +1,6 @@\n-description: Adds\n+description:\n+  \
         Adds⟦U+200B⟧⟦U+200F⟧\n+  line two\n inputSchema: {\n   \"type\": \"object\"\n }\n"
    );
    let other = world.trust(&["diff", "dev", "fs", "sub"]);
    assert_eq!(other.status.code(), Some(0));
}

#[test]
fn names_show_hidden_characters() {
    let world = World::pinned("notice", &before());
    let hidden = "\u{430}dd\u{200B}\u{FE0F}";
    let shown = "⟦U+0430⟧dd⟦U+200B⟧⟦U+FE0F⟧";
    world.set_tools(&json!([tool(hidden, "Adds"), tool("sub", "Subtracts")]));
    let listed = world.trusted(&["list"]);
    assert!(listed.contains(&format!("  {shown}  new\n")), "{listed}");
    // A name can be typed as it is shown.
    let output = world.trust(&["diff", "dev", "fs", shown]);
    let difference = String::from_utf8(output.stdout).unwrap();
    assert!(
        difference.starts_with(&format!("--- /dev/null\n+++ dev/fs/{shown}\n")),
        "{difference}"
    );
    let withheld = "sub\u{E0200}\u{2800}";
    world.set_tools(&json!([tool(withheld, "Subtracts")]));
    let listed = world.trusted(&["list"]);
    let remark =
        "tool 'sub⟦U+E0200⟧⟦U+2800⟧': withheld: the hidden character U+E0200 (invisible) in /name";
    assert!(listed.contains(remark), "{listed}");
}

#[test]
fn approve_and_revoke_need_a_confirmation() {
    let world = World::pinned("notice", &before());
    world.set_tools(&json!([tool("add", "Adds, and more")]));
    let lock = world.lock();
    for command in ["approve", "revoke"] {
        let output = world.trust(&[command]);
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success());
        assert!(
            said.contains("there is no terminal to confirm on") && said.contains("--yes"),
            "{said}"
        );
        assert_eq!(world.lock(), lock);
    }
}

#[test]
fn approve_shows_the_launch_and_the_definitions() {
    let answers = |first: &str, second: Option<&str>| {
        let script = Script::new().tools(&before().to_string());
        let setup = Setup::one(&script).top("pin", json!("enforce"));
        let mut approve = OnTerminal::start(setup, &["trust", "approve"]);
        approve.wait_for("Start dev/fs like this, to see its tools? [y/N] ");
        assert!(approve.text().contains("+command: "), "{}", approve.text());
        assert_eq!(
            approve.setup.journal("dev", "fs").lines(),
            [""; 0],
            "nothing runs yet"
        );
        approve.type_line(first);
        if let Some(second) = second {
            approve.wait_for("dev/fs: new server; 2 tools new: add, sub");
            approve.wait_for("Approve this? [y/N] ");
            approve.type_line(second);
        }
        let status = approve.finish();
        let is_written = approve
            .setup
            .path("config/workbench.workbench.lock")
            .exists();
        (status.success(), is_written)
    };
    assert_eq!(answers("", None), (false, false));
    assert_eq!(answers("y", Some("no")), (false, false));
    assert_eq!(answers("y", Some("y")), (true, true));
}

#[test]
fn single_tools_can_be_approved() {
    let world = World::pinned("enforce", &before());
    world.set_tools(&json!([
        tool("add", "Adds, and more"),
        tool("sub", "Other"),
        tool("new", "New")
    ]));
    assert_eq!(names(&world.open()), [""; 0]);
    let said = world.trusted(&["approve", "dev", "fs", "new", "--yes"]);
    assert!(
        said.contains("dev/fs: 1 tool new: new\napproved in "),
        "{said}"
    );
    assert_eq!(names(&world.open()), ["new"]);
    world.trusted(&["approve", "dev", "--yes"]);
    assert_eq!(names(&world.open()), ["add", "sub", "new"]);
    assert!(
        world
            .trusted(&["approve", "--yes"])
            .contains("nothing to approve")
    );
    for arguments in [
        ["approve", "dev", "fs", "none", "--yes"],
        ["revoke", "dev", "fs", "none", "--yes"],
    ] {
        assert!(!world.trust(&arguments).status.success(), "{arguments:?}");
    }
    assert!(!world.trust(&["approve", "none", "--yes"]).status.success());
}

#[test]
fn a_revoked_tool_is_withheld_until_it_is_approved_again() {
    let world = World::pinned("enforce", &before());
    world.open();
    let lock = world.lock();
    world.trusted(&["revoke", "dev", "fs", "sub", "--yes"]);
    assert_eq!(names(&world.open()), ["add"]);
    world.trusted(&["revoke", "--yes"]);
    assert_eq!(
        world.lock(),
        "{\n  \"layout\": 1,\n  \"pin\": \"enforce\",\n  \"toolboxes\": {}\n}\n"
    );
    assert!(world.connect().open("dev").failed());
    world.trusted(&["approve", "--yes"]);
    assert_eq!(
        world.lock(),
        lock,
        "the text depends on nothing but what is pinned"
    );
}

#[test]
fn doctor_reports_changes() {
    let world = World::pinned("notice", &before());
    world.set_tools(&json!([
        tool("add", "Adds, and more"),
        tool("sub", "Subtracts")
    ]));
    let mut command = world.setup.command();
    command
        .arg("--config")
        .arg(world.setup.config())
        .arg("doctor");
    let output = command.output().unwrap();
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(
        shown.contains("the definition of 'add' has changed since it was pinned"),
        "{shown}"
    );
    assert_eq!(world.open().get("notices"), None, "it was told");
}

#[test]
fn doctor_reports_unapproved_tools() {
    let world = World::pinned("enforce", &before());
    world.set_tools(&json!([
        tool("add", "Adds, and more"),
        tool("sub", "Subtracts")
    ]));
    let codes = || {
        let mut command = world.setup.command();
        command.arg("--config").arg(world.setup.config());
        let output = command.args(["doctor", "--json"]).output().unwrap();
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        let findings = report["toolboxes"][0]["servers"][0]["findings"].clone();
        let findings = findings.as_array().unwrap().clone().into_iter();
        findings.map(|it| it["code"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(codes(), ["tool_not_approved"]);
    std::fs::remove_file(world.lock_file()).unwrap();
    assert_eq!(codes(), ["server_not_approved"]);
}
