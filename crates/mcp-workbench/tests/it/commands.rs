//! The commands beside `serve`: what they print and how they end.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::harness::{Finished, Script, Setup};

fn check(setup: Setup) -> Finished {
    setup.write_config();
    let config = setup.config().to_str().unwrap().to_owned();
    setup.start_with(&["check", "--config", &config]).finish()
}

fn all_output(finished: &Finished) -> String {
    format!("{}\n{}", finished.stdout.join("\n"), finished.stderr)
}

#[test]
fn check_prints_what_is_configured() {
    let setup = Setup::one(&Script::new())
        .toolbox("production", "Production tools")
        .server("database", &Script::new());
    let journal = setup.journal("dev", "fs");
    let finished = check(setup);
    assert!(finished.status.success(), "{}", all_output(&finished));
    let stdout = finished.stdout.join("\n");
    for word in ["dev", "fs", "production", "database"] {
        assert!(stdout.contains(word), "no {word:?} in {stdout}");
    }
    assert!(journal.lines().is_empty(), "nothing is started");
}

#[test]
fn check_lists_all_variables_that_are_not_set() {
    let setup = Setup::new()
        .toolbox("y", "d")
        .server_with(
            "x",
            &Script::new(),
            &json!({"env": {"TOKEN": "${GITHUB_TOKEN}"}}),
        )
        .toolbox("z", "d")
        .server_with("w", &Script::new(), &json!({"args": ["${OTHER_TOKEN}"]}));
    let finished = check(setup);
    assert!(!finished.status.success());
    let output = all_output(&finished);
    for word in [
        "GITHUB_TOKEN",
        "toolboxes.y.mcpServers.x.env.TOKEN",
        "OTHER_TOKEN",
        "toolboxes.z.mcpServers.w.args[1]",
    ] {
        assert!(output.contains(word), "no {word:?} in {output}");
    }
}

#[test]
fn a_variable_that_refers_to_itself_is_not_set_and_an_empty_one_is_reported() {
    let setup = || {
        Setup::new()
            .env("LITERAL", "${LITERAL}")
            .env("EMPTY", "")
            .toolbox("dev", "d")
            .server_with(
                "fs",
                &Script::new(),
                &json!({"env": {"A": "${EMPTY}", "B": "${EMPTY:-}"}}),
            )
    };
    let finished = check(setup());
    assert!(finished.status.success(), "{}", all_output(&finished));
    let output = all_output(&finished);
    let empty = "toolboxes.dev.mcpServers.fs.env.A: variable EMPTY is set to an empty value";
    assert!(output.contains(empty), "{output}");
    assert!(!output.contains("env.B"), "{output}");

    let literal = setup().server_with("gh", &Script::new(), &json!({"env": {"T": "${LITERAL}"}}));
    let finished = check(literal);
    assert!(!finished.status.success());
    let output = all_output(&finished);
    assert!(
        output.contains("cannot start, not set: LITERAL"),
        "{output}"
    );
}

#[test]
fn check_reports_all_problems() {
    let text = r#"{"toolboxes": {"a": {"description": "d"}, "b": {"description": "", "mcpServers": {"c": {}}}}}"#;
    let finished = check(Setup::new().text(text));
    assert!(!finished.status.success());
    let output = all_output(&finished);
    for path in [
        "toolboxes.a",
        "toolboxes.b.description",
        "toolboxes.b.mcpServers.c",
    ] {
        assert!(output.contains(path), "no {path:?} in {output}");
    }
}

#[test]
fn version_and_help() {
    let finished = Setup::new().start_with(&["--version"]).finish();
    assert!(finished.status.success());
    let version = format!("mcp-workbench {}", env!("CARGO_PKG_VERSION"));
    assert_eq!(finished.stdout, [version]);
    let finished = Setup::new().start_with(&["--help"]).finish();
    assert!(finished.status.success());
    let help = finished.stdout.join("\n");
    for command in ["serve", "check", "demo", "--config"] {
        assert!(help.contains(command), "no {command:?} in {help}");
    }
}

#[test]
fn unknown_commands_get_a_suggestion() {
    let cases = [
        ("version", "tip: try `mcp-workbench --version`"),
        ("validate", "tip: try `mcp-workbench check`"),
        (
            "status",
            "tip: try `mcp-workbench list`, `mcp-workbench doctor`, `mcp-workbench auth status`",
        ),
        ("servers", "tip: try `mcp-workbench list`"),
        ("instal", "tip: did you mean `mcp-workbench install`?"),
    ];
    for (word, tip) in cases {
        let finished = Setup::new().start_with(&[word]).finish();
        assert_eq!(finished.status.code(), Some(2));
        assert!(finished.stderr.contains(tip), "{}", finished.stderr);
    }
    for word in ["frobnicate", "serverless"] {
        let finished = Setup::new().start_with(&[word]).finish();
        let begin = format!("error: unrecognized subcommand '{word}'\n\nUsage:");
        assert!(finished.stderr.starts_with(&begin), "{}", finished.stderr);
    }
}

#[test]
fn the_usage_of_add_shows_its_arguments_in_order() {
    let finished = Setup::new().start_with(&["add", "dev"]).finish();
    assert_eq!(finished.status.code(), Some(2));
    let usage = "Usage: mcp-workbench add [OPTIONS] <TOOLBOX> <NAME> -- <COMMAND>...\n       \
                 mcp-workbench add [OPTIONS] <TOOLBOX> <NAME> --url <URL>\n";
    assert!(finished.stderr.contains(usage), "{}", finished.stderr);
}

#[test]
fn check_suggests_the_correct_key_for_a_misspelt_one() {
    let text =
        r#"{"toolboxes": {"a": {"description": "d", "mcpServers": {"c": {"comand": "x"}}}}}"#;
    let finished = check(Setup::new().text(text));
    assert!(!finished.status.success());
    for words in [
        "toolboxes.a.mcpServers.c: a server needs `command` or `url`",
        "toolboxes.a.mcpServers.c.comand: unknown key `comand`\n  hint: did you mean `command`?",
    ] {
        assert!(finished.stderr.contains(words), "{}", finished.stderr);
    }
}

#[test]
fn serve_is_the_default_command() {
    let setup = Setup::one(&Script::new());
    setup.write_config();
    let config = setup.config().to_str().unwrap().to_owned();
    let mut workbench = setup.start_with(&["serve", "--config", &config]);
    assert_eq!(
        workbench.initialize()["serverInfo"]["name"],
        "mcp-workbench"
    );
}

#[test]
fn the_demo_runs_by_itself() {
    let mut demo = Setup::new().start_with(&["demo"]);
    let finished = demo.finish();
    assert!(finished.status.success(), "{}", all_output(&finished));
    assert!(!demo.setup.path("cache/mcp-workbench").exists());
    let stdout = finished.stdout.join("\n");
    for text in [
        "\n1. Connect ",
        "| ## Available Toolboxes",
        "open_toolbox  Open a toolbox",
        "error   Error: Toolbox 'desk' is not open.",
        "3 servers started and connected, 6 tools",
        "\"value\":112}",
        "answer  {\"notes\":[{\"id\":1,",
        "Tool 'evalute' not found in server 'calculator'",
        "\n9. Hang up ",
        "\"serve\",",
    ] {
        assert!(stdout.contains(text), "no {text:?} in {stdout}");
    }
}

#[test]
fn the_configuration_of_the_demo_can_be_used() {
    let printed = Setup::new()
        .start_with(&["demo", "--print-config"])
        .finish();
    assert!(printed.status.success(), "{}", all_output(&printed));
    let text = printed.stdout.join("\n");
    let config: Value = serde_json::from_str(&text).expect("JSON is printed");
    let toolboxes = config["toolboxes"].as_object().expect("toolboxes");
    let name = toolboxes.keys().next().expect("a toolbox");
    let mut workbench = Setup::new().text(&text).connect();
    let opened = workbench.open(name).json();
    assert_eq!(opened["servers_connected"], 3);
    assert_eq!(opened.get("_errors"), None);
    assert_eq!(opened.get("withheld"), None);
}
