//! `tokens`.

use pretty_assertions::assert_eq;
use serde_json::json;

use super::{document, exit_code, run};
use crate::harness::{Script, Setup};

/// A server with tools that have something to say.
fn wordy(tools: usize) -> Script {
    let description = "Reads a file and returns what it holds, line by line. ".repeat(20);
    let tools: Vec<_> = (0..tools)
        .map(|number| {
            json!({"name": format!("tool_{number}"), "description": &description[..(number + 1) * 50],
                "inputSchema": {"type": "object"}, "outputSchema": {"type": "object"}})
        })
        .collect();
    Script::new().tools(&json!(tools).to_string())
}

#[test]
fn numbers_add_up_and_are_compared_with_the_workbench() {
    let setup = Setup::one(&wordy(12))
        .server("more", &wordy(3))
        .toolbox("ops", "Operations")
        .server("db", &Script::named(&["query"]));
    let (finished, _setup) = run(setup, &["tokens", "--json"]);
    assert_eq!(exit_code(&finished), 0, "{}", finished.stderr);
    assert_eq!(finished.stderr, "");
    let counted = document(&finished);
    assert_eq!(counted["tokenizer"], "o200k_base");
    assert_eq!(counted["estimated"], true);
    assert_eq!(counted["tools"], 16);
    let number = |pointer: &str| counted.pointer(pointer).unwrap().as_u64().unwrap();
    let servers = number("/toolboxes/0/servers/0/tokens") + number("/toolboxes/0/servers/1/tokens");
    assert_eq!(number("/toolboxes/0/flat_tokens"), servers);
    assert_eq!(
        number("/flat_tokens"),
        servers + number("/toolboxes/1/flat_tokens")
    );
    assert_eq!(
        number("/workbench/start_tokens"),
        number("/workbench/definitions_tokens") + number("/workbench/instructions_tokens")
    );
    assert!(number("/workbench/start_tokens") < number("/flat_tokens"));
    assert!(number("/toolboxes/0/open_tokens") > servers, "{counted}");
    let largest = counted["largest"].as_array().unwrap();
    assert_eq!(largest.len(), 10);
    assert_eq!(largest[0]["tool"], "tool_11");
    assert!(
        largest
            .windows(2)
            .all(|pair| pair[0]["tokens"].as_u64() >= pair[1]["tokens"].as_u64())
    );
}

#[test]
fn the_chart_is_marked_as_an_estimate() {
    let (finished, _setup) = run(Setup::one(&wordy(12)), &["tokens"]);
    let text = finished.stdout.join("\n");
    for part in [
        "dev, about ",
        "█",
        "all servers, each by itself",
        "opening dev",
        "opening dev, signatures",
        "a search, 5 signatures",
        "estimated for o200k_base",
    ] {
        assert!(text.contains(part), "no {part:?} in {text}");
    }
    assert!(!text.contains('\u{1b}'), "a pipe has no colour");
}

#[test]
fn a_failed_server_is_named_and_the_others_are_counted() {
    let setup = Setup::one(&wordy(3)).entry("gone", json!({"command": "no-such-program-anywhere"}));
    let (finished, _setup) = run(setup, &["tokens", "--json"]);
    assert_eq!(exit_code(&finished), 1);
    assert!(
        finished
            .stderr
            .contains("dev/gone: command 'no-such-program-anywhere' not found")
    );
    let counted = document(&finished);
    assert_eq!(counted["tools"], 3);
    assert!(counted["toolboxes"][0]["open_tokens"].as_u64() > counted["flat_tokens"].as_u64());
}

#[test]
fn counting_one_toolbox_starts_no_other() {
    let setup = Setup::one(&wordy(3))
        .toolbox("ops", "Operations")
        .server("db", &wordy(2));
    let journal = setup.journal("dev", "fs");
    let (finished, _setup) = run(setup, &["tokens", "ops", "--json"]);
    assert_eq!(document(&finished)["tools"], 2);
    assert!(journal.lines().is_empty());
}

#[test]
fn instructions_of_servers_are_counted() {
    let script = wordy(2).set("instructions", "\"Read before you write.\"");
    let (finished, _setup) = run(Setup::one(&script), &["tokens", "--json"]);
    let counted = document(&finished);
    let server = &counted["toolboxes"][0]["servers"][0];
    let tools = counted["largest"].as_array().unwrap().iter();
    let tools: u64 = tools.map(|tool| tool["tokens"].as_u64().unwrap()).sum();
    assert_eq!(server["instructions_tokens"], 5);
    assert_eq!(server["tokens"], tools + 5);
}

#[test]
fn all_meta_tools_together_stay_within_their_budget() {
    let mut setup = Setup::new().top(
        "metaTools",
        json!(["open_toolbox", "use_tool", "search_tools"]),
    );
    for name in ["files", "browser", "knowledge"] {
        setup = setup.toolbox(name, "Some tools");
    }
    let (finished, _setup) = run(setup, &["tokens", "--json"]);
    let counted = document(&finished);
    // 400 tokens, less what the estimate may be off by.
    let definitions = counted["workbench"]["definitions_tokens"].as_u64();
    assert!(definitions <= Some(380), "{counted}");
}
