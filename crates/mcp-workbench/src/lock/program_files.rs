//! The files that an entry names and that are run: a command with a path, and scripts among the arguments. Programs that
//! are looked up in `PATH` are not among them, since interpreters and launchers differ from machine to machine; nor is
//! a file whose name depends on a variable, nor the workbench itself, whose replacement would not look.

use std::{
    collections::HashMap,
    ffi::OsStr,
    fs::{self, File, Metadata},
    io::{self, Read},
    path::{Path, PathBuf},
    sync::{Mutex, OnceLock, PoisonError},
};

use sha2::{Digest as _, Sha256};

use super::canonical::Digest;
use crate::config::{Server, StdioLaunch, Transport};

/// How the names of files end that interpreters run.
const PROGRAMS: [&str; 15] = [
    "cjs", "cts", "dll", "exe", "jar", "js", "mjs", "mts", "php", "ps1", "py", "pyz", "rb", "sh",
    "ts",
];

/// The largest file that is read.
const MAX_FILE_BYTES: u64 = 256 * 1024 * 1024;

/// How many digests are remembered.
const MAX_REMEMBERED: usize = 1000;

/// What has been read, by what changes with its content. Many servers may be one program.
static KNOWN: Mutex<Option<HashMap<Stamp, Digest>>> = Mutex::new(None);

/// The files that a server is made of, by their names as they are written, with their digests. One that cannot be read
/// is left out.
pub(super) fn digests(server: &Server) -> Vec<(String, Digest)> {
    let Transport::Stdio(launch) = &server.transport else {
        return Vec::new();
    };
    let mut files: Vec<(String, Digest)> = Vec::new();
    for (written, file) in named(server, launch) {
        let known = files.iter().any(|(name, _)| name == written);
        if !known && let Some(digest) = digest(&launch.cwd.join(file)) {
            files.push((written.to_owned(), digest));
        }
    }
    files.sort();
    files
}

/// Whether a server names files to be read.
pub(super) fn are_named(server: &Server) -> bool {
    match &server.transport {
        Transport::Stdio(launch) => named(server, launch).next().is_some(),
        Transport::Remote(_) | Transport::Unset(_) => false,
    }
}

/// The names of files as they are written and as they are.
fn named<'a>(
    server: &'a Server,
    launch: &'a StdioLaunch,
) -> impl Iterator<Item = (&'a str, &'a str)> {
    let command = server.written.command.as_deref();
    let command = command.map(|written| (written, launch.command.as_str()));
    let command = command.filter(|(_, command)| Path::new(command).is_absolute());
    let arguments = launch.args_as_written.iter().zip(&launch.args);
    let arguments = arguments.map(|(written, argument)| (written.as_str(), argument.as_str()));
    let scripts = arguments.filter(|(_, argument)| is_program(argument));
    let files = command.into_iter().chain(scripts);
    files.filter(|(written, _)| !written.contains("${"))
}

/// Whether an argument may be a file that is run, as far as its name tells.
fn is_program(argument: &str) -> bool {
    let extension = Path::new(argument).extension().and_then(OsStr::to_str);
    extension.is_some_and(|it| PROGRAMS.contains(&it.to_ascii_lowercase().as_str()))
}

fn digest(path: &Path) -> Option<Digest> {
    let metadata = fs::metadata(path).ok()?;
    if !metadata.is_file() || metadata.len() > MAX_FILE_BYTES || is_own_program(path) {
        return None;
    }
    let stamp = Stamp::of(path, &metadata);
    // Whoever wants the same file at the same time waits for it instead of reading it too.
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let known = known.get_or_insert_default();
    if let Some(digest) = known.get(&stamp) {
        return Some(*digest);
    }
    let digest = read(path).ok()?;
    if known.len() >= MAX_REMEMBERED {
        known.clear();
    }
    known.insert(stamp, digest);
    Some(digest)
}

/// Whether a file is this program.
fn is_own_program(path: &Path) -> bool {
    static OWN: OnceLock<Option<PathBuf>> = OnceLock::new();
    let own = OWN.get_or_init(|| fs::canonicalize(std::env::current_exe().ok()?).ok());
    own.is_some() && fs::canonicalize(path).ok() == *own
}

fn read(path: &Path) -> io::Result<Digest> {
    let mut file = File::open(path)?.take(MAX_FILE_BYTES);
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
#[derive(Debug, PartialEq, Eq, Hash)]
struct Stamp(Vec<u8>);

impl Stamp {
    #[cfg(unix)]
    fn of(_: &Path, metadata: &Metadata) -> Self {
        use std::os::unix::fs::MetadataExt;
        let numbers = [
            metadata.dev().cast_signed(),
            metadata.ino().cast_signed(),
            metadata.len().cast_signed(),
            metadata.mtime(),
            metadata.mtime_nsec(),
            metadata.ctime(),
            metadata.ctime_nsec(),
        ];
        Self(numbers.iter().flat_map(|it| it.to_le_bytes()).collect())
    }

    /// Elsewhere times can be set, and the name has to do.
    #[cfg(not(unix))]
    fn of(path: &Path, metadata: &Metadata) -> Self {
        let text = format!("{path:?} {} {:?}", metadata.len(), metadata.modified().ok());
        Self(text.into_bytes())
    }
}
