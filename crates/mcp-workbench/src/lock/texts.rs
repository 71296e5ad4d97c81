//! The text of pinned and observed definitions, in the [server cache](crate::server_cache), so that a difference can be
//! shown later. The lock file has only digests. If the texts are lost, the old side of a difference cannot be shown.

use std::{
    borrow::Cow,
    collections::BTreeSet,
    fs::File,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use ident::ServerIdentifier;
use rawjson::ObjectText;

use super::Digest;
use crate::{
    config::Secrets,
    private_files,
    server_cache::{ServerCache, Subject},
};

/// Upper bound on how long a write of the lock file waits for another process.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);

/// The definitions of the servers of one lock file.
#[derive(Debug)]
pub(super) struct Texts {
    cache: Arc<ServerCache>,
    /// The lock file, or an empty path if there is none.
    lock: PathBuf,
}

impl Texts {
    pub(super) fn new(cache: Arc<ServerCache>, lock: Option<&Path>) -> Self {
        Self {
            cache,
            lock: lock.unwrap_or(Path::new("")).to_owned(),
        }
    }

    /// Returns the definition of a server with this digest.
    pub(super) fn get(&self, place: &ServerIdentifier, digest: Digest) -> Option<String> {
        let key = self.cache.key(&self.subject(place))?;
        let mut texts = self.cache.read(&key).definitions();
        let text = texts.remove(&digest.to_string())?;
        // The file may have been edited.
        (Digest::of(text.as_bytes()) == digest).then_some(text)
    }

    /// Adds definitions of a server to the stored ones, if they are wanted. They are written one at a time, so that
    /// only the text of the file is in memory as a whole.
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
            let added = added
                .map(|(digest, definition)| (digest.to_string(), definition))
                .filter(|(digest, _)| !known.contains_key(digest));
            let known = known
                .iter()
                .map(|(digest, it)| (digest.clone(), Cow::from(it)));
            let mut definitions = known
                .chain(added.map(|(digest, it)| (digest, Cow::from(it))))
                .filter(|(digest, _)| wanted.contains(digest))
                .peekable();
            let text = definitions.peek().is_some().then(|| {
                let empty = ObjectText::new();
                definitions
                    .fold(empty, |text, (digest, it)| text.member(&digest, &it))
                    .finish()
            });
            record.set_definitions(text);
        });
        if let Err(error) = stored {
            tracing::debug!("failed to cache tool definitions: {error}");
        }
    }

    /// Waits until no other process of this user writes the lock file. The lock is held until the value is dropped. On
    /// a timeout both processes may write at the same time.
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
