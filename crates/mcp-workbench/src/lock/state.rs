//! The state of a lock file in memory, and the observations that are not written yet.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use ident::{ServerIdentifier, ToolboxName};

use super::{
    Differences,
    disk::{Disk, Stamp},
    observed::ObservedServer,
    words,
};

/// The state of a lock file in a process.
#[derive(Debug, Default)]
pub(super) struct LockState {
    /// The content that was last read.
    pub(super) disk: Disk,
    /// The content when [`changes`](super::Pins::changes) was last called.
    pub(super) reported: Disk,
    /// How often another program changed it.
    pub(super) changes: u64,
    /// The stamp of the file when it was last read.
    pub(super) stamp: Option<Stamp>,
    /// Servers that were observed for the first time.
    pub(super) first: BTreeMap<ServerKey, Arc<ObservedServer>>,
    /// Servers with changes that are not reported yet. They are not written before that.
    pub(super) changed: BTreeMap<ServerKey, Arc<ObservedServer>>,
    /// Servers with changes that are reported and not written yet.
    pub(super) reported_changes: BTreeMap<ServerKey, Arc<ObservedServer>>,
    /// The last differences that were logged for each server.
    logged: BTreeMap<ServerKey, Differences>,
    /// Servers for which the log says that their lowered `"pin"` is ignored.
    pub(super) logged_lowered: BTreeSet<ServerKey>,
    /// Servers for which the log says that they are too large to be pinned.
    logged_large: BTreeSet<ServerKey>,
    /// True after the unusable file was reported.
    pub(super) reported_unusable: bool,
    /// True after the failure to write was reported.
    pub(super) reported_unwritable: bool,
}

/// The names of a toolbox and a server.
pub(super) type ServerKey = (String, String);

/// The servers whose changes were reported.
#[derive(Debug, Clone, Copy)]
pub(crate) enum NoticeScope<'a> {
    Toolbox(&'a ToolboxName),
    Everything,
}

impl LockState {
    pub(super) fn mark_reported(&mut self, scope: NoticeScope<'_>) {
        let changed = std::mem::take(&mut self.changed);
        let (reported, left) = changed
            .into_iter()
            .partition(|((toolbox, _), _)| match scope {
                NoticeScope::Toolbox(chosen) => toolbox == chosen.as_str(),
                NoticeScope::Everything => true,
            });
        self.reported_changes.extend::<BTreeMap<_, _>>(reported);
        self.changed = left;
    }

    /// Removes the observations that were written, unless there are newer ones.
    pub(super) fn forget(&mut self, written: &[Arc<ObservedServer>]) {
        let is_written =
            |found: &Arc<ObservedServer>| written.iter().any(|it| Arc::ptr_eq(it, found));
        self.first.retain(|_, found| !is_written(found));
        self.reported_changes.retain(|_, found| !is_written(found));
    }

    /// Returns the notice about a server that is too large to be pinned, and logs it the first time.
    pub(super) fn log_too_large(&mut self, key: ServerKey) -> String {
        let words = words::too_large();
        if self.logged_large.insert(key) {
            tracing::warn!("{words}");
        }
        words
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

pub(super) fn key(place: &ServerIdentifier) -> ServerKey {
    (place.toolbox.to_string(), place.server.to_string())
}
