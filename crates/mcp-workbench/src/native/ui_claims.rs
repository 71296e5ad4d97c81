//! The owners of user interfaces. A `ui://` URI belongs to the server that names it in the definition of a tool, because
//! the client reads it for that tool. Servers need not list such resources.

use std::collections::HashMap;

use ident::ServerIdentifier;
use rawjson::RawJson;

use crate::{
    downstream::{ToolDefinition, ToolList, UI_SCHEME, with_ui_uris},
    toolbox::server_prefix,
};

/// The prefix of our URIs for interfaces that several servers name. Clients recognize interfaces by the scheme.
const UI_PREFIX: &str = "ui://mcp-workbench/";

/// The servers that name each user interface, in the order of the file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct UiClaims {
    by_uri: HashMap<String, Vec<ServerIdentifier>>,
}

impl UiClaims {
    /// Reads the definitions of the tools of servers.
    pub(crate) fn of<'a>(
        lists: impl IntoIterator<Item = (ServerIdentifier, &'a ToolList)>,
    ) -> Self {
        let mut by_uri: HashMap<String, Vec<ServerIdentifier>> = HashMap::new();
        for (server, list) in lists {
            let interfaces = list.tools().iter().filter_map(|tool| tool.ui.as_ref());
            let uris = interfaces.flat_map(|ui| &ui.resources);
            for uri in uris.filter(|uri| !is_ours(uri)) {
                let claims = by_uri.entry(uri.clone()).or_default();
                // The tools of one server follow each other.
                if claims.last() != Some(&server) {
                    claims.push(server.clone());
                }
            }
        }
        Self { by_uri }
    }

    /// Returns the first server that names an interface.
    pub(super) fn first(&self, uri: &str) -> Option<&ServerIdentifier> {
        self.by_uri.get(uri)?.first()
    }

    /// Returns the only server that names an interface.
    pub(super) fn only(&self, uri: &str) -> Option<&ServerIdentifier> {
        match self.by_uri.get(uri)?.as_slice() {
            [only] => Some(only),
            _ => None,
        }
    }

    /// Returns true if several servers name an interface.
    pub(super) fn is_shared(&self, uri: &str) -> bool {
        self.by_uri.get(uri).is_some_and(|it| it.len() > 1)
    }

    /// Returns the definition of a tool with URIs that belong to its server only.
    pub(crate) fn distinct(&self, tool: &ToolDefinition, server: &ServerIdentifier) -> RawJson {
        rename(tool, server, |uri| self.is_shared(uri))
    }

    /// Returns the definition of a tool with URIs that belong to its server, of which the first that names one keeps it.
    pub(super) fn after_first(&self, tool: &ToolDefinition, server: &ServerIdentifier) -> RawJson {
        rename(tool, server, |uri| self.first(uri) != Some(server))
    }
}

/// Returns true if a URI has the form of a generated one, which no server may name.
pub(super) fn is_ours(uri: &str) -> bool {
    uri.starts_with(UI_PREFIX)
}

/// Returns the definition of a tool with our URIs for the interfaces that `is_taken`.
fn rename(
    tool: &ToolDefinition,
    server: &ServerIdentifier,
    is_taken: impl Fn(&str) -> bool,
) -> RawJson {
    let is_taken = |uri: &str| is_ours(uri) || is_taken(uri);
    let uris = tool.ui.iter().flat_map(|ui| &ui.resources);
    // Most definitions are relayed without being taken apart.
    if !uris.into_iter().any(|uri| is_taken(uri)) {
        return tool.definition.clone();
    }
    with_ui_uris(&tool.definition, |uri| {
        if is_taken(uri) {
            renamed_ui(server, uri).unwrap_or_else(|| uri.to_owned())
        } else {
            uri.to_owned()
        }
    })
}

/// Returns our URI for an interface of a server; `None` if the URI is not that of an interface.
pub(super) fn renamed_ui(server: &ServerIdentifier, uri: &str) -> Option<String> {
    let rest = uri.strip_prefix(UI_SCHEME)?;
    Some(format!("{}{rest}", server_prefix(UI_PREFIX, server)))
}

/// Returns the server's own URI for an interface with a generated URI.
pub(super) fn original_ui(server: &ServerIdentifier, uri: &str) -> Option<String> {
    if !is_ours(uri) {
        return None;
    }
    let rest = uri.strip_prefix(&server_prefix(UI_PREFIX, server))?;
    Some(format!("{UI_SCHEME}{rest}"))
}
