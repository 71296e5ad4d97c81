//! The state of a lock file in memory, and the observations that are not written yet.

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

/// The state of a lock file in a process.
#[derive(Debug, Default)]
pub(super) struct State {
    /// The content that was last read.
    pub(super) disk: Disk,
    /// The content when [`is_changed`](super::Pins::is_changed) was last called.
    pub(super) reported: Disk,
    /// The stamp of the file when it was last read.
    pub(super) stamp: Option<Stamp>,
    /// Servers that were observed for the first time.
    pub(super) first: BTreeMap<Place, Arc<Found>>,
    /// Servers with changes that are not reported yet. They are not written before that.
    pub(super) changed: BTreeMap<Place, Arc<Found>>,
    /// Servers with changes that are reported and not written yet.
    pub(super) told: BTreeMap<Place, Arc<Found>>,
    /// The last differences that were logged for each server.
    logged: BTreeMap<Place, Differences>,
    /// Servers for which the log says that their lowered `"pin"` is ignored.
    pub(super) held: BTreeSet<Place>,
    /// True after the unusable file was reported.
    pub(super) told_unusable: bool,
    /// True after the failure to write was reported.
    pub(super) told_unwritable: bool,
}

/// The names of a toolbox and a server.
pub(super) type Place = (String, String);

/// The servers whose changes were reported.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Scope<'a> {
    Toolbox(&'a ToolboxName),
    Everything,
}

impl State {
    /// Marks changes as reported.
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

    /// Returns the observations to write.
    pub(super) fn news(&self) -> Vec<Arc<Found>> {
        let news = self.first.values().chain(self.told.values());
        news.map(Arc::clone).collect()
    }

    /// Removes the observations that were written, unless there are newer ones.
    pub(super) fn forget(&mut self, written: &[Arc<Found>]) {
        let is_written = |found: &Arc<Found>| written.iter().any(|it| Arc::ptr_eq(it, found));
        self.first.retain(|_, found| !is_written(found));
        self.told.retain(|_, found| !is_written(found));
    }

    /// Returns true if these differences are not logged yet, and marks them as logged.
    pub(super) fn is_new_to_the_log(
        &mut self,
        place: &ServerIdentifier,
        differences: &Differences,
    ) -> bool {
        self.logged.insert(key(place), differences.clone()).as_ref() != Some(differences)
    }
}

pub(super) fn key(place: &ServerIdentifier) -> Place {
    (place.toolbox.to_string(), place.server.to_string())
}
