//! Completion in a real bash: the registered function is called as bash calls it.

use std::{path::Path, process::Command};

use pretty_assertions::assert_eq;
use serde_json::json;

use crate::harness::{Script, Setup};

/// Registers completion, calls the registered function for the words, and prints a line for each candidate.
const COMPLETE: &str = r#"
source <(mcp-workbench completions bash)
registered=$(complete -p mcp-workbench)
[[ $registered =~ -F\ ([^ ]+) ]] || exit 9
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_TYPE=9 COMPREPLY=()
"${BASH_REMATCH[1]}" mcp-workbench "${!#}" "${COMP_WORDS[COMP_CWORD - 1]}"
for candidate in "${COMPREPLY[@]}"; do echo "$candidate"; done
"#;

/// A configuration with two toolboxes, whose tools are in the cache.
fn setup() -> Setup {
    let tools = json!([
        "read_file",
        "read_image",
        "$(touch gone)",
        "two words",
        "-rf"
    ]);
    let tools = tools.as_array().unwrap().iter();
    let tools: Vec<_> = tools
        .map(|name| json!({"name": name, "inputSchema": {"type": "object"}}))
        .collect();
    let script = Script::new().tools(&json!(tools).to_string());
    let setup = Setup::one(&script)
        .server("git", &Script::named(&["log"]))
        .entry("old", json!({"command": "x", "disabled": true}))
        .toolbox("ops", "Operations")
        .server("db", &Script::named(&["query"]));
    setup.write_config();
    let warm = workbench(&setup).arg("warm").output().unwrap();
    assert!(warm.status.success(), "{warm:?}");
    setup
}

fn workbench(setup: &Setup) -> Command {
    let mut command = setup.command();
    command.env("WORKBENCH_CONFIG", setup.config());
    command
}

/// Completes the last of some words in bash.
fn complete(setup: &Setup, words: &[&str]) -> Vec<String> {
    let command = workbench(setup);
    let folder = Path::new(command.get_program()).parent().unwrap();
    let path = format!("{}:/usr/bin:/bin", folder.display());
    let variables = command
        .get_envs()
        .filter_map(|(name, value)| Some((name, value?)));
    let mut bash = Command::new("bash");
    bash.args([
        "--norc",
        "--noprofile",
        "-c",
        COMPLETE,
        "bash",
        "mcp-workbench",
    ])
    .args(words)
    .current_dir(setup.path("work"))
    .env_clear()
    .envs(variables)
    .env("PATH", path);
    let output = bash.output().expect("bash can be started");
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(
        (stderr.as_str(), output.status.code()),
        ("", Some(0)),
        "{words:?}"
    );
    let candidates = String::from_utf8(output.stdout).unwrap();
    candidates.lines().map(str::to_owned).collect()
}

#[test]
fn names_from_the_configuration_are_completed_after_a_command() {
    let setup = setup();
    let cases: [(&[&str], &[&str]); 14] = [
        (&["che"], &["check"]),
        (&["doctor", "--ti"], &["--timeout"]),
        (&["call", "d"], &["dev"]),
        (&["serve", "--native", ""], &["dev", "ops"]),
        (&["call", "dev", "f"], &["fs"]),
        (&["doctor", "ops", "d"], &["db"]),
        (&["trust", "diff", "dev", "g"], &["git"]),
        (&["enable", "dev", "o"], &["old"]),
        (&["log", "--toolbox", "ops", "--server", ""], &["db"]),
        (
            &["call", "dev", "fs", "read_"],
            &["read_file", "read_image"],
        ),
        (&["call", "ops", "db", "q"], &["query"]),
        (&["install", "--client", "curs"], &["cursor"]),
        (&["init", "--toolbox", "d"], &[]),
        (&["call", "nowhere", "f"], &[]),
    ];
    for (words, expected) in cases {
        assert_eq!(complete(&setup, words), expected, "{words:?}");
    }
    let journal = setup.journal("dev", "fs");
    assert_eq!(journal.pids().len(), 1, "only `warm` has started a server");
}

#[test]
fn names_that_a_shell_would_split_or_run_are_not_completed() {
    let setup = setup();
    let tools = complete(&setup, &["call", "dev", "fs", ""]);
    for name in ["read_file", "read_image"] {
        assert!(tools.iter().any(|it| it == name), "{tools:?}");
    }
    for name in ["$(touch gone)", "two words", "two", "-rf"] {
        assert!(!tools.iter().any(|it| it == name), "{tools:?}");
    }
}

#[test]
fn completion_uses_the_configuration_of_the_command_line() {
    let setup = setup();
    let text = r#"{"toolboxes": {"mine": {"description": "d", "mcpServers": {}}},
        "clients": {"laptop": {"toolboxes": ["mine"]}}}"#;
    let other = setup.write("work/other.json", text);
    let config = ["--config", other.to_str().unwrap()];
    for words in [
        &["--as", "l"][..],
        &["call", "--as", ""],
        &["serve", "--as", "la"],
    ] {
        let words = [&config, words].concat();
        assert_eq!(complete(&setup, &words), ["laptop"], "{words:?}");
    }
    let words = [&config[..], &["list", "m"]].concat();
    assert_eq!(complete(&setup, &words), ["mine"]);
    // One that cannot be used has no names, and is no reason for a message in the middle of a line.
    setup.write("work/other.json", "{");
    assert_eq!(complete(&setup, &words), [""; 0]);
}
