//! The tools of all servers under the names that a client sees. They are merged again only if a server's list
//! changed.

use std::sync::Arc;

use super::merged::{Merged, ServerItems};
use crate::toolbox::Catalogue;

/// The merged tools, and the catalogue that they were made from.
pub(super) struct ShownTools {
    made_of: Catalogue,
    merged: Arc<Merged>,
}

impl ShownTools {
    /// Merges the lists of a catalogue, or reuses the old result if the lists are the same.
    pub(super) fn merge(catalogue: Catalogue, old: Option<&Self>, name_limit: usize) -> Self {
        let old = old.filter(|old| old.made_of.has_lists_of(&catalogue));
        let merged = match old {
            Some(old) => Arc::clone(&old.merged),
            None => Arc::new(merged(&catalogue, name_limit)),
        };
        Self {
            merged,
            made_of: catalogue,
        }
    }

    pub(super) fn merged(&self) -> &Arc<Merged> {
        &self.merged
    }

    /// Returns whether no server's list can have changed since.
    pub(super) fn is_current(&self) -> bool {
        self.made_of.is_current()
    }
}

fn merged(catalogue: &Catalogue, name_limit: usize) -> Merged {
    let lists = catalogue.lists().iter().map(|(server, list)| {
        let items = list.tools().iter().map(|tool| tool.definition.clone());
        ServerItems {
            server: server.clone(),
            items: items.collect(),
            hints: list.hints,
        }
    });
    Merged::by_name(lists.collect(), name_limit)
}
