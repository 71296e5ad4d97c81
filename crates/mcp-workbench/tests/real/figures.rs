//! The picture and the figures of the README, against published servers.

use std::env;
use std::fs;
use std::iter;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use pretty_assertions::assert_eq;
use serde_json::Value;
use tempfile::tempdir;

use crate::packages::{Entry, python};
use crate::workbench::PROGRAM;

/// A file of the repository.
fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(path)
}

fn stdout(output: Output) -> String {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    String::from_utf8(output.stdout).unwrap()
}

/// Writes a program that starts the installed server of an entry in place of a package runner, with an argument in the
/// words of the shell.
fn write_runner(folder: &Path, name: &str, entry: &Entry, argument: &str) {
    let config = entry.config();
    let program = config["command"].as_str().unwrap();
    let path = folder.join(name);
    fs::write(&path, format!("#!/bin/sh\nexec '{program}' {argument}\n")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// A number as the README writes it.
fn grouped(number: u64) -> String {
    format!("{},{:03}", number / 1000, number % 1000)
}

#[test]
fn the_drawn_session_is_the_output_of_the_program() {
    let folder = tempdir().unwrap();
    let drawn = folder.path().join("session.svg");
    let mut command = Command::new(python());
    command
        .arg(repository("scripts/render-session"))
        .args(["--binary", PROGRAM, "--output"])
        .arg(&drawn);
    stdout(command.output().unwrap());
    let stored = fs::read_to_string(repository("docs/images/session.svg")).unwrap();
    assert_eq!(
        fs::read_to_string(drawn).unwrap(),
        stored,
        "draw it again with scripts/render-session"
    );
}

/// The cost of all eight servers needs packages that the tests do not install; the cost of the task does not.
#[test]
fn the_readme_has_the_measured_tokens_of_a_task() {
    let folder = tempdir().unwrap();
    // Lock and cache are written beside it.
    let config = folder.path().join("example.json");
    fs::copy(repository("docs/examples/published-servers.json"), &config).unwrap();
    let runners = folder.path().join("bin");
    fs::create_dir(&runners).unwrap();
    write_runner(
        &runners,
        "npx",
        &Entry::filesystem(Path::new(".")),
        "\"$3\"",
    );
    write_runner(&runners, "uvx", &Entry::git(), "");
    let (_, inherited) = env::vars_os().find(|(name, _)| name == "PATH").unwrap();
    let path = iter::once(runners).chain(env::split_paths(&inherited));
    let mut command = Command::new(PROGRAM);
    command
        .arg("--config")
        .arg(config)
        .args(["tokens", "files", "--json"])
        .current_dir(folder.path())
        .env("HOME", folder.path())
        .env("PATH", env::join_paths(path).unwrap());
    let counted: Value = serde_json::from_str(&stdout(command.output().unwrap())).unwrap();
    let start = counted["workbench"]["start_tokens"].as_u64().unwrap();
    let toolbox = &counted["toolboxes"][0];
    let opened = toolbox["open_tokens"].as_u64().unwrap();
    assert!(Some(opened) < toolbox["flat_tokens"].as_u64(), "{toolbox}");

    let readme = fs::read_to_string(repository("README.md")).unwrap();
    let readme = readme.split_whitespace().collect::<Vec<_>>().join(" ");
    for figure in [
        format!("become {}**", grouped(start + opened)),
        format!(
            "{start} tokens at the start and {} when it opens the toolbox `files`",
            grouped(opened)
        ),
    ] {
        assert!(readme.contains(&figure), "{figure} is not in the README");
    }
    let picture = fs::read_to_string(repository("docs/images/overview.svg")).unwrap();
    let figure = format!("{} tokens, read now", grouped(opened));
    assert!(picture.contains(&figure), "{figure} is not in the overview");
}
