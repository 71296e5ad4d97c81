//! What a process knows of its lock file, and what was found of servers and is not written yet.

use std::{collections::BTreeMap, sync::Arc};

use super::{
    Differences, Digest, Observation,
    disk::{Disk, Stamp},
};
use crate::ident::{ServerIdentifier, ToolboxName};

/// What is known of a lock file.
#[derive(Debug, Default)]
pub(super) struct State {
    /// What was on disk when it was last read.
    pub(super) disk: Disk,
    /// The file when it was last read.
    pub(super) stamp: Option<Stamp>,
    /// Servers that were met for the first time.
    pub(super) first: BTreeMap<Place, Arc<Found>>,
    /// Servers that have changed, which is not written before it was told.
    pub(super) changed: BTreeMap<Place, Arc<Found>>,
    /// What the log has of each server.
    logged: BTreeMap<Place, Differences>,
    /// Whether it was told that the file cannot be used.
    pub(super) told_unusable: bool,
    /// Whether it was told that nothing can be written.
    pub(super) told_unwritable: bool,
}

/// A toolbox and a server.
pub(super) type Place = (String, String);

/// What was found of a server, with the definitions themselves.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) place: ServerIdentifier,
    pub(super) observation: Observation,
    pub(super) texts: Vec<(Digest, String)>,
}

/// What of all that was found is written.
#[derive(Debug, Clone, Copy)]
pub enum Scope<'a> {
    /// First contacts.
    First,
    /// First contacts, and what has changed in a toolbox, which was told.
    Toolbox(&'a ToolboxName),
    /// Everything: it was told to a person.
    Everything,
}

impl State {
    /// What is to be written.
    pub(super) fn news(&self, scope: Scope<'_>) -> Vec<Arc<Found>> {
        let changed = self.changed.iter().filter(|((toolbox, _), _)| match scope {
            Scope::First => false,
            Scope::Toolbox(chosen) => toolbox == chosen.as_str(),
            Scope::Everything => true,
        });
        let changed = changed.map(|(_, found)| found);
        self.first.values().chain(changed).map(Arc::clone).collect()
    }

    /// Forgets what was written, unless something newer was found meanwhile.
    pub(super) fn forget(&mut self, written: &[Arc<Found>]) {
        let is_written = |found: &Arc<Found>| written.iter().any(|it| Arc::ptr_eq(it, found));
        self.first.retain(|_, found| !is_written(found));
        self.changed.retain(|_, found| !is_written(found));
    }

    /// Whether the log does not have it; from now on it has.
    pub(super) fn is_new_to_the_log(
        &mut self,
        place: &ServerIdentifier,
        differences: &Differences,
    ) -> bool {
        self.logged.insert(key(place), differences.clone()).as_ref() != Some(differences)
    }
}

/// What a server is found by.
pub(super) fn key(place: &ServerIdentifier) -> Place {
    (place.toolbox.to_string(), place.server.to_string())
}
