//! Waits for files to change, without a thread: by notifications of the kernel (Linux), or by polling every other
//! second. A notification only means that a file may have changed; [`Fingerprint`] decides whether it has.

mod fingerprint;
#[cfg(target_os = "linux")]
mod inotify;
#[cfg(target_os = "linux")]
mod path_entries;
mod polled;

use std::{path::PathBuf, time::Duration};

use tokio::time::{Instant, sleep, timeout_at};

pub(crate) use fingerprint::Fingerprint;
#[cfg(target_os = "linux")]
use inotify::Inotify;
use polled::Polled;

/// The quiet period that must pass after the last change, since editors write a file in several steps.
const QUIET_PERIOD: Duration = Duration::from_millis(100);
/// Upper bound on how long a reload waits for an editor to finish writing.
const MAX_WRITE_WAIT: Duration = Duration::from_secs(2);

pub(crate) struct FileWatch(WatchMethod);

/// The way in which changes are detected.
enum WatchMethod {
    #[cfg(target_os = "linux")]
    Notified(Inotify),
    Polled(Polled),
}

impl FileWatch {
    /// Starts to watch. Every change from now on counts.
    pub(crate) fn new(files: Vec<PathBuf>) -> Self {
        #[cfg(target_os = "linux")]
        match Inotify::new(&files) {
            Ok(inotify) => return Self(WatchMethod::Notified(inotify)),
            // Linux limits the number of instances per user, by default to 128.
            Err(error) => {
                tracing::debug!("cannot watch files for changes; polling them instead: {error}");
            }
        }
        Self(WatchMethod::Polled(Polled::new(files)))
    }

    /// Returns whether the files are polled.
    pub(crate) fn is_polled(&self) -> bool {
        matches!(self.0, WatchMethod::Polled(_))
    }

    /// Waits until a file may have changed and nothing happens for a moment. Cancel-safe: a change that was noticed
    /// but not returned is seen at the next comparison of fingerprints.
    pub(crate) async fn changed(&mut self) {
        self.noticed().await;
        // Editors write in several steps. A program that never stops writing must not delay a reload forever.
        let end = Instant::now() + MAX_WRITE_WAIT;
        while Instant::now() < end {
            let quiet = Instant::now() + QUIET_PERIOD;
            if timeout_at(quiet.min(end), self.noticed()).await.is_err() {
                return;
            }
        }
    }

    async fn noticed(&mut self) {
        match &mut self.0 {
            #[cfg(target_os = "linux")]
            WatchMethod::Notified(inotify) => inotify.next().await,
            WatchMethod::Polled(polled) => polled.next().await,
        }
    }
}

/// Gives an editor time to finish a file that looks broken.
pub(crate) async fn wait_for_writer() {
    sleep(QUIET_PERIOD * 4).await;
}

#[cfg(test)]
mod tests;
