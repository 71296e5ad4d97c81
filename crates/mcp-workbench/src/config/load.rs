//! From a file on disk, or its text, to a configuration.

use std::{
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
};

use super::{
    access,
    environment::Environment,
    problems::{Findings, Place, Problem, Problems},
    raw,
    resolve::resolve,
    resolved::Config,
    watch::Fingerprint,
};

/// The largest configuration file that is read.
const LARGEST_FILE: u64 = 16 * 1024 * 1024;

/// A usable configuration and what is to be said about it.
#[derive(Debug)]
pub struct Loaded {
    /// The configuration.
    pub config: Config,
    /// The text that it was made of.
    pub fingerprint: Fingerprint,
    /// What is probably not as it was meant, in the order of the file.
    pub warnings: Vec<Problem>,
    /// The variables that are not set, in the order of the file. Each makes its server fail when it
    /// is needed; one in a description is left as written and harms nothing.
    pub unset: Vec<Problem>,
}

/// Why a configuration file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// It does not exist.
    #[error("the configuration file `{}` does not exist", file.display())]
    Missing {
        /// The file.
        file: PathBuf,
    },
    /// It is a directory.
    #[error("the configuration file `{}` is a directory", file.display())]
    Directory {
        /// The file.
        file: PathBuf,
    },
    /// It cannot be read.
    #[error("cannot read the configuration file `{}`", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// It is larger than any configuration.
    #[error("the configuration file `{}` is larger than {limit} bytes", file.display())]
    TooLarge {
        /// The file.
        file: PathBuf,
        /// The largest that is read.
        limit: u64,
    },
    /// It is no UTF-8 text.
    #[error("the configuration file `{}` is not UTF-8 text (line {line})", file.display())]
    NotText {
        /// The file.
        file: PathBuf,
        /// The first line that is not.
        line: usize,
    },
    /// Its content is wrong.
    #[error(transparent)]
    Invalid(#[from] Problems),
}

impl LoadError {
    /// What to do about it; `None` where the message says it already.
    pub fn remedy(&self) -> Option<&'static str> {
        match self {
            Self::Missing { .. } => Some("correct the path, or try `mcp-workbench demo`"),
            Self::Directory { .. } => Some("name the file in it"),
            Self::Unreadable { .. } => Some("make it readable for this user"),
            Self::TooLarge { .. } => Some("check that it is the right file"),
            Self::NotText { .. } => Some("save it as UTF-8"),
            Self::Invalid(_) => None,
        }
    }
}

/// Loads a configuration file. A relative path is seen from the start directory. One that somebody else may write is
/// refused.
pub fn load(file: &Path, environment: &Environment) -> Result<Loaded, LoadError> {
    let text = read_text(file, environment)?;
    let mut findings = Findings::new(file);
    if let Some(fault) = access::check(&environment.absolute(file)) {
        findings.add(Place::whole_file(), fault);
    }
    Ok(finish(&text, file, environment, findings)?)
}

/// Reads the text of a configuration file. A relative path is seen from the start directory.
pub fn read_text(file: &Path, environment: &Environment) -> Result<String, LoadError> {
    read(file, &environment.absolute(file))
}

/// Makes a configuration of the content of a file. The file itself is not touched: its path is for
/// messages, and relative paths are seen from its folder.
pub fn parse(text: &str, file: &Path, environment: &Environment) -> Result<Loaded, Problems> {
    finish(text, file, environment, Findings::new(file))
}

/// Makes a configuration of the content of a file of which something may have been found already.
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
        warnings: remarks.warnings,
        unset: remarks.unset,
    })
}

/// Reads the file at `path`, which messages call `file`.
fn read(file: &Path, path: &Path) -> Result<String, LoadError> {
    let failed = |source: io::Error| match source.kind() {
        io::ErrorKind::NotFound => LoadError::Missing { file: file.into() },
        io::ErrorKind::IsADirectory => LoadError::Directory { file: file.into() },
        _ => LoadError::Unreadable {
            file: file.into(),
            source,
        },
    };
    if path.is_dir() {
        return Err(LoadError::Directory { file: file.into() });
    }
    let mut bytes = Vec::new();
    let opened = File::open(path).map_err(failed)?;
    let limited = opened.take(LARGEST_FILE + 1).read_to_end(&mut bytes);
    if limited.map_err(failed)? as u64 > LARGEST_FILE {
        return Err(LoadError::TooLarge {
            file: file.into(),
            limit: LARGEST_FILE,
        });
    }
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
