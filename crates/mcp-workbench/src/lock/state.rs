//! What a process knows of its lock file, and what was found of servers and is not written yet.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{
    Differences,
    disk::{Disk, Stamp},
    found::Found,
};
use crate::ident::{ServerIdentifier, ToolboxName};

/// What is known of a lock file.
#[derive(Debug, Default)]
pub(super) struct State {
    /// What was on disk when it was last read.
    pub(super) disk: Disk,
    /// What was on disk when somebody last asked whether that has changed.
    pub(super) reported: Disk,
    /// The file when it was last read.
    pub(super) stamp: Option<Stamp>,
    /// Servers that were met for the first time.
    pub(super) first: BTreeMap<Place, Arc<Found>>,
    /// Servers that have changed, which is not written before it was told.
    pub(super) changed: BTreeMap<Place, Arc<Found>>,
    /// Servers of which it was told that they have changed.
    pub(super) told: BTreeMap<Place, Arc<Found>>,
    /// What the log has of each server.
    logged: BTreeMap<Place, Differences>,
    /// Servers of which the log has that their lowered `"pin"` does not hold.
    pub(super) held: BTreeSet<Place>,
    /// Whether it was told that the file cannot be used.
    pub(super) told_unusable: bool,
    /// Whether it was told that nothing can be written.
    pub(super) told_unwritable: bool,
}

/// A toolbox and a server.
pub(super) type Place = (String, String);

/// Where something has changed that was told.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Scope<'a> {
    Toolbox(&'a ToolboxName),
    Everything,
}

impl State {
    /// Notes that what has changed was told.
    pub(super) fn tell(&mut self, scope: Scope<'_>) {
        let changed = std::mem::take(&mut self.changed);
        let (told, left) = changed
            .into_iter()
            .partition(|((toolbox, _), _)| match scope {
                Scope::Toolbox(chosen) => toolbox == chosen.as_str(),
                Scope::Everything => true,
            });
        self.told.extend::<BTreeMap<_, _>>(told);
        self.changed = left;
    }

    /// What is to be written.
    pub(super) fn news(&self) -> Vec<Arc<Found>> {
        let news = self.first.values().chain(self.told.values());
        news.map(Arc::clone).collect()
    }

    /// Forgets what was written, unless something newer was found meanwhile.
    pub(super) fn forget(&mut self, written: &[Arc<Found>]) {
        let is_written = |found: &Arc<Found>| written.iter().any(|it| Arc::ptr_eq(it, found));
        self.first.retain(|_, found| !is_written(found));
        self.told.retain(|_, found| !is_written(found));
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
