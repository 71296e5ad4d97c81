use std::fs;

use pretty_assertions::assert_eq;
use proptest::prelude::*;

use super::*;
use crate::clients::client;

fn reading(name: ClientName, entry: &Value, project: Option<&Path>) -> ParsedEntry {
    let found = ClientEntry {
        name: "x".to_owned(),
        entry: entry.as_object().unwrap().clone(),
        project: project.map(Path::to_owned),
    };
    translate(client(name), &found)
}

#[track_caller]
fn imported(name: ClientName, entry: &Value, project: Option<&Path>) -> ImportedEntry {
    match reading(name, entry, project) {
        ParsedEntry::Server(imported) => imported,
        ParsedEntry::NotAServer => panic!("{entry} is a server"),
    }
}

#[test]
fn every_spelling_of_a_program_is_translated() {
    use ClientName::{
        ClaudeCode, Continue, CopilotCli, Cursor, Gemini, Goose, MistralVibe, OpenCode, Zed,
    };
    let expected = json!({"command": "npx", "args": ["-y", "pkg"], "env": {"A": "${B}"}});
    let cases = [
        (
            ClaudeCode,
            json!({"type": "stdio", "command": "npx", "args": ["-y", "pkg"], "env": {"A": "${B}"}, "alwaysLoad": true}),
        ),
        (
            Cursor,
            json!({"command": "npx", "args": ["-y", "pkg"], "env": {"A": "${env:B}"}}),
        ),
        (
            Gemini,
            json!({"command": "npx", "args": ["-y", "pkg"], "env": {"A": "$B"}, "trust": true, "timeout": 5}),
        ),
        (
            OpenCode,
            json!({"type": "local", "command": ["npx", "-y", "pkg"], "environment": {"A": "{env:B}"}, "enabled": true}),
        ),
        (
            Continue,
            json!({"name": "x", "type": "stdio", "command": "npx", "args": ["-y", "pkg"], "env": {"A": "${{ secrets.B }}"}}),
        ),
        (
            Goose,
            json!({"name": "x", "type": "stdio", "cmd": "npx", "args": ["-y", "pkg"], "envs": {"A": "${B}"}, "bundled": null}),
        ),
        (
            Zed,
            json!({"command": {"path": "npx", "args": ["-y", "pkg"], "env": {"A": "${B}"}}, "settings": {}}),
        ),
        (
            CopilotCli,
            json!({"type": "local", "command": "npx", "args": ["-y", "pkg"], "env": {"A": "${B}"}, "tools": ["*"]}),
        ),
        (
            MistralVibe,
            json!({"name": "x", "transport": "stdio", "command": "npx", "args": ["-y", "pkg"], "env": {"A": "${B}"}}),
        ),
    ];
    for (client, entry) in cases {
        let imported = imported(client, &entry, None);
        assert_eq!(imported.entry, expected, "{client:?}: {entry}");
    }
}

#[test]
fn every_spelling_of_a_remote_server_is_translated() {
    use ClientName::{
        Antigravity, ClaudeCode, Cline, Codex, Continue, Gemini, Goose, OpenCode, Windsurf,
    };
    let remote = json!({"url": "https://host/mcp"});
    let old = json!({"type": "sse", "url": "https://host/mcp"});
    let off = json!({"command": "npx", "disabled": true});
    let cases = [
        (
            ClaudeCode,
            json!({"type": "http", "url": "https://host/mcp"}),
            &remote,
        ),
        (Windsurf, json!({"serverUrl": "https://host/mcp"}), &remote),
        (
            Antigravity,
            json!({"serverUrl": "https://host/mcp"}),
            &remote,
        ),
        (Gemini, json!({"httpUrl": "https://host/mcp"}), &remote),
        (Gemini, json!({"url": "https://host/mcp"}), &old),
        (
            Cline,
            json!({"type": "streamableHttp", "url": "https://host/mcp", "autoApprove": []}),
            &remote,
        ),
        (
            OpenCode,
            json!({"type": "remote", "url": "https://host/mcp"}),
            &remote,
        ),
        (
            Continue,
            json!({"name": "x", "type": "sse", "url": "https://host/mcp"}),
            &old,
        ),
        (
            Goose,
            json!({"type": "streamable_http", "uri": "https://host/mcp"}),
            &remote,
        ),
        (Cline, json!({"command": "npx", "disabled": true}), &off),
        (Codex, json!({"command": "npx", "enabled": false}), &off),
    ];
    for (client, entry, expected) in cases {
        let imported = imported(client, &entry, None);
        assert_eq!(&imported.entry, expected, "{client:?}: {entry}");
    }
}

#[test]
fn variables_of_codex_and_goose_are_translated() {
    let codex = json!({
        "url": "https://host/mcp", "bearer_token_env_var": "TOKEN", "http_headers": {"X-A": "b"},
        "env_http_headers": {"X-B": "B_VALUE"}, "tool_timeout_sec": 60,
    });
    assert_eq!(
        imported(ClientName::Codex, &codex, None).entry,
        json!({"url": "https://host/mcp", "headers": {"X-A": "b", "X-B": "${B_VALUE}", "Authorization": "Bearer ${TOKEN}"}})
    );
    let codex = json!({"command": "x", "env_vars": ["A", {"name": "B", "source": "remote"}], "enabled_tools": ["t"], "tools": {"t": {}}});
    assert_eq!(
        imported(ClientName::Codex, &codex, None).entry,
        json!({"command": "x", "inheritEnv": ["A", "B"], "includeTools": ["t"]})
    );
    let goose = imported(
        ClientName::Goose,
        &json!({"type": "stdio", "cmd": "x", "env_keys": ["KEY"]}),
        None,
    );
    assert_eq!(
        goose.entry,
        json!({"command": "x", "env": {"KEY": "${KEY}"}})
    );
    assert_eq!(goose.remarks[0].code(), "set_variable");
}

#[test]
fn untranslatable_references_disable_the_entry() {
    let entry = json!({"command": "x", "env": {"A": "${file:/run/a}", "N": 1, "F": true}});
    let imported = imported(ClientName::Windsurf, &entry, None);
    assert_eq!(
        imported.entry,
        json!({"command": "x", "env": {"A": "$${file:/run/a}", "N": "1", "F": "true"}, "disabled": true})
    );
    assert_eq!(imported.remarks[0].code(), "untranslatable");
}

#[test]
fn built_in_tools_of_a_client_are_not_servers() {
    for (client, entry) in [
        (
            ClientName::Goose,
            json!({"type": "builtin", "name": "developer", "enabled": true}),
        ),
        (ClientName::Goose, json!({"type": "platform"})),
        (
            ClientName::Zed,
            json!({"source": "extension", "settings": {"token": "x"}}),
        ),
        (
            ClientName::ClaudeCode,
            json!({"type": "ws", "url": "wss://host"}),
        ),
        (ClientName::Cursor, json!({"command": ""})),
        (
            ClientName::Cursor,
            json!({"type": "stdio", "url": "https://host"}),
        ),
    ] {
        assert_eq!(
            reading(client, &entry, None),
            ParsedEntry::NotAServer,
            "{entry}"
        );
    }
}

#[test]
fn secrets_are_reported_by_location_only() {
    let entry = json!({
        "command": "x", "args": ["--token", "hunter2-hunter2"],
        "env": {"API_KEY": "hunter2-hunter2", "MODE": "fast", "OTHER_KEY": "${OTHER_KEY}"},
    });
    let remarks = imported(ClientName::Cursor, &entry, None).remarks;
    let remarks: Vec<String> = remarks.iter().map(ToString::to_string).collect();
    assert_eq!(remarks.len(), 2, "{remarks:?}");
    assert!(remarks[0].starts_with("args[1] "), "{remarks:?}");
    assert!(remarks[1].starts_with("env.API_KEY "), "{remarks:?}");
    assert!(!remarks.concat().contains("hunter2"));
    let remote = json!({"url": "https://host", "oauth": {"client_id": "x"}});
    let remarks = imported(ClientName::Codex, &remote, None).remarks;
    assert_eq!(remarks, [Remark::SignsIn]);
}

#[test]
fn oauth_client_credentials_are_imported() {
    for (client, theirs, ours) in [
        (
            ClientName::ClaudeCode,
            json!({"oauth": {"clientId": "a", "callbackPort": 8123, "authServerMetadataUrl": "https://x"}}),
            json!({"clientId": "a", "callbackPort": 8123}),
        ),
        (
            ClientName::Codex,
            json!({"oauth": {"client_id": "a"}, "scopes": ["read", "write"]}),
            json!({"clientId": "a", "scopes": ["read", "write"]}),
        ),
        (
            ClientName::Cursor,
            json!({"auth": {"CLIENT_ID": "a", "CLIENT_SECRET": "${env:S}", "scopes": ["read"]}}),
            json!({"clientId": "a", "clientSecret": "${S}", "scopes": ["read"]}),
        ),
        (
            ClientName::OpenCode,
            json!({"oauth": {"clientId": "a", "scope": "read write"}}),
            json!({"clientId": "a", "scopes": ["read", "write"]}),
        ),
        (ClientName::OpenCode, json!({"oauth": false}), json!(false)),
        (
            ClientName::Gemini,
            json!({"oauth": {"enabled": true}}),
            Value::Null,
        ),
    ] {
        let mut entry = theirs.clone();
        entry["type"] = "http".into();
        entry["url"] = "https://host".into();
        let imported = imported(client, &entry, None);
        assert_eq!(imported.entry["oauth"], ours, "{theirs}");
    }
    let entry = json!({"url": "https://host", "oauth": {"clientId": "a", "clientSecret": "hunter2-hunter2"}});
    let remarks = imported(ClientName::Cursor, &entry, None).remarks;
    assert!(remarks.contains(&Remark::LiteralSecret {
        key: "oauth.clientSecret".into()
    }));
}

#[cfg(unix)]
#[test]
fn relative_paths_are_resolved_against_the_project() {
    let folder = tempfile::tempdir().unwrap();
    let project = folder.path();
    fs::write(project.join("server.py"), "").unwrap();
    let at = |path: &str| project.join(path).to_str().unwrap().to_owned();
    let cases = [
        (
            json!({"command": "./bin/x", "envFile": "${workspaceFolder}/.env", "cwd": "sub"}),
            json!({"command": at("bin/x"), "cwd": at("sub"), "envFile": at(".env")}),
        ),
        (
            json!({"command": "python", "args": ["server.py"]}),
            json!({"command": "python", "args": ["server.py"], "cwd": project.to_str().unwrap()}),
        ),
        (
            json!({"command": "python", "args": ["-m", "other", "gone.py"]}),
            json!({"command": "python", "args": ["-m", "other", "gone.py"]}),
        ),
        (
            json!({"command": "~/bin/x", "cwd": "/abs"}),
            json!({"command": "${userHome}/bin/x", "cwd": "/abs"}),
        ),
    ];
    for (entry, expected) in cases {
        assert_eq!(
            imported(ClientName::Cursor, &entry, Some(project)).entry,
            expected
        );
    }
}

#[test]
fn no_name_or_text_becomes_a_live_reference() {
    let project = Path::new("/home/me/app$");
    let read = "file:/home/me/.ssh/id_rsa";
    let cases = [
        (
            ClientName::VsCode,
            json!({"command": "x", "args": ["${workspaceFolder}{file:/k}", "${workspaceFolderBasename}{A}"]}),
            json!({"command": "x", "args": ["/home/me/app$${file:/k}", "app$${A}"]}),
        ),
        (
            ClientName::Codex,
            json!({"url": "https://h", "bearer_token_env_var": read, "env_http_headers": {"X": read}}),
            json!({"url": "https://h", "headers": {"X": read, "Authorization": format!("Bearer {read}")}, "disabled": true}),
        ),
        (
            ClientName::Goose,
            json!({"cmd": "x", "env_keys": [read], "available_tools": ["${file:/k}"]}),
            json!({"command": "x", "env": {read: read}, "includeTools": ["$${file:/k}"], "disabled": true}),
        ),
        (
            ClientName::Codex,
            json!({"command": "x", "env_vars": ["${file:/k}"]}),
            json!({"command": "x", "inheritEnv": ["$${file:/k}"]}),
        ),
        (
            ClientName::Codex,
            json!({"url": "https://h", "oauth": {"client_id": "a", "scopes": ["${file:/k}"], "scope": "${keyring:k}"}}),
            json!({"url": "https://h", "oauth": {"clientId": "a", "scopes": ["$${keyring:k}", "$${file:/k}"]}}),
        ),
    ];
    for (client, entry, expected) in cases {
        let imported = imported(client, &entry, Some(project));
        assert_eq!(imported.entry, expected, "{client:?}");
    }
}

/// Returns all texts of a value but the names of members.
fn texts(value: &Value) -> Vec<&str> {
    match value {
        Value::String(text) => vec![text],
        Value::Array(items) => items.iter().flat_map(texts).collect(),
        Value::Object(members) => members.values().flat_map(texts).collect(),
        _ => Vec::new(),
    }
}

/// Tells whether the configuration would read a file or the keyring for a text.
fn reads_a_secret(text: &str) -> bool {
    text.match_indices("${").any(|(at, _)| {
        let inside = &text[at + 2..];
        !text[..at].ends_with('$')
            && (inside.starts_with("file:") || inside.starts_with("keyring:"))
    })
}

/// Any JSON, in which keys that mean something are frequent.
fn any_json() -> impl Strategy<Value = Value> {
    let text =
        r"(\$\{|\}|[a$\{:/~. -]|file:|keyring:|\$\{workspaceFolder\}|npx|stdio|https://h){0,4}";
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        text.prop_map(Value::from),
    ];
    let keys = [
        "command",
        "cmd",
        "args",
        "env",
        "envs",
        "environment",
        "url",
        "uri",
        "httpUrl",
        "headers",
        "type",
        "transport",
        "cwd",
        "envFile",
        "env_vars",
        "env_keys",
        "path",
        "tools",
        "disabledTools",
        "oauth",
        "client_id",
        "scopes",
        "env_http_headers",
        "bearer_token_env_var",
        "requestOptions",
        "disabled",
        "",
    ];
    leaf.prop_recursive(3, 24, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((prop::sample::select(keys.to_vec()), inner), 0..6).prop_map(
                |members| {
                    let members = members
                        .into_iter()
                        .map(|(key, value)| (key.to_owned(), value));
                    Value::Object(members.collect())
                }
            ),
        ]
    })
}

proptest! {
    /// Whatever a client's file contains, the result is an entry that is reached in one way, and that makes the workbench
    /// read no file.
    #[test]
    fn no_translated_entry_reads_a_file(entry in any_json(), which in 0..crate::clients::CLIENTS.len()) {
        let client = &crate::clients::CLIENTS[which];
        let Value::Object(entry) = entry else { return Ok(()) };
        let found = ClientEntry { name: "x".to_owned(), entry, project: Some("/nowhere/app$".into()) };
        if let ParsedEntry::Server(imported) = translate(client, &found) {
            let has = |key: &str| imported.entry.get(key).is_some();
            prop_assert!(has("command") != has("url"), "{}", imported.entry);
            let mut texts = texts(&imported.entry).into_iter();
            prop_assert!(!texts.any(reads_a_secret), "{}", imported.entry);
        }
    }
}
