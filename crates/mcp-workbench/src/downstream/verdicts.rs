//! What was found out of servers, kept between the runs of the workbench: how each of them speaks. It is a small
//! file in the cache directory. Losing it costs a question per server, so nothing that goes wrong with it is ever
//! an error; and it holds hashes in place of commands and addresses, since those may hold secrets.

use std::{
    collections::HashMap,
    ffi::OsStr,
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::process::find_program;
use crate::{
    config::{Server, StdioLaunch, Transport},
    era::Era,
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

/// How the names of files end that interpreters run.
const PROGRAMS: [&str; 15] = [
    "cjs", "cts", "dll", "exe", "jar", "js", "mjs", "mts", "php", "ps1", "py", "pyz", "rb", "sh",
    "ts",
];

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
enum EraWord {
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
        let mut hash = Sha256::new();
        match &server.transport {
            Transport::Stdio(launch) => add_launch(&mut hash, launch),
            Transport::Remote(endpoint) => {
                add(&mut hash, b"remote");
                add(&mut hash, endpoint.url.as_bytes());
            }
            Transport::Unset(_) => return None,
        }
        Some(Self(BASE64_URL_SAFE_NO_PAD.encode(hash.finalize())))
    }
}

fn add_launch(hash: &mut Sha256, launch: &StdioLaunch) {
    add(hash, b"program");
    add(hash, launch.command.as_bytes());
    if launch.names_cwd {
        // What `npm start` is depends on where it is said.
        add(hash, launch.cwd.as_os_str().as_encoded_bytes());
    }
    for argument in &launch.args_as_written {
        add(hash, argument.as_bytes());
    }
    let environment = &launch.environment;
    let path = environment.own.get("PATH").map(AsRef::as_ref);
    let inherited = environment.inherited.iter();
    let mut inherited = inherited.filter(|(name, _)| name == "PATH");
    let path = path.or_else(|| Some(inherited.next()?.1.as_os_str()));
    if let Some(program) = find_program(&launch.command, path) {
        add_file(hash, &launch.cwd.join(program));
    }
    for argument in &launch.args {
        let file = launch.cwd.join(argument);
        if is_program(&file) {
            add_file(hash, &file);
        }
    }
}

/// Whether a file among the arguments may be what is run, as far as its name tells. Others, such as a database,
/// change while the server runs.
fn is_program(file: &Path) -> bool {
    let extension = file.extension().and_then(OsStr::to_str);
    extension.is_some_and(|it| PROGRAMS.contains(&it.to_ascii_lowercase().as_str()))
}

/// Adds a part in a way that two parts never look like one.
fn add(hash: &mut Sha256, part: &[u8]) {
    hash.update(part.len().to_le_bytes());
    hash.update(part);
}

/// Adds what of a file changes with its content.
fn add_file(hash: &mut Sha256, file: &Path) {
    let Ok(metadata) = fs::metadata(file) else {
        return;
    };
    if metadata.is_file() {
        let changed = metadata.modified().ok();
        let changed = changed.and_then(|it| it.duration_since(UNIX_EPOCH).ok());
        add(hash, &metadata.len().to_le_bytes());
        add(hash, &changed.unwrap_or_default().as_nanos().to_le_bytes());
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
        let text = file.and_then(|file| {
            let length = fs::metadata(&file).ok()?.len();
            (length <= MAX_FILE_BYTES).then(|| fs::read(&file).ok())?
        });
        let stored = text.and_then(|text| serde_json::from_slice::<Stored>(&text).ok());
        let stored = stored.filter(|stored| stored.layout == LAYOUT);
        stored.map(|stored| stored.verdicts).unwrap_or_default()
    }

    fn known(&self) -> MutexGuard<'_, Option<HashMap<String, Verdict>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes a new file and puts it in the place of the old one, so that nobody ever reads half of it.
fn write(folder: &Path, verdicts: &HashMap<String, Verdict>) -> io::Result<()> {
    let stored = Stored {
        layout: LAYOUT,
        verdicts: verdicts.clone(),
    };
    let text = serde_json::to_vec(&stored)?;
    make_folder(folder)?;
    let temporary = folder.join(format!("{FILE}.{:016x}", random_number()));
    let written = write_new(&temporary, &text);
    let written = written.and_then(|()| fs::rename(&temporary, folder.join(FILE)));
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written
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

/// A number that no other workbench has, wherever it runs.
fn random_number() -> u64 {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).expect("the system has random numbers");
    u64::from_ne_bytes(bytes)
}

/// The folder and the file are for the user alone.
fn make_folder(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

fn write_new(file: &Path, text: &[u8]) -> io::Result<()> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(file)?.write_all(text)
}

#[cfg(test)]
mod tests;
