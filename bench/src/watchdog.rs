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

/// A child process that is watched until it is dropped.
pub(crate) struct Watched {
    child: Child,
}

impl Watched {
    pub(crate) fn new(child: Child) -> Self {
        STARTED.call_once(|| {
            thread::spawn(watch);
        });
        let watched = Self { child };
        watched.limit(USUAL);
        watched
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sets for how long the process may go on from now.
    pub(crate) fn limit(&self, time: Duration) {
        deadlines().insert(self.pid(), Instant::now() + time);
    }

    /// Asks it to end by itself.
    pub(crate) fn terminate(&self) {
        end(self.pid(), Signal::TERM);
    }

    /// Waits for its end, which comes after `grace` at the latest.
    pub(crate) fn wait(&mut self, grace: Duration) {
        self.limit(grace);
        let _ = self.child.wait();
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        deadlines().remove(&self.pid());
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

/// Sends a signal to a child process that was not waited for yet.
fn end(pid: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        let _ = kill_process(pid, signal);
    }
}
