//! Comparison of names that a query spells in full: without case and separators.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// The folded and hashed names of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Keys {
    pub name: u64,
    /// The hash of the server's name and the tool's name.
    pub full: u64,
}

impl Keys {
    pub(crate) fn new(server: &str, tool: &str) -> Self {
        Self {
            name: folded([tool]),
            full: folded([server, tool]),
        }
    }
}

/// The way in which a query names a tool, the least certain first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exact {
    /// The tool's name, except for case and separators.
    NameFolded,
    /// The server's and the tool's name, except for case and separators.
    FullFolded,
    /// The toolbox's name as it is written, followed by the server's and the tool's name, except for case and
    /// separators.
    Identifier,
    /// The tool's name as it is written.
    Name,
    /// `server/tool` as it is written.
    Full,
}

/// Returns the way in which `query` names the tool, if it does.
pub(crate) fn exact(
    query: &str,
    folded_query: u64,
    keys: Keys,
    server: &str,
    tool: &str,
) -> Option<Exact> {
    if query.is_empty() || (keys.name != folded_query && keys.full != folded_query) {
        return None;
    }
    let full = query
        .strip_prefix(server)
        .and_then(|rest| rest.strip_prefix(['/', ' ']));
    if full == Some(tool) {
        Some(Exact::Full)
    } else if query == tool {
        Some(Exact::Name)
    } else if !query.contains(char::is_alphanumeric) {
        // A query without letters and digits would equal every such name.
        None
    } else if keys.full == folded_query {
        Some(Exact::FullFolded)
    } else {
        Some(Exact::NameFolded)
    }
}

/// Returns the hash of the letters and digits of some texts, in lower case.
pub(crate) fn folded<'a>(texts: impl IntoIterator<Item = &'a str>) -> u64 {
    let mut hasher = DefaultHasher::new();
    for text in texts {
        for char in text.chars().filter(|char| char.is_alphanumeric()) {
            char.to_lowercase().for_each(|char| char.hash(&mut hasher));
        }
    }
    hasher.finish()
}
