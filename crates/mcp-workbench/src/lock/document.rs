//! The content of a lock file and its text: one line per tool, sorted, so that a change of one tool changes one line.

use std::collections::BTreeMap;

use ident::ServerIdentifier;
use serde_json::Value;

use super::{Digest, Launch, PinPolicy};
use crate::{config::PinMode, visible::visible};

/// The layout of the file. Files of other layouts are refused.
pub(super) const LAYOUT: u32 = 1;

/// The content of a lock file: servers by toolbox and name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lock {
    pub policy: PinPolicy,
    pub(super) toolboxes: BTreeMap<String, BTreeMap<String, PinnedServer>>,
}

/// The pins of one server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PinnedServer {
    /// The launch at the first contact or the last approval.
    pub launch: Launch,
    /// The launch that was last reported, if it differs.
    pub seen: Option<Launch>,
    pub tools: BTreeMap<String, PinnedTool>,
}

/// The pins of one tool: at least one of the two digests.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PinnedTool {
    /// The definition at the first contact or the last approval.
    pub pinned: Option<Digest>,
    /// The definition that was last reported, if it differs.
    pub seen: Option<Digest>,
    /// The code of the scanner's finding that the user approved with the pinned definition.
    pub finding: Option<String>,
}

impl Lock {
    /// Returns the pins of a server.
    pub fn server(&self, place: &ServerIdentifier) -> Option<&PinnedServer> {
        let toolbox = self.toolboxes.get(place.toolbox.as_str())?;
        toolbox.get(place.server.as_str())
    }

    /// Returns the pins of a server for a change, and adds empty ones if there are none.
    pub fn server_mut(&mut self, place: &ServerIdentifier) -> &mut PinnedServer {
        let toolbox = place.toolbox.to_string();
        let toolbox = self.toolboxes.entry(toolbox).or_default();
        toolbox.entry(place.server.to_string()).or_default()
    }

    /// Returns all servers, sorted by toolbox and name.
    pub fn servers(&self) -> impl Iterator<Item = (ServerIdentifier, &PinnedServer)> {
        self.toolboxes.iter().flat_map(|(toolbox, servers)| {
            servers.iter().map(move |(server, pinned)| {
                let place = ServerIdentifier {
                    toolbox: toolbox.as_str().into(),
                    server: server.as_str().into(),
                };
                (place, pinned)
            })
        })
    }

    /// Removes a server, and its toolbox with the last server.
    pub fn remove(&mut self, place: &ServerIdentifier) {
        if let Some(servers) = self.toolboxes.get_mut(place.toolbox.as_str()) {
            servers.remove(place.server.as_str());
            if servers.is_empty() {
                self.toolboxes.remove(place.toolbox.as_str());
            }
        }
    }

    /// Returns the text of the file.
    pub fn text(&self) -> String {
        let toolboxes = members(
            self.toolboxes.iter().map(|(name, servers)| {
                let servers = servers.iter().map(|(name, server)| (name, server.text(6)));
                (name, members(servers, 4))
            }),
            2,
        );
        let pin = if self.policy.is_enforced {
            format!("  \"pin\": {},\n", string(PinMode::Enforce.word()))
        } else {
            String::new()
        };
        let pins = self.policy.servers.iter().map(|(name, servers)| {
            let servers = servers
                .iter()
                .map(|(name, mode)| (name, string(mode.word())));
            (name, members(servers, 4))
        });
        let pins = match pins.len() {
            0 => String::new(),
            _ => format!("  \"pins\": {},\n", members(pins, 2)),
        };
        format!("{{\n  \"layout\": {LAYOUT},\n{pin}{pins}  \"toolboxes\": {toolboxes}\n}}\n")
    }
}

impl PinnedServer {
    fn text(&self, indent: usize) -> String {
        let launch = |launch: &Launch| {
            let parts = launch.parts().iter();
            members(parts.map(|(name, part)| (name, line(part))), indent + 2)
        };
        let tools = self.tools.iter().map(|(name, tool)| (name, tool.text()));
        let tools = members(tools, indent + 2);
        let seen = self.seen.as_ref().map(|seen| ("seen", launch(seen)));
        let own = [("launch", launch(&self.launch))].into_iter();
        members(own.chain(seen).chain([("tools", tools)]), indent)
    }
}

impl PinnedTool {
    fn text(&self) -> String {
        // The usual case is a single digest, so that a tool takes one short line.
        if let (Some(pinned), None, None) = (self.pinned, self.seen, &self.finding) {
            return format!("\"{pinned}\"");
        }
        let digest = |digest: Option<Digest>| digest.map(|it| it.to_string());
        let members = [
            ("pinned", digest(self.pinned)),
            ("seen", digest(self.seen)),
            ("finding", self.finding.clone()),
        ]
        .into_iter();
        let members =
            members.filter_map(|(name, text)| Some(format!("\"{name}\": {}", string(&text?))));
        format!("{{ {} }}", members.collect::<Vec<_>>().join(", "))
    }
}

/// Writes an object with one line per member.
fn members(members: impl Iterator<Item = (impl AsRef<str>, String)>, indent: usize) -> String {
    let inner = " ".repeat(indent + 2);
    let lines: Vec<String> = members
        .map(|(name, value)| format!("{inner}{}: {value}", string(name.as_ref())))
        .collect();
    if lines.is_empty() {
        return "{}".to_owned();
    }
    format!("{{\n{}\n{}}}", lines.join(",\n"), " ".repeat(indent))
}

/// Writes a value on one line.
fn line(value: &Value) -> String {
    match value {
        Value::String(text) => string(text),
        Value::Array(elements) => {
            let elements: Vec<String> = elements.iter().map(line).collect();
            format!("[{}]", elements.join(", "))
        }
        Value::Object(entries) => {
            let entries = entries
                .iter()
                .map(|(name, value)| format!("{}: {}", string(name), line(value)));
            format!("{{ {} }}", entries.collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}

/// Writes a string. Hidden characters are escaped, so that all of them can be seen.
fn string(text: &str) -> String {
    let quoted = Value::from(text).to_string();
    if visible(&quoted) == quoted {
        return quoted;
    }
    let mut shown = String::new();
    for character in quoted.chars() {
        if character.is_ascii_graphic() || character == ' ' {
            shown.push(character);
        } else {
            for unit in character.encode_utf16(&mut [0; 2]) {
                shown.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    shown
}
