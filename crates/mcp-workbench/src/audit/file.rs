//! The files of the log: the current one, and rotated ones beside it, `NAME.1` being the newest. Several
//! workbenches may write to one log.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
    time::Duration,
};

use crate::{
    config::Audit,
    plain_file::non_blocking,
    private_files::{make_folder, private, wait_for_lock},
};

/// How long a rotation waits for another workbench.
const LOCK_TIMEOUT: Duration = Duration::from_secs(1);

pub(super) struct LogFile {
    audit: Audit,
    open: Option<OpenFile>,
}

struct OpenFile {
    file: File,
    size: u64,
    /// True if a failure left the last line without its end.
    is_torn: bool,
}

/// A failed write, with the number of lines that are missing from the file.
#[derive(Debug)]
pub(super) struct WriteFailure {
    pub(super) lines: u64,
    pub(super) error: io::Error,
}

/// Returns the path of a rotated file.
pub(super) fn numbered(file: &Path, number: u32) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(format!(".{number}"));
    name.into()
}

impl LogFile {
    /// Creates the log of a configuration. It does not touch the disk.
    pub(super) fn new(audit: Audit) -> Self {
        Self { audit, open: None }
    }

    pub(super) fn path(&self) -> &Path {
        &self.audit.file
    }

    /// Writes whole lines. Each is written in one call, so that lines of other processes come before or after it.
    pub(super) fn write(&mut self, lines: &[u8]) -> Result<(), WriteFailure> {
        let mut rest = lines;
        while !rest.is_empty() {
            let mut written = 0;
            if let Err(error) = self.write_some(rest, &mut written) {
                // Without a written byte the file still ends as before.
                if let (Some(open), Some(last)) = (&mut self.open, rest[..written].last()) {
                    open.is_torn = *last != b'\n';
                }
                let lines = memchr::memchr_iter(b'\n', &rest[written..]).count() as u64;
                return Err(WriteFailure { lines, error });
            }
            rest = &rest[written..];
        }
        Ok(())
    }

    /// Writes as many lines as the file has room for, and at least one. Counts the written bytes.
    fn write_some(&mut self, lines: &[u8], written: &mut usize) -> io::Result<()> {
        let max_bytes = self.audit.max_bytes;
        let mut size = self.current()?.size;
        let mut length = fitting(lines, max_bytes.saturating_sub(size));
        if length == 0 && size > 0 {
            // The file is full. An empty file takes a line of any length, so that no line is ever dropped.
            self.rotate()?;
            size = self.current()?.size;
            length = fitting(lines, max_bytes.saturating_sub(size));
        }
        if length == 0 {
            length = memchr::memchr(b'\n', lines).map_or(lines.len(), |end| end + 1);
        }
        let open = self.current()?;
        // Ends the torn line first, so that only that one line is lost.
        if open.is_torn {
            open.file.write_all(b"\n")?;
            open.is_torn = false;
        }
        // `write_all` would not say how much it has written before a failure.
        while *written < length {
            match open.file.write(&lines[*written..length]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(bytes) => *written += bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Returns the file, opened again if another workbench has rotated it.
    fn current(&mut self) -> io::Result<&mut OpenFile> {
        let is_current = |open: &OpenFile| is_same(&open.file, &self.audit.file);
        if self.open.as_ref().is_some_and(is_current) {
            // Other processes may have written to it.
            if let Some(open) = &mut self.open {
                open.size = open.file.metadata()?.len();
            }
        } else {
            self.open = None;
        }
        match self.open {
            Some(ref mut open) => Ok(open),
            None => Ok(self.open.insert(open(&self.audit.file)?)),
        }
    }

    /// Rotates the files, unless another workbench has just done so.
    fn rotate(&mut self) -> io::Result<()> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false);
        let lock = non_blocking(private(&mut options)).open(self.lock_file())?;
        // Another workbench may rotate the same files; the size is read again under the lock. One that was stopped
        // while it holds the lock must not stop this one too.
        let held = || io::Error::new(io::ErrorKind::TimedOut, "another process rotates the log");
        let _turn = wait_for_lock(lock, LOCK_TIMEOUT).ok_or_else(held)?;
        let size = self.current()?.size;
        // A small file means that another process has rotated it while this one waited for the lock.
        if size < self.audit.max_bytes / 2 {
            return Ok(());
        }
        let file = &self.audit.file;
        // The open file becomes `NAME.1`. The next write opens a new one.
        self.open = None;
        let oldest = self.audit.files - 1;
        if oldest == 0 {
            return fs::remove_file(file);
        }
        // From the oldest on, so that no rename replaces a file that is still to be moved.
        for number in (1..oldest).rev() {
            match fs::rename(numbered(file, number), numbered(file, number + 1)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        fs::rename(file, numbered(file, 1))
    }

    fn lock_file(&self) -> PathBuf {
        let mut name = self.audit.file.as_os_str().to_owned();
        name.push(".lock");
        name.into()
    }
}

/// Returns the length of the whole lines at the start that fit into `room` bytes.
fn fitting(lines: &[u8], room: u64) -> usize {
    if lines.len() as u64 <= room {
        return lines.len();
    }
    let room = usize::try_from(room).unwrap_or(lines.len());
    memchr::memrchr(b'\n', &lines[..room.min(lines.len())]).map_or(0, |end| end + 1)
}

/// Opens a file for appending. The file and its folder are private to the user.
fn open(path: &Path) -> io::Result<OpenFile> {
    if let Some(folder) = path.parent() {
        make_folder(folder)?;
    }
    let mut options = OpenOptions::new();
    // A FIFO without a reader must not block the shutdown.
    let file = non_blocking(private(options.append(true).create(true))).open(path)?;
    let metadata = file.metadata()?;
    #[cfg(unix)]
    // The mode above applies only to a new file. An existing one may be readable by others.
    if metadata.is_file() {
        use std::os::unix::fs::PermissionsExt;
        if metadata.permissions().mode() & 0o077 != 0 {
            file.set_permissions(fs::Permissions::from_mode(0o600))?;
        }
    }
    Ok(OpenFile {
        file,
        size: metadata.len(),
        is_torn: false,
    })
}

/// Returns true if an open file is still the one at a path.
#[cfg(unix)]
pub(super) fn is_same(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let (Ok(open), Ok(there)) = (file.metadata(), fs::metadata(path)) else {
        return false;
    };
    (open.dev(), open.ino()) == (there.dev(), there.ino())
}

/// Returns true if an open file is still the one at a path, as far as the system shows it.
#[cfg(not(unix))]
pub(super) fn is_same(_: &File, path: &Path) -> bool {
    path.exists()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::AuditArguments;

    fn audit(folder: &Path, files: u32) -> Audit {
        Audit {
            file: folder.join("sub/audit.jsonl"),
            max_bytes: 100,
            files,
            arguments: AuditArguments::Shape,
        }
    }

    fn line(n: usize) -> Vec<u8> {
        format!("{n:029}\n").into_bytes()
    }

    fn read(path: &Path) -> Vec<usize> {
        let text = fs::read_to_string(path).unwrap_or_default();
        text.lines().map(|line| line.parse().unwrap()).collect()
    }

    #[test]
    fn files_are_rotated_and_the_oldest_is_deleted() {
        let folder = tempfile::tempdir().unwrap();
        let audit = audit(folder.path(), 3);
        let mut log = LogFile::new(audit.clone());
        for n in 0..11 {
            log.write(&line(n)).unwrap();
        }
        assert_eq!(read(&audit.file), [9, 10]);
        assert_eq!(read(&numbered(&audit.file, 1)), [6, 7, 8]);
        assert_eq!(read(&numbered(&audit.file, 2)), [3, 4, 5]);
        assert!(!numbered(&audit.file, 3).exists());
    }

    #[test]
    fn lines_that_are_written_together_are_divided_among_the_files() {
        let folder = tempfile::tempdir().unwrap();
        let audit = audit(folder.path(), 4);
        let mut log = LogFile::new(audit.clone());
        log.write(&line(0)).unwrap();
        let long = format!("{:0149}\n", 5).into_bytes();
        let lines = [line(1), line(2), line(3), line(4), long, line(6)];
        log.write(&lines.concat()).unwrap();
        assert_eq!(read(&audit.file), [6]);
        assert_eq!(read(&numbered(&audit.file, 1)), [5]);
        assert_eq!(read(&numbered(&audit.file, 2)), [3, 4]);
        assert_eq!(read(&numbered(&audit.file, 3)), [0, 1, 2]);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn lines_that_cannot_be_written_are_counted() {
        let mut audit = audit(Path::new("/"), 1);
        audit.file = "/dev/full".into();
        let failure = LogFile::new(audit).write(&[line(0), line(1)].concat());
        assert_eq!(failure.unwrap_err().lines, 2);
    }

    #[cfg(unix)]
    #[test]
    fn a_lock_that_cannot_be_had_is_reported() {
        use rustix::fs::{CWD, Mode, mkfifoat};

        let folder = tempfile::tempdir().unwrap();
        let audit = audit(folder.path(), 2);
        let mut log = LogFile::new(audit.clone());
        let full: Vec<u8> = (0..3).flat_map(line).collect();
        log.write(&full).unwrap();
        // Opening it would wait for a reader.
        mkfifoat(CWD, log.lock_file(), Mode::RUSR | Mode::WUSR).unwrap();
        assert_eq!(log.write(&line(3)).unwrap_err().lines, 1);
        fs::remove_file(log.lock_file()).unwrap();
        let held = File::create(log.lock_file()).unwrap();
        held.lock().unwrap();
        let failure = log.write(&line(4)).unwrap_err();
        assert_eq!(failure.error.kind(), io::ErrorKind::TimedOut);
        drop(held);
        log.write(&line(5)).unwrap();
        assert_eq!(read(&audit.file), [5]);
    }

    #[test]
    fn a_single_file_is_replaced_when_it_is_full() {
        let folder = tempfile::tempdir().unwrap();
        let audit = audit(folder.path(), 1);
        let mut log = LogFile::new(audit.clone());
        for n in 0..4 {
            log.write(&line(n)).unwrap();
        }
        assert_eq!(read(&audit.file), [3]);
        assert!(!numbered(&audit.file, 1).exists());
    }

    #[test]
    fn two_writers_of_one_log_lose_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let audit = audit(folder.path(), 5);
        let mut logs = [LogFile::new(audit.clone()), LogFile::new(audit.clone())];
        for n in 0..12 {
            logs[n % 2].write(&line(n)).unwrap();
        }
        let mut all = read(&numbered(&audit.file, 3));
        all.extend(read(&numbered(&audit.file, 2)));
        all.extend(read(&numbered(&audit.file, 1)));
        all.extend(read(&audit.file));
        assert_eq!(all, (0..12).collect::<Vec<_>>());
    }

    #[test]
    fn a_deleted_log_file_is_created_again() {
        let folder = tempfile::tempdir().unwrap();
        let audit = audit(folder.path(), 5);
        let mut log = LogFile::new(audit.clone());
        log.write(&line(0)).unwrap();
        fs::remove_dir_all(folder.path().join("sub")).unwrap();
        log.write(&line(1)).unwrap();
        assert_eq!(read(&audit.file), [1]);
    }

    #[cfg(unix)]
    #[test]
    fn the_log_is_private_to_the_user() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let audit = audit(folder.path(), 5);
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        LogFile::new(audit.clone()).write(&line(0)).unwrap();
        assert_eq!(mode(&audit.file), 0o600);
        assert_eq!(mode(audit.file.parent().unwrap()), 0o700);
        fs::set_permissions(&audit.file, fs::Permissions::from_mode(0o644)).unwrap();
        LogFile::new(audit.clone()).write(&line(1)).unwrap();
        assert_eq!(mode(&audit.file), 0o600);
    }
}
