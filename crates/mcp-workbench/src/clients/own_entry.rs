//! The entry that makes a client start the workbench, in the client's spelling: as a value, as a snippet to
//! paste, and as a link.

use std::path::Path;

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Map, Value, json};

use super::{
    client::{Client, CommandSpelling, Constant, Format, Interpolation, Link, ServerLayout},
    document,
    write::{table_of, yaml},
};
use crate::config::{Environment, MissingValue, Transport, parse};

/// Variables that every client passes to its servers.
const ALWAYS_PASSED: &[&str] = &[
    "HOME",
    "LOGNAME",
    "PATH",
    "SHELL",
    "TERM",
    "USER",
    "APPDATA",
    "HOMEDRIVE",
    "HOMEPATH",
    "LOCALAPPDATA",
    "SYSTEMDRIVE",
    "SYSTEMROOT",
    "TEMP",
    "USERNAME",
    "USERPROFILE",
];

/// The workbench as a server of a client.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OwnEntry<'a> {
    pub name: &'a str,
    /// The absolute path of the program.
    pub program: &'a str,
    /// The absolute path of the configuration.
    pub config: &'a str,
    /// The variables that the configuration needs.
    pub variables: &'a [String],
    /// True if the client shares servers with others, whatever the configuration says.
    pub shared: bool,
}

impl OwnEntry<'_> {
    /// Returns the entry for a client.
    pub(crate) fn value(&self, client: &Client) -> Value {
        let mut entry = Map::new();
        if client.listing == ServerLayout::List {
            entry.insert("name".into(), self.name.into());
        }
        // The keys that name the kind of a server come first in the entry.
        let (kinds, others): (Vec<_>, Vec<_>) = client
            .spelling
            .always
            .iter()
            .partition(|(key, _)| ["name", "type", "transport"].contains(key));
        entry.extend(self.constants(kinds));
        let mut arguments = vec!["--config", self.config];
        if self.shared {
            arguments.extend(["serve", "--shared"]);
        }
        match client.spelling.command {
            CommandSpelling::Line => {
                arguments.insert(0, self.program);
                entry.insert("command".into(), json!(arguments));
            }
            CommandSpelling::CommandAndArgs => {
                entry.insert("command".into(), self.program.into());
                entry.insert("args".into(), json!(arguments));
            }
            CommandSpelling::CmdAndArgs => {
                entry.insert("cmd".into(), self.program.into());
                entry.insert("args".into(), json!(arguments));
            }
        }
        entry.extend(self.environment(client));
        entry.extend(self.constants(others));
        entry.into()
    }

    /// Returns the keys that the client always needs, with their values.
    fn constants(
        &self,
        constants: Vec<&(&'static str, Constant)>,
    ) -> impl Iterator<Item = (String, Value)> {
        constants.into_iter().map(|(key, value)| {
            let value = match value {
                Constant::Name => self.name.into(),
                Constant::Text(text) => (*text).into(),
                Constant::True => true.into(),
                Constant::Texts(texts) => json!(texts),
            };
            ((*key).to_owned(), value)
        })
    }

    /// Returns the variables in the client's syntax; `None` if there are none or the client cannot pass them on.
    fn environment(&self, client: &Client) -> Option<(String, Value)> {
        if self.variables.is_empty() {
            return None;
        }
        if let Interpolation::NamesIn(key) = client.interpolation {
            return Some((key.to_owned(), json!(self.variables)));
        }
        let mut env = Map::new();
        for name in self.variables {
            env.insert(name.clone(), reference(client.interpolation, name)?.into());
        }
        Some((client.spelling.env.to_owned(), env.into()))
    }

    /// Returns the text to paste into the client's file.
    pub(crate) fn snippet(&self, client: &Client) -> String {
        let entry = self.value(client);
        match client.format {
            Format::Json => {
                let mut value = json!({self.name: entry});
                for key in client.key.iter().rev() {
                    value = json!({*key: value});
                }
                format!("{value:#}\n")
            }
            Format::Toml => {
                let heading = match client.listing {
                    ServerLayout::List => format!("[[{}]]", client.key.join(".")),
                    ServerLayout::Map | ServerLayout::MapAndProjects => {
                        format!(
                            "[{}.{}]",
                            client.key.join("."),
                            toml_edit::Key::new(self.name)
                        )
                    }
                };
                format!("{heading}\n{}", table_of(&entry))
            }
            Format::Yaml => {
                let servers = match client.listing {
                    ServerLayout::List => json!([entry]),
                    ServerLayout::Map | ServerLayout::MapAndProjects => json!({self.name: entry}),
                };
                let mut value = servers;
                for key in client.key.iter().rev() {
                    value = json!({*key: value});
                }
                yaml(&value, 0)
            }
        }
    }

    /// Returns the entry as it will appear in the client's file, without its surroundings.
    pub(crate) fn lines(&self, client: &Client) -> Vec<String> {
        if client.format != Format::Json {
            return self.snippet(client).lines().map(str::to_owned).collect();
        }
        let member = format!("{:#}", json!({self.name: self.value(client)}));
        // Only the member itself: the braces around it are not indented.
        let lines = member.lines().filter(|line| line.starts_with(' '));
        lines.map(|line| line[2..].to_owned()).collect()
    }

    /// Returns the link that makes the client add the entry, if it supports one.
    pub(crate) fn link(&self, client: &Client) -> Option<String> {
        let entry = self.value(client);
        Some(match client.link? {
            Link::Cursor => format!(
                "cursor://anysphere.cursor-deeplink/mcp/install?name={}&config={}",
                percent_encoded(self.name),
                percent_encoded(&STANDARD.encode(entry.to_string()))
            ),
            Link::VsCode => {
                let mut named = json!({"name": self.name});
                if let (Value::Object(named), Value::Object(entry)) = (&mut named, entry) {
                    named.extend(entry);
                }
                format!("vscode:mcp/install?{}", percent_encoded(&named.to_string()))
            }
        })
    }
}

/// Returns the variables that a client has to pass on: those that the configuration refers to without a default,
/// and those that servers inherit by name, if set. Variables that every client passes on are omitted.
pub(crate) fn needed_variables(text: &str, file: &Path, environment: &Environment) -> Vec<String> {
    // With an empty environment, every reference without a default is reported as unset.
    let nothing_set = Environment::new([], "/".into(), Some("/".into()));
    let mut needed: Vec<String> = Vec::new();
    let mut add = |name: &str| {
        let passed = ALWAYS_PASSED.iter().any(|it| it.eq_ignore_ascii_case(name));
        if !passed && !needed.iter().any(|known| known == name) {
            needed.push(name.to_owned());
        }
    };
    if let Ok(loaded) = parse(text, file, &nothing_set) {
        let toolboxes = loaded.config.toolboxes.values();
        for server in toolboxes.flat_map(|toolbox| toolbox.servers.values()) {
            if let Transport::Unset(variables) = &server.transport {
                for unset in variables {
                    if let MissingValue::Variable(name) = &unset.value {
                        add(name);
                    }
                }
            }
        }
    }
    // `inheritEnv` takes values from the environment, which is empty above. Its names are in the text only.
    let document = document::parse(text, Format::Json).unwrap_or_default();
    let members = |value: &Value| value.as_object().cloned().unwrap_or_default();
    for (_, toolbox) in members(&document["toolboxes"]) {
        for (_, server) in members(&toolbox["mcpServers"]) {
            let listed = server["inheritEnv"].as_array().cloned().unwrap_or_default();
            let names = listed.iter().filter_map(Value::as_str);
            for name in names.filter(|name| environment.variable(name).is_some()) {
                add(name);
            }
        }
    }
    needed
}

/// Returns the client's reference to a variable.
fn reference(interpolation: Interpolation, name: &str) -> Option<String> {
    match interpolation {
        Interpolation::None | Interpolation::NamesIn(_) => None,
        Interpolation::Braces => Some(format!("${{{name}}}")),
        Interpolation::EnvPrefix => Some(format!("${{env:{name}}}")),
        Interpolation::Dollar => Some(format!("${name}")),
        Interpolation::Curly => Some(format!("{{env:{name}}}")),
        Interpolation::Template => Some(format!("${{{{ secrets.{name} }}}}")),
    }
}

/// Percent-encodes a text for the query of a URL.
fn percent_encoded(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

#[cfg(test)]
mod tests;
