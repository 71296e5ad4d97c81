//! CVE-2025-54136, T17, T22: the entry of a server is changed, or what it runs, while its name and its tools stay.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::{World, names, tool};
use crate::harness::{Script, Setup, fixture_server};

fn tools() -> Value {
    json!([tool("add", "Adds")])
}

/// Changes of an entry, and the part that is another by each.
fn attacks(world: &World) -> Vec<(&'static str, Value, &'static str)> {
    let swapped = world
        .setup
        .write("config/evil", "#!/bin/sh\ntouch \"$0.ran\"\n");
    fs::set_permissions(&swapped, fs::Permissions::from_mode(0o755)).unwrap();
    vec![
        ("command", json!("./evil"), "'command', 'files' changed"),
        (
            "args",
            json!(["${FIXTURES:-.}/0.json", "--evil"]),
            "'args' changed",
        ),
        (
            "env",
            json!({"NODE_OPTIONS": "--require ./evil.js"}),
            "'env', 'inputs' (files among its arguments, 'envFile' or loader variables) changed",
        ),
        ("inheritEnv", json!(true), "'inheritEnv' changed"),
        ("cwd", json!(".."), "'cwd' changed"),
        ("envFile", json!("evil.env"), "'envFile' changed"),
    ]
}

#[test]
fn a_server_whose_entry_was_swapped_is_not_started() {
    let world = World::pinned("enforce", &tools());
    let starts = world.starts();
    for (key, value, parts) in attacks(&world) {
        let before = fs::read_to_string(world.setup.config()).unwrap();
        world.edit(|config| World::entry(config)[key] = value);
        let mut workbench = world.connect();
        let result = workbench.open("dev");
        assert_eq!(
            result.error(),
            format!(
                "Error opening toolbox 'dev': Failed to connect to server 'fs' in toolbox 'dev': it is not what was \
                 approved: {parts}; `{}` shows the difference, and `{}` approves it",
                world.printed_command("trust diff dev fs"),
                world.printed_command("trust approve dev fs")
            )
        );
        assert_eq!(result.failure()["code"], "server_not_approved");
        workbench.finish();
        let shown = world.trust(&["diff"]);
        let shown = String::from_utf8(shown.stdout).unwrap();
        assert!(
            shown.contains("not started, because its launch is not approved"),
            "{shown}"
        );
        let refused = world.trust(&["approve"]);
        assert!(!refused.status.success(), "nobody was asked");
        fs::write(world.setup.config(), before).unwrap();
    }
    assert!(!world.setup.path("config/evil.ran").exists());
    assert_eq!(world.starts(), starts);
    assert_eq!(names(&world.open()), ["add"]);
}

#[test]
fn a_renamed_server_is_not_approved() {
    let world = World::pinned("enforce", &tools());
    world.edit(|config| {
        let entry = World::entry(config).clone();
        config["toolboxes"]["dev"]["mcpServers"]["other"] = entry;
    });
    let opened = world.open();
    assert_eq!(opened["servers_connected"], 1);
    let error = opened["_errors"][0].as_str().unwrap();
    assert!(
        error.contains("'other'") && error.contains("it is not in the lock file"),
        "{error}"
    );
}

#[test]
fn a_swapped_entry_is_reported_with_the_default_policy() {
    let world = World::pinned("notice", &tools());
    world.edit(|config| World::entry(config)["env"] = json!({"A": "x", "B": "y"}));
    let expected = format!(
        "server 'fs': the server differs from the pinned one: 'env' changed; `{}` shows the difference",
        world.printed_command("trust diff dev fs")
    );
    assert_eq!(world.open()["notices"], json!([expected]));
    assert_eq!(world.open().get("notices"), None);
    let shown = String::from_utf8(world.trust(&["diff"]).stdout).unwrap();
    assert!(shown.contains("+  \"B\"\n"), "{shown}");
    world.trusted(&["approve", "--yes"]);
    assert!(world.trusted(&["diff"]).contains("1 server as pinned"));
}

/// A world whose server is a script, and the script.
fn scripted(pin: &str) -> (World, PathBuf) {
    let setup = Setup::new().toolbox("dev", "d");
    let script = setup.write(
        "script.json",
        &Script::new().tools(&tools().to_string()).text(),
    );
    let program = setup.write("config/server.sh", &program(""));
    let entry = json!({"command": "sh", "args": ["./server.sh", script], "cwd": "."});
    let setup = setup.entry("fs", entry).top("pin", json!(pin));
    setup.write_config();
    (World { setup }, program)
}

/// A script that does something before it is the server.
fn program(first: &str) -> String {
    let server = fixture_server();
    format!("#!/bin/sh\n{first}exec '{}' \"$@\"\n", server.display())
}

/// Returns the files of the server cache about launches.
fn cache_files(world: &World) -> impl Iterator<Item = PathBuf> {
    let files = fs::read_dir(world.setup.path("cache/mcp-workbench/servers")).unwrap();
    let files = files.map(|it| it.unwrap().path());
    files.filter(|it| it.extension().is_some_and(|it| it == "json"))
}

/// Says in the cache that a program, as it is now, has a digest.
#[cfg(unix)]
fn plant(world: &World, path: &Path, digest: &str) {
    use std::os::unix::fs::MetadataExt;
    let it = fs::metadata(path).unwrap();
    let (mtime, ctime) = ((it.mtime(), it.mtime_nsec()), (it.ctime(), it.ctime_nsec()));
    let stamp = format!(
        "{} {} {} {}.{} {}.{}",
        it.dev(),
        it.ino(),
        it.len(),
        mtime.0,
        mtime.1,
        ctime.0,
        ctime.1
    );
    for file in cache_files(world) {
        let mut cached: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        cached["head"]["programs"] = json!({&stamp: digest});
        fs::write(file, cached.to_string()).unwrap();
    }
}

/// The digest of the script that the lock file has.
fn pinned_digest(world: &World) -> String {
    let lock: Value = serde_json::from_str(&world.lock()).unwrap();
    let files = &lock["toolboxes"]["dev"]["fs"]["launch"]["files"];
    files["./server.sh"].as_str().unwrap().to_owned()
}

#[test]
fn a_replaced_program_is_not_started() {
    let (world, script) = scripted("notice");
    world.open();
    world.set_pin("enforce");
    assert_eq!(names(&world.open()), ["add"]);
    fs::write(&script, program("touch ran\n")).unwrap();
    let error = world.connect().open("dev").error().to_owned();
    assert!(
        error.contains("it is not what was approved: 'files' changed"),
        "{error}"
    );
    assert!(!world.setup.path("config/ran").exists());
    world.trusted(&["approve", "--yes"]);
    assert_eq!(names(&world.open()), ["add"]);
    assert!(world.setup.path("config/ran").exists());
}

/// By default a digest of an earlier run is used, so that a start does not wait until a large program was read again.
/// With `"enforce"` the cached digest does not count.
#[cfg(unix)]
#[test]
fn a_cached_digest_is_not_an_approval() {
    let (world, script) = scripted("notice");
    world.open();
    let digest = pinned_digest(&world);
    fs::write(&script, program("touch ran\n")).unwrap();
    // A start without pins makes the file of the cache that the changed program has.
    world.set_pin("off");
    world.open();
    world.set_pin("notice");
    plant(&world, &script, &digest);
    assert_eq!(world.open().get("notices"), None, "it was not used");
    fs::remove_file(world.setup.path("config/ran")).unwrap();

    world.set_pin("enforce");
    let error = world.connect().open("dev").error().to_owned();
    let expected = "it is not what was approved: 'files' changed";
    assert!(error.contains(expected), "{error}");
    assert!(!world.setup.path("config/ran").exists());
    let shown = String::from_utf8(world.trust(&["diff"]).stdout).unwrap();
    assert!(shown.contains("files"), "{shown}");

    world.set_pin("notice");
    world.trusted(&["pin", "--yes"]);
    for file in cache_files(&world) {
        fs::remove_file(file).unwrap();
    }
    let notices = world.open()["notices"].to_string();
    assert!(notices.contains("'files' changed"), "{notices}");
}

/// A world whose server is started by a shell from a file without an extension, with more in its entry, and the file.
fn started_from_a_file(pin: &str, keys: &Value) -> (World, PathBuf) {
    let setup = Setup::new().toolbox("dev", "d");
    let script = setup.write(
        "script.json",
        &Script::new().tools(&tools().to_string()).text(),
    );
    let file = setup.write("config/server", &program(""));
    let mut entry = json!({"command": "sh", "args": ["server", script], "cwd": "."});
    for (key, value) in keys.as_object().unwrap() {
        entry[key] = value.clone();
    }
    let setup = setup.entry("fs", entry).top("pin", json!(pin));
    setup.write_config();
    (World { setup }, file)
}

const OTHER_INPUTS: &str =
    "'inputs' (files among its arguments, 'envFile' or loader variables) changed";

/// Has a server that was met under `notice` refused under `enforce`, and started once it is approved.
#[track_caller]
fn is_refused_until_it_is_approved(world: &World, parts: &str) {
    let notices = world.open()["notices"].to_string();
    assert!(notices.contains(parts), "{notices}");
    world.set_pin("enforce");
    let error = world.connect().open("dev").error().to_owned();
    assert!(error.contains(parts), "{error}");
    world.trusted(&["approve", "--yes"]);
    assert_eq!(names(&world.open()), ["add"]);
}

#[test]
fn scripts_count_regardless_of_their_extension() {
    for name in [
        "server",
        "server.pl",
        "server.tsx",
        "server.lua",
        "server.wasm",
    ] {
        let (world, file) = started_from_a_file("notice", &json!({}));
        let script = file.with_file_name(name);
        fs::rename(&file, &script).unwrap();
        world.edit(|config| World::entry(config)["args"][0] = json!(name));
        world.open();
        fs::write(&script, program("touch ran\n")).unwrap();
        is_refused_until_it_is_approved(&world, OTHER_INPUTS);
    }
}

#[test]
fn a_file_counts_however_an_argument_names_it() {
    for begin in [
        "--settings=",
        "file://$FOLDER/",
        "--import=file://$FOLDER/",
        "${userHome}/../config/",
        "${workspaceFolder}/../config/",
    ] {
        let (world, script) = started_from_a_file("notice", &json!({}));
        let file = world.setup.write("config/settings", "a");
        let folder = script.parent().unwrap().to_str().unwrap();
        let argument = format!("{}settings", begin.replace("$FOLDER", folder));
        world.edit(|config| {
            let arguments = World::entry(config)["args"].as_array_mut().unwrap();
            arguments.push(json!(argument));
        });
        world.open();
        fs::write(file, "b").unwrap();
        is_refused_until_it_is_approved(&world, OTHER_INPUTS);
    }
}

#[test]
fn values_of_loader_variables_count_and_are_not_in_the_lock_file() {
    let keys = json!({"env": {"NODE_OPTIONS": "--require ./canary-one.js", "LOG": "a"}});
    let (world, _) = started_from_a_file("notice", &keys);
    world.open();
    assert!(!world.lock().contains("canary"), "{}", world.lock());
    world.edit(|config| World::entry(config)["env"]["LOG"] = json!("b"));
    assert_eq!(world.open().get("notices"), None, "it loads nothing");
    world.edit(|config| {
        World::entry(config)["env"]["NODE_OPTIONS"] = json!("--require ./canary-two.js");
    });
    is_refused_until_it_is_approved(&world, OTHER_INPUTS);
    assert!(!world.lock().contains("canary"), "{}", world.lock());
}

#[test]
fn the_content_of_an_env_file_counts_and_is_not_in_the_lock_file() {
    let (world, _) = started_from_a_file("notice", &json!({"envFile": "server.env"}));
    let file = world.setup.write("config/server.env", "TOKEN=canary-one\n");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    world.open();
    fs::write(&file, "TOKEN=canary-one\nLD_PRELOAD=./canary.so\n").unwrap();
    let notices = world.open()["notices"].to_string();
    assert!(notices.contains(OTHER_INPUTS), "{notices}");
    assert!(!world.lock().contains("canary"), "{}", world.lock());
}

/// Makes the lock file one that an earlier version wrote, which had no digests of inputs.
fn make_older(world: &World) {
    let mut lock: Value = serde_json::from_str(&world.lock()).unwrap();
    let launch = &mut lock["toolboxes"]["dev"]["fs"]["launch"];
    let inputs = launch.as_object_mut().unwrap().remove("inputs");
    assert!(inputs.is_some(), "{launch}");
    fs::write(world.lock_file(), lock.to_string()).unwrap();
}

#[test]
fn a_lock_file_of_an_earlier_version_is_completed_without_alarms() {
    let (world, file) = started_from_a_file("notice", &json!({}));
    world.open();
    make_older(&world);
    assert_eq!(world.open().get("notices"), None);
    assert!(world.lock().contains("\"inputs\""), "{}", world.lock());

    make_older(&world);
    world.set_pin("enforce");
    assert_eq!(names(&world.open()), ["add"]);
    assert!(!world.lock().contains("\"inputs\""), "nobody approved it");
    for command in [&["list"][..], &["approve", "--yes"]] {
        let said = world.trusted(command);
        assert!(said.contains("recorded by an earlier version"), "{said}");
    }
    assert_eq!(names(&world.open()), ["add"]);
    fs::write(&file, program("touch ran\n")).unwrap();
    let error = world.connect().open("dev").error().to_owned();
    assert!(error.contains(OTHER_INPUTS), "{error}");
}

#[test]
fn a_different_package_version_is_a_different_launch() {
    let of_version = |version: &str| {
        let info = json!({"name": "postmark-mcp", "version": version}).to_string();
        Script::new()
            .tools(&tools().to_string())
            .set("serverInfo", &info)
    };
    let world = World::of("notice", &of_version("1.0.15"));
    world.open();
    world.set_script(&of_version("1.0.16"));
    world.set_pin("enforce");
    let opened = world.open();
    assert_eq!(names(&opened), [""; 0]);
    let reason = opened["withheld"][0]["reason"].as_str().unwrap();
    assert!(
        reason.contains("its own name or version changed"),
        "{reason}"
    );
    let shown = String::from_utf8(world.trust(&["diff"]).stdout).unwrap();
    assert!(
        shown.contains("-says: postmark-mcp 1.0.15\n+says: postmark-mcp 1.0.16\n"),
        "{shown}"
    );
}

#[test]
fn values_of_variables_are_not_part_of_a_launch() {
    let script = Script::new().tools(&tools().to_string());
    let keys = json!({"args": ["${TOKEN}", "--key=${KEY:-none}"], "env": {"TOKEN": "${TOKEN}"}});
    let setup = Setup::new()
        .toolbox("dev", "d")
        .server_with("fs", &script, &keys);
    let setup = setup
        .top("pin", json!("notice"))
        .env("TOKEN", "canary-4711-first");
    setup.write_config();
    let world = World { setup };
    world.open();
    let lock = world.lock();
    assert!(!lock.contains("canary"), "{lock}");
    assert!(
        lock.contains("\"${TOKEN}\", \"--key=${KEY:-none}\""),
        "{lock}"
    );
    let setup = world.setup.env("TOKEN", "canary-4711-second");
    let world = World { setup };
    assert_eq!(world.open().get("notices"), None);
    assert_eq!(world.lock(), lock);
}
