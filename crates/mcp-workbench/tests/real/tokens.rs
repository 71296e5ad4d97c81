//! Compares the estimates of `tokens` for published servers with real counts.

use std::path::Path;

use serde_json::{Value, json};
use tempfile::tempdir;

use crate::packages::Entry;
use crate::session::Session;
use crate::workbench::ConfigFile;

/// The number of `o200k_base` tokens of each server's tools as models read them, in the versions that the tests
/// install. `scripts/count-tokens` counts them.
const COUNTED: [(&str, u64); 5] = [
    ("everything", 1586),
    ("filesystem", 1664),
    ("git", 1149),
    ("memory", 900),
    ("time", 270),
];

/// Returns true if an estimate is off by at most so many percent.
fn is_within(percent: u64, estimated: u64, real: u64) -> bool {
    estimated.abs_diff(real) * 100 <= percent * real
}

/// A configuration with all of these servers in one toolbox.
fn published(folder: &Path) -> ConfigFile {
    ConfigFile::new(&json!({"toolboxes": {"published": {
        "description": "Published servers",
        "mcpServers": {
            "everything": Entry::everything().config(),
            "filesystem": Entry::filesystem(folder).config(),
            "git": Entry::git().config(),
            "memory": Entry::memory(&folder.join("memory.json")).config(),
            "time": Entry::time().config(),
        },
    }}}))
}

/// Returns the counts of `tokens`.
fn counted(config: &ConfigFile) -> Value {
    let output = config
        .command()
        .args(["tokens", "--json"])
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn estimates_for_published_servers_are_near_the_real_counts() {
    let folder = tempdir().unwrap();
    let counted = counted(&published(folder.path()));
    let number = |server: &Value, key: &str| server[key].as_u64().unwrap();
    let servers = counted["toolboxes"][0]["servers"].as_array().unwrap();
    let mut all = 0;
    for (name, real) in COUNTED {
        let server = servers.iter().find(|it| it["name"] == name).unwrap();
        let estimated = number(server, "tokens") - number(server, "instructions_tokens");
        assert!(
            is_within(5, estimated, real),
            "{name}: {estimated} for {real}"
        );
        all += estimated;
    }
    let real = COUNTED.iter().map(|(_, real)| real).sum();
    assert!(is_within(1, all, real), "all: {all} for {real}");
}

#[test]
fn signatures_cost_a_quarter_of_definitions_and_lose_no_required_parameter() {
    let folder = tempdir().unwrap();
    let config = published(folder.path());
    let counted = counted(&config);
    let toolbox = &counted["toolboxes"][0];
    let (full, signature) = (&toolbox["open_tokens"], &toolbox["open_signature_tokens"]);
    let is_quarter = signature.as_u64().unwrap() * 4 <= full.as_u64().unwrap();
    assert!(is_quarter, "{signature} for {full}");
    assert!(counted["search_tokens"].as_u64().unwrap() <= 250);

    let mut session = Session::start(config.command());
    let mut open = |detail: &str| {
        let arguments = json!({"toolbox": "published", "detail": detail});
        let params = json!({"name": "open_toolbox", "arguments": arguments});
        let answer = session.request("tools/call", &params).value();
        answer["content"][0]["text"].as_str().unwrap().to_owned()
    };
    let definitions: Value = serde_json::from_str(&open("full")).unwrap();
    let signatures = open("signature");
    let lines = signatures.lines().skip(1);
    let lines: Vec<&str> = lines.filter(|line| !line.starts_with("server ")).collect();
    let tools = definitions["tools"].as_array().unwrap();
    assert_eq!(lines.len(), tools.len());
    for (tool, line) in tools.iter().zip(lines) {
        let parameters = line.split(" — ").next().unwrap();
        let name = tool["name"].as_str().unwrap();
        assert!(parameters.starts_with(&format!("{name}(")), "{line}");
        let required = tool["inputSchema"]["required"].as_array();
        for parameter in required.into_iter().flatten() {
            let written = format!("{}: ", parameter.as_str().unwrap());
            assert!(parameters.contains(&written), "{written} in {line}");
        }
    }
}
