//! The file by which commands find the workbench that serves over HTTP: its address, its process and the key of its page.
//! It is for the user alone, like the token.

use std::{fs, io, net::SocketAddr, path::PathBuf};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{
    config::Environment,
    plain_file::read_once,
    private_files::{make_folder, replace},
    serve::http::random_id,
};

const NAME: &str = "page.json";
const MAX_BYTES: u64 = 4096;

/// A workbench that serves a page.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::cli) struct PageRecord {
    pub(in crate::cli) address: SocketAddr,
    pid: u32,
    pub(in crate::cli) key: String,
}

/// There is no page that a command could ask.
#[derive(Debug, Error)]
pub(in crate::cli) enum NoPage {
    #[error(
        "no workbench serves a page\n  hint: start one with `mcp-workbench serve --http 127.0.0.1:8700`, or a client of a configuration with `\"shared\": true`"
    )]
    NotServed,
    #[error("cannot read {}: {error}", file.display())]
    Unreadable { file: PathBuf, error: io::Error },
}

/// Removes the record when the workbench ends.
pub(in crate::cli) struct RecordGuard {
    file: Option<PathBuf>,
    key: String,
}

impl PageRecord {
    /// Writes the record of this process. Without a state directory there is none, and the page cannot be opened.
    pub(in crate::cli) fn write(address: SocketAddr, environment: &Environment) -> RecordGuard {
        let record = Self {
            address,
            pid: std::process::id(),
            key: random_id(),
        };
        let folder = environment.state_directory();
        let written = folder.map(|folder| {
            let text = serde_json::to_vec(&record).expect("a record is JSON");
            make_folder(&folder)
                .and_then(|()| replace(&folder, NAME, &text))
                .map(|()| folder.join(NAME))
        });
        let file = match written {
            Some(Ok(file)) => Some(file),
            Some(Err(error)) => {
                tracing::warn!("`mcp-workbench ui` will not work: cannot write {NAME}: {error}");
                None
            }
            None => None,
        };
        RecordGuard {
            file,
            key: record.key,
        }
    }

    /// Returns the record of the page of a host.
    #[cfg(unix)]
    pub(super) fn of_host(page: crate::host::PageAddress) -> Self {
        Self {
            address: page.address,
            // It only recognizes the record file of a process, and the page of a host has none.
            pid: 0,
            key: page.key,
        }
    }

    /// Reads the record of the workbench that started last.
    pub(in crate::cli) fn read(environment: &Environment) -> Result<Self, NoPage> {
        let folder = environment.state_directory().ok_or(NoPage::NotServed)?;
        let file = folder.join(NAME);
        match read_once(&file, MAX_BYTES).map_err(io::Error::from) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| NoPage::Unreadable {
                file,
                error: error.into(),
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(NoPage::NotServed),
            Err(error) => Err(NoPage::Unreadable { file, error }),
        }
    }
}

impl RecordGuard {
    pub(in crate::cli) fn key(&self) -> &str {
        &self.key
    }
}

impl Drop for RecordGuard {
    fn drop(&mut self) {
        let Some(file) = &self.file else { return };
        // A workbench that started later has written its own.
        let is_ours = fs::read(file).is_ok_and(|bytes| {
            let record = serde_json::from_slice::<PageRecord>(&bytes);
            record.is_ok_and(|record| record.pid == std::process::id())
        });
        if is_ours {
            let _ = fs::remove_file(file);
        }
    }
}
