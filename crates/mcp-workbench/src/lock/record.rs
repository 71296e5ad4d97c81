//! Writes the lock file, and the definitions in the server cache.
//!
//! No request waits for it: [`Pins::record`] runs later, on its own thread. It writes a first contact at once. It
//! writes a change only after the change was reported, so that each change is reported exactly once.

use std::{collections::BTreeSet, path::Path, sync::Arc};

use ident::ServerIdentifier;

use super::{
    Digest, Lock, PinnedServer, Pins, RecordError,
    disk::{Disk, MAX_FILE_BYTES, read, stamp},
    observed::{ObservedLaunch, ObservedServer},
    pins::unusable,
    state::{LockState, NoticeScope},
};
use crate::{config::write_atomically, sync::lock, visible::visible};

impl Pins {
    pub(crate) fn mark_reported(&self, scope: NoticeScope<'_>) {
        self.state().mark_reported(scope);
    }

    /// Returns true if there is something to write.
    pub(crate) fn has_news(&self) -> bool {
        let has_found = !self.news(&self.state()).is_empty();
        has_found || self.is_raised()
    }

    /// Writes first contacts and reported changes. Reads and writes files. A failure is logged once, and is not an
    /// error.
    pub(crate) fn record(&self) {
        let _turn = lock(&self.writing);
        let (news, is_reported) = {
            let state = self.state();
            (self.news(&state), state.reported_unwritable)
        };
        if news.is_empty() && !self.is_raised() {
            return;
        }
        // The slow work is done before the file is locked for other processes.
        for found in &news {
            found.observation();
            if let ObservedLaunch::Unobserved(server, _) = &found.start {
                self.store_programs(server);
            }
        }
        let written = self.change(|lock| {
            let mut pinned = NewPins::default();
            for found in &news {
                pinned.take_up(lock, found);
            }
            pinned
        });
        match written {
            Ok((lock, NewPins { servers, tools })) => {
                // After the lock file, since only definitions that it refers to are stored.
                self.store_texts(&lock, &news);
                if servers > 0 {
                    let file = self.file().unwrap_or(Path::new(""));
                    tracing::info!(
                        "pinned {} of {} in {}",
                        counted(tools, "tool"),
                        counted(servers, "server"),
                        visible(&file.display().to_string())
                    );
                }
                // Only now, so that what could not be written is written the next time.
                self.state().forget(&news);
            }
            Err(error) if !is_reported => {
                self.state().reported_unwritable = true;
                tracing::warn!("failed to pin servers and tools: {error}");
            }
            Err(_) => {}
        }
    }

    /// Returns the observations to write.
    fn news(&self, state: &LockState) -> Vec<Arc<ObservedServer>> {
        let first = state.first.values().filter(|_| self.records_first_contacts);
        let news = first.chain(state.reported_changes.values());
        news.map(Arc::clone).collect()
    }

    /// Applies a change to the current content of the file, which other processes may have written meanwhile.
    pub(crate) fn change<T>(
        &self,
        change: impl FnOnce(&mut Lock) -> T,
    ) -> Result<(Arc<Lock>, T), RecordError> {
        let file = self.file().ok_or(RecordError::NoPlace)?;
        let _alone = self.texts.exclusive();
        let disk = read(file);
        let before = match &disk {
            Disk::Unread | Disk::Missing => None,
            Disk::Known(lock) => Some(Arc::clone(lock)),
            Disk::Unusable(fault) => return Err(unusable(file, fault)),
        };
        let mut lock = before.as_deref().cloned().unwrap_or_default();
        let done = change(&mut lock);
        if let Some(policy) = &*self.policy() {
            lock.policy.raise(policy);
        }
        if before.as_deref() != Some(&lock) {
            let text = lock.text();
            // A file that cannot be read again would approve nothing any more.
            if text.len() as u64 > MAX_FILE_BYTES {
                return Err(RecordError::TooLarge { file: file.into() });
            }
            write_atomically(file, &text)?;
        }
        let lock = Arc::new(lock);
        let mut state = self.state();
        state.stamp = stamp(file);
        state.disk = Disk::Known(Arc::clone(&lock));
        // A change by another program must still be detected afterwards.
        if state.reported == disk {
            state.reported = state.disk.clone();
        }
        Ok((lock, done))
    }

    fn store_texts(&self, lock: &Lock, news: &[Arc<ObservedServer>]) {
        for found in news {
            self.keep_texts(lock, &found.place, found.texts());
        }
    }

    /// Stores those definitions of a server that the lock file refers to.
    pub(crate) fn keep_texts(
        &self,
        lock: &Lock,
        place: &ServerIdentifier,
        texts: impl Iterator<Item = (Digest, String)>,
    ) {
        let wanted: BTreeSet<Digest> = lock
            .server(place)
            .into_iter()
            .flat_map(PinnedServer::digests)
            .collect();
        self.texts.store(place, texts, &wanted);
    }
}

/// The numbers of newly pinned servers and tools.
#[derive(Default)]
struct NewPins {
    servers: usize,
    tools: usize,
}

impl NewPins {
    /// Adds an observation to the lock.
    fn take_up(&mut self, lock: &mut Lock, found: &ObservedServer) {
        let observation = found.observation();
        if lock.server(&found.place).is_some() {
            lock.server_mut(&found.place).see(observation);
            return;
        }
        *lock.server_mut(&found.place) = PinnedServer::of(observation);
        self.servers += 1;
        self.tools += observation.tools.len();
    }
}

fn counted(count: usize, word: &str) -> String {
    if count == 1 {
        format!("1 {word}")
    } else {
        format!("{count} {word}s")
    }
}
