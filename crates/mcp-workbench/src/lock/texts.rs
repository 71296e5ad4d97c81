//! Definitions that were pinned or seen, kept in the cache directory so that a difference can be shown later. The lock
//! file has only their digests. Losing them costs the old side of a difference, so nothing that goes wrong here is ever an
//! error.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsStr,
    fs::{self, DirEntry, File},
    io,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use serde::Deserialize;

use super::Digest;
use crate::{ident::ServerIdentifier, private_files};

/// The folder in the cache directory.
const FOLDER: &str = "pins";
/// The layout of a file; one of another layout is not read.
const LAYOUT: u32 = 1;
/// The largest file that is read or written.
const MAX_FILE_BYTES: usize = 16 * 1024 * 1024;
/// How many files are kept; beyond that the oldest go.
const MAX_FILES: usize = 1000;
/// How long another process is waited for that writes the lock file.
const PATIENCE: Duration = Duration::from_secs(1);

/// The definitions of the servers of one lock file.
#[derive(Debug)]
pub(super) struct Texts {
    /// Where they are kept, if anywhere.
    folder: Option<PathBuf>,
    /// Tells the servers of this lock file from those of others.
    lock: Digest,
}

#[derive(Deserialize)]
struct Stored {
    layout: u32,
    /// Canonical definitions by their digests.
    texts: BTreeMap<String, String>,
}

/// The text of a file, written as it is made.
struct StoredText {
    text: Vec<u8>,
    /// How many definitions are in it.
    count: usize,
}

impl StoredText {
    fn new() -> Self {
        let text = format!("{{\"layout\":{LAYOUT},\"texts\":{{").into_bytes();
        Self { text, count: 0 }
    }

    fn add(&mut self, digest: &str, definition: &str) {
        if self.count > 0 {
            self.text.push(b',');
        }
        self.string(digest);
        self.text.push(b':');
        self.string(definition);
        self.count += 1;
    }

    fn string(&mut self, string: &str) {
        serde_json::to_writer(&mut self.text, string).expect("writing to memory cannot fail");
    }

    fn finish(mut self) -> Vec<u8> {
        self.text.extend_from_slice(b"}}");
        self.text
    }
}

impl Texts {
    /// Those of a lock file.
    pub(super) fn new(cache: Option<&Path>, lock: Option<&Path>) -> Self {
        let lock = lock.map_or(&b""[..], |file| file.as_os_str().as_encoded_bytes());
        Self {
            folder: cache.map(|cache| cache.join(FOLDER)),
            lock: Digest::of(lock),
        }
    }

    /// The definition of this digest that a server had.
    pub(super) fn get(&self, place: &ServerIdentifier, digest: Digest) -> Option<String> {
        let mut texts = read(&self.file(place)?);
        let text = texts.remove(&digest.to_string())?;
        // What somebody else has put there is not what was pinned.
        (Digest::of(text.as_bytes()) == digest).then_some(text)
    }

    /// Keeps definitions of a server, those that it had included, as far as they are still pinned or seen. Only the
    /// text of the file is held whole.
    pub(super) fn keep(
        &self,
        place: &ServerIdentifier,
        added: impl Iterator<Item = (Digest, String)>,
        wanted: &BTreeSet<Digest>,
    ) {
        let Some(file) = self.file(place) else { return };
        let known = read(&file);
        let wanted: BTreeSet<String> = wanted.iter().map(ToString::to_string).collect();
        let kept = known.iter().filter(|(digest, _)| wanted.contains(*digest));
        let mut text = StoredText::new();
        kept.for_each(|(digest, definition)| text.add(digest, definition));
        let is_less = text.count < known.len();
        for (digest, definition) in added {
            let digest = digest.to_string();
            if wanted.contains(&digest) && !known.contains_key(&digest) {
                text.add(&digest, &definition);
            }
        }
        if !is_less && text.count == known.len() {
            return;
        }
        if let Err(error) = self.write(&file, &text.finish()) {
            tracing::debug!("definitions are not kept: {error}");
        }
    }

    /// Waits until no other process of this user writes the lock file. It is held until the value is dropped. Where that
    /// cannot be had, somebody else may write at the same time.
    pub(super) fn exclusive(&self) -> Option<File> {
        let name = format!("{}.guard", &self.lock.digits()[..32]);
        let file = private_files::open_lock(self.folder.as_ref()?, &name)?;
        private_files::wait_for_lock(file, PATIENCE)
    }

    fn file(&self, place: &ServerIdentifier) -> Option<PathBuf> {
        let parts = (
            self.lock.to_string(),
            place.toolbox.as_str(),
            place.server.as_str(),
        );
        let key = serde_json::to_vec(&parts).ok()?;
        let name = format!("{}.json", &Digest::of(&key).digits()[..32]);
        Some(self.folder.as_ref()?.join(name))
    }

    fn write(&self, file: &Path, text: &[u8]) -> io::Result<()> {
        if text.len() > MAX_FILE_BYTES {
            return Err(io::Error::other("they are too large"));
        }
        match (&self.folder, file.file_name().and_then(OsStr::to_str)) {
            (Some(folder), Some(name)) => private_files::replace(folder, name, text),
            _ => Ok(()),
        }
    }

    /// Keeps the folder from growing without end: to be called when everything is written.
    pub(super) fn forget_oldest(&self) {
        if let Some(folder) = &self.folder {
            remove_oldest(folder);
        }
    }
}

/// The texts of a file; none where there is no such file.
fn read(file: &Path) -> BTreeMap<String, String> {
    let text = private_files::read(file, MAX_FILE_BYTES as u64);
    let text = text.map(|(text, _)| text);
    let stored = text.and_then(|text| serde_json::from_slice::<Stored>(&text).ok());
    let stored = stored.filter(|stored| stored.layout == LAYOUT);
    stored.map(|stored| stored.texts).unwrap_or_default()
}

/// Files are looked at only when there are too many of them.
fn remove_oldest(folder: &Path) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let files = entries.filter(|it| it.path().extension().is_some_and(|it| it == "json"));
    let files: Vec<DirEntry> = files.collect();
    if files.len() <= MAX_FILES {
        return;
    }
    let modified = |it: &DirEntry| it.metadata().ok()?.modified().ok();
    let mut files: Vec<(SystemTime, PathBuf)> = files
        .iter()
        .filter_map(|it| Some((modified(it)?, it.path())))
        .collect();
    files.sort_unstable();
    let surplus = files.len().saturating_sub(MAX_FILES);
    for (_, file) in &files[..surplus] {
        let _ = fs::remove_file(file);
    }
}
