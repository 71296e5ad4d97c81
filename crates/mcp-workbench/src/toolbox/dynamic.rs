//! Dynamic mode: the names under which tools of open toolboxes are registered on the workbench itself. A name is
//! created once and then looked up; it is never parsed.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard},
};

use ident::ToolIdentifier;
use rawjson::{ObjectText, RawJson};

use crate::{
    sha256::{Sha256, hexadecimal},
    sync::lock,
};

/// The number of characters that the hash takes in a name, its underscore included.
const HASH_CHARACTERS: usize = 9;

/// The names that have been assigned.
pub(crate) struct Registry {
    limit: usize,
    names: Mutex<NameTable>,
}

#[derive(Default)]
struct NameTable {
    by_tool: HashMap<ToolIdentifier, Arc<str>>,
    by_name: HashMap<Arc<str>, ToolIdentifier>,
}

impl Registry {
    /// Creates an empty registry for names of at most `limit` characters.
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            limit,
            names: Mutex::default(),
        }
    }

    /// Returns the name of a tool, and assigns one if it has none. Names of meta-tools are never assigned, because
    /// they do not contain two double underscores.
    pub(crate) fn register(&self, tool: &ToolIdentifier) -> Arc<str> {
        let mut names = self.names();
        if let Some(name) = names.by_tool.get(tool) {
            return Arc::clone(name);
        }
        let is_free = |name: &str| !names.by_name.contains_key(name);
        let name: Arc<str> = unique_name(&joined(tool), &fields(tool), self.limit, is_free).into();
        names.by_tool.insert(tool.clone(), Arc::clone(&name));
        names.by_name.insert(Arc::clone(&name), tool.clone());
        name
    }

    /// Returns the tool that is registered under a name.
    pub(crate) fn lookup(&self, name: &str) -> Option<ToolIdentifier> {
        self.names().by_name.get(name).cloned()
    }

    /// Returns whether a tool without a name could be assigned this one.
    pub(crate) fn could_name(&self, tool: &ToolIdentifier, name: &str) -> bool {
        let names = possible_registered_names(tool, self.limit);
        names.iter().any(|it| it == name)
    }

    /// Returns true if every client accepts a name as it is.
    pub(crate) fn fits(&self, name: &str) -> bool {
        fits(name, self.limit)
    }

    /// Returns the number of assigned names.
    pub(crate) fn len(&self) -> usize {
        self.names().by_name.len()
    }

    fn names(&self) -> MutexGuard<'_, NameTable> {
        lock(&self.names)
    }
}

/// Returns the names that a tool may have in a [`Registry`]. Which of them it gets depends on the tools that were
/// registered before it.
pub(crate) fn possible_registered_names(tool: &ToolIdentifier, limit: usize) -> Vec<String> {
    possible_names(&joined(tool), &fields(tool), limit)
}

/// Returns the names that [`unique_name`] may return: the plain name if it fits, and the one with a hash. Names with
/// a salted hash are left out, because they occur only if another tool took the unsalted one on purpose.
pub(crate) fn possible_names(plain: &str, fields: &[&str], limit: usize) -> Vec<String> {
    let plain_name = fits(plain, limit).then(|| plain.to_owned());
    let hashed_name = hashed(plain, fields, limit, 0);
    plain_name.into_iter().chain([hashed_name]).collect()
}

fn joined(tool: &ToolIdentifier) -> String {
    format!("{}__{}__{}", tool.toolbox, tool.server, tool.tool)
}

fn fields(tool: &ToolIdentifier) -> [&str; 3] {
    [
        tool.toolbox.as_str(),
        tool.server.as_str(),
        tool.tool.as_str(),
    ]
}

fn fits(name: &str, limit: usize) -> bool {
    name.len() <= limit && name.chars().all(is_plain)
}

fn is_plain(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '_' || character == '-'
}

/// Returns a name that every client accepts: the plain one if it fits and is free, otherwise one that is sanitized,
/// shortened and made unique by a hash of the fields.
pub(crate) fn unique_name(
    plain: &str,
    fields: &[&str],
    limit: usize,
    is_free: impl Fn(&str) -> bool,
) -> String {
    if fits(plain, limit) && is_free(plain) {
        return plain.to_owned();
    }
    let mut tries = (0..).map(|salt| hashed(plain, fields, limit, salt));
    let free = tries.find(|name| is_free(name));
    free.expect("there are more salts than names")
}

/// Returns the name with other characters replaced, shortened, and followed by a hash of the fields. A salt other
/// than 0 gives a different hash, for a name that was taken on purpose.
fn hashed(plain: &str, fields: &[&str], limit: usize, salt: u32) -> String {
    let cleaned = plain.chars().map(|it| if is_plain(it) { it } else { '_' });
    let mut name: String = cleaned.take(limit - HASH_CHARACTERS).collect();
    let mut hash = Sha256::new();
    for field in fields {
        // The length prefix keeps different fields apart, whatever characters they contain.
        hash.update(u64::try_from(field.len()).unwrap_or(u64::MAX).to_be_bytes());
        hash.update(field.as_bytes());
    }
    // Salt 0 is not hashed, because the contract fixes the hash of the three fields.
    if salt > 0 {
        hash.update(salt.to_be_bytes());
    }
    name.push('_');
    name + &hexadecimal(&hash.finish()[..4])
}

/// Returns a tool's definition as it is registered: with our name, with its origin in the description and in `_meta`,
/// and otherwise as the server sent it.
pub(crate) fn registered_definition(
    name: &str,
    tool: &ToolIdentifier,
    definition: &RawJson,
) -> RawJson {
    let members = definition.members().unwrap_or_default();
    let mut text = ObjectText::new().member("name", name);
    let place = format!("[{}/{}]", tool.toolbox, tool.server);
    let described = members
        .iter()
        .find(|member| member.key == "description")
        .and_then(|member| member.value.as_text());
    let description = match described {
        Some(description) => format!("{place} {description}"),
        None => place,
    };
    text = text.member("description", &description);
    for member in &members {
        if !matches!(member.key.as_ref(), "name" | "description" | "_meta") {
            text = text.relay(member);
        }
    }
    let meta = members
        .iter()
        .find(|member| member.key == "_meta")
        .and_then(|member| member.value.members())
        .unwrap_or_default();
    // No server may claim to be another one.
    let kept = meta
        .iter()
        .filter(|it| !matches!(it.key.as_ref(), "toolbox" | "server" | "tool"));
    let meta = kept
        .fold(ObjectText::new(), |text, member| text.relay(member))
        .member("toolbox", tool.toolbox.as_str())
        .member("server", tool.server.as_str())
        .member("tool", tool.tool.as_str());
    text.raw("_meta", &meta.finish()).finish()
}

#[cfg(test)]
mod tests;
