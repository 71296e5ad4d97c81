//! Reads the log: the lines of all its files, the oldest first, then new ones as they are written.

use std::{
    fs::File,
    io::{self, BufRead, BufReader},
    path::PathBuf,
};

use serde_json::Value;

use super::file::{is_same, numbered};
use crate::{config::Audit, plain_file};

/// The longest line that is read; lines of the log are shorter.
const MAX_LINE: usize = 1024 * 1024;

/// A line of the log.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AuditLine {
    /// The text without its line end.
    pub text: String,
    pub value: Value,
}

impl AuditLine {
    /// Returns a member that is a string.
    pub(crate) fn text_of(&self, name: &str) -> Option<&str> {
        self.value.get(name)?.as_str()
    }

    /// Returns a member that is a number.
    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        self.value.get(name)?.as_u64()
    }
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Filter {
    pub toolbox: Option<String>,
    pub server: Option<String>,
    pub tool: Option<String>,
    /// Matches the outcome or the code.
    pub outcome: Option<String>,
}

impl Filter {
    /// Returns true if a line passes the filter. The number of missing calls always passes.
    pub(crate) fn wants(&self, line: &AuditLine) -> bool {
        if line.number("not_noted").is_some() {
            return true;
        }
        let is = |wanted: &Option<String>, names: &[&str]| {
            let mut values = names.iter().map(|name| line.text_of(name));
            wanted.is_none() || values.any(|value| value == wanted.as_deref())
        };
        is(&self.toolbox, &["toolbox"])
            && is(&self.server, &["server"])
            && is(&self.tool, &["tool"])
            && is(&self.outcome, &["outcome", "code"])
    }
}

/// A reader of all files of the log.
pub(crate) struct LogReader {
    path: PathBuf,
    /// Rotated files that are still to be read.
    older: Vec<PathBuf>,
    reading: Option<BufReader<File>>,
    is_newest: bool,
    /// The start of a line whose end is not written yet.
    partial_line: Vec<u8>,
    /// The number of invalid lines.
    pub unreadable: usize,
}

impl LogReader {
    /// Creates a reader that starts at the oldest line.
    pub(crate) fn new(audit: &Audit) -> Self {
        let older: Vec<PathBuf> = (1..audit.files)
            .map(|number| numbered(&audit.file, number))
            .filter(|file| file.exists())
            .collect();
        Self {
            path: audit.file.clone(),
            older,
            reading: None,
            is_newest: false,
            partial_line: Vec::new(),
            unreadable: 0,
        }
    }

    /// Returns true if there is no log file.
    pub(crate) fn is_missing(&self) -> bool {
        self.reading.is_none() && self.older.is_empty() && !self.path.exists()
    }

    /// Returns the next line, or `None` if there is none yet.
    pub(crate) fn next_line(&mut self) -> io::Result<Option<AuditLine>> {
        loop {
            let Some(reading) = self.opened()? else {
                return Ok(None);
            };
            let mut part = Vec::new();
            if read_some(reading, &mut part)? == 0 {
                if !self.next_file() {
                    return Ok(None);
                }
                continue;
            }
            self.partial_line.extend_from_slice(&part);
            if self.partial_line.last() != Some(&b'\n') {
                // The rest of an overlong line is read and dropped; it will be counted as invalid.
                if self.partial_line.len() > MAX_LINE {
                    self.partial_line.truncate(MAX_LINE);
                }
                continue;
            }
            let bytes = std::mem::take(&mut self.partial_line);
            if let Some(line) = self.line(&bytes) {
                return Ok(Some(line));
            }
        }
    }

    fn line(&mut self, bytes: &[u8]) -> Option<AuditLine> {
        let text = String::from_utf8_lossy(bytes);
        let text = text.trim();
        if text.is_empty() {
            return None;
        }
        match serde_json::from_str(text) {
            Ok(value @ Value::Object(_)) => Some(AuditLine {
                text: text.to_owned(),
                value,
            }),
            _ => {
                self.unreadable += 1;
                None
            }
        }
    }

    /// Returns the open file, opening the next one if needed; `None` if there is none.
    fn opened(&mut self) -> io::Result<Option<&mut BufReader<File>>> {
        while self.reading.is_none() {
            // The highest number is the oldest file, and the last one here.
            let older = self.older.pop();
            let is_newest = older.is_none();
            let opened = plain_file::open(older.as_ref().unwrap_or(&self.path));
            match opened.map_err(io::Error::from) {
                Ok(file) => {
                    self.is_newest = is_newest;
                    self.reading = Some(BufReader::new(file));
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound && is_newest => {
                    return Ok(None);
                }
                // The file was rotated away or deleted meanwhile.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(self.reading.as_mut())
    }

    /// Continues with the next file at the end of one; returns false if it was the newest.
    fn next_file(&mut self) -> bool {
        let reading = self.reading.as_ref();
        let is_last = self.is_newest && reading.is_some_and(|it| is_same(it.get_ref(), &self.path));
        if is_last {
            return false;
        }
        // The file was rotated, and is read to its end. The new file comes next.
        self.reading = None;
        self.partial_line.clear();
        true
    }
}

/// Reads up to the end of a line or of the buffered data.
fn read_some(reader: &mut BufReader<File>, part: &mut Vec<u8>) -> io::Result<usize> {
    let available = reader.fill_buf()?;
    let end = memchr::memchr(b'\n', available).map_or(available.len(), |at| at + 1);
    part.extend_from_slice(&available[..end]);
    reader.consume(end);
    Ok(end)
}

#[cfg(test)]
mod tests {
    use std::{fs, io::Write};

    use super::*;
    use crate::config::AuditArguments;

    fn read_all(reader: &mut LogReader) -> Vec<String> {
        let lines = std::iter::from_fn(|| reader.next_line().unwrap());
        lines.map(|line| line.text).collect()
    }

    #[test]
    fn all_files_are_read_oldest_first_and_new_lines_follow() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.jsonl");
        let audit = Audit {
            file: file.clone(),
            max_bytes: 100,
            files: 5,
            arguments: AuditArguments::Shape,
        };
        assert!(LogReader::new(&audit).is_missing());
        fs::write(numbered(&file, 2), "{\"n\":1}\n{\"n\":2}\n").unwrap();
        fs::write(numbered(&file, 1), "{\"n\":3}\ngarbage\n[]\n\n").unwrap();
        fs::write(&file, "{\"n\":4}\n{\"n\":").unwrap();
        let mut reader = LogReader::new(&audit);
        let lines = read_all(&mut reader);
        assert_eq!(
            lines,
            [r#"{"n":1}"#, r#"{"n":2}"#, r#"{"n":3}"#, r#"{"n":4}"#]
        );
        assert_eq!(reader.unreadable, 2);
        let mut writer = fs::OpenOptions::new().append(true).open(&file).unwrap();
        writer.write_all(b"5}\n{\"n\":6}\n").unwrap();
        assert_eq!(read_all(&mut reader), [r#"{"n":5}"#, r#"{"n":6}"#]);
        writer.write_all(b"{\"n\":7}\n").unwrap();
        fs::rename(&file, numbered(&file, 1)).unwrap();
        fs::write(&file, "{\"n\":8}\n").unwrap();
        assert_eq!(read_all(&mut reader), [r#"{"n":7}"#, r#"{"n":8}"#]);
        assert_eq!(read_all(&mut reader), [""; 0]);
    }
}
