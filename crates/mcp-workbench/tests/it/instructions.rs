//! The instructions, word for word.

use mcp_workbench::internal::{
    clients::{CLIENTS, limits},
    meta::MAX_CHARACTERS,
};
use pretty_assertions::assert_eq;
use serde_json::json;

use crate::harness::{Script, Setup};

const LIMIT: usize = 2000;

#[test]
fn no_known_client_truncates_our_texts() {
    assert_eq!(LIMIT, MAX_CHARACTERS);
    let mut known = 0;
    for client in CLIENTS {
        let limits = limits(client.name);
        for most in limits.description.into_iter().chain(limits.instructions) {
            assert!(most >= MAX_CHARACTERS, "{} cuts after {most}", client.title);
            known += 1;
        }
    }
    assert!(known > 0, "no client is known to cut anything");
}

const USE_LINE: &str = "  - Use `open_toolbox` with toolbox name to access";

const END: &str = "To open a toolbox and see available tools:
1. Call `open_toolbox` with the desired toolbox name
2. Inspect the returned tools array for available operations";

fn instructions(setup: Setup) -> String {
    let result = setup.start().initialize();
    result["instructions"].as_str().unwrap().to_owned()
}

/// A configuration with a toolbox that nobody has described.
fn undescribed() -> Setup {
    Setup::new().text(r#"{"toolboxes": {"dev": {"mcpServers": {}}}}"#)
}

#[test]
fn a_toolbox_without_a_description_is_listed_by_its_name() {
    let mut workbench = undescribed().start();
    let introduced = workbench.initialize();
    assert_eq!(
        introduced["instructions"],
        format!("## Available Toolboxes\n\n- **dev** (0 servers)\n{USE_LINE}\n\n{END}")
    );
    assert_eq!(
        workbench.open("dev").text(),
        r#"{"toolbox":"dev","description":"","servers_connected":0,"tools":[]}"#
    );
    let short = workbench.call("open_toolbox", r#"{"toolbox":"dev","detail":"names"}"#);
    assert!(
        short.text().starts_with("toolbox dev: "),
        "{}",
        short.text()
    );
}

#[test]
fn check_and_doctor_warn_about_a_toolbox_without_a_description() {
    let setup = undescribed();
    setup.write_config();
    let config = setup.config();
    let warning = "toolboxes.dev: `description` is missing";
    for (command, is_on_stdout) in [("check", false), ("doctor", true)] {
        let output = setup
            .command()
            .arg("--config")
            .arg(&config)
            .arg(command)
            .output()
            .unwrap();
        assert!(output.status.success(), "{command}");
        let shown = if is_on_stdout {
            output.stdout
        } else {
            output.stderr
        };
        let shown = String::from_utf8(shown).unwrap();
        assert!(shown.contains(warning), "{command}: {shown}");
    }
}

/// The full form, of toolboxes without servers.
fn full(toolboxes: &[(String, String)]) -> String {
    let entries = toolboxes.iter().map(|(name, description)| {
        format!("- **{name}** (0 servers): {description}\n{USE_LINE}\n\n")
    });
    format!(
        "## Available Toolboxes\n\n{}{END}",
        entries.collect::<String>()
    )
}

fn of_toolboxes(toolboxes: &[(String, String)]) -> String {
    let setup = toolboxes
        .iter()
        .fold(Setup::new(), |setup, (name, description)| {
            setup.toolbox(name, description)
        });
    instructions(setup)
}

fn many(count: usize, description: &str) -> Vec<(String, String)> {
    let toolbox = |n| (format!("toolbox-{n}"), description.to_owned());
    (0..count).map(toolbox).collect()
}

#[test]
fn one_toolbox_with_one_server() {
    let setup = Setup::new()
        .toolbox("production", "Production environment tools")
        .server("db", &Script::new());
    assert_eq!(
        instructions(setup),
        "## Available Toolboxes

- **production** (1 server): Production environment tools
  - Use `open_toolbox` with toolbox name to access

To open a toolbox and see available tools:
1. Call `open_toolbox` with the desired toolbox name
2. Inspect the returned tools array for available operations"
    );
}

#[test]
fn two_toolboxes_in_the_order_of_the_file() {
    let setup = Setup::new()
        .toolbox("development", "Development environment tools")
        .server("filesystem", &Script::new())
        .server("db", &Script::new())
        .toolbox("a-production", "Production environment tools")
        .server("db", &Script::new());
    assert_eq!(
        instructions(setup),
        "## Available Toolboxes

- **development** (2 servers): Development environment tools
  - Use `open_toolbox` with toolbox name to access

- **a-production** (1 server): Production environment tools
  - Use `open_toolbox` with toolbox name to access

To open a toolbox and see available tools:
1. Call `open_toolbox` with the desired toolbox name
2. Inspect the returned tools array for available operations"
    );
}

#[test]
fn servers_are_counted_without_the_disabled_ones() {
    let rows = [
        (json!({}), "(2 servers)"),
        (json!({"disabled": true}), "(1 server)"),
        (json!({"enabled": false}), "(1 server)"),
        (json!({"toolFilters": []}), "(2 servers)"),
    ];
    for (keys, count) in rows {
        let setup = Setup::one(&Script::new()).server_with("other", &Script::new(), &keys);
        let text = instructions(setup);
        assert!(
            text.contains(&format!("- **dev** {count}: ")),
            "{keys}: {text}"
        );
    }
}

#[test]
fn no_toolboxes_says_where_to_add_one() {
    let setup = Setup::new();
    let file = setup.config();
    assert_eq!(
        instructions(setup),
        format!(
            "No toolboxes are configured. Add one under \"toolboxes\" in {}.",
            file.display()
        )
    );
}

#[test]
fn the_full_form_stays_up_to_2000_characters() {
    // Characters count, not bytes.
    for letter in ["x", "ü"] {
        let mut toolboxes = many(8, "d");
        let room = LIMIT - full(&toolboxes).chars().count();
        toolboxes[3].1 = letter.repeat(room + 1);
        assert_eq!(full(&toolboxes).chars().count(), LIMIT);
        assert_eq!(of_toolboxes(&toolboxes), full(&toolboxes));

        toolboxes[3].1 = letter.repeat(room + 2);
        assert_eq!(of_toolboxes(&toolboxes), without_use_lines(&toolboxes));
    }
}

fn without_use_lines(toolboxes: &[(String, String)]) -> String {
    full(toolboxes).replace(&format!("{USE_LINE}\n"), "")
}

#[test]
fn long_instructions_first_lose_the_use_lines() {
    let toolboxes = many(20, "Tools for one thing or another");
    let shorter = without_use_lines(&toolboxes);
    assert!(full(&toolboxes).chars().count() > LIMIT && shorter.chars().count() <= LIMIT);
    assert_eq!(of_toolboxes(&toolboxes), shorter);
}

#[test]
fn then_long_instructions_shorten_descriptions_evenly() {
    let description = "abcdefghij".repeat(20);
    let toolboxes = many(20, &description);
    let text = of_toolboxes(&toolboxes);
    assert!(text.chars().count() <= LIMIT, "{}", text.chars().count());
    assert!(text.ends_with(END), "{text}");
    assert!(
        !text.contains(USE_LINE) && !text.contains(" more"),
        "{text}"
    );
    let mut lengths = Vec::new();
    for (name, _) in &toolboxes {
        let begin = format!("- **{name}** (0 servers): ");
        let line = text.lines().find_map(|line| line.strip_prefix(&begin));
        let line = line.unwrap_or_else(|| panic!("no {name} in {text}"));
        let kept = line.trim_end_matches('…').trim_end_matches('.').trim_end();
        assert!(description.starts_with(kept), "{line}");
        assert!(kept.len() > 10, "so much has room: {line}");
        lengths.push(line.chars().count());
    }
    let (least, most) = (lengths.iter().min().unwrap(), lengths.iter().max().unwrap());
    assert!(most - least <= 1, "not even: {lengths:?}");
}

#[test]
fn then_long_instructions_count_the_remaining_toolboxes() {
    let count = 400;
    let toolboxes = many(count, "Some tools");
    let text = of_toolboxes(&toolboxes);
    assert!(text.chars().count() <= LIMIT, "{}", text.chars().count());
    let entries: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("- **"))
        .collect();
    assert!(!entries.is_empty(), "{text}");
    for (n, entry) in entries.iter().enumerate() {
        assert!(entry.starts_with(&format!("- **toolbox-{n}** ")), "{entry}");
    }
    let more = format!("… and {} more", count - entries.len());
    assert!(text.contains(&more), "no {more:?} in {text}");
}
