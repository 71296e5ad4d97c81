//! Reads files that may have been replaced by something else. A FIFO, a socket or a device at the path must not block
//! us, so a file is opened without blocking, must be a regular file, and is read up to a bound.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read},
    path::Path,
};

/// The reason why a file was not read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PlainFileError {
    /// The path is a directory, a FIFO, a socket or a device.
    #[error("not a regular file")]
    NotRegular,
    /// The file has more bytes than this.
    #[error("larger than {0} bytes")]
    TooLarge(u64),
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl From<PlainFileError> for io::Error {
    fn from(error: PlainFileError) -> Self {
        match error {
            PlainFileError::Io(error) => error,
            other => Self::other(other),
        }
    }
}

/// Opens a regular file for reading.
pub(crate) fn open(path: &Path) -> Result<File, PlainFileError> {
    // Opening a FIFO and closing it again would break the pipe of its writer.
    if !path.metadata()?.is_file() {
        return Err(PlainFileError::NotRegular);
    }
    let mut options = OpenOptions::new();
    let file = non_blocking(options.read(true)).open(path)?;
    // The file may have been replaced since the check.
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(PlainFileError::NotRegular)
    }
}

/// Reads a regular file of at most `max_bytes` bytes.
pub(crate) fn read(path: &Path, max_bytes: u64) -> Result<Vec<u8>, PlainFileError> {
    read_open(open(path)?, max_bytes)
}

/// Reads a file of at most `max_bytes` bytes, or a FIFO to its end, such as the one that a shell creates for `<(…)`.
/// It may wait for a writer, so use it only at the start of a command, while signals still end the process.
pub(crate) fn read_once(path: &Path, max_bytes: u64) -> Result<Vec<u8>, PlainFileError> {
    match open(path) {
        Err(PlainFileError::NotRegular) => read_open(File::open(path)?, max_bytes),
        opened => read_open(opened?, max_bytes),
    }
}

/// Reads an open file of at most `max_bytes` bytes.
pub(crate) fn read_open(file: File, max_bytes: u64) -> Result<Vec<u8>, PlainFileError> {
    let expected = file.metadata()?.len().min(max_bytes);
    let mut bytes = Vec::with_capacity(usize::try_from(expected).unwrap_or_default());
    // A file can grow while it is read, so checking its length beforehand is not enough.
    let length = file.take(max_bytes + 1).read_to_end(&mut bytes)?;
    if length as u64 > max_bytes {
        return Err(PlainFileError::TooLarge(max_bytes));
    }
    Ok(bytes)
}

/// Sets the flags that keep `open` from waiting for the other end of a FIFO. They do not affect regular files.
pub(crate) fn non_blocking(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;
        use std::os::unix::fs::OpenOptionsExt;
        // Without NOCTTY, a terminal at the path could become our controlling terminal.
        let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
        options.custom_flags(flags.bits().cast_signed());
    }
    options
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn regular_files_are_read_up_to_the_bound() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "12345").unwrap();
        assert_eq!(read(&file, 5).unwrap(), b"12345");
        assert!(matches!(read(&file, 4), Err(PlainFileError::TooLarge(4))));
        let missing = read(&folder.path().join("missing"), 4);
        assert!(
            matches!(&missing, Err(PlainFileError::Io(error)) if error.kind() == io::ErrorKind::NotFound)
        );
    }

    #[cfg(unix)]
    #[test]
    fn nothing_but_a_regular_file_is_opened() {
        use std::os::unix::net::UnixListener;

        use rustix::fs::{CWD, Mode, mkfifoat};

        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        mkfifoat(CWD, at("fifo"), Mode::RUSR | Mode::WUSR).unwrap();
        std::os::unix::fs::symlink(at("fifo"), at("link")).unwrap();
        let _socket = UnixListener::bind(at("socket")).unwrap();
        for path in [
            at("fifo"),
            at("link"),
            at("socket"),
            at("."),
            "/dev/zero".into(),
            "/dev/tty".into(),
        ] {
            let read = read(&path, 10);
            assert!(
                matches!(read, Err(PlainFileError::NotRegular)),
                "{}: {read:?}",
                path.display()
            );
        }
    }
}
