//! The owner of the lock file in a process: what it holds now, what was found of servers and is not written yet, and
//! writing it. The file is looked at whenever something is compared with it, so that a change by somebody else counts at
//! once.
//!
//! A first contact is written as soon as somebody asks for it. A change is written when it has been told, and not before:
//! so it is told once, and never lost.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use thiserror::Error;

use super::{
    Base, Denial, Digest, Launch, Lock, LockFault, PinnedServer,
    disk::{Disk, read, stamp},
    server_pins::Ruling,
    state::{Found, Scope, State, key},
    texts::Texts,
    words::{self, Standing},
};
use crate::{
    config::{Config, WriteError, write_atomically},
    ident::ServerIdentifier,
    visible::visible,
};

/// The lock file of a configuration.
#[derive(Debug)]
pub struct Pins {
    /// The file; nothing where there is no place for one.
    file: Option<PathBuf>,
    texts: Texts,
    state: Mutex<State>,
}

/// Why the lock file was not written. It is as it was.
#[derive(Debug, Error)]
pub enum RecordError {
    /// There is no place for it.
    #[error("there is no place for a lock file\n  hint: put the configuration into a plain file")]
    NoPlace,
    /// Its content cannot be kept.
    #[error(
        "the lock file `{}` cannot be used: {fault}\n  hint: mend or restore it, or remove it and approve everything anew",
        file.display()
    )]
    Unusable {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        fault: LockFault,
    },
    /// The system refused.
    #[error(transparent)]
    Write(#[from] WriteError),
}

impl Pins {
    /// The lock file beside a configuration. Nothing is read yet.
    pub fn new(config: &Config) -> Self {
        // Beside a pipe there is no place for a file.
        let is_plain = !fs::metadata(&config.file).is_ok_and(|it| !it.is_file());
        let file = config.lock.clone().filter(|_| is_plain);
        Self {
            texts: Texts::new(config.cache.as_deref(), file.as_deref()),
            file,
            state: Mutex::default(),
        }
    }

    /// The file; nothing where there is no place for one.
    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// What the file holds now; nothing where it is not there.
    pub fn lock(&self) -> Result<Option<Lock>, RecordError> {
        let state = self.fresh();
        match (&state.disk, &self.file) {
            (_, None) => Err(RecordError::NoPlace),
            (Disk::Unread | Disk::Missing, _) => Ok(None),
            (Disk::Known(lock), _) => Ok(Some(lock.clone())),
            (Disk::Unusable(fault), Some(file)) => Err(unusable(file, fault)),
        }
    }

    /// Looks at the file; returns whether it holds something else than was known.
    pub fn is_changed(&self) -> bool {
        let before = self.state().disk.clone();
        let state = self.fresh();
        before != Disk::Unread && before != state.disk
    }

    /// Whether a server may be started in this way, where only what is approved may be.
    pub(super) fn admit(&self, place: &ServerIdentifier, launch: &Launch) -> Result<(), Denial> {
        let state = self.fresh();
        let parts = self
            .approved(&state, place)?
            .launch
            .differing_before_start(launch);
        denied_launch(place, parts)
    }

    /// How a server was started when that was approved; nothing of it where it was not.
    pub(super) fn approved_launch(&self, place: &ServerIdentifier) -> Launch {
        let state = self.fresh();
        let approved = self.approved(&state, place);
        approved.map_or_else(|_| Launch::default(), |approved| approved.launch.clone())
    }

    /// What may be offered of what was found of a server, where only what is approved may be.
    pub(super) fn enforce(&self, found: &Found) -> Ruling {
        let (place, tools) = (&found.place, &found.observation.tools);
        let mut state = self.fresh();
        let approved = self.approved(&state, place);
        let differences = approved.and_then(|approved| {
            let differences = approved.differences(&found.observation, Base::Pinned);
            denied_launch(place, differences.launch.clone()).map(|()| differences)
        });
        let denied: Vec<(String, String)> = match &differences {
            Err(denial) => {
                let reason = denial.to_string();
                tools
                    .iter()
                    .map(|(name, _)| (name.clone(), reason.clone()))
                    .collect()
            }
            Ok(differences) => {
                let reason = |standing| {
                    move |tool: &String| (tool.clone(), words::tool_denied(place, tool, standing))
                };
                let changed = differences.changed.iter().map(reason(Standing::Changed));
                changed
                    .chain(differences.new.iter().map(reason(Standing::New)))
                    .collect()
            }
        };
        let differences = differences.unwrap_or_default();
        if !denied.is_empty() && state.is_new_to_the_log(place, &differences) {
            tracing::warn!(
                "{} of {} tools are withheld: {}",
                denied.len(),
                tools.len(),
                denied[0].1
            );
        }
        Ruling {
            denied,
            notices: Vec::new(),
        }
    }

    /// Takes up what was found of a server, and says what is to be told of it.
    pub(super) fn notice(&self, found: Found) -> Ruling {
        let Some(file) = &self.file else {
            return Ruling::default();
        };
        let place = found.place.clone();
        let key = key(&place);
        let mut state = self.fresh();
        let known = match &state.disk {
            Disk::Unusable(fault) => {
                let words = words::not_pinned(&file.display().to_string(), fault);
                let told = std::mem::replace(&mut state.told_unusable, true);
                return Ruling::noticed((!told).then_some(words));
            }
            Disk::Known(lock) => lock.server(&place),
            Disk::Unread | Disk::Missing => None,
        };
        let first = state.first.get(&key);
        let first = first.map(|first| PinnedServer::of(&first.observation));
        let Some(known) = known.or(first.as_ref()) else {
            state.first.insert(key, Arc::new(found));
            return Ruling::default();
        };
        let differences = known.differences(&found.observation, Base::Seen);
        let mut after = known.clone();
        after.see(&found.observation);
        if after == *known {
            state.changed.remove(&key);
        } else {
            state.changed.insert(key, Arc::new(found));
        }
        let words = differences
            .is_notable()
            .then(|| words::changes(&place, &differences));
        if let Some(words) = &words
            && state.is_new_to_the_log(&place, &differences)
        {
            tracing::warn!("{words}");
        }
        Ruling::noticed(words)
    }

    /// Whether there is something to write.
    pub fn has_news(&self, scope: Scope<'_>) -> bool {
        !self.state().news(scope).is_empty()
    }

    /// Writes what was found. That it cannot be written is told once, and no error.
    pub fn record(&self, scope: Scope<'_>) {
        let (news, told) = {
            let state = self.state();
            (state.news(scope), state.told_unwritable)
        };
        if news.is_empty() {
            return;
        }
        let written = self.change(|lock| {
            let mut pinned = (0, 0);
            for found in &news {
                pinned = add(pinned, take_up(lock, found));
            }
            pinned
        });
        match written {
            Ok((lock, (servers, tools))) => {
                self.keep(&lock, &news);
                if servers > 0 {
                    let file = self.file.as_deref().unwrap_or(Path::new(""));
                    tracing::info!(
                        "pinned {} of {} in {}",
                        counted(tools, "tool"),
                        counted(servers, "server"),
                        visible(&file.display().to_string())
                    );
                }
                self.state().forget(&news);
            }
            Err(error) if !told => {
                self.state().told_unwritable = true;
                tracing::warn!("what was found of servers is not pinned: {error}");
            }
            Err(_) => {}
        }
    }

    /// Makes a change in what others may have written meanwhile.
    pub fn change<T>(&self, change: impl FnOnce(&mut Lock) -> T) -> Result<(Lock, T), RecordError> {
        let file = self.file.as_ref().ok_or(RecordError::NoPlace)?;
        let _alone = self.texts.exclusive();
        let before = match read(file) {
            Disk::Unread | Disk::Missing => None,
            Disk::Known(lock) => Some(lock),
            Disk::Unusable(fault) => return Err(unusable(file, &fault)),
        };
        let mut lock = before.clone().unwrap_or_default();
        let done = change(&mut lock);
        if before.as_ref() != Some(&lock) {
            write_atomically(file, &lock.text())?;
        }
        let mut state = self.state();
        state.stamp = stamp(file);
        state.disk = Disk::Known(lock.clone());
        Ok((lock, done))
    }

    /// Keeps the definitions of what was found, as far as the lock file has them.
    fn keep(&self, lock: &Lock, news: &[Arc<Found>]) {
        for found in news {
            self.write_texts(lock, &found.place, &found.texts);
        }
        self.texts.forget_oldest();
    }

    /// Keeps definitions of a server, as far as the lock file has them.
    pub fn keep_texts(&self, lock: &Lock, place: &ServerIdentifier, texts: &[(Digest, String)]) {
        self.write_texts(lock, place, texts);
        self.texts.forget_oldest();
    }

    fn write_texts(&self, lock: &Lock, place: &ServerIdentifier, texts: &[(Digest, String)]) {
        let wanted: BTreeSet<Digest> = lock
            .server(place)
            .into_iter()
            .flat_map(PinnedServer::digests)
            .collect();
        self.texts.keep(place, texts, &wanted);
    }

    /// The canonical definition of this digest that a server had, if it was kept.
    pub fn text(&self, place: &ServerIdentifier, digest: Digest) -> Option<String> {
        self.texts.get(place, digest)
    }

    /// What is approved of a server.
    fn approved<'s>(
        &self,
        state: &'s State,
        place: &ServerIdentifier,
    ) -> Result<&'s PinnedServer, Denial> {
        let Some(file) = &self.file else {
            return Err(Denial::NoPlace);
        };
        match &state.disk {
            Disk::Unread | Disk::Missing => Err(Denial::NoLock {
                file: file.clone(),
                place: place.clone(),
            }),
            Disk::Unusable(fault) => Err(Denial::Unusable {
                file: file.clone(),
                fault: fault.clone(),
            }),
            Disk::Known(lock) => lock
                .server(place)
                .ok_or_else(|| Denial::Unknown(place.clone())),
        }
    }

    /// The state, with what is on disk now.
    fn fresh(&self) -> MutexGuard<'_, State> {
        let mut state = self.state();
        if let Some(file) = &self.file {
            let now = stamp(file);
            if state.disk == Disk::Unread || now.is_none() || now != state.stamp {
                state.stamp = now;
                state.disk = read(file);
            }
        }
        state
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Puts what was found into the lock; returns how many servers and tools are pinned by it.
fn take_up(lock: &mut Lock, found: &Found) -> (usize, usize) {
    if lock.server(&found.place).is_some() {
        lock.server_mut(&found.place).see(&found.observation);
        return (0, 0);
    }
    *lock.server_mut(&found.place) = PinnedServer::of(&found.observation);
    (1, found.observation.tools.len())
}

fn add(a: (usize, usize), b: (usize, usize)) -> (usize, usize) {
    (a.0 + b.0, a.1 + b.1)
}

fn counted(count: usize, word: &str) -> String {
    if count == 1 {
        format!("1 {word}")
    } else {
        format!("{count} {word}s")
    }
}

fn denied_launch(place: &ServerIdentifier, parts: Vec<String>) -> Result<(), Denial> {
    if parts.is_empty() {
        return Ok(());
    }
    Err(Denial::Launch {
        place: place.clone(),
        parts,
    })
}

fn unusable(file: &Path, fault: &LockFault) -> RecordError {
    RecordError::Unusable {
        file: file.to_owned(),
        fault: fault.clone(),
    }
}
