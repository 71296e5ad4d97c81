use pretty_assertions::assert_eq;

use super::*;
use crate::clients::{CLIENTS, ClientName, ParsedEntry, Scope, client, identity, servers_in};

const VARIABLES: [&str; 2] = ["TOKEN", "OTHER"];

fn with_own<T>(use_own: impl FnOnce(&OwnEntry<'_>) -> T) -> T {
    let variables = VARIABLES.map(str::to_owned);
    use_own(&OwnEntry {
        shared: false,
        name: "workbench",
        program: "/opt/mcp-workbench",
        config: "/c/workbench-config.json",
        variables: &variables,
    })
}

#[test]
fn every_client_gets_its_own_spelling() {
    use ClientName::{ClaudeCode, ClaudeDesktop, Codex, Cursor, Gemini, MistralVibe, OpenCode};
    let arguments = json!(["--config", "/c/workbench-config.json"]);
    let program = "/opt/mcp-workbench";
    let cases = [
        (
            ClaudeDesktop,
            json!({"command": program, "args": arguments}),
        ),
        (
            ClaudeCode,
            json!({"type": "stdio", "command": program, "args": arguments,
                "env": {"TOKEN": "${TOKEN}", "OTHER": "${OTHER}"}, "alwaysLoad": true}),
        ),
        (
            Cursor,
            json!({"command": program, "args": arguments,
                "env": {"TOKEN": "${env:TOKEN}", "OTHER": "${env:OTHER}"}}),
        ),
        (
            Gemini,
            json!({"command": program, "args": arguments, "env": {"TOKEN": "$TOKEN", "OTHER": "$OTHER"}}),
        ),
        (
            Codex,
            json!({"command": program, "args": arguments, "env_vars": ["TOKEN", "OTHER"]}),
        ),
        (
            OpenCode,
            json!({"type": "local", "command": [program, "--config", "/c/workbench-config.json"],
                "environment": {"TOKEN": "{env:TOKEN}", "OTHER": "{env:OTHER}"}, "enabled": true}),
        ),
        (
            MistralVibe,
            json!({"name": "workbench", "transport": "stdio", "command": program, "args": arguments}),
        ),
    ];
    for (name, expected) in cases {
        assert_eq!(
            with_own(|own| own.value(client(name))),
            expected,
            "{name:?}"
        );
    }
}

#[test]
fn every_snippet_can_be_parsed_again() {
    for client in CLIENTS {
        let snippet = with_own(|own| own.snippet(client));
        let found = servers_in(client, &snippet, Scope::User, Path::new("/"));
        let found = found.unwrap_or_else(|error| panic!("{}: {error}\n{snippet}", client.title));
        let [server] = found.as_slice() else {
            panic!("{}: {snippet}", client.title);
        };
        assert_eq!(server.name, "workbench", "{}", client.title);
        let ParsedEntry::Server(imported) = &server.parsed else {
            panic!("{}: {snippet}", client.title);
        };
        let identity = identity(&imported.entry).expect("a server");
        assert!(identity.is_ours(Path::new("/other")), "{snippet}");
    }
}

#[test]
fn links_contain_the_entry() {
    let link = with_own(|own| own.link(client(ClientName::Cursor))).expect("a link");
    let (begin, config) = link.split_once("&config=").expect("a configuration");
    assert_eq!(
        begin,
        "cursor://anysphere.cursor-deeplink/mcp/install?name=workbench"
    );
    let config = STANDARD.decode(
        config
            .replace("%3D", "=")
            .replace("%2B", "+")
            .replace("%2F", "/"),
    );
    let config: Value = serde_json::from_slice(&config.expect("base64")).expect("JSON");
    assert_eq!(
        config,
        with_own(|own| own.value(client(ClientName::Cursor)))
    );
    let link = with_own(|own| own.link(client(ClientName::VsCode))).expect("a link");
    assert!(
        link.starts_with("vscode:mcp/install?%7B%22name%22%3A%22workbench%22%2C"),
        "{link}"
    );
    assert_eq!(with_own(|own| own.link(client(ClientName::Zed))), None);
}

#[test]
fn the_variables_that_a_configuration_needs_are_found() {
    let text = r#"{
        // comment
        "toolboxes": {"t": {"description": "${IN_DESCRIPTION}", "mcpServers": {
            "a": {"command": "x", "args": ["${A}", "${B:-default}"], "env": {"H": "${HOME}", "C": "${env:C}"}},
            "b": {"url": "https://host", "headers": {"Authorization": "Bearer ${A}"}},
            "c": {"command": "x", "env": {"D": "${D}"}, "disabled": true},
            "d": {"command": "${userHome}/x", "inheritEnv": ["E", "F_*"]},
        }}},
    }"#;
    let needed = |variables: &[&str]| {
        let variables = variables.iter().map(|name| (name.into(), "set".into()));
        let environment = Environment::new(variables, "/".into(), None);
        needed_variables(text, Path::new("c.json"), &environment)
    };
    assert_eq!(needed(&[]), ["A", "C"]);
    assert_eq!(needed(&["A", "E", "F_1"]), ["A", "C", "E"]);
}
