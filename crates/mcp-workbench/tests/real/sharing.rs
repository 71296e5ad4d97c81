//! The official SDKs' clients at the same time on one host: each sees what it sees alone, and they have one server.

use std::path::Path;
use std::process::Command;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::clients::{expected_with, python_client, typescript_client};
use crate::packages::Entry;
use crate::process::Process;
use crate::session::Session;
use crate::steps::{LEGACY_REVISION, MODERN_REVISION};
use crate::workbench::{ConfigFile, PROGRAM};

/// The configuration of all clients, shared.
fn config() -> ConfigFile {
    let mut server = Entry::everything().config();
    // The server asks its clients for their roots, so that each would have its own otherwise.
    server["share"] = json!("machine");
    ConfigFile::new(&json!({ "shared": true, "toolboxes": {
        "dev": { "description": "Development environment tools", "mcpServers": { "everything": server } },
        "spare": { "description": "Nothing in it yet", "mcpServers": {} },
    } }))
}

/// Lets a client start the workbench. The SDKs pass next to nothing of the environment on, and clients share only if they have
/// one state directory.
fn start(mut client: Command, config: &ConfigFile, runtime: &Path) -> Process {
    client.arg("env");
    let state = config.path().with_file_name("state");
    for (name, folder) in [("XDG_RUNTIME_DIR", runtime), ("XDG_STATE_HOME", &state)] {
        client.arg(format!("{name}={}", folder.display()));
    }
    client.arg(PROGRAM).arg("--config").arg(config.path());
    client.env("XDG_CACHE_HOME", config.cache());
    Process::start(client)
}

#[test]
fn clients_of_both_sdks_share_one_server_at_the_same_time() {
    let config = config();
    let runtime = tempfile::tempdir().unwrap();
    let command = |arguments: &[&str]| {
        let mut command = config.command_with(arguments);
        command.env("XDG_RUNTIME_DIR", runtime.path());
        command
    };
    // Keeps the server until it was looked at.
    let mut holder = Session::start(command(&[]));
    holder.call("open_toolbox", &json!({ "toolbox": "dev" }));
    let clients = [
        (typescript_client("legacy"), LEGACY_REVISION),
        (typescript_client("auto"), MODERN_REVISION),
        (python_client("legacy"), LEGACY_REVISION),
        (python_client("auto"), MODERN_REVISION),
    ];
    let running = clients.map(|(client, revision)| {
        let process = start(client, &config, runtime.path());
        (process, revision)
    });
    for (process, revision) in running {
        let lines = process.finish();
        let seen: Value = serde_json::from_str(&lines.concat()).unwrap();
        assert_eq!(seen, expected_with(revision));
    }
    let shown = command(&["ps", "--json"]).output().unwrap();
    let shown: Value = serde_json::from_slice(&shown.stdout).unwrap();
    let hosts = shown["hosts"].as_array().unwrap();
    assert_eq!(hosts.len(), 1, "{shown}");
    let servers = hosts[0]["servers"].as_array().unwrap();
    assert_eq!(servers.len(), 1, "{shown}");
    // Each client calls four tools of the server.
    assert!(servers[0]["calls"].as_u64() >= Some(16), "{shown}");
    assert_eq!(servers[0]["restarts"], 0, "{shown}");
    holder.finish();
    assert!(command(&["stop"]).status().unwrap().success());
}
