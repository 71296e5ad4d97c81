//! Loads a configuration from a file or its text.

use std::{
    collections::BTreeSet,
    io,
    path::{Path, PathBuf},
};

use super::{
    access,
    environment::Environment,
    expand::variables_in,
    problems::{Findings, Problem, Problems, SourceLocation},
    raw,
    resolve::resolve,
    resolved::Config,
    watch::Fingerprint,
};
use crate::plain_file::{self, PlainFileError};

/// The maximum size of a configuration file.
const MAX_FILE_BYTES: u64 = 16 * 1024 * 1024;

/// A usable configuration with its warnings.
#[derive(Debug)]
pub struct Loaded {
    pub config: Config,
    /// The fingerprint of the text.
    pub fingerprint: Fingerprint,
    /// The variables that the text refers to.
    pub variables: BTreeSet<String>,
    /// Probable mistakes, in the order of the file.
    pub warnings: Vec<Problem>,
    /// The variables that are not set, in the order of the file. Each makes its server fail when it is needed. One in
    /// a description is left as written and does no harm.
    pub unset: Vec<Problem>,
}

/// The reason why a configuration file cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LoadError {
    #[error("the configuration file `{}` does not exist", file.display())]
    Missing { file: PathBuf },
    #[error("the configuration file `{}` is a directory", file.display())]
    Directory { file: PathBuf },
    #[error("cannot read the configuration file `{}`", file.display())]
    Unreadable {
        file: PathBuf,
        #[source]
        source: io::Error,
    },
    /// The path is a FIFO, a socket or a device, which can be read only once and may block.
    #[error("the configuration file `{}` is not a regular file and is read only once", file.display())]
    NotRegular { file: PathBuf },
    #[error("the configuration file `{}` is larger than {limit} bytes", file.display())]
    TooLarge { file: PathBuf, limit: u64 },
    #[error("the configuration file `{}` is not UTF-8 text (line {line})", file.display())]
    NotText {
        file: PathBuf,
        /// The first invalid line.
        line: usize,
    },
    #[error(transparent)]
    Invalid(#[from] Problems),
}

impl LoadError {
    /// Returns the next step; `None` if the message already says it.
    pub(crate) fn remedy(&self) -> Option<&'static str> {
        match self {
            Self::Missing { .. } => Some("correct the path, or try `mcp-workbench demo`"),
            Self::Directory { .. } => Some("name the file in it"),
            Self::NotRegular { .. } => Some("restart the workbench"),
            Self::Unreadable { .. } => Some("make it readable for this user"),
            Self::TooLarge { .. } => Some("check that it is the right file"),
            Self::NotText { .. } => Some("save it as UTF-8"),
            Self::Invalid(_) => None,
        }
    }
}

/// Loads a configuration file. A relative path is resolved against the start directory. A file that another user can
/// write is refused. A FIFO is read to its end, which may block.
pub(crate) fn load(file: &Path, environment: &Environment) -> Result<Loaded, LoadError> {
    checked(&read_text(file, environment)?, file, environment)
}

/// Loads a configuration file again. It must be a regular file now, so that a running workbench never waits for it.
pub(crate) fn load_again(file: &Path, environment: &Environment) -> Result<Loaded, LoadError> {
    let path = environment.absolute(file);
    let text = read(file, &path, plain_file::read)?;
    checked(&text, file, environment)
}

fn checked(text: &str, file: &Path, environment: &Environment) -> Result<Loaded, LoadError> {
    let mut findings = Findings::new(file);
    // Collected with the problems of the text, so that a user sees all of them at once.
    if let Some(fault) = access::check(&environment.absolute(file)) {
        findings.add(SourceLocation::whole_file(), fault);
    }
    Ok(finish(text, file, environment, findings)?)
}

/// Reads the text of a configuration file. A relative path is resolved against the start directory. A FIFO, such as
/// the one that a shell creates for `<(…)`, is read to its end.
pub(crate) fn read_text(file: &Path, environment: &Environment) -> Result<String, LoadError> {
    let path = environment.absolute(file);
    read(file, &path, plain_file::read_once)
}

/// Parses the content of a file. The file itself is not read: its path is for messages, and relative paths are
/// resolved against its folder.
pub fn parse(text: &str, file: &Path, environment: &Environment) -> Result<Loaded, Problems> {
    finish(text, file, environment, Findings::new(file))
}

/// Parses the content of a file that may already have findings.
fn finish(
    text: &str,
    file: &Path,
    environment: &Environment,
    mut findings: Findings,
) -> Result<Loaded, Problems> {
    let raw = raw::read(text, &mut findings);
    let config = resolve(&raw, file, environment, &mut findings);
    let remarks = findings.finish()?;
    Ok(Loaded {
        config,
        fingerprint: Fingerprint::of_text(text),
        variables: variables_in(text),
        warnings: remarks.warnings,
        unset: remarks.unset,
    })
}

/// Reads the file at `path`, which messages call `file`, in one of the ways of `plain_file`.
fn read(
    file: &Path,
    path: &Path,
    read: fn(&Path, u64) -> Result<Vec<u8>, PlainFileError>,
) -> Result<String, LoadError> {
    // Windows reports a permission error for a folder, which would mislead.
    if path.is_dir() {
        return Err(LoadError::Directory { file: file.into() });
    }
    let bytes = read(path, MAX_FILE_BYTES).map_err(|error| failed(file, error))?;
    text_of(file, bytes)
}

fn failed(file: &Path, error: PlainFileError) -> LoadError {
    let file = file.into();
    match error {
        PlainFileError::NotRegular => LoadError::NotRegular { file },
        PlainFileError::TooLarge(limit) => LoadError::TooLarge { file, limit },
        PlainFileError::Io(source) => match source.kind() {
            io::ErrorKind::NotFound => LoadError::Missing { file },
            io::ErrorKind::IsADirectory => LoadError::Directory { file },
            _ => LoadError::Unreadable { file, source },
        },
    }
}

fn text_of(file: &Path, bytes: Vec<u8>) -> Result<String, LoadError> {
    String::from_utf8(bytes).map_err(|error| {
        let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        LoadError::NotText {
            file: file.into(),
            line: memchr::memchr_iter(b'\n', before).count() + 1,
        }
    })
}

#[cfg(test)]
mod tests;
