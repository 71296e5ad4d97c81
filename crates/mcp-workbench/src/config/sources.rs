//! The sources of referenced values: the variables of the process, files that contain one secret each, and the
//! system's keyring.

use std::{
    fmt, io,
    path::{Path, PathBuf},
};

use super::{
    environment::Environment,
    keyring::{self, SERVICE},
};
use crate::{
    plain_file::{self, PlainFileError},
    visible::visible,
};

/// The maximum size of a secret in a file.
const MAX_SECRET_BYTES: u64 = 64 * 1024;

/// The sources from which references are resolved.
#[derive(Clone, Copy)]
pub(super) struct Sources<'a> {
    pub(super) environment: &'a Environment,
    /// The folder against which relative paths are resolved.
    pub(super) folder: &'a Path,
}

/// A referenced value that is missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MissingValue {
    Variable(String),
    /// A file that cannot be read, with the reason.
    File {
        path: String,
        why: String,
    },
    /// A secret that is missing from the keyring, with the reason.
    Keyring {
        name: String,
        why: String,
    },
}

impl fmt::Display for MissingValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Variable(name) => write!(f, "variable {name} is not set"),
            Self::File { path, why } => write!(f, "file {} {why}", visible(path)),
            Self::Keyring { name, why } => write!(f, "secret {} {why}", visible(name)),
        }
    }
}

impl MissingValue {
    /// Returns the next step for the user.
    pub fn remedy(&self) -> String {
        match self {
            Self::Variable(name) => format!(
                "set {name} before the workbench starts, or give it a default: `${{{name}:-…}}`"
            ),
            Self::File { path, .. } => {
                format!(
                    "write the value into that file, readable for this user only, or correct `${{file:{path}}}`"
                )
            }
            Self::Keyring { name, .. } => format!(
                "store it in the system's keyring for the service {SERVICE} and the user {}, in a build with the \
                 feature `keyring`, or put it into a file: `${{file:…}}`",
                visible(name)
            ),
        }
    }

    /// Returns a name for lists.
    pub fn name(&self) -> &str {
        match self {
            Self::Variable(name) | Self::Keyring { name, .. } => name,
            Self::File { path, .. } => path,
        }
    }
}

impl Sources<'_> {
    /// Returns the text of a file without its final line break. The path is relative to the folder of the
    /// configuration; `~/` is the home directory.
    pub(super) fn file(&self, path: &str) -> Result<String, MissingValue> {
        let read = read(&self.whole(path));
        read.map_err(|why| MissingValue::File {
            path: path.into(),
            why,
        })
    }

    /// Returns a secret of the keyring.
    pub(super) fn keyring(name: &str) -> Result<String, MissingValue> {
        keyring::secret(name).map_err(|why| MissingValue::Keyring {
            name: name.into(),
            why,
        })
    }

    /// Returns the path of a file that a reference names.
    pub(super) fn whole(&self, path: &str) -> PathBuf {
        match (path.strip_prefix("~/"), self.environment.home()) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => self.folder.join(path),
        }
    }
}

fn read(path: &Path) -> Result<String, String> {
    let failed = |error: PlainFileError| match error {
        PlainFileError::Io(error) if error.kind() == io::ErrorKind::NotFound => {
            "does not exist".to_owned()
        }
        PlainFileError::Io(error) => format!("cannot be read: {error}"),
        other => format!("is {other}"),
    };
    let bytes = plain_file::read(path, MAX_SECRET_BYTES).map_err(failed)?;
    let text = String::from_utf8(bytes).map_err(|_| "is not UTF-8 text".to_owned())?;
    // Neither an argument nor a variable nor a header can contain it.
    if text.contains('\0') {
        return Err("contains a NUL character".into());
    }
    // Editors and `echo` add one line break. Others may belong to the secret.
    let text = text.strip_suffix('\n').unwrap_or(&text);
    Ok(text.strip_suffix('\r').unwrap_or(text).to_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_value_of_a_file_has_no_final_line_break() {
        let folder = tempfile::tempdir().unwrap();
        let environment = Environment::new([], "/".into(), Some(folder.path().join("home")));
        let sources = Sources {
            environment: &environment,
            folder: folder.path(),
        };
        fs::create_dir(folder.path().join("home")).unwrap();
        let cases = [
            ("a", "a", &b"one\n"[..], Ok("one")),
            ("b", "b", &b"one\r\n"[..], Ok("one")),
            ("c", "c", &b"one\n\n"[..], Ok("one\n")),
            ("d", "d", &b" one "[..], Ok(" one ")),
            ("e", "e", &b""[..], Ok("")),
            ("home/f", "~/f", &b"at home"[..], Ok("at home")),
            ("g", "g", &b"\xff"[..], Err("is not UTF-8 text")),
            ("h", "h", &b"a\0b"[..], Err("contains a NUL character")),
        ];
        for (name, path, content, expected) in cases {
            fs::write(folder.path().join(name), content).unwrap();
            let found = sources.file(path);
            let expected = expected
                .map(str::to_owned)
                .map_err(|why| MissingValue::File {
                    path: path.into(),
                    why: why.into(),
                });
            assert_eq!(found, expected, "{name}");
        }
    }

    #[test]
    fn only_small_regular_files_are_read() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("large"), vec![b'x'; 64 * 1024 + 1]).unwrap();
        #[cfg(unix)]
        {
            use rustix::fs::{CWD, Mode, mkfifoat};
            mkfifoat(CWD, folder.path().join("fifo"), Mode::RUSR).unwrap();
        }
        let environment = Environment::new([], "/".into(), None);
        let sources = Sources {
            environment: &environment,
            folder: folder.path(),
        };
        for (path, why) in [
            ("large", "is larger than 65536 bytes"),
            ("absent", "does not exist"),
            (".", "is not a regular file"),
            #[cfg(unix)]
            ("fifo", "is not a regular file"),
        ] {
            let missing = sources.file(path).unwrap_err();
            assert_eq!(missing.to_string(), format!("file {path} {why}"));
        }
    }
}
