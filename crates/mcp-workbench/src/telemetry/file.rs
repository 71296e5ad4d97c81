//! The log file. At a size limit it is renamed to `FILE.1`, which replaces the one before.

use std::{
    ffi::OsString,
    fs::{self, File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use tracing_subscriber::fmt::MakeWriter;

use crate::{private_files::private, sync::lock};

/// The size at which the file is renamed. Two files are kept.
const MAX_BYTES: u64 = 10 * 1024 * 1024;

/// A log file, which several threads write to.
#[derive(Clone)]
pub(super) struct LogFile(Arc<Mutex<Open>>);

struct Open {
    path: PathBuf,
    file: File,
    bytes: u64,
    max_bytes: u64,
}

impl LogFile {
    /// Opens a file to append to. A new one is for the user alone.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        Self::with_limit(path, MAX_BYTES)
    }

    fn with_limit(path: &Path, max_bytes: u64) -> io::Result<Self> {
        let file = append_to(path)?;
        let bytes = file.metadata()?.len();
        Ok(Self(Arc::new(Mutex::new(Open {
            path: path.to_owned(),
            file,
            bytes,
            max_bytes,
        }))))
    }
}

fn append_to(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    private(options.create(true).append(true)).open(path)
}

impl Open {
    fn rotate(&mut self) -> io::Result<()> {
        let mut old = OsString::from(&self.path);
        old.push(".1");
        fs::rename(&self.path, old)?;
        self.file = append_to(&self.path)?;
        self.bytes = 0;
        Ok(())
    }
}

/// Each write is a whole line.
impl Write for LogFile {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let mut open = lock(&self.0);
        // An empty file takes a line of any length.
        if open.bytes > 0 && open.bytes + line.len() as u64 > open.max_bytes {
            // Without a new file, the old one stays in use.
            let _ = open.rotate();
        }
        open.file.write_all(line)?;
        open.bytes += line.len() as u64;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for LogFile {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_file_is_renamed_and_lines_stay_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let mut file = LogFile::with_limit(&path, 10).unwrap();
        for line in ["first\n", "second\n", "third\n"] {
            file.write_all(line.as_bytes()).unwrap();
        }
        assert_eq!(fs::read_to_string(&path).unwrap(), "third\n");
        let old = folder.path().join("log.1");
        assert_eq!(fs::read_to_string(old).unwrap(), "second\n");
        let mut again = LogFile::with_limit(&path, 10).unwrap();
        again.write_all(b"4\n").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "third\n4\n");
    }
}
