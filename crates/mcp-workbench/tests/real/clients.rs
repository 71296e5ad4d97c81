//! The official SDKs' clients in front of the workbench. Each opens a toolbox, uses tools and meets
//! errors, then says what it saw; all of them must have seen the same.

use std::process::Command;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::listening::{Listening, introduce};
use crate::packages;
use crate::process::Process;
use crate::steps::{LEGACY_REVISION, MODERN_REVISION};
use crate::workbench::{ConfigFile, PROGRAM};

const INSTRUCTIONS: &str = "\
## Available Toolboxes

- **dev** (1 server): Development environment tools
  - Use `open_toolbox` with toolbox name to access

- **spare** (0 servers): Nothing in it yet
  - Use `open_toolbox` with toolbox name to access

To open a toolbox and see available tools:
1. Call `open_toolbox` with the desired toolbox name
2. Inspect the returned tools array for available operations";

/// Returns the expected observations of every client.
pub(crate) fn expected() -> Value {
    let error = |text: &str| json!({ "is_error": true, "text": [text] });
    let success = |text: &str| json!({ "is_error": false, "text": [text] });
    json!({
        "server": "mcp-workbench",
        "instructions": INSTRUCTIONS,
        "meta_tools": ["open_toolbox", "use_tool"],
        "not_open": error("Error: Toolbox 'dev' is not open. Call open_toolbox first."),
        "unknown_toolbox": error("Error: Toolbox 'nowhere' not found. Available toolboxes: dev, spare"),
        "opened": {
            "toolbox": "dev",
            "description": "Development environment tools",
            "servers_connected": 1,
            "echo": [{ "title": "Echo Tool", "server": "everything", "toolbox": "dev" }],
        },
        "echo": success("Echo: Grüße"),
        "structured": { "temperature": 33, "conditions": "Cloudy", "humidity": 82 },
        "image": ["image/png"],
        "progress": ["1/4", "2/4", "3/4"],
        "slow": success("Long running operation completed. Duration: 0.4 seconds, Steps: 4."),
        "unknown_tool": error("Tool 'frobnicate' not found in server 'everything' (toolbox 'dev')"),
    })
}

/// Returns the expected observations of an SDK's client that reports its negotiated revision.
pub(crate) fn expected_with(revision: &str) -> Value {
    let mut expected = expected();
    expected["revision"] = json!(revision);
    expected
}

#[test]
fn typescript_sdk_with_the_handshake() {
    assert_eq!(
        over_stdio(typescript_client("legacy")),
        expected_with(LEGACY_REVISION)
    );
}

#[test]
fn typescript_sdk_that_probes_for_newer_revisions() {
    assert_eq!(
        over_stdio(typescript_client("auto")),
        expected_with(MODERN_REVISION)
    );
}

#[test]
fn python_sdk_with_the_handshake() {
    assert_eq!(
        over_stdio(python_client("legacy")),
        expected_with(LEGACY_REVISION)
    );
}

#[test]
fn python_sdk_that_probes_for_newer_revisions() {
    assert_eq!(
        over_stdio(python_client("auto")),
        expected_with(MODERN_REVISION)
    );
}

#[test]
fn typescript_sdk_over_http_with_the_handshake() {
    assert_eq!(
        over_http(typescript_client("legacy")),
        expected_with(LEGACY_REVISION)
    );
}

#[test]
fn typescript_sdk_over_http_that_probes_for_newer_revisions() {
    assert_eq!(
        over_http(typescript_client("auto")),
        expected_with(MODERN_REVISION)
    );
}

#[test]
fn python_sdk_over_http_with_the_handshake() {
    assert_eq!(
        over_http(python_client("legacy")),
        expected_with(LEGACY_REVISION)
    );
}

#[test]
fn python_sdk_over_http_that_probes_for_newer_revisions() {
    assert_eq!(
        over_http(python_client("auto")),
        expected_with(MODERN_REVISION)
    );
}

pub(crate) fn typescript_client(mode: &str) -> Command {
    let mut client = Command::new("node");
    client
        .arg(packages::beside("clients/typescript.mjs"))
        .arg(packages::folder())
        .arg(mode);
    client
}

pub(crate) fn python_client(mode: &str) -> Command {
    let mut client = Command::new(packages::python());
    client.arg(packages::beside("clients/python.py")).arg(mode);
    client
}

/// Returns the observations of a client that starts the workbench itself.
fn over_stdio(mut client: Command) -> Value {
    let config = ConfigFile::for_clients();
    client.arg(PROGRAM).arg("--config").arg(config.path());
    client.env("XDG_CACHE_HOME", config.cache());
    summary(client)
}

/// Returns the observations of a client of a listening workbench.
fn over_http(mut client: Command) -> Value {
    let workbench = Listening::start(&[]);
    client.arg(&workbench.url);
    introduce(&mut client);
    summary(client)
}

/// Runs a client that prints its summary as one line of JSON.
fn summary(client: Command) -> Value {
    let lines = Process::start(client).finish();
    assert_eq!(lines.len(), 1, "one line expected: {lines:?}");
    serde_json::from_str(&lines[0]).unwrap()
}
