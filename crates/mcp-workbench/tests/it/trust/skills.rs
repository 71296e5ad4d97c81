//! Skills are pinned like tools, by the URIs of their entries.

use pretty_assertions::assert_eq;
use serde_json::json;

use super::World;
use crate::{
    extensions::skills::{entry, server},
    harness::Fault,
};

const GIT: &str = "skill://git/SKILL.md";

#[test]
fn a_changed_skill_is_withheld_until_it_is_approved() {
    let fault = Fault::within(
        60,
        "X2",
        "publishes a skill with other contents than those that the user approved",
        "it is withheld with the command that approves it, in lists and in reads; other skills work",
    );
    let other = entry("skill://other", 'd');
    let world = World::of(
        "notice",
        &server("fs", &[entry("skill://git", 'a'), other.clone()]),
    );
    world.open();
    assert!(
        world.lock().contains(&format!("\"{GIT}\": \"")),
        "{}",
        world.lock()
    );
    world.set_pin("enforce");
    world.edit(|config| {
        config["toolMode"] = json!("native");
        config["nativeToolbox"] = json!("dev");
    });
    // The same program serves other contents from now on.
    let changed = entry("skill://git", 'f');
    world.set_script(&server("fs", &[changed.clone(), other.clone()]));
    let mut workbench = world.connect();
    let listed = workbench.ask("skills/list", "{}").result();
    assert_eq!(listed["skills"], json!([other]));
    for method in ["skills/get", "resources/read"] {
        let refused = workbench.ask(method, &json!({ "uri": GIT }).to_string());
        let message = &refused.error().message;
        assert!(
            message.starts_with(&format!("{GIT} is withheld: ")),
            "{message}"
        );
        assert!(message.contains("trust approve dev fs"), "{message}");
    }
    let read = workbench.ask("resources/read", r#"{"uri":"skill://other/SKILL.md"}"#);
    assert_eq!(read.result()["from"], "fs");
    assert!(workbench.finish().status.success());

    let states = world.states();
    assert!(
        states.contains(&(GIT.to_owned(), "changed".to_owned())),
        "{states:?}"
    );
    let diff = world.trust(&["diff", "dev", "fs", GIT]).stdout;
    let diff = String::from_utf8(diff).unwrap();
    assert!(diff.contains(&"f".repeat(64)), "{diff}");
    world.trusted(&["approve", "dev", "fs", GIT, "--yes"]);
    let mut workbench = world.connect();
    let listed = workbench.ask("skills/list", "{}").result();
    assert_eq!(listed["skills"], json!([changed, other]));
    fault.ends();
}

#[test]
fn a_skill_that_changes_while_its_server_runs_is_not_passed_on() {
    let known = entry("skill://git", 'a');
    let world = World::of("notice", &server("fs", std::slice::from_ref(&known)));
    world.open();
    world.set_pin("enforce");
    world.edit(|config| {
        config["toolMode"] = json!("native");
        config["nativeToolbox"] = json!("dev");
    });
    let listed = json!([{ "answer": { "skills": [known] } }]).to_string();
    let script = server("fs", &[entry("skill://git", 'b')]).on_method("skills/list", &listed);
    world.set_script(&script);
    let mut workbench = world.connect();
    let refused = workbench.ask("skills/get", &json!({ "uri": GIT }).to_string());
    let message = &refused.error().message;
    assert!(
        message.contains("changed since it was approved"),
        "{message}"
    );
}
