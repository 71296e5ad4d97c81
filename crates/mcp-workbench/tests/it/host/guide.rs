//! docs/guides/sharing.md, followed: Claude Code with several windows and sub-agents, Cursor, and the command line on one
//! host.

use std::{fs, path::Path};

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::{Client, Machine};
use crate::harness::Setup;

const GUIDE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guides/sharing.md");

/// Returns the text of the first block of a language.
fn block(guide: &str, language: &str) -> String {
    let opened = format!("```{language}\n");
    let (_, after) = guide.split_once(&opened).unwrap();
    let (text, _) = after.split_once("```").unwrap();
    text.to_owned()
}

#[test]
fn the_guide_can_be_followed() {
    let guide = fs::read_to_string(GUIDE).unwrap();
    let program = Setup::new().command().get_program().to_owned();
    let mut config: Value = serde_json::from_str(&block(&guide, "json")).unwrap();
    let clock = &mut config["toolboxes"]["dev"]["mcpServers"]["clock"];
    clock["command"] = json!(program.to_str().unwrap());
    let machine = Machine::new(Setup::new().text(&config.to_string()));
    // The clients of the guide: their files exist, and `install` sets both up.
    for file in [".claude.json", ".cursor/mcp.json"] {
        machine.setup.write(&format!("home/{file}"), "{}\n");
    }
    let install = block(&guide, "sh");
    let words: Vec<&str> = install.trim().split(' ').skip(1).collect();
    machine.run(&words);
    let mut clients = Vec::new();
    for (file, name, folders) in [
        (".claude.json", "claude-code", &["shop", "shop", "blog"][..]),
        (".cursor/mcp.json", "cursor", &["blog"][..]),
    ] {
        let entry = entry(&machine.path(&format!("home/{file}")));
        for folder in folders {
            clients.push(start(&machine, &entry, name, folder));
        }
    }
    for client in &mut clients {
        assert!(!client.call("open_toolbox", r#"{"toolbox":"dev"}"#).failed());
    }
    let host = machine.host();
    let programs: Vec<&Value> = host["clients"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["program"])
        .collect();
    assert_eq!(
        programs,
        ["claude-code", "claude-code", "claude-code", "cursor"]
    );
    let servers = host["servers"].as_array().unwrap();
    assert_eq!(servers.len(), 1, "{servers:?}");
    assert_eq!(servers[0]["clients"], json!([1, 2, 3, 4]));
    let shown = machine.run(&["ps"]);
    for line in block(&guide, "text").lines() {
        let kind = shape(line);
        assert!(
            shown.lines().any(|line| shape(line) == kind),
            "{line}: {shown}"
        );
    }
    // The command line is one more client of the same server.
    let called = machine.run(&["call", "dev", "clock", "now"]);
    assert!(called.contains("utc"), "{called}");
    let servers = machine.host()["servers"].as_array().unwrap().clone();
    assert_eq!((servers.len(), &servers[0]["calls"]), (1, &json!(1)));
    assert_eq!(machine.run(&["restart", "clock"]), "restarted clock (1)\n");
    let doctor = machine.run(&["doctor"]);
    assert!(doctor.contains("used by 4 clients"), "{doctor}");
    machine.run(&["stop"]);
    machine.wait_clean();
}

/// Returns the words of a line of `ps` that do not depend on the machine and the moment.
fn shape(line: &str) -> Vec<&str> {
    let words = line.split([' ', ',']);
    let is_fixed = |word: &&str| !word.contains(|it: char| it.is_ascii_digit() || it == '/');
    let words = words.filter(|word| is_fixed(word) && !["s", "min", "h"].contains(word));
    words.collect()
}

/// Returns the entry of the workbench in a client's file.
fn entry(file: &Path) -> Value {
    let text = fs::read_to_string(file).unwrap();
    let config: Value = serde_json::from_str(&text).unwrap();
    config["mcpServers"]["workbench"].clone()
}

/// Starts a client as its entry says.
fn start(machine: &Machine, entry: &Value, name: &str, folder: &str) -> Client {
    let directory = machine.path(folder);
    fs::create_dir_all(&directory).unwrap();
    let mut command = machine.setup.command();
    let arguments = entry["args"].as_array().unwrap().iter();
    command.args(arguments.map(|it| it.as_str().unwrap()));
    command.current_dir(directory);
    let mut client = Client::spawn(command);
    let params = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": name, "version": "1"},
    });
    client.ask("initialize", &params.to_string());
    client
}
