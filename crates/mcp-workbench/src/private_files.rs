//! Files for the user alone. Those of the cache directory are written whole or not at all, and read only if nobody else can
//! have written them; losing one costs little, so whoever uses them goes on without.

use std::{
    fs::{self, File, Metadata, OpenOptions, TryLockError},
    io::{self, Write},
    path::Path,
    thread,
    time::Duration,
};

use crate::plain_file;

/// How often a lock that somebody else holds is tried again.
const PAUSE: Duration = Duration::from_millis(10);

/// Reads a file of ours. One that is too large, is no plain file, or that others could have written, is as if it were
/// not there.
pub(crate) fn read(file: &Path, max_bytes: u64) -> Option<(Vec<u8>, Metadata)> {
    // A link may lead to a file that others can write.
    if !fs::symlink_metadata(file).ok()?.is_file() {
        return None;
    }
    let opened = plain_file::open(file).ok()?;
    let metadata = opened.metadata().ok()?;
    if !is_only_ours(&metadata) {
        return None;
    }
    Some((plain_file::read_open(opened, max_bytes).ok()?, metadata))
}

/// Writes a new file and puts it in the place of the old one, so that nobody ever reads half of it.
pub(crate) fn replace(folder: &Path, name: &str, text: &[u8]) -> io::Result<()> {
    replace_pieces(folder, name, &[text])
}

/// Does the same with a text that is given in pieces.
pub(crate) fn replace_pieces(
    folder: &Path,
    name: &str,
    pieces: &[impl AsRef<[u8]>],
) -> io::Result<()> {
    place(folder, name, pieces, |temporary, file| {
        fs::rename(temporary, file)
    })
}

/// Writes a file, unless there is one already.
pub(crate) fn create(folder: &Path, name: &str, text: &[u8]) -> io::Result<()> {
    place(folder, name, &[text], |temporary, file| {
        match fs::hard_link(temporary, file) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(error),
            Ok(()) => fs::remove_file(temporary),
            // Not every file system has links.
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
    let written = open_new(&temporary).and_then(|mut file| {
        let mut pieces = pieces.iter();
        pieces.try_for_each(|piece| file.write_all(piece.as_ref()))
    });
    let written = written.and_then(|()| put(&temporary, &folder.join(name)));
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written
}

/// Bytes that nobody else has, wherever they run.
pub(crate) fn random<const LENGTH: usize>() -> [u8; LENGTH] {
    let mut bytes = [0; LENGTH];
    getrandom::fill(&mut bytes).expect("the system has random numbers");
    bytes
}

/// Makes the folders that are missing on the way, for the user alone.
pub(crate) fn make_folder(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// Has a file that these options make be one for the user alone.
pub(crate) fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options
}

/// Makes a file, which must not be there, for the user alone.
pub(crate) fn open_new(file: &Path) -> io::Result<File> {
    private(OpenOptions::new().write(true).create_new(true)).open(file)
}

/// Opens a file that is there to be locked.
pub(crate) fn open_lock(folder: &Path, name: &str) -> Option<File> {
    make_folder(folder).ok()?;
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false);
    plain_file::non_blocking(private(&mut options))
        .open(folder.join(name))
        .ok()
}

/// Waits until no other process of this user holds the lock of a file. It is held until the value is dropped; none where it
/// cannot be had in time.
pub(crate) fn wait_for_lock(file: File, patience: Duration) -> Option<File> {
    let mut waited = Duration::ZERO;
    while waited < patience {
        match file.try_lock() {
            Ok(()) => return Some(file),
            Err(TryLockError::WouldBlock) => thread::park_timeout(PAUSE),
            Err(TryLockError::Error(_)) => return None,
        }
        waited += PAUSE;
    }
    None
}

/// Whether nobody but the user can have written it.
#[cfg(unix)]
pub(crate) fn is_only_ours(metadata: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    metadata.uid() == rustix::process::geteuid().as_raw() && metadata.mode() & 0o022 == 0
}

/// The cache directory is the user's own by the rights of the system.
#[cfg(not(unix))]
pub(crate) fn is_only_ours(_: &Metadata) -> bool {
    true
}

/// Whether nobody but the user can have read it.
#[cfg(unix)]
pub(crate) fn is_unread_by_others(metadata: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    metadata.mode() & 0o066 == 0
}

/// The cache directory is the user's own by the rights of the system.
#[cfg(not(unix))]
pub(crate) fn is_unread_by_others(_: &Metadata) -> bool {
    true
}
