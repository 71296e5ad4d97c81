//! The digests of program files, by file metadata. Servers that run the same program share one digest, and its file is
//! read once. The digests of earlier runs come from the server cache, so that a start does not wait until a large
//! program was read again. In `"enforce"` mode the content itself is read: a write through a memory mapping can leave
//! the times of a file unchanged.

use std::{
    collections::{BTreeMap, HashMap},
    fs::{self, Metadata},
    io::{self, Read},
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, OnceLock},
    time::Instant,
};

use super::canonical::Digest;
use crate::{config::PinMode, plain_file, sha256::Sha256, sync::lock};

/// The largest program that is read.
const MAX_PROGRAM_BYTES: u64 = 256 * 1024 * 1024;
/// Bound on the digests in memory. When there are more, all are forgotten.
const MAX_REMEMBERED: usize = 1000;
/// The longest step of the times of files, in seconds, that file systems have.
#[cfg(unix)]
const STEP: i64 = 2;

#[derive(Debug, Default)]
pub(super) struct Programs {
    known: Mutex<Known>,
}

/// The digests that may be reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReusableDigests {
    /// Those of earlier runs too.
    Cached,
    /// Only those of files that were read after this moment. Servers that start together still read a file once.
    Since(Instant),
}

impl ReusableDigests {
    /// Returns the digests that may be reused for a server from now on.
    pub(crate) fn of(mode: PinMode) -> Self {
        match mode {
            PinMode::Off | PinMode::Notice => Self::Cached,
            PinMode::Enforce => Self::Since(Instant::now()),
        }
    }
}

/// Digests by the stamps of files.
#[derive(Debug, Default)]
struct Known {
    /// The digests of files that this process has read, and when.
    read: HashMap<String, (Digest, Instant)>,
    /// The digests of earlier runs.
    cached: HashMap<String, Digest>,
}

impl Programs {
    /// Adds digests of an earlier run.
    pub(super) fn add_cached(&self, programs: &BTreeMap<String, String>) {
        let programs = programs.iter();
        let programs =
            programs.filter_map(|(stamp, digest)| Some((stamp.clone(), Digest::parse(digest)?)));
        let mut known = self.known();
        if known.cached.len() >= MAX_REMEMBERED {
            known.cached.clear();
        }
        known.cached.extend(programs);
    }

    /// Returns the digests that later runs may use: those of files of which every later change will show in the stamp.
    pub(super) fn cacheable(
        &self,
        files: impl Iterator<Item = PathBuf>,
    ) -> BTreeMap<String, String> {
        let known = self.known();
        let digests = files.filter_map(|file| {
            let metadata = program(&file).filter(is_settled)?;
            let stamp = stamp(&file, &metadata);
            let read = known.read.get(&stamp).map(|it| it.0);
            let digest = read.or_else(|| known.cached.get(&stamp).copied())?;
            Some((stamp, digest.to_string()))
        });
        digests.collect()
    }

    /// Returns the digest of a program, or `None` if it cannot be read, is too large, or is the workbench itself,
    /// because a replaced workbench would not check itself.
    pub(super) fn digest(&self, path: &Path, reusable: ReusableDigests) -> Option<Digest> {
        let metadata = program(path)?;
        let stamp = stamp(path, &metadata);
        // The map stays locked, so that a concurrent request for the same file waits instead of reading it too.
        let mut known = self.known();
        if let Some(digest) = known.get(&stamp, reusable) {
            return Some(digest);
        }
        // The time before the reading: a change during the reading may not be in the digest.
        let begun = Instant::now();
        let digest = read(path).ok()?;
        if known.read.len() >= MAX_REMEMBERED {
            known.read.clear();
        }
        known.read.insert(stamp, (digest, begun));
        Some(digest)
    }

    #[cfg(test)]
    pub(super) fn has_read_files(&self) -> bool {
        !self.known().read.is_empty()
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        lock(&self.known)
    }
}

impl Known {
    fn get(&self, stamp: &str, reusable: ReusableDigests) -> Option<Digest> {
        let read = self.read.get(stamp);
        match reusable {
            ReusableDigests::Since(moment) => read.filter(|it| it.1 >= moment).map(|it| it.0),
            ReusableDigests::Cached => read
                .map(|it| it.0)
                .or_else(|| self.cached.get(stamp).copied()),
        }
    }
}

/// Returns the metadata of a file that is to be read, or `None` if it is not.
fn program(path: &Path) -> Option<Metadata> {
    let metadata = fs::metadata(path).ok()?;
    let is_read = metadata.is_file() && metadata.len() <= MAX_PROGRAM_BYTES;
    (is_read && !is_own_program(path)).then_some(metadata)
}

/// Returns true if a file is this program.
fn is_own_program(path: &Path) -> bool {
    static OWN: OnceLock<Option<PathBuf>> = OnceLock::new();
    let own = OWN.get_or_init(|| fs::canonicalize(std::env::current_exe().ok()?).ok());
    own.is_some() && fs::canonicalize(path).ok() == *own
}

fn read(path: &Path) -> io::Result<Digest> {
    let mut file = plain_file::open(path)?.take(MAX_PROGRAM_BYTES);
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(Digest::finish(hash)),
            length => hash.update(&buffer[..length]),
        }
    }
}

/// Returns the metadata that changes with the content of a file and that only the system can reset.
#[cfg(unix)]
fn stamp(_: &Path, metadata: &Metadata) -> String {
    use std::os::unix::fs::MetadataExt;
    format!(
        "{} {} {} {}.{} {}.{}",
        metadata.dev(),
        metadata.ino(),
        metadata.len(),
        metadata.mtime(),
        metadata.mtime_nsec(),
        metadata.ctime(),
        metadata.ctime_nsec(),
    )
}

/// Other systems let programs set all times, so the stamp includes the name.
#[cfg(not(unix))]
fn stamp(path: &Path, metadata: &Metadata) -> String {
    format!("{path:?} {} {:?}", metadata.len(), metadata.modified().ok())
}

/// Returns true if every later change of a file will show in its stamp. File times have a limited resolution: a second
/// change within one step may leave the stamp unchanged.
#[cfg(unix)]
fn is_settled(metadata: &Metadata) -> bool {
    use std::{
        os::unix::fs::MetadataExt,
        time::{SystemTime, UNIX_EPOCH},
    };

    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.map_or(0, |now| now.as_secs().cast_signed());
    metadata.ctime().saturating_add(STEP) < now
}

#[cfg(not(unix))]
fn is_settled(_: &Metadata) -> bool {
    false
}

#[cfg(test)]
mod tests;
