//! The tools of servers, kept between the runs of the workbench: one file a server in a folder of the user's cache
//! directory, so that a server's tools can be shown without starting it.
//!
//! What is kept is what the server told, before our filters and checks, which are applied when it is read. Nothing
//! here is needed: every file may be lost, broken or deleted at any time, and the server is asked instead.

mod bounds;
mod key;

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, SystemTime},
};

use thiserror::Error;

use super::{
    access::stored_grant,
    listing::{ListRules, ToolList, listed_names},
    snapshot::ServerSnapshot,
};
use crate::{
    config::{Config, Secrets, Server, Transport},
    ident::ToolName,
    lock::ServerPins,
    private_files,
};
use bounds::{LIFETIME, MAX_FILE_BYTES, age, clear_out};
use key::{ListKey, Salt};

/// The folder in the cache directory.
const FOLDER: &str = "catalogue";
/// How old a file gets before it is marked as still true.
const MARKED_EVERY: Duration = Duration::from_hours(24);
/// After how many writings the folder is cleared out again.
const CLEARED_EVERY: usize = 100;

/// The tools of all servers that were ever started, as they were told.
pub(crate) struct KeptLists {
    /// Where they are kept, if anywhere.
    folder: Option<PathBuf>,
    /// Where it is kept who is signed in.
    state: Option<PathBuf>,
    /// What the names of the files are made with, once it was read.
    salt: Mutex<Option<Salt>>,
    /// How many files this process has written.
    writings: AtomicUsize,
}

/// The tool cache, for commands that start no server.
pub(crate) struct ToolCache(KeptLists);

/// Why the tools of a server are not kept.
#[derive(Debug, Error)]
pub(crate) enum NotKept {
    /// There is no cache directory.
    #[error("there is no cache directory")]
    NoPlace,
    /// Others could write there, or it is no folder.
    #[error("{} is not a folder that only you can write to", .0.display())]
    Open(PathBuf),
    /// There is too much of it.
    #[error("its list has {0} bytes, and at most {MAX_FILE_BYTES} are kept")]
    TooLarge(usize),
    #[error("its list repeats a value that may be a secret")]
    Secret,
    /// The file cannot be written.
    #[error("{} cannot be written: {reason}", .path.display())]
    Unwritable {
        /// The file or the folder.
        path: PathBuf,
        reason: io::Error,
    },
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct KeptSize {
    pub servers: usize,
    /// How many bytes.
    pub bytes: u64,
}

/// What is kept of one server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KeptTools {
    /// How many tools it offers by that, by the rules of its entry as it is now.
    pub tools: usize,
    /// How long ago it was written, or marked as still true, which is done once a day.
    pub age: Duration,
}

impl KeptLists {
    /// The lists that are kept in a cache directory, for those who are signed in by a state directory.
    pub(crate) fn new(cache: Option<&Path>, state: Option<&Path>) -> Self {
        Self {
            folder: cache.map(folder_in),
            state: state.map(Into::into),
            salt: Mutex::default(),
            writings: AtomicUsize::new(0),
        }
    }

    /// The tools of a server as it last told them, by the rules of its entry as it is now and by what is pinned.
    pub(crate) fn recall_pinned(&self, server: &Server, pins: &ServerPins) -> Option<ToolList> {
        let (snapshot, _) = self.snapshot(server)?;
        let rules = ListRules::of(server, snapshot.era).with_pins(pins, server.pin);
        Some(ToolList::of(&snapshot, &rules))
    }

    /// The same without what is pinned, and with its age.
    fn read(&self, server: &Server) -> Option<(ToolList, Duration)> {
        let (snapshot, age) = self.snapshot(server)?;
        let tools = ToolList::of(&snapshot, &ListRules::of(server, snapshot.era));
        Some((tools, age))
    }

    /// Reads what a server said in an earlier run, with the age of that.
    fn snapshot(&self, server: &Server) -> Option<(ServerSnapshot, Duration)> {
        let folder = self.folder.as_deref().filter(|it| is_safe(it))?;
        let grant = match &server.transport {
            Transport::Remote(endpoint) => stored_grant(endpoint, self.state.as_deref()),
            Transport::Stdio(_) | Transport::Unset(_) => None,
        };
        let key = ListKey::of(server, grant.as_deref(), &self.salt(folder)?)?;
        let (text, metadata) = private_files::read(&folder.join(key.file()), MAX_FILE_BYTES)?;
        let age = age(&metadata, SystemTime::now());
        if age > LIFETIME {
            return None;
        }
        Some((ServerSnapshot::of_text(text, key.as_str())?, age))
    }

    /// Keeps what a server has told under a sign-in. A file that says the same is not written again.
    pub(crate) fn keep(
        &self,
        (server, grant): (&Server, Option<&str>),
        snapshot: &ServerSnapshot,
        secrets: &Secrets,
    ) -> Result<(), NotKept> {
        let folder = self.folder.as_deref().ok_or(NotKept::NoPlace)?;
        if folder.exists() && !is_safe(folder) {
            return Err(NotKept::Open(folder.into()));
        }
        let salt = self.lasting_salt(folder);
        let salt = salt.map_err(|reason| unwritable(folder, reason))?;
        let Some(key) = ListKey::of(server, grant, &salt) else {
            return Err(NotKept::NoPlace);
        };
        let text = snapshot.to_text(key.as_str());
        let fit = check(server, &text, secrets);
        if fit.is_err() {
            // What was kept before is not what the server tells now.
            let _ = fs::remove_file(folder.join(key.file()));
            return fit;
        }
        let written = self.write(folder, &key.file(), &text);
        written.map_err(|reason| unwritable(&folder.join(key.file()), reason))
    }

    fn write(&self, folder: &Path, name: &str, text: &[u8]) -> io::Result<()> {
        let file = folder.join(name);
        let now = SystemTime::now();
        let length = u64::try_from(text.len()).unwrap_or(MAX_FILE_BYTES);
        match private_files::read(&file, length) {
            Some((known, metadata)) if known == text => {
                if age(&metadata, now) > MARKED_EVERY {
                    // Only its age would be wrong without that.
                    let _ = mark(&file, now);
                }
                return Ok(());
            }
            _ => private_files::replace(folder, name, text)?,
        }
        let writings = self.writings.fetch_add(1, Ordering::Relaxed);
        if writings.is_multiple_of(CLEARED_EVERY) {
            clear_out(folder, now);
        }
        Ok(())
    }

    /// The salt, if there is one.
    fn salt(&self, folder: &Path) -> Option<Salt> {
        let mut salt = self.salt.lock().unwrap_or_else(PoisonError::into_inner);
        if salt.is_none() {
            *salt = Salt::read(folder);
        }
        salt.clone()
    }

    /// The salt that is in the folder now, made if there is none: whoever runs next must find it. The folder may have
    /// been deleted since it was read.
    fn lasting_salt(&self, folder: &Path) -> io::Result<Salt> {
        let mut known = self.salt.lock().unwrap_or_else(PoisonError::into_inner);
        let salt = match Salt::read(folder) {
            Some(salt) => salt,
            None => Salt::make(folder, known.take())?,
        };
        *known = Some(salt.clone());
        Ok(salt)
    }
}

impl ToolCache {
    /// The tool cache that a configuration names.
    pub(crate) fn of(config: &Config) -> Self {
        Self(KeptLists::new(
            config.cache.as_deref(),
            config.state.as_deref(),
        ))
    }

    /// Returns the names of the tools that a server listed and its filters let through, denied and withheld ones
    /// included; none where the cache does not have the server.
    pub(crate) fn tool_names(&self, server: &Server) -> Vec<ToolName> {
        let cached = self.0.snapshot(server);
        cached.map_or_else(Vec::new, |(snapshot, _)| {
            listed_names(&snapshot, &server.filters)
        })
    }
}

impl KeptSize {
    /// Of the catalogue in a cache directory.
    pub(crate) fn of(cache: &Path) -> Self {
        let mut size = Self::default();
        for file in bounds::kept_files(&folder_in(cache)) {
            size.servers += 1;
            size.bytes += file.bytes;
        }
        size
    }
}

impl KeptTools {
    /// Returns the names of the tools of a server.
    pub(crate) fn names(config: &Config, server: &Server) -> Vec<String> {
        let lists = KeptLists::new(config.cache.as_deref(), config.state.as_deref());
        let list = lists.read(server).map(|(list, _)| list).unwrap_or_default();
        list.tools().iter().map(|it| it.name.to_string()).collect()
    }

    /// Of a server, in the catalogue that a configuration names.
    pub(crate) fn of(config: &Config, server: &Server) -> Option<Self> {
        let lists = KeptLists::new(config.cache.as_deref(), config.state.as_deref());
        let (list, age) = lists.read(server)?;
        Some(Self {
            tools: list.tools().len(),
            age,
        })
    }
}

/// Where the catalogue is in a cache directory.
pub(crate) fn folder_in(cache: &Path) -> PathBuf {
    cache.join(FOLDER)
}

fn unwritable(path: &Path, reason: io::Error) -> NotKept {
    NotKept::Unwritable {
        path: path.into(),
        reason,
    }
}

/// Whether only the user can put files into a folder.
fn is_safe(folder: &Path) -> bool {
    let metadata = fs::metadata(folder);
    metadata.is_ok_and(|it| it.is_dir() && private_files::is_only_ours(&it))
}

/// Whether a text may be kept.
fn check(server: &Server, text: &[u8], secrets: &Secrets) -> Result<(), NotKept> {
    if u64::try_from(text.len()).is_ok_and(|length| length > MAX_FILE_BYTES) {
        return Err(NotKept::TooLarge(text.len()));
    }
    let mut secrets = secrets.clone();
    secrets.merge(&server.literal_credentials());
    let text = str::from_utf8(text).expect("made of JSON");
    if secrets.stand_in_json(text) {
        return Err(NotKept::Secret);
    }
    Ok(())
}

/// Makes a file as if it had been written now.
fn mark(file: &Path, now: SystemTime) -> io::Result<()> {
    File::options().write(true).open(file)?.set_modified(now)
}

#[cfg(test)]
mod tests;
