//! Names as they are compared when somebody writes one in full: without case and separators.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// What a tool is called, folded and hashed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Keys {
    pub name: u64,
    /// Its server's name and its own.
    pub full: u64,
}

impl Keys {
    pub(super) fn new(server: &str, tool: &str) -> Self {
        Self {
            name: folded([tool]),
            full: folded([server, tool]),
        }
    }
}

/// How a query names a tool, the least certain way first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exact {
    /// Its name, but for case and separators.
    NameFolded,
    /// Its server and its name, but for case and separators.
    FullFolded,
    /// Its toolbox as it is written, and behind it its server and its name, but for case and separators.
    Identifier,
    /// Its name as it is written.
    Name,
    /// `server/tool` as it is written.
    Full,
}

/// How `query` names the tool, if it does.
pub(super) fn exact(
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
        // Signs alone all look the same without case and separators.
        None
    } else if keys.full == folded_query {
        Some(Exact::FullFolded)
    } else {
        Some(Exact::NameFolded)
    }
}

/// The hash of the letters and digits of some texts, in lower case.
pub(super) fn folded<'a>(texts: impl IntoIterator<Item = &'a str>) -> u64 {
    let mut hasher = DefaultHasher::new();
    for text in texts {
        for char in text.chars().filter(|char| char.is_alphanumeric()) {
            char.to_lowercase().for_each(|char| char.hash(&mut hasher));
        }
    }
    hasher.finish()
}
