//! The digests of files that were read, by what changes with the content of a file. Many servers may be one program, which
//! is read once. Digests last from run to run in the cache directory, so that a start does not wait until a large program
//! was read once more. Losing them costs that reading, so nothing that goes wrong here is ever an error. Where only what
//! is approved may be started, the content itself is read: whoever writes through a mapping of a file can leave its times
//! as they were.

use std::{
    collections::HashMap,
    fs::{self, Metadata},
    io::{self, Read},
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, OnceLock, PoisonError},
    time::Instant,
};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::canonical::Digest;
use crate::{config::PinMode, plain_file, private_files};

/// The file in the cache directory.
const FILE: &str = "programs.json";
/// The layout of the file; one of another layout is not read.
const LAYOUT: u32 = 1;
/// The largest program that is read.
const MAX_PROGRAM_BYTES: u64 = 256 * 1024 * 1024;
/// How many digests are remembered. When there are more, all are forgotten.
const MAX_REMEMBERED: usize = 1000;
/// The largest file of digests that is read.
const MAX_FILE_BYTES: u64 = 1024 * 1024;
/// The longest step of the times of files, in seconds, that file systems have.
#[cfg(unix)]
const STEP: i64 = 2;

#[derive(Debug)]
pub(super) struct Programs {
    /// Where they are kept between runs, if anywhere.
    folder: Option<PathBuf>,
    known: Mutex<Known>,
}

/// Which digests are good enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Recall {
    /// Those of an earlier run too.
    Kept,
    /// Those of files that were read after this moment, so that servers which are started together read a file once.
    Since(Instant),
}

impl Recall {
    /// Returns which digests are good enough from now on for a server.
    pub(crate) fn of(mode: PinMode) -> Self {
        match mode {
            PinMode::Off | PinMode::Notice => Self::Kept,
            PinMode::Enforce => Self::Since(Instant::now()),
        }
    }
}

/// What is known, by the stamps of files.
#[derive(Debug, Default)]
struct Known {
    /// What this process has read, and since when.
    read: HashMap<String, (Digest, Instant)>,
    /// What an earlier one had read; nothing before somebody wanted to know.
    kept: Option<HashMap<String, Digest>>,
    /// What was read and is to be kept.
    new: HashMap<String, Digest>,
}

#[derive(Serialize, Deserialize)]
struct Stored {
    layout: u32,
    programs: HashMap<String, String>,
}

impl Programs {
    /// Those that are kept in the cache directory, or only as long as the process runs.
    pub(super) fn new(cache: Option<&Path>) -> Self {
        Self {
            folder: cache.map(Path::to_owned),
            known: Mutex::default(),
        }
    }

    /// The digest of a program; nothing where it cannot be read, is too large or is the workbench itself, whose
    /// replacement would not look.
    pub(super) fn digest(&self, path: &Path, recall: Recall) -> Option<Digest> {
        let metadata = program(path)?;
        let stamp = stamp(path, &metadata);
        // Whoever wants the same file at the same time waits for it instead of reading it too.
        let mut known = self.known();
        if let Some(digest) = self.recall(&mut known, &stamp, recall) {
            return Some(digest);
        }
        let begun = Instant::now();
        let digest = read(path).ok()?;
        if known.read.len() >= MAX_REMEMBERED {
            known.read.clear();
        }
        if is_settled(&metadata) {
            known.new.insert(stamp.clone(), digest);
        }
        known.read.insert(stamp, (digest, begun));
        Some(digest)
    }

    /// Whether the digest of a program can be told without reading the program. Nobody is waited for.
    pub(super) fn is_known(&self, path: &Path, recall: Recall) -> bool {
        let Some(metadata) = program(path) else {
            return true;
        };
        let Ok(mut known) = self.known.try_lock() else {
            return false;
        };
        let stamp = stamp(path, &metadata);
        self.recall(&mut known, &stamp, recall).is_some()
    }

    fn recall(&self, known: &mut Known, stamp: &str, recall: Recall) -> Option<Digest> {
        let read = known.read.get(stamp);
        match recall {
            Recall::Since(moment) => read.filter(|it| it.1 >= moment).map(|it| it.0),
            Recall::Kept => read.map(|it| it.0).or_else(|| {
                let kept = known.kept.get_or_insert_with(|| self.kept());
                kept.get(stamp).copied()
            }),
        }
    }

    /// Keeps what was read for later runs.
    pub(super) fn keep(&self) {
        let new = std::mem::take(&mut self.known().new);
        let Some(folder) = self.folder.as_ref().filter(|_| !new.is_empty()) else {
            return;
        };
        // Others may have written meanwhile.
        let mut kept = self.kept();
        if kept.len() + new.len() > MAX_REMEMBERED {
            kept.clear();
        }
        kept.extend(new);
        if let Err(error) = write(folder, &kept) {
            tracing::debug!("the digests of programs are not kept: {error}");
        }
    }

    fn kept(&self) -> HashMap<String, Digest> {
        let file = self.folder.as_ref().map(|folder| folder.join(FILE));
        let text = file.and_then(|file| private_files::read(&file, MAX_FILE_BYTES));
        let stored = text.and_then(|(text, _)| serde_json::from_slice::<Stored>(&text).ok());
        let stored = stored.filter(|stored| stored.layout == LAYOUT);
        let programs = stored.into_iter().flat_map(|stored| stored.programs);
        programs
            .filter_map(|(stamp, digest)| Some((stamp, Digest::parse(&digest)?)))
            .collect()
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn write(folder: &Path, kept: &HashMap<String, Digest>) -> io::Result<()> {
    let programs = kept.iter();
    let programs = programs.map(|(stamp, digest)| (stamp.clone(), digest.to_string()));
    let stored = Stored {
        layout: LAYOUT,
        programs: programs.collect(),
    };
    private_files::replace(folder, FILE, &serde_json::to_vec(&stored)?)
}

/// What the system knows of a file that is read; nothing of one that is not.
fn program(path: &Path) -> Option<Metadata> {
    let metadata = fs::metadata(path).ok()?;
    let is_read = metadata.is_file() && metadata.len() <= MAX_PROGRAM_BYTES;
    (is_read && !is_own_program(path)).then_some(metadata)
}

/// Whether a file is this program.
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

/// What changes with the content of a file, and what no program but the system can set back.
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

/// Elsewhere times can be set, and the name has to do.
#[cfg(not(unix))]
fn stamp(path: &Path, metadata: &Metadata) -> String {
    format!("{path:?} {} {:?}", metadata.len(), metadata.modified().ok())
}

/// Whether any later change of a file will show in its stamp: times of files have steps, and one that was changed twice
/// within a step may look as after the first time.
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
