//! The lock file itself: what is written where, by several at once, and where nothing can be written.

use std::{fs, os::unix::fs::PermissionsExt};

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::{World, names, tool};
use crate::harness::{Script, Setup, Workbench};

fn tools() -> Value {
    json!([tool("add", "Adds")])
}

fn mode(path: &std::path::Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn several_workbenches_at_once_lose_nothing() {
    let script = Script::new().tools(&tools().to_string());
    let mut setup = Setup::new();
    let boxes: Vec<String> = (0..8).map(|number| format!("box{number}")).collect();
    for name in &boxes {
        setup = setup.toolbox(name, "d").server("fs", &script);
    }
    setup.write_config();
    let world = World { setup };
    let mut workbenches: Vec<_> = boxes.iter().map(|_| world.connect()).collect();
    let opens = workbenches.iter_mut().zip(&boxes);
    let asked: Vec<String> = opens
        .map(|(workbench, name)| {
            workbench.send_call("open_toolbox", &json!({"toolbox": name}).to_string())
        })
        .collect();
    for (workbench, id) in workbenches.iter_mut().zip(asked) {
        assert_eq!(names(&workbench.tool_result(&id).json()), ["add"]);
    }
    for mut workbench in workbenches {
        assert!(workbench.finish().status.success());
    }
    let lock: Value = serde_json::from_str(&world.lock()).unwrap();
    let pinned: Vec<&String> = lock["toolboxes"].as_object().unwrap().keys().collect();
    assert_eq!(pinned, boxes.iter().collect::<Vec<_>>());
}

#[test]
fn two_configurations_in_one_folder_raise_no_alarms_about_each_other() {
    let world = World::pinned("notice", &tools());
    let before = world.lock();
    let config = fs::read_to_string(world.setup.config()).unwrap();
    let mut config: Value = serde_json::from_str(&config).unwrap();
    World::entry(&mut config)["env"] = json!({"OTHER": "value"});
    let other = world.setup.write("config/other.json", &config.to_string());
    for _ in 0..2 {
        let mut command = world.setup.command();
        command.arg("--config").arg(&other);
        let mut workbench = Workbench::spawn(command, Setup::new());
        workbench.initialize();
        assert_eq!(workbench.open("dev").json().get("notices"), None);
        assert!(workbench.finish().status.success());
        assert_eq!(world.open().get("notices"), None);
    }
    assert_eq!(world.lock(), before);
    assert!(world.setup.path("config/other.workbench.lock").exists());
    let mut list = world.setup.command();
    list.arg("--config")
        .arg(&other)
        .args(["trust", "list", "--json"]);
    let list: Value = serde_json::from_slice(&list.output().unwrap().stdout).unwrap();
    let file = list["file"].as_str().unwrap();
    assert!(file.ends_with("config/other.workbench.lock"), "{file}");
}

#[test]
fn the_lock_file_of_an_earlier_version_keeps_working() {
    let world = World::pinned("enforce", &tools());
    let earlier = world.setup.path("config/workbench.lock");
    fs::rename(world.lock_file(), &earlier).unwrap();
    assert_eq!(names(&world.open()), ["add"]);
    world.trusted(&["approve", "--yes"]);
    assert!(!world.lock_file().exists());
    assert!(earlier.exists());
}

#[test]
fn an_unwritable_lock_file_is_logged_once_and_calls_succeed() {
    let world = World::pinned("notice", &tools());
    fs::set_permissions(world.lock_file(), fs::Permissions::from_mode(0o444)).unwrap();
    let changed = json!([tool("add", "Adds, and more")]);
    world.set_tools(&changed);
    let before = world.lock();
    let mut workbench = world.connect();
    let opened = workbench.open("dev").json();
    assert_eq!(opened["notices"].as_array().unwrap().len(), 1);
    assert_eq!(workbench.open("dev").json(), opened);
    let stderr = workbench.finish().stderr;
    assert_eq!(
        stderr.matches("failed to pin servers and tools").count(),
        1,
        "{stderr}"
    );
    assert!(stderr.contains("is read-only"), "{stderr}");
    assert_eq!(world.lock(), before);
}

#[test]
fn links_and_permissions_of_the_lock_file_are_preserved() {
    let world = World::new("notice", &tools());
    let target = world.setup.write(
        "elsewhere/real.lock",
        "{\"layout\": 1, \"toolboxes\": {}}\n",
    );
    fs::set_permissions(&target, fs::Permissions::from_mode(0o640)).unwrap();
    std::os::unix::fs::symlink(&target, world.lock_file()).unwrap();
    world.open();
    assert!(world.lock_file().is_symlink());
    assert!(
        fs::read_to_string(&target)
            .unwrap()
            .contains("\"add\": \"sha256-")
    );
    assert_eq!(mode(&target), 0o640);
}

#[test]
fn pinned_definitions_are_private_and_may_be_lost() {
    let world = World::pinned("notice", &tools());
    let folder = world.setup.path("cache/mcp-workbench/servers");
    assert_eq!(mode(&folder), 0o700);
    let files = || fs::read_dir(&folder).unwrap().map(|it| it.unwrap().path());
    for file in files() {
        assert_eq!(mode(&file), 0o600, "{}", file.display());
    }
    for file in files() {
        fs::remove_file(file).unwrap();
    }
    world.set_tools(&json!([tool("add", "Adds, and more")]));
    let shown = String::from_utf8(world.trust(&["diff"]).stdout).unwrap();
    assert!(shown.contains("-was sha256-"), "{shown}");
    assert!(shown.contains("+description: Adds, and more"), "{shown}");
}

#[test]
fn manipulated_definitions_are_not_shown() {
    let world = World::pinned("notice", &tools());
    let folder = world.setup.path("cache/mcp-workbench/servers");
    let files = fs::read_dir(folder).unwrap().map(|it| it.unwrap().path());
    let mut definitions = files.filter(|it| it.extension().is_some_and(|it| it == "pins"));
    let file = definitions.next().unwrap();
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.contains("Adds"), "{text}");
    fs::write(file, text.replace("Adds", "Adds, and more")).unwrap();
    world.set_tools(&json!([tool("add", "Adds, and more")]));
    let shown = String::from_utf8(world.trust(&["diff"]).stdout).unwrap();
    assert!(shown.contains("-was sha256-"), "{shown}");
}

#[test]
fn an_unusable_lock_file_is_reported_and_not_changed() {
    let world = World::pinned("notice", &tools());
    let broken = format!("<<<<<<< ours\n{}", world.lock());
    fs::write(world.lock_file(), &broken).unwrap();
    world.set_tools(&json!([tool("add", "Adds, and more")]));
    let opened = world.open();
    assert_eq!(names(&opened), ["add"]);
    let file = world.lock_file();
    let expected = format!(
        "server 'fs': nothing is pinned because the lock file '{}' cannot be used: line 1 is a merge conflict \
         marker; fix or restore it, or remove it to start over",
        file.display()
    );
    assert_eq!(opened["notices"], json!([expected]));
    assert_eq!(world.lock(), broken);
    let output = world.trust(&["approve", "--yes"]);
    assert!(!output.status.success());
    assert_eq!(world.lock(), broken);
}

/// All files and folders below one.
fn below(folder: &std::path::Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        found.push(entry.path().display().to_string());
        if entry.file_type().unwrap().is_dir() {
            below(&entry.path(), found);
        }
    }
}

#[test]
fn no_file_is_named_after_foreign_text() {
    let name = "../../escaped";
    let info = json!({"name": name, "version": name}).to_string();
    let script = Script::named(&[name]).set("serverInfo", &info);
    let setup = Setup::new().toolbox(name, "d").server(name, &script);
    let setup = setup.top("audit", json!(true));
    setup.write_config();
    let world = World { setup };
    let mut workbench = world.connect();
    assert_eq!(names(&workbench.open(name).json()), [name]);
    let tool = json!({"tool": {"toolbox": name, "server": name, "tool": name}});
    let id = workbench.send_call("use_tool", &tool.to_string());
    workbench.tool_result(&id);
    workbench.finish();
    let mut found = Vec::new();
    below(&world.setup.path(""), &mut found);
    let kept = |part: &str| found.iter().any(|it| it.contains(part));
    assert!(
        kept("/servers/") && kept(".pins") && kept("audit.jsonl"),
        "{found:?}"
    );
    assert!(!kept("escaped"), "{found:?}");
}

/// Tools whose names alone take more than a server may have of the lock file.
fn endless_names() -> Vec<Value> {
    (0..9000)
        .map(|it| tool(&format!("{it:0480}"), ""))
        .collect()
}

const NOT_PINNED: &str = "server 'fs': its tools are not pinned because they would take more than 4 MiB in the lock file; \
                          leave some out with \"toolFilters\"";

#[test]
fn a_server_with_endless_names_does_not_make_the_file_unusable() {
    let hostile = Script::new().tools(&json!(endless_names()).to_string());
    let setup = Setup::new()
        .toolbox("dev", "d")
        .server("fs", &hostile)
        .server("other", &Script::named(&["own"]));
    setup.write_config();
    let world = World { setup };
    assert_eq!(world.open()["notices"], json!([NOT_PINNED]));
    let lock: Value = serde_json::from_str(&world.lock()).unwrap();
    let pinned = lock["toolboxes"]["dev"].as_object().unwrap();
    assert_eq!(pinned.keys().collect::<Vec<_>>(), ["other"]);
    let output = world.trust(&["approve", "--yes"]);
    assert!(
        output.status.success(),
        "what a user approves may be larger"
    );
    assert_eq!(world.open().get("notices"), None);
}

#[test]
fn changes_of_a_server_with_endless_names_are_reported_and_not_recorded() {
    let world = World::pinned("notice", &tools());
    let before = world.lock();
    let mut changed = endless_names();
    changed.insert(0, tool("add", "Adds differently"));
    world.set_tools(&json!(changed));
    for _ in 0..2 {
        let opened = world.open();
        let notices = opened["notices"].as_array().unwrap();
        let change = notices[0].as_str().unwrap();
        assert!(
            change.contains("definition of 'add' has changed"),
            "{change}"
        );
        assert_eq!(notices[1..], [json!(NOT_PINNED)]);
        assert_eq!(world.lock(), before);
    }
}

#[test]
fn a_server_with_an_endless_version_does_not_fill_the_file() {
    let script = Script::new().tools(&tools().to_string());
    let version = json!({"name": "n".repeat(1_000_000), "version": "v".repeat(1_000_000)});
    let world = World::of("notice", &script.set("serverInfo", &version.to_string()));
    world.open();
    let lock = world.lock();
    assert!(lock.contains(&format!("{} {}\"", "n".repeat(200), "v".repeat(200))));
    assert!(lock.len() < 2000, "{}", lock.len());
}
