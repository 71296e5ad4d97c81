//! The execution journal: an append-only file with one line per call, `PID NONCE`, written when the call starts and
//! before it does anything. Calls without a `nonce` in their arguments are not recorded. Each line is a single write,
//! so the processes of one server can share a file.

use std::{
    fs::{File, OpenOptions},
    io::Write,
    path::Path,
    process,
};

use serde::Deserialize;

use crate::message::Request;

/// The file, if the script wants one.
#[derive(Debug)]
pub(crate) struct Executions {
    file: Option<File>,
}

/// The part of the arguments by which a call is known.
#[derive(Deserialize)]
struct Known {
    nonce: Option<u64>,
}

impl Executions {
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

    pub(crate) fn record(&self, call: &Request) {
        let Some(mut file) = self.file.as_ref() else {
            return;
        };
        let arguments = call.known.arguments.as_deref();
        let known = arguments.and_then(|raw| serde_json::from_str::<Known>(raw.get()).ok());
        if let Some(nonce) = known.and_then(|known| known.nonce) {
            let line = format!("{} {nonce}\n", process::id());
            file.write_all(line.as_bytes())
                .expect("the execution journal is writable");
        }
    }
}
