//! Ends processes that do not answer. The load generator blocks in its reads, because a time limit for each
//! of them would cost as much as what is measured; one thread looks after all of its targets instead.

use std::{
    collections::BTreeMap,
    process::Child,
    sync::{Mutex, MutexGuard, Once, PoisonError},
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};

/// How long a target may be silent if nothing else is said.
const USUAL: Duration = Duration::from_mins(1);
/// How often the watchdog looks.
const PACE: Duration = Duration::from_secs(1);

/// Until when each process may go on.
static DEADLINES: Mutex<BTreeMap<u32, Instant>> = Mutex::new(BTreeMap::new());
static STARTED: Once = Once::new();

/// Watches one process until it is dropped.
pub(crate) struct Watchdog {
    pid: u32,
}

impl Watchdog {
    /// Watches over a child of ours.
    pub(crate) fn over(child: &Child) -> Self {
        STARTED.call_once(|| {
            thread::spawn(watch);
        });
        let watchdog = Self { pid: child.id() };
        watchdog.limit(USUAL);
        watchdog
    }

    /// Sets for how long the process may go on from now.
    pub(crate) fn limit(&self, time: Duration) {
        deadlines().insert(self.pid, Instant::now() + time);
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        deadlines().remove(&self.pid);
    }
}

fn deadlines() -> MutexGuard<'static, BTreeMap<u32, Instant>> {
    DEADLINES.lock().unwrap_or_else(PoisonError::into_inner)
}

fn watch() {
    loop {
        thread::park_timeout(PACE);
        let now = Instant::now();
        let late = deadlines().clone();
        for (pid, _) in late.into_iter().filter(|(_, deadline)| *deadline <= now) {
            // It may have ended by itself.
            end(pid, Signal::KILL);
            deadlines().remove(&pid);
        }
    }
}

/// Sends a signal to a child of ours that was not waited for yet.
pub(crate) fn end(pid: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        let _ = kill_process(pid, signal);
    }
}
