//! A tool with a finding that the user has reviewed and approved by name is offered as long as its definition stays the
//! same.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::{World, names, tool};
use crate::harness::{Script, TIMEOUT, Workbench, poll};

const CALLED: &str = r#"{"content":[],"n":1}"#;
const FINDING: &str = "the hidden character U+001B (escape sequence) in /description";

/// Two tools, one of which has an escape sequence in its description.
fn tools(description: &str) -> Value {
    json!([tool("good", "Good"), tool("bad", description)])
}

fn script(description: &str) -> Script {
    let script = Script::new().tools(&tools(description).to_string());
    script.answers("bad", CALLED)
}

/// A world whose server is met or approved as a whole.
fn world(pin: &str) -> World {
    let world = World::of(pin, &script("Bad\u{1b}[2J"));
    world.trusted(&["approve", "--yes"]);
    world
}

fn is_withheld(world: &World) -> bool {
    let opened = world.open();
    let reason = opened["withheld"][0]["reason"].as_str();
    match names(&opened)[..] {
        ["good"] => {
            assert!(reason.is_some_and(|it| it.starts_with(FINDING)), "{opened}");
            true
        }
        ["good", "bad"] => {
            assert_eq!(reason, None);
            false
        }
        _ => panic!("{opened}"),
    }
}

#[test]
fn a_released_tool_is_offered_until_its_definition_changes() {
    for pin in ["off", "notice", "enforce"] {
        let world = world(pin);
        assert!(
            is_withheld(&world),
            "approving the server does not release it"
        );
        let shown = world.trust(&["diff", "dev", "fs", "bad"]);
        let shown = String::from_utf8(shown.stdout).unwrap();
        assert!(shown.contains("+description: Bad⟦U+001B⟧[2J"), "{shown}");
        let said = world.trusted(&["approve", "dev", "fs", "bad", "--yes"]);
        assert!(
            said.contains(&format!("tool 'bad': withheld: {FINDING}")),
            "{said}"
        );
        assert!(said.contains("1 tool new: bad"), "{said}");
        assert!(
            world
                .lock()
                .contains("\", \"finding\": \"hidden_character\" }"),
            "{}",
            world.lock()
        );
        assert!(!is_withheld(&world));
        let mut workbench = world.connect();
        workbench.open("dev");
        assert_eq!(workbench.use_tool("bad", "{}").raw, CALLED);
        drop(workbench);
        // Neither another start nor an approval of the whole server changes that.
        let said = world.trusted(&["approve", "--yes"]);
        assert!(said.contains("nothing to approve"), "{said}");
        assert!(!is_withheld(&world));

        world.set_script(&script("Bad\u{1b}[3J"));
        assert!(is_withheld(&world), "{pin}");
        world.set_script(&script("Bad\u{1b}[2J"));
        assert!(!is_withheld(&world));
        world.trusted(&["revoke", "dev", "fs", "bad", "--yes"]);
        assert!(is_withheld(&world), "{pin}");
    }
}

#[test]
fn a_released_tool_is_offered_in_dynamic_and_native_mode() {
    for mode in ["dynamic", "native"] {
        let world = world("notice");
        world.edit(|config| {
            config["toolMode"] = json!(mode);
            config["nativeToolbox"] = json!("dev");
            if mode == "dynamic" {
                config.as_object_mut().unwrap().remove("nativeToolbox");
            }
        });
        world.trusted(&["approve", "dev", "fs", "bad", "--yes"]);
        let mut workbench = world.connect();
        let name = if mode == "dynamic" {
            workbench.open("dev");
            "dev__fs__bad"
        } else {
            "bad"
        };
        let listed = workbench.ask("tools/list", "{}").result();
        assert!(names(&listed).contains(&name), "{listed}");
        assert_eq!(workbench.call(name, "{}").raw, CALLED);
    }
}

/// Opens `dev` until these tools are offered.
pub(super) fn wait_for(workbench: &mut Workbench, expected: &[&str]) {
    let seen = poll(TIMEOUT, || {
        (names(&workbench.open("dev").json()) == expected).then_some(())
    });
    assert!(seen.is_some(), "{}", workbench.stderr());
}

#[test]
fn a_running_workbench_applies_a_release_and_its_end() {
    for pin in ["off", "notice", "enforce"] {
        let world = world(pin);
        let mut workbench = world.connect();
        wait_for(&mut workbench, &["good"]);
        world.trusted(&["approve", "dev", "fs", "bad", "--yes"]);
        wait_for(&mut workbench, &["good", "bad"]);
        assert_eq!(workbench.use_tool("bad", "{}").raw, CALLED);
        world.trusted(&["revoke", "dev", "fs", "bad", "--yes"]);
        wait_for(&mut workbench, &["good"]);
        let refused = workbench.use_tool("bad", "{}");
        assert_eq!(refused.failure()["code"], "tool_withheld");
    }
}

#[test]
fn a_released_tool_is_shown_from_the_tool_cache() {
    let world = world("enforce");
    world.edit(|config| config["connect"] = json!("on-use"));
    world.run(&["warm"]);
    let starts = world.starts();
    assert!(is_withheld(&world));
    assert_eq!(world.starts(), starts);
    world.trusted(&["approve", "dev", "fs", "bad", "--yes"]);
    let starts = world.starts();
    assert!(!is_withheld(&world));
    assert_eq!(world.starts(), starts, "nothing was started for that");
}

#[test]
fn a_broken_definition_cannot_be_released() {
    let huge = tool("huge", &"x".repeat(300_000));
    let broken = json!([tool("good", "Good"), {"name": "schemaless"}, huge]);
    let world = World::new("notice", &broken);
    world.trusted(&["approve", "--yes"]);
    let lock = world.lock();
    for (tool, reason) in [
        ("schemaless", "inputSchema is missing"),
        ("huge", "the definition is larger than 256 KiB"),
    ] {
        let output = world.trust(&["approve", "dev", "fs", tool, "--yes"]);
        assert_eq!(output.status.code(), Some(1));
        let said = String::from_utf8(output.stderr).unwrap();
        let expected = format!("not approved: tool '{tool}': withheld: {reason}");
        assert!(said.contains(&expected), "{said}");
        assert_eq!(world.lock(), lock);
    }
    // Nor by a lock file that says so.
    let forged = lock.replace(
        "\"good\"",
        &format!("\"huge\": {{ \"pinned\": \"{}\", \"finding\": \"definition_too_large\" }},\n          \"good\"", digest(&lock)),
    );
    std::fs::write(world.lock_file(), forged).unwrap();
    assert_eq!(names(&world.open()), ["good"]);
}

/// The first digest in a lock file.
fn digest(lock: &str) -> &str {
    let start = lock.find("sha256-").unwrap();
    lock[start..].split('"').next().unwrap()
}

#[test]
fn a_tool_with_a_hidden_character_in_its_name_is_released_by_the_printed_command() {
    let listed = json!([tool("good", "Good"), tool("a\u{202e}b", "Hides")]);
    let world = World::new("notice", &listed);
    let opened = world.open();
    let reason = opened["withheld"][0]["reason"].as_str().unwrap();
    let command = world.printed_command("trust approve dev fs 'a⟦U+202E⟧b'");
    assert!(
        reason.ends_with(&format!("release it with `{command}`")),
        "{reason}"
    );
    world.trusted(&["approve", "dev", "fs", "a⟦U+202E⟧b", "--yes"]);
    assert_eq!(names(&world.open()), ["good", "a\u{202e}b"]);
}
