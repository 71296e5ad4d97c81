//! The tools of all servers under the names that a client sees, made anew only where a server has another list.

use std::sync::Arc;

use super::merged::{Listed, Merged};
use crate::{downstream::ToolList, ident::ServerName};

/// The merged tools, and the lists that they were made of.
pub(super) struct ShownTools {
    made_of: Vec<(ServerName, Arc<ToolList>)>,
    merged: Arc<Merged>,
}

impl ShownTools {
    /// Merges the lists of servers.
    pub(super) fn merge(catalogue: Vec<(ServerName, Arc<ToolList>)>, name_limit: usize) -> Self {
        let lists = catalogue.iter().map(|(server, list)| {
            let items = list.tools().iter().map(|tool| tool.definition.clone());
            Listed {
                server: server.clone(),
                items: items.collect(),
                hints: list.hints,
            }
        });
        Self {
            merged: Arc::new(Merged::by_name(lists.collect(), name_limit)),
            made_of: catalogue,
        }
    }

    /// The merged tools.
    pub(super) fn merged(&self) -> &Arc<Merged> {
        &self.merged
    }

    /// The merged tools, if these are the lists that they were made of. A list that has not changed keeps its
    /// identity.
    pub(super) fn of(&self, catalogue: &[(ServerName, Arc<ToolList>)]) -> Option<Arc<Merged>> {
        let same = self.made_of.len() == catalogue.len()
            && self.made_of.iter().zip(catalogue).all(|(one, other)| {
                // The servers of a toolbox stand in one order, so equal lists are of equal servers.
                Arc::ptr_eq(&one.1, &other.1)
            });
        same.then(|| Arc::clone(&self.merged))
    }
}
