//! What `tokens` estimates of published servers, against real counts.

use serde_json::{Value, json};
use tempfile::tempdir;

use crate::packages::Entry;
use crate::workbench::ConfigFile;

/// How many tokens `o200k_base` makes of what models read of the tools of each server, in the versions that the tests
/// install. `scripts/count-tokens` counts them.
const COUNTED: [(&str, u64); 5] = [
    ("everything", 1084),
    ("filesystem", 1664),
    ("git", 1149),
    ("memory", 900),
    ("time", 270),
];

/// Whether an estimate is off by at most so many percent.
fn is_within(percent: u64, estimated: u64, real: u64) -> bool {
    estimated.abs_diff(real) * 100 <= percent * real
}

#[test]
fn estimates_for_published_servers_are_near_the_real_counts() {
    let folder = tempdir().unwrap();
    let config = ConfigFile::new(&json!({"toolboxes": {"published": {
        "description": "Published servers",
        "mcpServers": {
            "everything": Entry::everything().config(),
            "filesystem": Entry::filesystem(folder.path()).config(),
            "git": Entry::git().config(),
            "memory": Entry::memory(&folder.path().join("memory.json")).config(),
            "time": Entry::time().config(),
        },
    }}}));
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
    let counted: Value = serde_json::from_slice(&output.stdout).unwrap();
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
