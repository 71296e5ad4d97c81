//! The definitions that are pinned or were seen, in the [server cache](crate::server_cache) so that a difference can be shown
//! later. The lock file has only their digests. Losing them costs the old side of a difference.

use std::{
    collections::BTreeSet,
    fs::File,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;

use super::Digest;
use crate::{
    config::Secrets,
    ident::ServerIdentifier,
    private_files,
    server_cache::{ServerCache, Subject},
    wire::RawJson,
};

/// Upper bound on how long a write of the lock file waits for another process.
const LOCK_TIMEOUT: Duration = Duration::from_secs(1);

/// The definitions of the servers of one lock file.
#[derive(Debug)]
pub(super) struct Texts {
    cache: Arc<ServerCache>,
    /// The lock file; an empty path where there is none.
    lock: PathBuf,
}

/// A JSON object of texts, written as they are made.
struct ObjectOfTexts {
    text: Vec<u8>,
    count: usize,
}

impl ObjectOfTexts {
    fn new() -> Self {
        Self {
            text: b"{".to_vec(),
            count: 0,
        }
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

    fn finish(mut self) -> Option<RawJson> {
        self.text.push(b'}');
        let text = RawJson::parse(&Bytes::from(self.text)).expect("made of JSON");
        (self.count > 0).then_some(text)
    }
}

impl Texts {
    pub(super) fn new(cache: Arc<ServerCache>, lock: Option<&Path>) -> Self {
        Self {
            cache,
            lock: lock.unwrap_or(Path::new("")).to_owned(),
        }
    }

    /// Returns the definition of this digest that a server had.
    pub(super) fn get(&self, place: &ServerIdentifier, digest: Digest) -> Option<String> {
        let key = self.cache.key(&self.subject(place))?;
        let mut texts = self.cache.read(&key).definitions();
        let text = texts.remove(&digest.to_string())?;
        // The file may have been edited.
        (Digest::of(text.as_bytes()) == digest).then_some(text)
    }

    /// Stores definitions of a server beside those that are stored, as far as they are wanted. They are written one after the
    /// other, so that only the text of the file is in memory as a whole.
    pub(super) fn store(
        &self,
        place: &ServerIdentifier,
        added: impl Iterator<Item = (Digest, String)>,
        wanted: &BTreeSet<Digest>,
    ) {
        let wanted: BTreeSet<String> = wanted.iter().map(ToString::to_string).collect();
        let subject = self.subject(place);
        let stored = self.cache.update(&subject, &Secrets::default(), |record| {
            let known = record.definitions();
            let mut text = ObjectOfTexts::new();
            for (digest, definition) in &known {
                if wanted.contains(digest) {
                    text.add(digest, definition);
                }
            }
            for (digest, definition) in added {
                let digest = digest.to_string();
                if wanted.contains(&digest) && !known.contains_key(&digest) {
                    text.add(&digest, &definition);
                }
            }
            record.set_definitions(text.finish());
        });
        if let Err(error) = stored {
            tracing::debug!("definitions are not cached: {error}");
        }
    }

    /// Waits until no other process of this user writes the lock file. The lock is held until the value is dropped. Where it
    /// cannot be had in time, another process may write at the same time.
    pub(super) fn exclusive(&self) -> Option<File> {
        let digest = Digest::of(self.lock.as_os_str().as_encoded_bytes());
        let name = format!("{}.guard", &digest.digits()[..32]);
        let file = private_files::open_lock(self.cache.folder()?, &name)?;
        private_files::wait_for_lock(file, LOCK_TIMEOUT)
    }

    fn subject<'a>(&'a self, server: &'a ServerIdentifier) -> Subject<'a> {
        Subject::Place {
            lock: &self.lock,
            server,
        }
    }
}
