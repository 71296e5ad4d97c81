//! Files that only the user can access. Files in the cache directory are written atomically, and read only if nobody
//! else can have written them. Losing one costs little, so callers continue without it.

use std::{
    fs::{self, File, Metadata, OpenOptions, TryLockError},
    io::{self, BufRead, BufReader, Read, Write},
    path::Path,
    thread,
    time::Duration,
};

use crate::plain_file;

/// The interval at which a lock is retried that another process holds.
const LOCK_RETRY_INTERVAL: Duration = Duration::from_millis(10);

/// Reads a private file. Returns `None` if it is missing, too large, not a regular file, or writable by others.
pub(crate) fn read(file: &Path, max_bytes: u64) -> Option<(Vec<u8>, Metadata)> {
    let (opened, metadata) = open(file)?;
    Some((plain_file::read_open(opened, max_bytes).ok()?, metadata))
}

/// Reads the first line of a private file, with its end. Of a longer line only the first `max_bytes` are read.
pub(crate) fn read_line(file: &Path, max_bytes: u64) -> Option<Vec<u8>> {
    let (opened, _) = open(file)?;
    let mut line = Vec::new();
    let mut reader = BufReader::new(opened.take(max_bytes));
    reader.read_until(b'\n', &mut line).ok()?;
    Some(line)
}

/// Opens a private file, unless others can have written it.
fn open(file: &Path) -> Option<(File, Metadata)> {
    // A link may point to a file that others can write.
    if !fs::symlink_metadata(file).ok()?.is_file() {
        return None;
    }
    let opened = plain_file::open(file).ok()?;
    let metadata = opened.metadata().ok()?;
    is_writable_by_user_only(&metadata).then_some((opened, metadata))
}

/// Replaces a file atomically, so that no reader sees half of it.
pub(crate) fn replace(folder: &Path, name: &str, text: &[u8]) -> io::Result<()> {
    replace_pieces(folder, name, &[text])
}

/// Does the same as [`replace`] with a text that is given in pieces.
pub(crate) fn replace_pieces(
    folder: &Path,
    name: &str,
    pieces: &[impl AsRef<[u8]>],
) -> io::Result<()> {
    place(folder, name, pieces, |temporary, file| {
        fs::rename(temporary, file)
    })
}

/// Writes a file, unless it already exists.
pub(crate) fn create(folder: &Path, name: &str, text: &[u8]) -> io::Result<()> {
    place(folder, name, &[text], |temporary, file| {
        // A rename would replace a file that another process has just created.
        match fs::hard_link(temporary, file) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(error),
            Ok(()) => fs::remove_file(temporary),
            // Not every file system has hard links.
            Err(_) => fs::rename(temporary, file),
        }
    })
}

fn place(
    folder: &Path,
    name: &str,
    pieces: &[impl AsRef<[u8]>],
    put: impl FnOnce(&Path, &Path) -> io::Result<()>,
) -> io::Result<()> {
    make_folder(folder)?;
    let temporary = folder.join(format!("{name}.{:016x}", u64::from_ne_bytes(random())));
    let written = open_new(&temporary)
        .and_then(|mut file| {
            let mut pieces = pieces.iter();
            pieces.try_for_each(|piece| file.write_all(piece.as_ref()))
        })
        .and_then(|()| put(&temporary, &folder.join(name)));
    if written.is_err() {
        // The first error is the one that says why the file could not be written.
        let _ = fs::remove_file(&temporary);
    }
    written
}

pub(crate) fn random<const LENGTH: usize>() -> [u8; LENGTH] {
    let mut bytes = [0; LENGTH];
    getrandom::fill(&mut bytes).expect("the system has random numbers");
    bytes
}

/// Creates a folder and its missing parents, accessible only to the user.
pub(crate) fn make_folder(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// Sets the mode of files that these options create, so that only the user can access them.
pub(crate) fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options
}

/// Creates a file that must not exist, accessible only to the user.
pub(crate) fn open_new(file: &Path) -> io::Result<File> {
    private(OpenOptions::new().write(true).create_new(true)).open(file)
}

/// Opens a file that serves as a lock, and creates it if needed.
pub(crate) fn open_lock(folder: &Path, name: &str) -> Option<File> {
    make_folder(folder).ok()?;
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false);
    plain_file::non_blocking(private(&mut options))
        .open(folder.join(name))
        .ok()
}

/// Waits until no other process holds the lock of a file. The lock is held until the returned value is dropped.
/// Returns `None` if it is not available in time.
pub(crate) fn wait_for_lock(file: File, timeout: Duration) -> Option<File> {
    let mut waited = Duration::ZERO;
    while waited < timeout {
        match file.try_lock() {
            Ok(()) => return Some(file),
            Err(TryLockError::WouldBlock) => thread::park_timeout(LOCK_RETRY_INTERVAL),
            Err(TryLockError::Error(_)) => return None,
        }
        waited += LOCK_RETRY_INTERVAL;
    }
    None
}

/// Returns whether only the user can have written a file.
#[cfg(unix)]
pub(crate) fn is_writable_by_user_only(metadata: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    metadata.uid() == rustix::process::geteuid().as_raw() && metadata.mode() & 0o022 == 0
}

/// The cache directory belongs to the user by the permissions of the system.
#[cfg(not(unix))]
pub(crate) fn is_writable_by_user_only(_: &Metadata) -> bool {
    true
}

/// Returns whether nobody else can read or write a file.
#[cfg(unix)]
pub(crate) fn is_private(metadata: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    metadata.mode() & 0o066 == 0
}

/// The cache directory belongs to the user by the permissions of the system.
#[cfg(not(unix))]
pub(crate) fn is_private(_: &Metadata) -> bool {
    true
}
