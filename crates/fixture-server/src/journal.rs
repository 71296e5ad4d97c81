//! The journal: an append-only file with one line per event, `PID EVENT [REST]`. Several processes may share one file,
//! so each line is a single write.
//!
//! Events: `start`, `in` (a line from stdin, as it came), `cancelled` (the raw id), `spawned` (a process id), `note` (a
//! text of the script), `eof` and `exit` (the code). Those of HTTP are listed in [`crate::http`].

use std::{
    fs::{File, OpenOptions},
    io::Write,
    path::Path,
    process,
};

/// The file, if the script wants one.
#[derive(Debug)]
pub(crate) struct Journal {
    file: Option<File>,
}

impl Journal {
    /// Opens the file for appending.
    pub(crate) fn open(path: Option<&Path>) -> Self {
        let file = path.map(|path| {
            OpenOptions::new()
                .create(true)
                .append(true)
                .open(path)
                .unwrap_or_else(|error| panic!("cannot open {}: {error}", path.display()))
        });
        Self { file }
    }

    /// Appends an event without data.
    pub(crate) fn event(&self, event: &str) {
        self.record(event, b"");
    }

    /// Appends an event with its data.
    pub(crate) fn record(&self, event: &str, rest: &[u8]) {
        let Some(mut file) = self.file.as_ref() else {
            return;
        };
        let mut line = format!("{} {event}", process::id()).into_bytes();
        if !rest.is_empty() {
            line.push(b' ');
            line.extend_from_slice(rest);
        }
        line.push(b'\n');
        file.write_all(&line).expect("the journal is writable");
    }
}
