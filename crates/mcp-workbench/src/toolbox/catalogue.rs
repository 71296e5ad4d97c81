//! The catalogue: an immutable snapshot of the tools of an open toolbox.

use std::sync::Arc;

use ident::ServerName;
use tokio::sync::watch;

use super::contents::Contents;
use crate::downstream::{Status, ToolList};

/// The tools of the servers of a toolbox at one moment, in the order of the file.
pub(crate) struct Catalogue {
    lists: Vec<(ServerName, Arc<ToolList>)>,
    /// The channels that it was read from; `None` if the toolbox was not open.
    sources: Option<Sources>,
}

/// The channels that the tools of a toolbox are read from, marked as seen.
struct Sources {
    contents: watch::Receiver<Arc<Contents>>,
    servers: Vec<watch::Receiver<Status>>,
}

impl Catalogue {
    /// Returns the catalogue of a toolbox that is not open.
    pub(super) fn empty() -> Self {
        Self {
            lists: Vec::new(),
            sources: None,
        }
    }

    pub(super) fn read(mut contents: watch::Receiver<Arc<Contents>>) -> Self {
        let held = Arc::clone(&contents.borrow_and_update());
        let mut lists = Vec::new();
        let mut servers = Vec::new();
        for (name, server) in held.servers() {
            let mut status = server.updates();
            // Marked before it is read, so that a change in between makes the catalogue outdated.
            status.mark_unchanged();
            let tools = server.status().tools;
            lists.extend(tools.map(|tools| (name.clone(), tools)));
            servers.push(status);
        }
        Self {
            lists,
            sources: Some(Sources { contents, servers }),
        }
    }

    /// Returns the servers whose tools are known, with their tools.
    pub(crate) fn lists(&self) -> &[(ServerName, Arc<ToolList>)] {
        &self.lists
    }

    /// Returns whether nothing can have changed since. The check costs next to nothing.
    pub(crate) fn is_current(&self) -> bool {
        // A channel whose sender is gone belongs to a server that has been replaced.
        self.sources.as_ref().is_some_and(|sources| {
            let servers = &sources.servers;
            matches!(sources.contents.has_changed(), Ok(false))
                && servers
                    .iter()
                    .all(|it| matches!(it.has_changed(), Ok(false)))
        })
    }

    /// Returns whether both have the same lists. A list that has not changed keeps its identity, so pointers are
    /// compared.
    pub(crate) fn has_lists_of(&self, other: &Self) -> bool {
        let (ours, theirs) = (&self.lists, &other.lists);
        let mut pairs = ours.iter().zip(theirs);
        ours.len() == theirs.len()
            && pairs.all(|(one, other)| one.0 == other.0 && Arc::ptr_eq(&one.1, &other.1))
    }
}
