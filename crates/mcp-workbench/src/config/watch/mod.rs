//! Waiting for files to change, without a thread: the kernel tells where it can (Linux), and elsewhere somebody looks
//! every other second. What is told is only that it is worth to look; [`Fingerprint`] says whether a file is another
//! one.

mod fingerprint;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
mod places;
mod polled;

use std::{path::PathBuf, time::Duration};

use tokio::time::{Instant, sleep, timeout_at};

pub(crate) use fingerprint::Fingerprint;
#[cfg(target_os = "linux")]
use linux::Notices;
use polled::Polled;

/// Writers do several things to one file: nothing must have happened for so long.
const QUIET: Duration = Duration::from_millis(100);
/// But no writer is waited for for longer than this.
const PATIENCE: Duration = Duration::from_secs(2);

/// Some files that are watched.
pub(crate) struct FileWatch(Means);

/// How it is found out that files have changed.
enum Means {
    #[cfg(target_os = "linux")]
    Told(Notices),
    Polled(Polled),
}

impl FileWatch {
    /// Begins to watch. What happens from now on counts.
    pub(crate) fn new(files: Vec<PathBuf>) -> Self {
        #[cfg(target_os = "linux")]
        match Notices::new(&files) {
            Ok(notices) => return Self(Means::Told(notices)),
            Err(error) => {
                tracing::debug!("cannot watch files for changes; polling them instead: {error}")
            }
        }
        Self(Means::Polled(Polled::new(files)))
    }

    /// Whether somebody has to look again and again.
    pub(crate) fn is_polled(&self) -> bool {
        matches!(self.0, Means::Polled(_))
    }

    /// Waits until something may have changed, and nothing happens any more for a moment. Cancel-safe: what was
    /// noticed and not told is seen by the next look at the files.
    pub(crate) async fn changed(&mut self) {
        self.noticed().await;
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end {
            let quiet = Instant::now() + QUIET;
            if timeout_at(quiet.min(end), self.noticed()).await.is_err() {
                return;
            }
        }
    }

    async fn noticed(&mut self) {
        match &mut self.0 {
            #[cfg(target_os = "linux")]
            Means::Told(notices) => notices.next().await,
            Means::Polled(polled) => polled.next().await,
        }
    }
}

/// Gives a writer the time to finish what looks broken.
pub(crate) async fn wait_for_writer() {
    sleep(QUIET * 4).await;
}

#[cfg(test)]
mod tests;
