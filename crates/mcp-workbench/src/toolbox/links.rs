//! The resources that servers have linked to in their results, and whose they are: a client may read
//! them without a server ever having been shown to it.

use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use indexmap::IndexMap;
use memchr::memmem::Finder;

use crate::{
    ident::{ServerIdentifier, ToolIdentifier},
    wire::RawJson,
};

/// How many links are remembered; the oldest are forgotten.
const MAX_LINKS: usize = 10_000;
/// The longest URI that is remembered.
const MAX_URI_BYTES: usize = 8 * 1024;

/// The type of a content that is a link.
const RESOURCE_LINK: &str = "resource_link";
static MENTION: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(RESOURCE_LINK));

/// The links that are remembered.
#[derive(Default)]
pub struct Links {
    by_uri: Mutex<IndexMap<String, ServerIdentifier>>,
}

impl Links {
    /// Remembers the links in a result of a tool.
    pub fn note(&self, tool: &ToolIdentifier, result: &RawJson) {
        // Almost no result has one, and looking for the word costs next to nothing.
        if MENTION.find(result.as_bytes()).is_none() {
            return;
        }
        let content = result
            .member("content")
            .and_then(|content| content.elements());
        for item in content.unwrap_or_default() {
            if let Some(uri) = linked_uri(&item) {
                let mut by_uri = self.by_uri();
                by_uri.shift_remove(&uri);
                by_uri.insert(uri, tool.server_identifier());
                if by_uri.len() > MAX_LINKS {
                    by_uri.shift_remove_index(0);
                }
            }
        }
    }

    /// Whose a linked resource is.
    pub fn owner(&self, uri: &str) -> Option<ServerIdentifier> {
        self.by_uri().get(uri).cloned()
    }

    fn by_uri(&self) -> MutexGuard<'_, IndexMap<String, ServerIdentifier>> {
        self.by_uri.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn linked_uri(item: &RawJson) -> Option<String> {
    let kind = item.member("type")?;
    let uri = item.member("uri")?;
    let uri = (kind.as_text()? == RESOURCE_LINK).then(|| uri.as_text())??;
    (uri.len() <= MAX_URI_BYTES).then(|| uri.into_owned())
}
