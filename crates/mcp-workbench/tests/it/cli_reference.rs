//! The descriptions of the command line: its documentation, completions, manual page and schema.

use std::{fs, path::Path};

use serde_json::Value;

use crate::harness::{Finished, Setup};

fn run(arguments: &[&str]) -> Finished {
    Setup::new().start_with(arguments).finish()
}

#[track_caller]
fn printed(arguments: &[&str]) -> String {
    let finished = run(arguments);
    assert!(finished.status.success(), "{}", finished.stderr);
    assert_eq!(finished.stderr, "");
    finished.stdout.join("\n")
}

/// The commands that `--help` lists.
fn commands() -> Vec<String> {
    let help = printed(&["--help"]);
    let (_, listed) = help.split_once("Commands:\n").unwrap();
    let (listed, _) = listed.split_once("\n\n").unwrap();
    let names = listed.lines().filter_map(|line| {
        let name = line.strip_prefix("  ")?.split(' ').next()?;
        (!name.is_empty() && name != "help").then(|| name.to_owned())
    });
    let names: Vec<String> = names.collect();
    assert!(names.contains(&"serve".to_owned()), "{names:?}");
    names
}

#[test]
fn every_command_and_its_options_are_documented() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/cli.md");
    let text = fs::read_to_string(file).unwrap();
    let mut missing = Vec::new();
    for command in commands() {
        let Some((_, section)) = text.split_once(&format!("\n### `{command}`\n")) else {
            missing.push(command);
            continue;
        };
        let section = section.split("\n### ").next().unwrap();
        for option in options(&command) {
            if !section.contains(&format!("`{option}")) {
                missing.push(format!("{command} {option}"));
            }
        }
    }
    assert!(missing.is_empty(), "docs/cli.md lacks {missing:?}");
}

/// The long options of a command, without those of every command.
fn options(command: &str) -> Vec<String> {
    let help = printed(&[command, "--help"]);
    let starts = help
        .lines()
        .filter(|line| line.trim_start().starts_with('-'));
    let options = starts.filter_map(|line| {
        let mut words = line.split([' ', ',']);
        words.find(|word| word.starts_with("--")).map(str::to_owned)
    });
    let common = [
        "--config",
        "--log-file",
        "--log-format",
        "--log-level",
        "--help",
    ];
    options
        .filter(|it| !common.contains(&it.as_str()))
        .collect()
}

#[test]
fn the_help_of_a_command_begins_like_its_line_in_the_list() {
    let list = words(&printed(&["--help"]));
    for command in commands() {
        let help = printed(&[&command, "--help"]);
        let (description, _) = help.split_once("\n\n").unwrap();
        let line = words(&format!("{command} {description}"));
        assert!(list.contains(&line), "{line}");
    }
}

/// Returns a text without its line breaks and indentation.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn help_fits_into_80_columns() {
    let mut pages = vec![printed(&["--help"])];
    let commands = commands();
    pages.extend(commands.iter().map(|command| printed(&[command, "--help"])));
    for line in pages.iter().flat_map(|page| page.lines()) {
        assert!(line.chars().count() <= 80, "{line}");
    }
}

#[test]
fn shells_can_complete_every_command() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = printed(&["completions", shell]);
        assert!(script.contains("MCP_WORKBENCH_COMPLETE"), "{script}");
        let candidates = |word: &str| {
            let setup = Setup::new()
                .env("MCP_WORKBENCH_COMPLETE", shell)
                .env("_CLAP_COMPLETE_INDEX", "1");
            let finished = setup.start_with(&["--", "mcp-workbench", word]).finish();
            assert!(finished.status.success(), "{}", finished.stderr);
            finished.stdout.join("\n")
        };
        let listed = candidates("");
        for command in commands() {
            assert!(listed.contains(&command), "no {command} for {shell}");
        }
        assert!(candidates("--log").contains("--log-level"), "{shell}");
        assert!(
            !candidates("demo").contains("demo-server"),
            "what is hidden is not completed"
        );
    }
    assert_eq!(run(&["completions", "tcl"]).status.code(), Some(2));
}

#[test]
fn the_manual_has_every_command_and_the_usual_sections() {
    let page = printed(&["man"]);
    assert!(page.contains("\n.TH mcp-workbench 1 "), "{page}");
    assert!(page.contains("\nThe client left stdout unread"), "{page}");
    for section in [
        "NAME",
        "SYNOPSIS",
        "OPTIONS",
        "\"EXIT STATUS\"",
        "FILES",
        "ENVIRONMENT",
    ] {
        assert!(page.contains(&format!("\n.SH {section}\n")), "no {section}");
    }
    for command in commands() {
        assert!(
            page.contains(&format!("mcp\\-workbench\\-{command}(1)")),
            "no {command}"
        );
        let page = printed(&["man", &command]);
        assert!(
            page.contains(&format!("\n.TH mcp-workbench-{command} 1 ")),
            "{page}"
        );
    }
    assert!(
        !page.contains("demo\\-server"),
        "what is hidden is not shown"
    );
    let finished = run(&["man", "chekc"]);
    assert_eq!(finished.status.code(), Some(2));
    assert!(
        finished.stderr.contains("did you mean `check`?"),
        "{}",
        finished.stderr
    );
}

#[test]
fn the_printed_schema_is_the_committed_one() {
    let schema = printed(&["schema"]);
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schema/workbench.schema.json");
    assert_eq!(schema + "\n", fs::read_to_string(file).unwrap());
    let schema: Value = serde_json::from_str(&printed(&["schema"])).unwrap();
    assert_eq!(schema["title"], "MCP Workbench configuration");
}
