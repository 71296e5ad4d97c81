//! Finds the server entries in a client's file.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::client::{Client, Scope, ServerLayout};

/// A server entry of a client's file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ClientEntry {
    pub name: String,
    pub entry: Map<String, Value>,
    /// The directory that the server is for, if any.
    pub project: Option<PathBuf>,
}

/// Returns the server entries of a file, in order. Values that are not objects are skipped: they are the client's
/// business.
pub(super) fn entries(
    client: &Client,
    document: &Value,
    scope: Scope,
    directory: &Path,
) -> Vec<ClientEntry> {
    let project = (scope == Scope::Project).then(|| directory.to_owned());
    let mut found = listed(client, document, project.as_deref());
    if client.listing == ServerLayout::MapAndProjects && scope == Scope::User {
        let projects = document.get("projects").and_then(Value::as_object);
        for (path, section) in projects.into_iter().flatten() {
            found.extend(listed(client, section, Some(Path::new(path))));
        }
    }
    found
}

fn listed(client: &Client, document: &Value, project: Option<&Path>) -> Vec<ClientEntry> {
    let mut servers = document;
    for key in client.key {
        let Some(next) = servers.get(key) else {
            return Vec::new();
        };
        servers = next;
    }
    let made = |name: &str, entry: &Value| {
        Some(ClientEntry {
            name: name.to_owned(),
            entry: entry.as_object()?.clone(),
            project: project.map(Path::to_owned),
        })
    };
    let named = |entry: &Value| made(entry.get("name")?.as_str()?, entry);
    match servers {
        Value::Object(map) => map.iter().filter_map(|(name, it)| made(name, it)).collect(),
        Value::Array(list) => list.iter().filter_map(named).collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::clients::{ClientName, client};

    fn names(name: ClientName, scope: Scope, document: &Value) -> Vec<(String, Option<PathBuf>)> {
        let found = entries(client(name), document, scope, Path::new("/project"));
        let found = found.into_iter().map(|it| (it.name, it.project));
        found.collect()
    }

    #[test]
    fn servers_are_found_in_each_client() {
        let server = json!({"command": "x"});
        let list = json!({"mcpServers": [{"name": "a", "command": "x"}, {"command": "nameless"}]});
        let cases = [
            (ClientName::Cursor, json!({"mcpServers": {"a": server}})),
            (
                ClientName::VsCode,
                json!({"servers": {"a": server}, "inputs": []}),
            ),
            (
                ClientName::Zed,
                json!({"context_servers": {"a": server, "b": true}}),
            ),
            (ClientName::OpenCode, json!({"mcp": {"a": server}})),
            (ClientName::Amp, json!({"amp.mcpServers": {"a": server}})),
            (ClientName::Codex, json!({"mcp_servers": {"a": server}})),
            (ClientName::Continue, list),
        ];
        for (client, document) in cases {
            assert_eq!(
                names(client, Scope::User, &document),
                [("a".into(), None)],
                "{client:?}"
            );
            assert_eq!(names(client, Scope::User, &json!({})), [], "{client:?}");
            assert_eq!(names(client, Scope::User, &Value::Null), [], "{client:?}");
        }
    }

    #[test]
    fn sections_of_projects_are_read_too() {
        let document = json!({
            "mcpServers": {"a": {}},
            "projects": {"/p": {"mcpServers": {"b": {}}}, "/q": {"history": []}},
        });
        assert_eq!(
            names(ClientName::ClaudeCode, Scope::User, &document),
            [("a".into(), None), ("b".into(), Some("/p".into()))]
        );
        assert_eq!(
            names(ClientName::ClaudeCode, Scope::Project, &document),
            [("a".into(), Some("/project".into()))]
        );
        assert_eq!(
            names(ClientName::Cursor, Scope::User, &document),
            [("a".into(), None)]
        );
    }
}
