//! Writes a text to disk: whole or not at all, and never over content that has not been read.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
};

use crate::{
    plain_file::{self, PlainFileError},
    private_files::{make_folder, open_new},
};

/// The maximum number of links that are followed to a file that does not exist yet.
const MAX_LINKS: usize = 40;

/// The reason why a file was not written. The file is unchanged.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WriteError {
    #[error("`{}` already exists\n  hint: choose another name", file.display())]
    Exists { file: PathBuf },
    /// Another program changed the file after it was read.
    #[error("`{}` was changed by another program while it was edited\n  hint: try again", file.display())]
    Changed { file: PathBuf },
    #[error("`{}` is read-only\n  hint: make it writable first", file.display())]
    ReadOnly { file: PathBuf },
    #[error("cannot write `{}`\n  hint: check that its folder exists and is writable", file.display())]
    Failed {
        file: PathBuf,
        #[source]
        source: io::Error,
    },
}

/// Replaces the content of a file, or creates it. Concurrent readers see the old or the new text. Permissions and
/// symbolic links are preserved, and a read-only file is refused.
pub(crate) fn write_atomically(file: &Path, text: &str) -> Result<(), WriteError> {
    write_if(file, text, |_| Ok(()))
}

/// Does the same as [`write_atomically`] for a file whose content was `before` when it was read. It is not touched if
/// the content has changed.
pub(crate) fn replace_unchanged(file: &Path, before: &str, text: &str) -> Result<(), WriteError> {
    write_if(file, text, |target| {
        // A file that is longer has changed, so that no more needs to be read.
        match plain_file::read(target, before.len() as u64) {
            Ok(now) if now == before.as_bytes() => Ok(()),
            Ok(_) | Err(PlainFileError::TooLarge(_)) => {
                Err(WriteError::Changed { file: file.into() })
            }
            Err(error) => Err(failed(file, error.into())),
        }
    })
}

/// Creates a file and its parent folders. An existing file is never touched.
pub(crate) fn create_new(file: &Path, text: &str) -> Result<(), WriteError> {
    let failed = |source: io::Error| match source.kind() {
        io::ErrorKind::AlreadyExists => WriteError::Exists { file: file.into() },
        _ => failed(file, source),
    };
    if let Some(folder) = file.parent() {
        make_folder(folder).map_err(failed)?;
    }
    let mut opened = open_new(file).map_err(failed)?;
    let written = opened.write_all(text.as_bytes());
    written.and_then(|()| opened.sync_all()).map_err(|source| {
        // Removes the incomplete file, which is our own.
        let _ = fs::remove_file(file);
        failed(source)
    })
}

/// Writes the file if `agree` permits it at the last moment.
fn write_if(
    file: &Path,
    text: &str,
    agree: impl FnOnce(&Path) -> Result<(), WriteError>,
) -> Result<(), WriteError> {
    let target = follow(file).map_err(|source| failed(file, source))?;
    let known = fs::metadata(&target).ok();
    // A rename would replace a read-only file without an error.
    if known.as_ref().is_some_and(|it| it.permissions().readonly()) {
        return Err(WriteError::ReadOnly { file: file.into() });
    }
    // Written beside the target, because a rename is atomic only within one file system.
    let draft = Draft::beside(&target).map_err(|source| failed(file, source))?;
    let written = draft.write(text, known.as_ref());
    written.map_err(|source| failed(file, source))?;
    // Checked as late as possible: an edit of another program in between would be lost.
    agree(&target)?;
    fs::rename(&draft.path, &target).map_err(|source| failed(file, source))
}

fn failed(file: &Path, source: io::Error) -> WriteError {
    WriteError::Failed {
        file: file.into(),
        source,
    }
}

/// Returns the file that a path leads to through all links, whether it exists or not.
fn follow(file: &Path) -> io::Result<PathBuf> {
    let mut target = file.to_owned();
    // `fs::canonicalize` fails if the last link leads to a file that does not exist yet.
    for _ in 0..MAX_LINKS {
        match fs::read_link(&target) {
            Ok(next) => target = target.parent().unwrap_or(Path::new("")).join(next),
            Err(_) => return Ok(target),
        }
    }
    Err(io::Error::other("too many symbolic links"))
}

/// The new content under a temporary name. It is deleted with this value, unless it has been renamed.
struct Draft {
    path: PathBuf,
}

impl Draft {
    /// Creates an empty draft in the folder of the file, so that it can be renamed to it.
    fn beside(target: &Path) -> io::Result<Self> {
        let name = target.file_name().unwrap_or_default().to_string_lossy();
        let folder = target.parent().unwrap_or(Path::new(""));
        let mut number = 0_u32;
        loop {
            let path = folder.join(format!(".{name}.{}-{number}.new", std::process::id()));
            match open_new(&path) {
                Ok(_) => return Ok(Self { path }),
                // The draft of a process that was killed and had the same id.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
                Err(error) => return Err(error),
            }
        }
    }

    /// Writes the content, with the permissions and, if possible, the owner of the file that it replaces.
    fn write(&self, text: &str, known: Option<&fs::Metadata>) -> io::Result<()> {
        let mut file = OpenOptions::new().write(true).open(&self.path)?;
        if let Some(known) = known {
            // The owner first: to change it may remove permissions.
            keep_owner(&file, known);
            file.set_permissions(known.permissions())?;
        }
        file.write_all(text.as_bytes())?;
        // Before the rename, or a crash could leave an empty file under the real name.
        file.sync_all()
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // After the rename there is no draft any more.
        let _ = fs::remove_file(&self.path);
    }
}

/// Gives a file the owner and group of another, if this user may.
#[cfg(unix)]
fn keep_owner(file: &File, known: &fs::Metadata) {
    use std::os::unix::fs::{MetadataExt, fchown};
    let _ = fchown(file, Some(known.uid()), Some(known.gid()));
}

/// On other systems the folder decides the owner of a new file.
#[cfg(not(unix))]
fn keep_owner(_: &File, _: &fs::Metadata) {}
