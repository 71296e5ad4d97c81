//! `search_tools`: what is found, how it is shown, and what may be done with it.

use pretty_assertions::assert_eq;
use serde_json::json;

use super::{DONE, files, search, two_toolboxes};
use crate::harness::{ModernClient, ModernRequest, Script, Setup, use_arguments};

const HEADING: &str = "as toolbox server tool(parameters, ? = optional). Run with use_tool.";

#[test]
fn hits_of_all_toolboxes_are_lines_with_three_names_and_a_signature() {
    let mut workbench = two_toolboxes().connect();
    assert_eq!(
        search(&mut workbench, "weather forecast for a city"),
        format!(
            "1 of 1 match, {HEADING}\n\
             life sky forecast(city: string) — Forecast the weather of a city"
        )
    );
    let found = search(&mut workbench, "read_file");
    let lines: Vec<&str> = found.lines().collect();
    assert_eq!(
        lines[1],
        r#"dev fs read_file(path: string, head?: integer = 10, encoding?: "utf8"|"base64") — Read a file."#
    );
}

#[test]
fn a_hit_can_be_used_at_once() {
    let mut workbench = two_toolboxes().connect();
    search(&mut workbench, "forecast");
    let used = workbench.use_tool_of(["life", "sky", "forecast"], r#"{"city":"Rome"}"#);
    assert!(!used.failed(), "{}", used.raw);
    // The toolbox of a hit counts as open, with all its tools; nothing was found in the other.
    assert_eq!(
        workbench.use_tool("read_file", "{}").error(),
        "Error: Toolbox 'dev' is not open. Call open_toolbox first."
    );
    search(&mut workbench, "read_file");
    assert!(!workbench.use_tool("delete_file", "{}").failed());
    for (toolbox, server) in [("dev", "fs"), ("life", "sky")] {
        let pids = workbench.journal(toolbox, server).pids();
        assert_eq!(pids.len(), 1, "{server} was started once");
    }
}

#[test]
fn one_toolbox_can_be_searched_and_only_its_servers_are_started() {
    let mut workbench = two_toolboxes().connect();
    let found = workbench.call("search_tools", r#"{"query":"file","toolbox":"life"}"#);
    assert_eq!(
        found.text(),
        "No tool matches 'file'. Searched 1 tool of 1 server in toolbox life.\n\
         Try other words: what the tool does and to what, one step at a time, in the language of the tools. \
         Or see what a toolbox has: open_toolbox with detail \"brief\"."
    );
    assert!(workbench.journal("dev", "fs").pids().is_empty());
    assert_eq!(
        workbench
            .call("search_tools", r#"{"query":"file","toolbox":"lief"}"#)
            .error(),
        "Error: Toolbox 'lief' not found. Available toolboxes: dev, life. Did you mean 'life'?"
    );
}

#[test]
fn limit_and_detail_are_applied() {
    let mut workbench = two_toolboxes().connect();
    let rows = [
        ("names", "dev fs delete_file"),
        ("brief", "dev fs delete_file — Delete a file for good"),
        (
            "signature",
            "dev fs delete_file(path: string) — Delete a file for good",
        ),
        (
            "compact",
            r#"{"name":"delete_file","description":"Delete a file for good","inputSchema":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]},"server":"fs","toolbox":"dev"}"#,
        ),
        (
            "full",
            r#"{"name":"delete_file","description":"Delete a file for good","inputSchema":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]},"server":"fs","toolbox":"dev"}"#,
        ),
    ];
    for (detail, line) in rows {
        let arguments = json!({"query": "delete a file", "detail": detail, "limit": 1});
        let found = workbench.call("search_tools", &arguments.to_string());
        let lines: Vec<&str> = found.text().lines().collect();
        assert_eq!(lines[1..], [line], "{detail}");
        assert!(lines[0].starts_with("1 of 2 matches, "), "{}", lines[0]);
    }
}

#[test]
fn without_a_good_match_the_nearest_tools_are_marked_in_both_eras() {
    let expected = "No good match for 'read my palm'. Nearest 1 of 3 tools, probably for something else, \
                    as toolbox server tool(parameters, ? = optional).\n\
                    dev fs read_file(path: string, head?: integer = 10, encoding?: \"utf8\"|\"base64\") — Read a file.\n\
                    Try other words: what the tool does and to what, one step at a time, in the language of the tools. \
                    Or see what a toolbox has: open_toolbox with detail \"brief\".";
    let mut workbench = two_toolboxes().connect();
    assert_eq!(search(&mut workbench, "read my palm"), expected);
    // What is shown can be used all the same.
    assert!(!workbench.use_tool("delete_file", "{}").failed());
    let request = ModernRequest::call("search_tools", r#"{"query":"read my palm"}"#);
    assert_eq!(workbench.call_modern(&request).text(), expected);
}

#[test]
fn at_most_three_tools_are_shown_without_a_good_match() {
    let tools = ["mail", "note", "file", "page"].map(|thing| {
        let description = format!("Read a {thing}");
        json!({"name": format!("read_{thing}"), "description": description, "inputSchema": {"type": "object"}})
    });
    let script = Script::new().tools(&json!(tools).to_string());
    let setup = Setup::one(&script).top("metaTools", json!(["use_tool", "search_tools"]));
    let found = search(&mut setup.connect(), "read my palm");
    assert!(found.contains("Nearest 3 of 4 tools"), "{found}");
    assert_eq!(found.matches("\ndev fs read_").count(), 3, "{found}");
}

#[test]
fn all_wrong_parameters_are_reported_and_nothing_is_started() {
    let mut workbench = two_toolboxes().connect();
    let failed = workbench.call("search_tools", r#"{"querry":"x","limit":0,"detail":"all"}"#);
    assert_eq!(
        failed.error(),
        "Invalid parameters: Unrecognized key: 'querry' (did you mean 'query'?); query: Required; \
         detail: Expected 'names' | 'brief' | 'signature' | 'compact' | 'full', received 'all'; \
         limit: Expected integer from 1 to 50, received 0"
    );
    assert_eq!(failed.failure()["code"], "invalid_parameters");
    assert!(workbench.journal("dev", "fs").pids().is_empty());
}

#[test]
fn failed_servers_are_named_and_do_not_affect_others() {
    let setup = two_toolboxes().entry("bad", json!({"command": "/no/such/program"}));
    let mut workbench = setup.connect();
    let found = search(&mut workbench, "forecast");
    assert!(found.contains("life sky forecast("), "{found}");
    assert!(
        found.ends_with("\nNot searched (not up): life bad"),
        "{found}"
    );
    let nothing = search(&mut workbench, "zzzz");
    assert!(
        nothing.contains(
            "\nFailed to connect to server 'bad' in toolbox 'life': command '/no/such/program' not found\n"
        ),
        "{nothing}"
    );
}

#[test]
fn near_duplicates_are_folded_and_can_all_be_used() {
    let setup = two_toolboxes().server("disk", &files());
    let mut workbench = setup.connect();
    let found = search(&mut workbench, "delete a file");
    assert!(found.contains("also: "), "{found}");
    for identifier in [
        ["dev", "fs", "delete_file"],
        ["life", "disk", "delete_file"],
    ] {
        let used = workbench.use_tool_of(identifier, "{}");
        assert!(!used.failed(), "{}", used.raw);
    }
}

#[test]
fn ambiguous_names_are_quoted_and_hidden_characters_are_escaped() {
    let tools = r#"[{"name":"a b/c","description":"Polish\u200f the silver","inputSchema":{"type":"object","properties":{"x y":{}},"required":["x y"]}}]"#;
    let mut workbench = Setup::new()
        .toolbox("my box", "Things")
        .server("s/1", &Script::new().tools(tools).answers("a b/c", DONE))
        .top("metaTools", super::all_three())
        .connect();
    let found = search(&mut workbench, "silver");
    assert!(
        found.ends_with("\n\"my box\" \"s/1\" \"a b/c\"(\"x y\": any) — Polish⟦U+200F⟧ the silver"),
        "{found}"
    );
    let used = workbench.use_tool_of(["my box", "s/1", "a b/c"], "{}");
    assert!(!used.failed(), "{}", used.raw);
}

#[test]
fn modern_clients_and_clients_over_http_search_too() {
    let search = ModernRequest::call("search_tools", r#"{"query":"delete a file"}"#);
    let mut workbench = two_toolboxes().connect();
    let found = workbench.call_modern(&search);
    assert!(
        found.text().contains("\ndev fs delete_file("),
        "{}",
        found.raw
    );
    let used = workbench.call_modern(&ModernRequest::use_tool("delete_file", "{}"));
    assert!(!used.failed(), "{}", used.raw);

    let mut served = two_toolboxes().serve();
    let mut client = served.client();
    let found = client.call("search_tools", r#"{"query":"delete a file"}"#);
    assert!(
        found.text().contains("\ndev fs delete_file("),
        "{}",
        found.raw
    );
    assert!(!client.use_tool("delete_file", "{}").failed());
    let found = served.call_modern(&search);
    assert!(
        found.text().contains("\ndev fs delete_file("),
        "{}",
        found.raw
    );
}

#[test]
fn a_cancelled_search_is_not_answered() {
    let silent = Script::new().on_method("initialize", "[]");
    let setup = two_toolboxes().server("slow", &silent);
    let mut workbench = setup.connect();
    let id = workbench.send_call("search_tools", r#"{"query":"forecast"}"#);
    workbench.journal("life", "slow").wait("start", 1);
    workbench.notify(
        "notifications/cancelled",
        &format!(r#"{{"requestId":{id}}}"#),
    );
    let after = workbench.request("ping", "{}");
    assert!(workbench.next_message().answers(&after));
    let finished = workbench.finish();
    assert_eq!(finished.stdout, Vec::<String>::new());
}

#[test]
fn dynamic_mode_registers_opened_tools_but_not_found_ones() {
    let mut workbench = two_toolboxes().top("toolMode", json!("dynamic")).connect();
    search(&mut workbench, "forecast");
    let listed = workbench.ask("tools/list", "{}").result();
    assert_eq!(listed["tools"].as_array().unwrap().len(), 3);
    let arguments = use_arguments(["life", "sky", "forecast"], None);
    assert!(!workbench.call("use_tool", &arguments).failed());
    workbench.open("life");
    assert!(!workbench.call("life__sky__forecast", "{}").failed());
}
