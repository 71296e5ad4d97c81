//! `"pin": "enforce"` cannot be switched off by the edit that it guards against.

use std::process::Stdio;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::{World, names, released::wait_for, tool};

fn before() -> Value {
    json!([tool("add", "Adds")])
}

fn after() -> Value {
    json!([tool("add", "Adds, and more")])
}

/// A world whose lock file says that everything is enforced.
fn enforced() -> World {
    let world = World::pinned("enforce", &before());
    assert_eq!(names(&world.open()), ["add"]);
    let lock: Value = serde_json::from_str(&world.lock()).unwrap();
    assert_eq!(lock["pin"], "enforce", "{lock}");
    world
}

/// Returns the notice about the server, whose pin is lowered to a mode.
fn pin_notice(world: &World, mode: &str) -> String {
    format!(
        "the configuration lowers \"pin\" to \"{mode}\", but \"enforce\" in the lock file still applies; only the user \
         can confirm the change with `{}`",
        world.printed_command("trust pin dev fs")
    )
}

/// Runs a command without a terminal, and returns what it says and whether it did what is asked.
fn said(world: &World, arguments: &[&str]) -> (String, bool) {
    let mut command = world.command(arguments);
    let output = command.stdin(Stdio::null()).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (String::from_utf8(text).unwrap(), output.status.success())
}

#[test]
fn a_lowered_pin_needs_a_confirmation() {
    for mode in ["notice", "off"] {
        let world = enforced();
        world.set_pin(mode);
        world.set_tools(&after());
        let opened = world.open();
        assert_eq!(names(&opened), [""; 0]);
        let notice = format!("server 'fs': {}", pin_notice(&world, mode));
        assert_eq!(opened["notices"], json!([notice]));
        assert_eq!(opened["withheld"][0]["tool"], "add");

        let (shown, _) = said(&world, &["trust", "pin"]);
        assert!(
            shown.contains(&format!("dev/fs: from \"enforce\" to \"{mode}\"")),
            "{shown}"
        );
        assert!(shown.contains("nothing was changed"), "{shown}");
        assert_eq!(names(&world.open()), [""; 0], "nobody confirmed it");

        world.trusted(&["pin", "--yes"]);
        assert_eq!(names(&world.open()), ["add"]);
        assert!(!world.lock().contains("\"pin\""), "{}", world.lock());
    }
}

#[test]
fn a_server_that_is_excluded_later_stays_enforced() {
    let world = enforced();
    world.edit(|config| World::entry(config)["pin"] = json!("off"));
    world.set_tools(&after());
    assert_eq!(names(&world.open()), [""; 0]);
    world.trusted(&["pin", "dev", "fs", "--yes"]);
    assert_eq!(names(&world.open()), ["add"]);
    let lock: Value = serde_json::from_str(&world.lock()).unwrap();
    assert_eq!(lock["pin"], "enforce");
    assert_eq!(lock["pins"], json!({"dev": {"fs": "off"}}));
    // Raising it again needs no confirmation, and lowering it then does.
    world.edit(|config| drop(World::entry(config).as_object_mut().unwrap().remove("pin")));
    world.trusted(&["approve", "--yes"]);
    world.edit(|config| World::entry(config)["pin"] = json!("off"));
    world.set_tools(&before());
    assert_eq!(names(&world.open()), [""; 0]);
}

#[test]
fn renaming_a_server_does_not_lower_its_pin() {
    let world = enforced();
    world.edit(|config| {
        let mut entry = World::entry(config).clone();
        entry["pin"] = json!("off");
        config["pin"] = json!("off");
        config["toolboxes"]["dev"]["mcpServers"] = json!({"other": entry});
    });
    let error = world.connect().open("dev").error().to_owned();
    assert!(error.contains("it is not in the lock file"), "{error}");
}

#[test]
fn a_server_that_is_excluded_from_the_beginning_needs_no_confirmation() {
    let world = World::new("notice", &before());
    world.edit(|config| {
        let mut entry = World::entry(config).clone();
        entry["pin"] = json!("off");
        config["toolboxes"]["dev"]["mcpServers"]["other"] = entry;
    });
    world.open();
    world.set_pin("enforce");
    assert_eq!(names(&world.open()), ["add", "add"]);
    assert_eq!(names(&world.open()), ["add", "add"]);
    let (shown, is_done) = said(&world, &["trust", "pin"]);
    assert!(is_done && shown.contains("nothing to confirm"), "{shown}");
}

#[test]
fn a_lowered_pin_of_one_server_needs_a_confirmation() {
    let world = World::new("notice", &before());
    world.open();
    world.edit(|config| World::entry(config)["pin"] = json!("enforce"));
    assert_eq!(names(&world.open()), ["add"]);
    world.edit(|config| World::entry(config)["pin"] = json!("notice"));
    world.set_tools(&after());
    assert_eq!(names(&world.open()), [""; 0]);
    world.trusted(&["pin", "--yes"]);
    assert_eq!(names(&world.open()), ["add"]);
}

#[test]
fn check_doctor_and_list_report_an_unconfirmed_lowered_pin() {
    let world = enforced();
    world.set_pin("off");
    let words = pin_notice(&world, "off");
    let (shown, is_done) = said(&world, &["check"]);
    assert!(
        is_done && shown.contains(&format!("dev/fs: {words}")),
        "{shown}"
    );
    let (shown, _) = said(&world, &["doctor", "--json"]);
    assert!(shown.contains("\"pin_lowered\""), "{shown}");
    let (shown, _) = said(&world, &["trust", "list"]);
    assert!(shown.contains("dev/fs: pinned (pin: enforce)"), "{shown}");
}

#[test]
fn a_running_workbench_applies_a_confirmation() {
    let world = enforced();
    world.set_pin("notice");
    world.set_tools(&after());
    let mut workbench = world.connect();
    wait_for(&mut workbench, &[]);
    world.trusted(&["pin", "--yes"]);
    wait_for(&mut workbench, &["add"]);
}
