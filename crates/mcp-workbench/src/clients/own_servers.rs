//! The servers of our configuration, for comparison with those of clients.

use serde_json::Value;

use super::{
    client::{ClientName, Format},
    document,
    identity::{Identity, identity},
    read::ClientEntry,
    restrictions::Restrictions,
    table::client,
    translate::{ParsedEntry, translate_own},
};

/// A server of our configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OwnServer {
    pub toolbox: String,
    pub name: String,
    /// Its identity; `None` if the entry is invalid.
    pub identity: Option<Identity>,
    pub disabled: bool,
    /// The tool restrictions that a client can have too; `None` if the entry has filters of its own.
    pub restrictions: Option<Restrictions>,
}

impl OwnServer {
    /// Returns true if a client's entry of this server allows fewer tools. Filters of the workbench are the user's own
    /// decision, so nothing is compared with them.
    pub(crate) fn allows_more_than(&self, entry: &Value) -> bool {
        let own = self.restrictions.as_ref();
        own.is_some_and(|own| Restrictions::of(entry).is_stricter_than(own))
    }
}

/// Returns the servers in the text of a configuration, in order; none if the text is invalid.
pub(crate) fn own_servers(text: &str) -> Vec<OwnServer> {
    let document = document::parse(text, Format::Json).unwrap_or_default();
    let members = |value: Option<&Value>| {
        let members = value.and_then(Value::as_object);
        members.cloned().unwrap_or_default()
    };
    let mut servers = Vec::new();
    for (toolbox, content) in members(document.get("toolboxes")) {
        for (name, entry) in members(content.get("mcpServers")) {
            servers.push(own_server(&toolbox, name, &entry));
        }
    }
    servers
}

fn own_server(toolbox: &str, name: String, entry: &Value) -> OwnServer {
    let found = ClientEntry {
        name: name.clone(),
        entry: entry.as_object().cloned().unwrap_or_default(),
        project: None,
    };
    // Any client but Gemini, which reads a `url` without a type in its own way.
    let translated = match translate_own(client(ClientName::ClaudeCode), &found) {
        ParsedEntry::Server(imported) => Some(imported.entry),
        ParsedEntry::NotAServer => None,
    };
    OwnServer {
        toolbox: toolbox.to_owned(),
        name,
        identity: translated.as_ref().and_then(identity),
        restrictions: translated
            .as_ref()
            .filter(|_| entry.get("toolFilters").is_none())
            .map(Restrictions::of),
        disabled: translated.is_some_and(|entry| entry.get("disabled").is_some()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn servers_are_compared_in_one_spelling() {
        let text = r#"{
            // note
            "toolboxes": {"t": {"description": "d", "mcpServers": {
                "a": {"command": ["npx", "x"], "environment": {"A": "${env:A}"}},
                "b": {"serverUrl": "https://host", "enabled": false},
                "c": {},
                "d": {"command": "y", "args": ["${file:/k}", "$${file:/k}"]},
            }}},
        }"#;
        let server = |name: &str, entry: Option<Value>, disabled: bool| OwnServer {
            toolbox: "t".to_owned(),
            name: name.to_owned(),
            restrictions: entry.as_ref().map(Restrictions::of),
            identity: entry.map(|entry| identity(&entry).unwrap()),
            disabled,
        };
        assert_eq!(
            own_servers(text),
            [
                server(
                    "a",
                    Some(json!({"command": "npx", "args": ["x"], "env": {"A": "${A}"}})),
                    false
                ),
                server("b", Some(json!({"url": "https://host"})), true),
                server("c", None, false),
                server(
                    "d",
                    Some(json!({"command": "y", "args": ["${file:/k}", "$${file:/k}"]})),
                    false
                ),
            ]
        );
        assert_eq!(own_servers("{"), []);
        assert_eq!(own_servers("[1]"), []);
    }
}
