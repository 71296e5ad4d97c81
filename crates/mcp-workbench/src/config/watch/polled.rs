//! Polls files for changes, where the kernel does not notify.

use std::{fs, path::PathBuf, time::Duration, time::SystemTime};

use tokio::time::sleep;

const INTERVAL: Duration = Duration::from_secs(2);

pub(super) struct Polled {
    files: Vec<PathBuf>,
    seen: Vec<Option<Stamp>>,
}

/// Properties that change with a file and are cheap to read.
#[derive(Debug, PartialEq, Eq)]
struct Stamp {
    length: u64,
    modified: Option<SystemTime>,
}

impl Polled {
    /// Records the present state of files.
    pub(super) fn new(files: Vec<PathBuf>) -> Self {
        Self {
            seen: look(&files),
            files,
        }
    }

    /// Waits until a file differs. Cancel-safe.
    pub(super) async fn next(&mut self) {
        loop {
            sleep(INTERVAL).await;
            let seen = look(&self.files);
            if seen != self.seen {
                self.seen = seen;
                return;
            }
        }
    }
}

fn look(files: &[PathBuf]) -> Vec<Option<Stamp>> {
    let stamps = files.iter().map(|file| {
        let metadata = fs::metadata(file).ok()?;
        Some(Stamp {
            length: metadata.len(),
            modified: metadata.modified().ok(),
        })
    });
    stamps.collect()
}
