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
pub(super) struct Verdicts {
    /// Where they are kept, if anywhere.
    folder: Option<PathBuf>,
    /// What is known; nothing before it was read.
    known: Mutex<Option<HashMap<String, Verdict>>>,
}

/// What was found out of one server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Verdict {
    #[serde(with = "EraWord")]
    pub(super) era: Era,
    /// What the server called itself.
    #[serde(flatten)]
    pub(super) identity: ServerIdentity,
    /// When it was found out, in seconds since 1970.
    at: u64,
}

/// What a server calls itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ServerIdentity {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) version: Option<String>,
}

/// An era as it is written in the file.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Era", rename_all = "camelCase")]
pub(super) enum EraWord {
    Legacy,
    Modern,
}

#[derive(Serialize, Deserialize)]
struct Stored {
    layout: u32,
    verdicts: HashMap<String, Verdict>,
}

/// What a verdict is found by: a server, and the version of its program as far as that can be seen from outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct VerdictKey(String);

impl VerdictKey {
    /// The key of a server; one that cannot be reached has none.
    pub(super) fn of(server: &Server) -> Option<Self> {
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
    pub(super) fn new(name: Option<&str>, version: Option<&str>) -> Self {
        let cut = |text: &str| text.chars().take(MAX_IDENTITY_CHARACTERS).collect();
        Self {
            name: name.map(cut),
            version: version.map(cut),
        }
    }
}

impl Verdicts {
    /// The verdicts that are kept in a folder, or only as long as the process runs.
    pub(super) fn new(folder: Option<PathBuf>) -> Self {
        Self {
            folder,
            known: Mutex::default(),
        }
    }

    /// What is known of a server, unless it is too old to count.
    pub(super) fn get(&self, key: &VerdictKey) -> Option<Verdict> {
        let mut known = self.known();
        let known = known.get_or_insert_with(|| self.read());
        let now = seconds_now();
        // A clock that was set back must not make a verdict last for ever.
        let counts = |verdict: &&Verdict| now.abs_diff(verdict.at) <= LIFETIME.as_secs();
        known.get(&key.0).filter(counts).cloned()
    }

    /// Notes how a server speaks.
    pub(super) fn put(&self, key: &VerdictKey, era: Era, identity: ServerIdentity) {
        let verdict = Verdict {
            era,
            identity,
            at: seconds_now(),
        };
        self.change(|known| {
            known.insert(key.0.clone(), verdict.clone());
        });
    }

    /// Forgets what was known of a server.
    pub(super) fn forget(&self, key: &VerdictKey) {
        if self.get(key).is_some() {
            self.change(|known| {
                known.remove(&key.0);
            });
        }
    }

    /// Makes a change in what others may have written meanwhile. Where nothing can be written, it is made in what
    /// this process knows.
    fn change(&self, change: impl Fn(&mut HashMap<String, Verdict>)) {
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

    fn read(&self) -> HashMap<String, Verdict> {
        let file = self.folder.as_ref().map(|folder| folder.join(FILE));
        let text = file.and_then(|file| private_files::read(&file, MAX_FILE_BYTES));
        let stored = text.and_then(|(text, _)| serde_json::from_slice::<Stored>(&text).ok());
        let stored = stored.filter(|stored| stored.layout == LAYOUT);
        stored.map(|stored| stored.verdicts).unwrap_or_default()
    }

    fn known(&self) -> MutexGuard<'_, Option<HashMap<String, Verdict>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn write(folder: &Path, verdicts: &HashMap<String, Verdict>) -> io::Result<()> {
    let stored = Stored {
        layout: LAYOUT,
        verdicts: verdicts.clone(),
    };
    private_files::replace(folder, FILE, &serde_json::to_vec(&stored)?)
}

fn keep_newest(verdicts: &mut HashMap<String, Verdict>) {
    while verdicts.len() > MAX_VERDICTS {
        let oldest = verdicts.iter().min_by_key(|(_, verdict)| verdict.at);
        let Some(oldest) = oldest.map(|(key, _)| key.clone()) else {
            return;
        };
        verdicts.remove(&oldest);
    }
}

fn seconds_now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.unwrap_or_default().as_secs()
}

#[cfg(test)]
mod tests;
