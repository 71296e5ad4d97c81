//! Waits by polling.

use std::{
    thread,
    time::{Duration, Instant},
};

const POLL: Duration = Duration::from_millis(5);

/// Looks until there is something to see, or until `deadline`.
pub(crate) fn poll_until<T>(deadline: Instant, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    loop {
        if let Some(seen) = look() {
            return Some(seen);
        }
        if Instant::now() >= deadline {
            return None;
        }
        thread::park_timeout(POLL);
    }
}
