//! The lock file on disk: reads it, and detects changes by other programs.

use std::{fs, io, path::Path, sync::Arc, time::SystemTime};

use super::{Lock, LockFault};
use crate::{
    config::foreign_writer,
    plain_file::{self, PlainFileError},
};

/// The largest lock file that is read, and written.
pub(super) const MAX_FILE_BYTES: u64 = 16 * 1024 * 1024;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) enum Disk {
    #[default]
    Unread,
    Missing,
    /// The file exists and cannot be used.
    Unusable(LockFault),
    Known(Arc<Lock>),
}

/// The file metadata that changes with every write.
pub(super) type Stamp = (u64, Option<SystemTime>, u64);

/// Returns the stamp of a file, or `None` if it does not exist.
pub(super) fn stamp(file: &Path) -> Option<Stamp> {
    let metadata = fs::metadata(file).ok()?;
    // A file that was replaced has another inode, even if size and time are the same.
    #[cfg(unix)]
    let node = std::os::unix::fs::MetadataExt::ino(&metadata);
    #[cfg(not(unix))]
    let node = 0;
    Some((metadata.len(), metadata.modified().ok(), node))
}

pub(super) fn read(file: &Path) -> Disk {
    let text = plain_file::read(file, MAX_FILE_BYTES);
    // A file that other users can write must not approve anything.
    if let Some(fault) = foreign_writer(file) {
        return Disk::Unusable(LockFault::Exposed(fault));
    }
    match text {
        Err(PlainFileError::Io(error)) if error.kind() == io::ErrorKind::NotFound => Disk::Missing,
        Err(PlainFileError::TooLarge(limit)) => Disk::Unusable(LockFault::TooLarge(limit)),
        Err(error) => Disk::Unusable(LockFault::Unreadable(error.to_string())),
        Ok(text) => {
            Lock::parse(text).map_or_else(Disk::Unusable, |lock| Disk::Known(Arc::new(lock)))
        }
    }
}
