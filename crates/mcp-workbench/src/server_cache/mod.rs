//! The server cache: what is known about servers from earlier runs, in one folder of the user's cache directory.
//!
//! A server has one file for each way in which it is launched (protocol, digests of its programs, tools), and one for its
//! place in a lock file (the definitions that were approved), which must be found after the launch has changed. Both have the
//! same layout, bound and writer. An update changes single parts of a file, under a lock and by an atomic replacement, so
//! processes that write the same file keep each other's parts.
//!
//! Losing the cache is never an error: a file that is missing, broken, foreign or of another layout counts as empty.

mod eviction;
mod key;
mod launch_hash;
mod record;

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use thiserror::Error;

use crate::{config::Secrets, private_files, sync::lock};
use eviction::MAX_FILE_BYTES;
use key::Salt;
pub(crate) use key::{CacheKey, Subject};
pub(crate) use launch_hash::is_program;
pub(crate) use record::{CachedProtocol, CachedServer, EraWord, ServerIdentity};

/// The folder in the cache directory.
const FOLDER: &str = "servers";
/// The file whose lock is held during an update.
const LOCK: &str = "lock";
/// Upper bound on how long an update waits for another process. After that it writes anyway: at worst a part is lost.
const LOCK_TIMEOUT: Duration = Duration::from_secs(1);
/// Old files are removed at the first write of a process, and again after this many.
const WRITES_BETWEEN_EVICTIONS: usize = 100;

/// The cache of all servers.
#[derive(Debug)]
pub(crate) struct ServerCache {
    /// The folder, or `None` if the user has no cache directory.
    folder: Option<PathBuf>,
    /// The salt of the file names, once it was read.
    salt: Mutex<Option<Salt>>,
    /// The number of files that this process has written.
    writes: AtomicUsize,
}

/// A reason why an update was not stored.
#[derive(Debug, Error)]
pub(crate) enum NotCached {
    #[error("there is no cache directory")]
    NoFolder,
    #[error("{} is writable by other users, or is not a folder", .0.display())]
    Exposed(PathBuf),
    #[error("its tool list has {0} bytes; the cache stores at most {MAX_FILE_BYTES}")]
    TooLarge(usize),
    #[error("its tool list contains a value that may be a secret")]
    Secret,
    #[error("{} cannot be written: {reason}", .path.display())]
    Unwritable { path: PathBuf, reason: io::Error },
}

/// The number and the size of the files of launches.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct CacheSize {
    pub servers: usize,
    pub bytes: u64,
}

impl ServerCache {
    /// Creates the cache in a cache directory. Nothing is read yet.
    pub(crate) fn new(cache: Option<&Path>) -> Self {
        Self {
            folder: cache.map(|cache| cache.join(FOLDER)),
            salt: Mutex::default(),
            writes: AtomicUsize::new(0),
        }
    }

    /// Returns the folder, if the user has a cache directory.
    pub(crate) fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    /// Returns the number and the size of the launches in the cache.
    pub(crate) fn size(&self) -> CacheSize {
        let mut size = CacheSize::default();
        for bytes in self.folder().into_iter().flat_map(eviction::launch_sizes) {
            size.servers += 1;
            size.bytes += bytes;
        }
        size
    }

    /// Returns the key of a subject, or `None` if nothing can be stored under it yet.
    pub(crate) fn key(&self, subject: &Subject<'_>) -> Option<CacheKey> {
        let folder = self.folder().filter(|it| is_safe(it))?;
        let mut salt = lock(&self.salt);
        if salt.is_none() {
            *salt = Salt::read(folder);
        }
        let salt = salt.clone()?;
        CacheKey::new(subject, &salt)
    }

    /// Reads the file of a key. Returns an empty record if there is no usable file.
    pub(crate) fn read(&self, key: &CacheKey) -> CachedServer {
        let folder = self.folder().filter(|it| is_safe(it));
        let read = folder.and_then(|folder| read_file(folder, key));
        read.unwrap_or_default()
    }

    /// Reads the parts of the file of a key without the lists. They are on its first line, so that a start does not read
    /// megabytes.
    pub(crate) fn read_head(&self, key: &CacheKey) -> CachedServer {
        let folder = self.folder().filter(|it| is_safe(it));
        let line = folder
            .and_then(|folder| private_files::read_line(&folder.join(key.file()), MAX_FILE_BYTES));
        let head = line.and_then(|line| CachedServer::parse_head(line, key));
        // For example, an edited file may have line ends anywhere.
        head.unwrap_or_else(|| self.read(key))
    }

    /// Changes the record of a subject and writes it if it is different. The tools and definitions are left out if they
    /// are too large or contain one of the secrets; the error says so, and the other parts are still stored.
    pub(crate) fn update(
        &self,
        subject: &Subject<'_>,
        secrets: &Secrets,
        change: impl FnOnce(&mut CachedServer),
    ) -> Result<(), NotCached> {
        let folder = self.folder().ok_or(NotCached::NoFolder)?;
        // Others could plant tools here, or wait for tool lists to be written.
        if folder.exists() && !is_safe(folder) {
            return Err(NotCached::Exposed(folder.into()));
        }
        let unwritable = |path: &Path, reason| NotCached::Unwritable {
            path: path.into(),
            reason,
        };
        let salt = self
            .stored_salt(folder)
            .map_err(|reason| unwritable(folder, reason))?;
        let key = CacheKey::new(subject, &salt).ok_or(NotCached::NoFolder)?;
        let _turn = private_files::open_lock(folder, LOCK)
            .and_then(|file| private_files::wait_for_lock(file, LOCK_TIMEOUT));
        // Read under the lock: another process may have written a different part of the record.
        let before = read_file(folder, &key);
        let mut record = before.clone().unwrap_or_default();
        change(&mut record);
        let storable = check(&record, secrets);
        if storable.is_err() {
            // The earlier list is removed too, because it is outdated.
            record.leave_out_lists();
            // The head may contain the value too, for example as the name of the server.
            if check(&record, secrets).is_err() {
                record = CachedServer::default();
            }
        }
        let written = self.write(folder, &key, before.as_ref(), &record);
        written.map_err(|reason| unwritable(&folder.join(key.file()), reason))?;
        storable
    }

    fn write(
        &self,
        folder: &Path,
        key: &CacheKey,
        before: Option<&CachedServer>,
        record: &CachedServer,
    ) -> io::Result<()> {
        if record.is_empty() {
            return match fs::remove_file(folder.join(key.file())) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            };
        }
        // Most starts confirm what is stored, and need no write.
        if before == Some(record) {
            return Ok(());
        }
        private_files::replace_pieces(folder, &key.file(), &record.pieces(key))?;
        let writes = self.writes.fetch_add(1, Ordering::Relaxed);
        // Eviction lists the whole folder, so it does not follow every write.
        if writes.is_multiple_of(WRITES_BETWEEN_EVICTIONS) {
            eviction::evict(folder, SystemTime::now());
        }
        Ok(())
    }

    /// Returns the salt in the folder, and creates it if there is none. It is read again at each update, because the
    /// user may have deleted the folder.
    fn stored_salt(&self, folder: &Path) -> io::Result<Salt> {
        let mut known = lock(&self.salt);
        let salt = match Salt::read(folder) {
            Some(salt) => salt,
            None => Salt::make(folder, known.take())?,
        };
        *known = Some(salt.clone());
        Ok(salt)
    }
}

fn read_file(folder: &Path, key: &CacheKey) -> Option<CachedServer> {
    let (text, _) = private_files::read(&folder.join(key.file()), MAX_FILE_BYTES)?;
    CachedServer::parse(text, key)
}

/// Returns true if only the user can put files into a folder.
fn is_safe(folder: &Path) -> bool {
    let metadata = fs::metadata(folder);
    metadata.is_ok_and(|it| it.is_dir() && private_files::is_writable_by_user_only(&it))
}

fn check(record: &CachedServer, secrets: &Secrets) -> Result<(), NotCached> {
    let bytes = record.bytes();
    if u64::try_from(bytes).is_ok_and(|bytes| bytes > MAX_FILE_BYTES) {
        return Err(NotCached::TooLarge(bytes));
    }
    if record.texts().any(|text| secrets.occur_in_json(&text)) {
        return Err(NotCached::Secret);
    }
    Ok(())
}

/// Returns the seconds since 1970.
fn seconds_now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.unwrap_or_default().as_secs()
}

#[cfg(test)]
pub(crate) mod tests;
