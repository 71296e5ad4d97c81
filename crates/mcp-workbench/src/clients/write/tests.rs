use pretty_assertions::assert_eq;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::clients::{ClientName, ParsedEntry, Scope, client, servers_in};

fn set(name: ClientName, text: &str, entry: &Value) -> String {
    let mut edited = ClientText::parse(client(name), text).expect("it is well formed");
    edited
        .set("workbench", None, entry)
        .expect("it can be put in");
    edited.finish()
}

fn removed(name: ClientName, text: &str, server: &str) -> String {
    let mut edited = ClientText::parse(client(name), text).expect("it is well formed");
    assert!(edited.remove(server, None).expect("it can be taken out"));
    edited.finish()
}

const CODEX: &str = "# my settings\nmodel = \"o3\"  # the model\n\n[mcp_servers.github]\ncommand = \"npx\"\nenv = { A = \"b\" }\n\n[profiles.x]\nmodel = \"y\"\n";

#[test]
fn a_server_is_added_to_toml_and_the_rest_stays() {
    let entry = json!({"command": "/bin/w", "args": ["--config", "/c"], "env_vars": ["A"]});
    let text = set(ClientName::Codex, CODEX, &entry);
    let added = "[mcp_servers.workbench]\ncommand = \"/bin/w\"\nargs = [\"--config\", \"/c\"]\nenv_vars = [\"A\"]\n";
    let (before, after) = text
        .split_once(&format!("\n{added}"))
        .expect("the entry stands there");
    assert_eq!(format!("{before}{after}"), CODEX);
    assert_eq!(removed(ClientName::Codex, &text, "workbench"), CODEX);
    let fresh = set(ClientName::Codex, "", &entry);
    assert_eq!(fresh, added);
    let other = set(ClientName::Codex, &text, &json!({"command": "/bin/other"}));
    assert_eq!(removed(ClientName::Codex, &other, "workbench"), CODEX);
    assert_eq!(set(ClientName::Codex, &other, &entry), text);
}

#[test]
fn a_server_is_added_to_a_list_of_tables() {
    let text = "# mine\n[[mcp_servers]]\nname = \"a\"\ncommand = \"x\"\n";
    let entry = json!({"name": "workbench", "command": "/bin/w"});
    let changed = set(ClientName::MistralVibe, text, &entry);
    assert_eq!(
        changed,
        format!("{text}\n[[mcp_servers]]\nname = \"workbench\"\ncommand = \"/bin/w\"\n")
    );
    assert_eq!(
        removed(ClientName::MistralVibe, &changed, "workbench"),
        text
    );
    assert_eq!(set(ClientName::MistralVibe, &changed, &entry), changed);
}

#[test]
fn numbers_keep_their_kind_in_toml() {
    let text = set(
        ClientName::Codex,
        "",
        &json!({"a": 10.5, "b": 2.0, "c": -3}),
    );
    assert_eq!(text, "[mcp_servers.workbench]\na = 10.5\nb = 2.0\nc = -3\n");
}

const GOOSE: &str = "# mine\nextensions: # all of them\n    # the first\n    a:\n        type: builtin\n        note: |\n            # text\n\n            more\n\n    b: {type: builtin}\n\n# behind\nGOOSE_MODE: auto\n";

#[test]
fn a_server_is_added_to_yaml_and_every_other_byte_stays() {
    let entry =
        json!({"name": "workbench", "cmd": "/bin/w", "args": ["--config", "/c"], "envs": {}});
    let text = set(ClientName::Goose, GOOSE, &entry);
    let added = "    workbench:\n      name: \"workbench\"\n      cmd: \"/bin/w\"\n      args:\n        - \"--config\"\n        - \"/c\"\n      envs: {}\n";
    let (before, after) = text.split_once(added).expect("the entry is there");
    assert_eq!(format!("{before}{after}"), GOOSE);
    assert!(before.ends_with("b: {type: builtin}\n"), "{text}");
    assert_eq!(removed(ClientName::Goose, &text, "workbench"), GOOSE);
    let other = set(ClientName::Goose, &text, &json!({"cmd": "other"}));
    assert_eq!(set(ClientName::Goose, &other, &entry), text);
    assert_eq!(
        removed(ClientName::Goose, GOOSE, "b"),
        GOOSE.replace("    b: {type: builtin}\n", "")
    );
}

#[test]
fn a_yaml_file_without_servers_gets_the_first_one_and_loses_the_last_one() {
    let entry = json!({"name": "workbench", "command": "x"});
    let item = "  - name: \"workbench\"\n    command: \"x\"\n";
    let cases = [
        ("", format!("mcpServers:\n{item}"), "mcpServers: []\n"),
        (
            "a: 1",
            format!("a: 1\nmcpServers:\n{item}"),
            "a: 1\nmcpServers: []\n",
        ),
        (
            "mcpServers:\nb: 1\n",
            format!("mcpServers:\n{item}b: 1\n"),
            "mcpServers: []\nb: 1\n",
        ),
        (
            "mcpServers: []\nb: 1\n",
            format!("mcpServers:\n{item}b: 1\n"),
            "mcpServers: []\nb: 1\n",
        ),
    ];
    for (before, with, without) in cases {
        assert_eq!(set(ClientName::Continue, before, &entry), with);
        assert_eq!(removed(ClientName::Continue, &with, "workbench"), without);
    }
    let column_zero = "mcpServers:\n- name: a\n  command: y\nb: 1\n";
    let with = set(ClientName::Continue, column_zero, &entry);
    assert_eq!(
        with,
        column_zero.replace("b: 1", "- name: \"workbench\"\n  command: \"x\"\nb: 1")
    );
    assert_eq!(
        removed(ClientName::Continue, &with, "workbench"),
        column_zero
    );
}

#[test]
fn line_ends_are_preserved() {
    let text = CODEX.replace('\n', "\r\n");
    let changed = set(ClientName::Codex, &text, &json!({"command": "x"}));
    assert_eq!(changed.replace("\r\n", "").matches('\n').count(), 0);
    assert_eq!(removed(ClientName::Codex, &changed, "workbench"), text);
}

#[test]
fn an_inline_table_of_servers_can_be_edited() {
    let text = "mcp_servers = { a = { command = \"x\" } }\n";
    let changed = set(ClientName::Codex, text, &json!({"command": "w"}));
    let found = servers_in(
        client(ClientName::Codex),
        &changed,
        Scope::User,
        Path::new("/"),
    );
    let names: Vec<String> = found.unwrap().into_iter().map(|it| it.name).collect();
    assert_eq!(names, ["a", "workbench"]);
}

#[test]
fn a_server_is_added_to_json_with_comments() {
    let text = "{\n  // theme\n  \"theme\": \"dark\", // yes\n  \"context_servers\": {\n    \"a\": { \"command\": \"x\" }\n  }\n}\n";
    let changed = set(ClientName::Zed, text, &json!({"command": "w"}));
    assert!(
        changed.contains("// theme") && changed.contains("// yes"),
        "{changed}"
    );
    assert_eq!(removed(ClientName::Zed, &changed, "workbench"), text);
}

#[test]
fn sections_of_projects_are_changed_by_their_path() {
    let text =
        r#"{"mcpServers": {"a": {}}, "projects": {"/p": {"mcpServers": {"a": {}, "b": {}}}}}"#;
    let mut edited = ClientText::parse(client(ClientName::ClaudeCode), text).unwrap();
    assert!(edited.remove("a", Some(Path::new("/p"))).unwrap());
    assert!(!edited.remove("a", Some(Path::new("/q"))).unwrap());
    let value: Value = serde_json::from_str(&edited.finish()).unwrap();
    assert_eq!(
        value,
        json!({"mcpServers": {"a": {}}, "projects": {"/p": {"mcpServers": {"b": {}}}}})
    );
}

#[test]
fn invalid_files_are_refused() {
    let cases = [
        (ClientName::Cursor, "{"),
        (ClientName::Cursor, "{\"mcpServers\": []}"),
        (ClientName::Codex, "mcp_servers = 1"),
        (ClientName::Codex, "[mcp_servers"),
        (ClientName::MistralVibe, "[mcp_servers.x]\ncommand = \"x\""),
        (ClientName::Goose, "extensions: {a: {}}"),
        (ClientName::Goose, "extensions: 1"),
        (
            ClientName::Goose,
            "extensions:\n  a: &x {}\nb: *x\nextensions2: *y\n",
        ),
        (ClientName::Continue, "mcpServers:\n  a: {}\n"),
    ];
    for (name, text) in cases {
        let edited = ClientText::parse(client(name), text);
        let refused =
            edited.and_then(|mut it| it.set("workbench", None, &json!({"name": "workbench"})));
        assert!(refused.is_err(), "{name:?}: {text}");
    }
}

proptest! {
    /// For any file, our entry is in it afterwards, and removing it leaves the others.
    #[test]
    fn added_entries_can_be_found_and_removed(
        names in prop::collection::btree_set("[a-z. \"-]{1,6}", 0..4),
        toml in any::<bool>(),
    ) {
        let (name, servers) = if toml {
            let tables = names.iter().map(|name| format!("[mcp_servers.{name:?}]\ncommand = \"x\"\n"));
            (ClientName::Codex, tables.collect::<String>())
        } else {
            let members: serde_json::Map<String, Value> =
                names.iter().map(|name| (name.clone(), json!({"command": "x"}))).collect();
            (ClientName::Cursor, json!({"mcpServers": members}).to_string())
        };
        let found = |text: &str| {
            let found = servers_in(client(name), text, Scope::User, Path::new("/")).unwrap();
            let found = found.into_iter().filter(|it| matches!(it.parsed, ParsedEntry::Server(_)));
            found.map(|it| it.name).collect::<Vec<_>>()
        };
        let changed = set(name, &servers, &json!({"command": "w"}));
        let mut expected: Vec<String> = found(&servers);
        prop_assert_eq!(expected.len(), names.len());
        expected.push("workbench".into());
        prop_assert_eq!(found(&changed), expected);
        prop_assert_eq!(found(&removed(name, &changed, "workbench")), found(&servers));
    }
}
