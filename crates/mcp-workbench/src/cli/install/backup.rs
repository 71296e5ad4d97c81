//! Backups of clients' files. A backup is next to its file. Its name has the time and a digest of the text that
//! replaced the original, so that an undo can tell whether the file was changed since.

use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

use super::{InstallError, change::Change, target::TargetFile};
use crate::{
    clients::read_text,
    private_files::open_new,
    sha256::{Sha256, hexadecimal},
};

/// Separates the file name from the time and digest in the name of a backup.
const MARK: &str = ".workbench-backup-";

/// Suffix of a backup for a file that did not exist.
const ABSENT: &str = "-new";

/// Suffix of a backup of a file from which the install removed servers.
const REPLACED: &str = "-replaced";

/// A backup of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Backup {
    pub(super) path: PathBuf,
    /// The time of the backup, in seconds since 1970.
    time: u64,
    became: String,
    /// True if the file did not exist.
    pub(super) was_absent: bool,
    /// True if the install removed servers from the file.
    pub(super) has_replaced: bool,
}

impl Backup {
    /// Backs up a file before it is changed.
    pub(super) fn make(target: &TargetFile, change: &Change) -> Result<Self, InstallError> {
        let time = SystemTime::now().duration_since(UNIX_EPOCH);
        let mut time = time.map_or(0, |time| time.as_secs());
        // An undo uses the newest backup, so times must increase even if the clock was set back.
        let newest = Self::all(&target.path).into_iter().map(|it| it.time).max();
        time = time.max(newest.map_or(0, |newest| newest + 1));
        let became = digest(&change.text);
        let was_absent = target.text.is_none();
        let has_replaced = change.replaces();
        let ending = match (was_absent, has_replaced) {
            (true, _) => ABSENT,
            (false, true) => REPLACED,
            (false, false) => "",
        };
        let name = target
            .path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy();
        let name = format!("{name}{MARK}{time}-{became}{ending}");
        let path = target.path.with_file_name(name);
        let copied = copy(&path, target);
        copied.map_err(|source| InstallError::Backup {
            file: path.clone(),
            source,
        })?;
        Ok(Self {
            path,
            time,
            became,
            was_absent,
            has_replaced,
        })
    }

    /// Returns all backups of a file, the newest first.
    pub(super) fn all(file: &Path) -> Vec<Self> {
        // The parent of a bare file name is the empty path, which cannot be read as a folder.
        let folder = file.parent().filter(|it| !it.as_os_str().is_empty());
        let entries = fs::read_dir(folder.unwrap_or(Path::new(".")));
        let begin = format!(
            "{}{MARK}",
            file.file_name().unwrap_or_default().to_string_lossy()
        );
        let mut backups: Vec<Self> = entries
            .into_iter()
            .flatten()
            .filter_map(|entry| Self::of_name(&entry.ok()?.path(), &begin))
            .collect();
        backups.sort_by_key(|it| std::cmp::Reverse(it.time));
        backups
    }

    fn of_name(path: &Path, begin: &str) -> Option<Self> {
        let name = path.file_name()?.to_str()?.strip_prefix(begin)?;
        // Other files with the same prefix are ignored.
        let (time, became) = name.split_once('-')?;
        let absent = became.strip_suffix(ABSENT);
        let replaced = became.strip_suffix(REPLACED);
        Some(Self {
            path: path.to_owned(),
            time: time.parse().ok()?,
            became: absent.or(replaced).unwrap_or(became).to_owned(),
            was_absent: absent.is_some(),
            has_replaced: replaced.is_some(),
        })
    }

    /// Returns true if the file still has the text that was written after this backup.
    pub(super) fn fits(&self, now: &str) -> bool {
        self.became == digest(now)
    }

    /// Returns the original text; `None` if the file did not exist.
    pub(super) fn text(&self) -> Result<Option<String>, InstallError> {
        if self.was_absent {
            return Ok(None);
        }
        Ok(Some(read_text(&self.path)?))
    }

    /// Marks the backup as undone, so that a later undo does not add back servers that the user has removed since. The
    /// text stays for the user to look at.
    pub(super) fn settle(&self) {
        let name = self.path.to_string_lossy();
        if self.was_absent {
            self.discard();
        } else if let Some(plain) = name.strip_suffix(REPLACED) {
            // A backup that keeps its mark is only more generous at the next undo.
            let _ = fs::rename(&self.path, plain);
        }
    }

    /// Deletes the backup after an undo. A backup that cannot be deleted does no harm.
    pub(super) fn discard(&self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Returns a short digest of a text.
fn digest(text: &str) -> String {
    hexadecimal(&Sha256::digest(text)[..8])
}

/// Writes the backup for the user alone, whatever the permissions of the file: it may contain secrets, and
/// outlives them.
fn copy(path: &Path, target: &TargetFile) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut file = open_new(path)?;
    if let Some(text) = &target.text {
        file.write_all(text.as_bytes())?;
    }
    file.sync_all()
}
