//! The tools of all servers under the names that a client sees. They are merged again only if a server's list
//! changed.

use std::sync::Arc;

use ident::{ServerIdentifier, ServerName};

use super::{
    merged::{Merged, ServerItems},
    ui_claims::UiClaims,
};
use crate::toolbox::{Catalogue, Toolbox};

/// The merged tools, and the catalogue that they were made from.
pub(super) struct ShownTools {
    made_of: Catalogue,
    merged: Arc<Merged>,
    ui_claims: Arc<UiClaims>,
}

impl ShownTools {
    /// Merges the lists of a toolbox, or reuses the old result if the lists are the same.
    pub(super) fn merge(toolbox: &Toolbox, old: Option<&Self>, name_limit: usize) -> Self {
        let catalogue = toolbox.catalogue();
        // Something has changed, but it need not be a list.
        let old = old.filter(|old| old.made_of.has_lists_of(&catalogue));
        let (merged, ui_claims) = match old {
            Some(old) => (Arc::clone(&old.merged), Arc::clone(&old.ui_claims)),
            None => {
                let (merged, ui_claims) = merge(toolbox, &catalogue, name_limit);
                (Arc::new(merged), Arc::new(ui_claims))
            }
        };
        Self {
            merged,
            ui_claims,
            made_of: catalogue,
        }
    }

    pub(super) fn merged(&self) -> &Arc<Merged> {
        &self.merged
    }

    pub(super) fn ui_claims(&self) -> &UiClaims {
        &self.ui_claims
    }

    /// Returns whether no server's list can have changed since.
    pub(super) fn is_current(&self) -> bool {
        self.made_of.is_current()
    }
}

fn merge(toolbox: &Toolbox, catalogue: &Catalogue, name_limit: usize) -> (Merged, UiClaims) {
    let identifier = |server: &ServerName| ServerIdentifier {
        toolbox: toolbox.name().clone(),
        server: server.clone(),
    };
    let lists = catalogue.lists().iter();
    let ui_claims = UiClaims::of(lists.map(|(server, list)| (identifier(server), &**list)));
    let lists = catalogue.lists().iter().map(|(server, list)| {
        let identifier = identifier(server);
        let tools = list.tools().iter();
        let items = tools.map(|tool| ui_claims.after_first(tool, &identifier));
        ServerItems {
            server: server.clone(),
            items: items.collect(),
            hints: list.hints,
        }
    });
    let merged = Merged::by_name(lists.collect(), name_limit);
    (merged, ui_claims)
}
