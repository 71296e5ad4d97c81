//! The client programs of the documentation, run as the guide says, with the official SDKs.

use std::env;
use std::fs;
use std::iter;
use std::path::{Path, PathBuf};
use std::process::Command;

use pretty_assertions::assert_eq;
use tempfile::TempDir;

use crate::packages;
use crate::process::Process;
use crate::workbench::PROGRAM;

/// A file of the repository.
fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(path)
}

/// The output of the programs, as the guide shows it.
fn shown() -> Vec<String> {
    let guide = fs::read_to_string(repository("docs/guides/client-programs.md")).unwrap();
    let (_, block) = guide.split_once("```text\n").unwrap();
    let (block, _) = block.split_once("```").unwrap();
    block.lines().map(str::to_owned).collect()
}

/// Runs a client that finds `mcp-workbench` on its `PATH`, and returns what it prints.
fn printed(mut client: Command) -> Vec<String> {
    let home = TempDir::new().unwrap();
    let (_, inherited) = env::vars_os().find(|(name, _)| name == "PATH").unwrap();
    let programs = Path::new(PROGRAM).parent().unwrap().to_owned();
    let path = iter::once(programs).chain(env::split_paths(&inherited));
    let path = env::join_paths(path).unwrap();
    client.env("PATH", path).env("HOME", home.path());
    Process::start(client).finish()
}

#[test]
fn the_typescript_client_prints_what_the_guide_shows() {
    // Node.js looks for the SDK in the folders above the program.
    let folder = tempfile::tempdir_in(packages::folder()).unwrap();
    let program = folder.path().join("client.mts");
    fs::copy(repository("docs/examples/clients/client.mts"), &program).unwrap();
    let mut client = Command::new(packages::newer_node());
    client.arg(program);
    assert_eq!(printed(client), shown());
}

#[test]
fn the_python_client_prints_what_the_guide_shows() {
    let mut client = Command::new(packages::python());
    client.arg(repository("docs/examples/clients/client.py"));
    assert_eq!(printed(client), shown());
}
