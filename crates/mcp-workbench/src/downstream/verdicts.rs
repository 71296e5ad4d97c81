//! What was found out of servers, kept between the runs of the workbench: how each of them speaks. It is a small
//! file in the cache directory. Losing it costs a question per server, so nothing that goes wrong with it is ever
//! an error; and it holds hashes in place of commands and addresses, since those may hold secrets.

use std::{
    collections::HashMap,
    io,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize};

use super::launch_hash::LaunchHash;
use crate::{
    config::{Server, Transport},
    era::Era,
    private_files,
    wire::{ObjectText, RawJson},
};

/// The file in the cache directory.
const FILE: &str = "eras.json";
/// The layout of the file; one of another layout is not read.
const LAYOUT: u32 = 1;
/// How many verdicts are kept; beyond that the oldest go.
const MAX_VERDICTS: usize = 1000;
/// The largest file that is read.
const MAX_FILE_BYTES: u64 = 1024 * 1024;
/// How much of the name and the version of a server is kept.
const MAX_IDENTITY_CHARACTERS: usize = 100;
/// How long a verdict counts: servers learn.
const LIFETIME: Duration = Duration::from_hours(7 * 24);

/// The verdicts on all servers.
pub(crate) struct Verdicts {
    /// Where they are kept, if anywhere.
    folder: Option<PathBuf>,
    /// What is known; nothing before it was read.
    known: Mutex<Option<Known>>,
}

/// Verdicts as they are written. There may be a thousand, and a start needs few of them.
type Known = HashMap<String, RawJson, foldhash::fast::RandomState>;

/// What was found out of one server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Verdict {
    pub(crate) era: Era,
    /// What the server called itself.
    pub(crate) identity: ServerIdentity,
    /// When it was found out, in seconds since 1970.
    at: u64,
}

/// What a server calls itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ServerIdentity {
    pub(crate) name: Option<String>,
    pub(crate) version: Option<String>,
}

/// A verdict as it is written in the file.
#[derive(Serialize, Deserialize)]
struct StoredVerdict {
    #[serde(with = "EraWord")]
    era: Era,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    at: u64,
}

impl From<StoredVerdict> for Verdict {
    fn from(stored: StoredVerdict) -> Self {
        let StoredVerdict {
            era,
            name,
            version,
            at,
        } = stored;
        let identity = ServerIdentity { name, version };
        Self { era, identity, at }
    }
}

impl From<Verdict> for StoredVerdict {
    fn from(verdict: Verdict) -> Self {
        let Verdict { era, identity, at } = verdict;
        let ServerIdentity { name, version } = identity;
        Self {
            era,
            name,
            version,
            at,
        }
    }
}

/// An era as it is written in the file.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Era", rename_all = "camelCase")]
pub(crate) enum EraWord {
    Legacy,
    Modern,
}

/// What a verdict is found by: a server, and the version of its program as far as that can be seen from outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct VerdictKey(String);

impl VerdictKey {
    /// The key of a server; one that cannot be reached has none.
    pub(crate) fn of(server: &Server) -> Option<Self> {
        let mut hash = LaunchHash::default();
        match &server.transport {
            Transport::Stdio(launch) => hash.add_program(launch),
            Transport::Remote(endpoint) => {
                hash.add(b"remote");
                hash.add(endpoint.url.as_bytes());
            }
            Transport::Unset(_) => return None,
        }
        Some(Self(BASE64_URL_SAFE_NO_PAD.encode(hash.finish())))
    }
}

impl ServerIdentity {
    /// An identity of texts that may be of any length.
    pub(crate) fn new(name: Option<&str>, version: Option<&str>) -> Self {
        let cut = |text: &str| text.chars().take(MAX_IDENTITY_CHARACTERS).collect();
        Self {
            name: name.map(cut),
            version: version.map(cut),
        }
    }
}

impl Verdicts {
    /// The verdicts that are kept in a folder, or only as long as the process runs.
    pub(crate) fn new(folder: Option<PathBuf>) -> Self {
        Self {
            folder,
            known: Mutex::default(),
        }
    }

    /// What is known of a server, unless it is too old to count.
    pub(crate) fn get(&self, key: &VerdictKey) -> Option<Verdict> {
        let mut known = self.known();
        let known = known.get_or_insert_with(|| self.read());
        let now = seconds_now();
        // A clock that was set back must not make a verdict last for ever.
        let counts = |verdict: &Verdict| now.abs_diff(verdict.at) <= LIFETIME.as_secs();
        known.get(&key.0).and_then(Verdict::read).filter(counts)
    }

    /// Notes how a server speaks.
    pub(crate) fn put(&self, key: &VerdictKey, era: Era, identity: ServerIdentity) {
        let verdict = Verdict {
            era,
            identity,
            at: seconds_now(),
        };
        let verdict = RawJson::of(&StoredVerdict::from(verdict));
        self.change(|known| {
            known.insert(key.0.clone(), verdict.clone());
        });
    }

    /// Forgets what was known of a server.
    pub(crate) fn forget(&self, key: &VerdictKey) {
        if self.get(key).is_some() {
            self.change(|known| {
                known.remove(&key.0);
            });
        }
    }

    /// Makes a change in what others may have written meanwhile. Where nothing can be written, it is made in what
    /// this process knows.
    fn change(&self, change: impl Fn(&mut Known)) {
        let mut known = self.known();
        let Some(folder) = &self.folder else {
            return change(known.get_or_insert_default());
        };
        let mut verdicts = self.read();
        change(&mut verdicts);
        keep_newest(&mut verdicts);
        match write(folder, &verdicts) {
            Ok(()) => *known = Some(verdicts),
            Err(error) => {
                tracing::debug!("what was found out of servers is not kept: {error}");
                change(known.get_or_insert(verdicts));
            }
        }
    }

    fn read(&self) -> Known {
        let file = self.folder.as_ref().map(|folder| folder.join(FILE));
        let text = file.and_then(|file| private_files::read(&file, MAX_FILE_BYTES));
        let stored = text.and_then(|(text, _)| RawJson::parse(&text.into()).ok());
        stored
            .and_then(|stored| verdicts_in(&stored))
            .unwrap_or_default()
    }

    fn known(&self) -> MutexGuard<'_, Option<Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Verdict {
    /// A verdict out of the file, if it is one.
    fn read(text: &RawJson) -> Option<Self> {
        let stored: StoredVerdict = serde_json::from_slice(text.as_bytes()).ok()?;
        Some(stored.into())
    }
}

/// The verdicts in a file, if it has the layout that is written now.
fn verdicts_in(stored: &RawJson) -> Option<Known> {
    if stored.member("layout")?.as_str() != LAYOUT.to_string() {
        return None;
    }
    let verdicts = stored.member("verdicts")?;
    let verdicts = verdicts.members()?.into_iter();
    Some(verdicts.map(|it| (it.key.into_owned(), it.value)).collect())
}

fn write(folder: &Path, verdicts: &Known) -> io::Result<()> {
    let text = verdicts
        .iter()
        .fold(ObjectText::new(), |text, (key, verdict)| {
            text.raw(key, verdict)
        });
    let stored = ObjectText::new()
        .member("layout", &LAYOUT)
        .raw("verdicts", &text.finish());
    private_files::replace(folder, FILE, stored.finish().as_bytes())
}

/// Leaves the newest, as many as are kept. What cannot be read counts as oldest.
fn keep_newest(verdicts: &mut Known) {
    let excess = verdicts.len().saturating_sub(MAX_VERDICTS);
    if excess == 0 {
        return;
    }
    let found_at = |(key, verdict): (&String, &RawJson)| {
        let at = Verdict::read(verdict).map_or(0, |verdict| verdict.at);
        (at, key.clone())
    };
    let mut by_age: Vec<(u64, String)> = verdicts.iter().map(found_at).collect();
    by_age.sort_unstable();
    for (_, oldest) in by_age.into_iter().take(excess) {
        verdicts.remove(&oldest);
    }
}

fn seconds_now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.unwrap_or_default().as_secs()
}

#[cfg(test)]
mod tests;
