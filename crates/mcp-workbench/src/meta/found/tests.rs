use std::sync::Arc;

use bytes::Bytes;
use pretty_assertions::assert_eq;
use rawjson::RawJson;

use super::*;
use crate::{
    downstream::{ConnectError, ToolDefinition},
    toolbox::ServerFailure,
};

fn identifier(toolbox: &str, server: &str, tool: &str) -> ToolIdentifier {
    ToolIdentifier {
        toolbox: toolbox.into(),
        server: server.into(),
        tool: tool.into(),
    }
}

fn hit(tool: ToolIdentifier, definition: &str, alike: Vec<ToolIdentifier>) -> FoundTool {
    FoundTool {
        definition: ToolDefinition {
            name: tool.tool.clone(),
            definition: RawJson::parse(&Bytes::copy_from_slice(definition.as_bytes())).unwrap(),
            headers: Vec::new(),
            asks: None,
            released: None,
            ui: None,
            shape: crate::shapes::ToolShape::default(),
        },
        tool,
        alike,
        score: 1.0,
    }
}

fn search(hits: Vec<FoundTool>, failures: Vec<ServerFailure>) -> Search {
    Search {
        matches: hits.len() * 10,
        is_good: !hits.is_empty(),
        hits,
        tools: 120,
        servers: 9,
        toolboxes: vec!["dev".into(), "my box".into()],
        failures,
    }
}

fn failure() -> ServerFailure {
    ServerFailure {
        toolbox: "dev".into(),
        server: "db".into(),
        error: Arc::new(ConnectError::StillStarting),
    }
}

const READ: &str = r#"{"name":"read_file","description":"Read a file. Any.","inputSchema":{"properties":{"path":{"type":"string"}},"required":["path"]}}"#;

fn two() -> Vec<FoundTool> {
    let alike = vec![
        identifier("dev", "fs2", "read_file"),
        identifier("my box", "fs", "read_file"),
        identifier("dev", "other", "cat"),
        identifier("dev", "fs3", "read_file"),
    ];
    vec![
        hit(identifier("dev", "fs", "read_file"), READ, alike),
        hit(
            identifier("my box", "a/b", "go!"),
            r#"{"name":"go!"}"#,
            Vec::new(),
        ),
    ]
}

#[test]
fn each_level_has_a_heading_and_one_line_per_tool() {
    let also = " [also: server fs2, toolbox \"my box\" server fs, dev other cat, …1 more]";
    let rows = [
        (
            Detail::Names,
            "2 of 20 matches, as toolbox server tool; detail \"signature\" shows parameters. Run with use_tool.",
            "dev fs read_file",
            r#""my box" "a/b" "go!""#,
        ),
        (
            Detail::Brief,
            "2 of 20 matches, as toolbox server tool; detail \"signature\" shows parameters. Run with use_tool.",
            "dev fs read_file — Read a file.",
            r#""my box" "a/b" "go!""#,
        ),
        (
            Detail::Signature,
            "2 of 20 matches, as toolbox server tool(parameters, ? = optional). Run with use_tool.",
            "dev fs read_file(path: string) — Read a file.",
            r#""my box" "a/b" "go!"()"#,
        ),
    ];
    for (detail, heading, first, second) in rows {
        let shown = text(&search(two(), Vec::new()), "x", detail);
        assert_eq!(shown, format!("{heading}\n{first}{also}\n{second}"));
    }
    let shown = text(&search(two(), Vec::new()), "x", Detail::Full);
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(
        lines[1],
        format!(
            r#"{},"server":"fs","toolbox":"dev"}}{also}"#,
            &READ[..READ.len() - 1]
        )
    );
    assert_eq!(
        lines[2],
        r#"{"name":"go!","server":"a/b","toolbox":"my box"}"#
    );
}

#[test]
fn servers_that_were_not_searched_are_named() {
    let shown = text(&search(two(), vec![failure()]), "x", Detail::Names);
    assert!(
        shown.ends_with("\nNot searched (not up): dev db"),
        "{shown}"
    );
}

#[test]
fn without_a_good_match_the_nearest_three_are_shown_as_such() {
    let weak = Search {
        is_good: false,
        ..search(two().into_iter().chain(two()).collect(), vec![failure()])
    };
    let shown = text(&weak, " make coffee ", Detail::Names);
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(
        lines[0],
        "No good match for 'make coffee'. Nearest 3 of 120 tools, probably for something else, as toolbox server tool; \
         detail \"signature\" shows parameters."
    );
    assert!(lines[3].starts_with("dev fs read_file"), "{shown}");
    assert_eq!(
        lines[4..],
        [
            "Not searched (not up): dev db",
            "Try other words: what the tool does and to what, one step at a time, in the language of the tools."
        ]
    );
}

#[test]
fn nothing_found_says_what_was_searched_and_what_to_try() {
    assert_eq!(
        text(
            &search(Vec::new(), vec![failure()]),
            "a\u{1b}b",
            Detail::Full
        ),
        "No tool matches 'a⟦U+001B⟧b'. Searched 120 tools of 9 servers in toolboxes dev, \"my box\".\n\
         Failed to connect to server 'db' in toolbox 'dev': still starting\n\
         Try other words: what the tool does and to what, one step at a time, in the language of the tools."
    );
    let empty = Search {
        toolboxes: Vec::new(),
        ..search(Vec::new(), Vec::new())
    };
    assert_eq!(
        text(&empty, "x", Detail::Full),
        "No tool found: no servers are configured to search."
    );
}
