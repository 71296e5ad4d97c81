//! Inspects and signals processes from outside. A signal goes through a descriptor of the process that was opened
//! before its mark was checked, so that no other process can ever receive it.

use std::{fs, os::fd::OwnedFd, path::Path};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// The variable by which the servers of a run are known.
pub(crate) const MARK: &str = "LEDGER_RUN";

/// The marker in the environment of the servers of one run.
#[derive(Debug, Clone)]
pub(crate) struct Mark(String);

/// The resources of one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Footprint {
    pub descriptors: u64,
    pub resident_kib: u64,
    pub threads: u64,
}

/// A process with a mark. While this value exists, its id is not reused.
#[derive(Debug)]
pub(crate) struct MarkedProcess(OwnedFd);

/// A process at a moment. The same number may later be a different process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seen {
    pub pid: u32,
    started: u64,
}

impl Mark {
    /// The mark of the run in this directory, which no other run has.
    pub(crate) fn new(directory: &Path) -> Self {
        Self(directory.to_string_lossy().into_owned())
    }

    /// The value of the variable.
    pub(crate) fn value(&self) -> &str {
        &self.0
    }

    /// The processes that carry this mark. A zombie has no environment.
    pub(crate) fn carriers(&self) -> Vec<u32> {
        pids().filter(|pid| self.is_on(*pid)).collect()
    }

    /// A hold on this process, if it carries the mark.
    pub(crate) fn hold(&self, pid: u32) -> Option<MarkedProcess> {
        let raw = Pid::from_raw(i32::try_from(pid).ok()?)?;
        let process = pidfd_open(raw, PidfdFlags::empty()).ok()?;
        // Checked with the descriptor open: from then on the id cannot be reused.
        self.is_on(pid).then_some(MarkedProcess(process))
    }

    fn is_on(&self, pid: u32) -> bool {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let entry = format!("{MARK}={}", self.0);
        environment
            .split(|byte| *byte == 0)
            .any(|it| it == entry.as_bytes())
    }
}

impl MarkedProcess {
    /// Sends a signal; false if the process has ended.
    pub(crate) fn signal(&self, signal: Signal) -> bool {
        pidfd_send_signal(&self.0, signal).is_ok()
    }
}

impl Footprint {
    /// Returns the current resources of a process, or `None` if it does not exist.
    pub fn of(pid: u32) -> Option<Self> {
        let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).ok()?.count();
        let descriptors = u64::try_from(descriptors).ok()?;
        let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.split_whitespace().next()?.parse().ok()
        };
        Some(Self {
            descriptors,
            resident_kib: field("VmRSS:")?,
            threads: field("Threads:")?,
        })
    }
}

impl Seen {
    /// Returns true if the process still exists, even as a zombie.
    pub(crate) fn is_there(&self) -> bool {
        stat(self.pid).is_some_and(|stat| stat.started == self.started)
    }
}

/// The children of a process.
pub(crate) fn children(parent: u32) -> Vec<Seen> {
    let found = pids().filter_map(|pid| {
        let stat = stat(pid).filter(|stat| stat.parent == parent)?;
        let started = stat.started;
        Some(Seen { pid, started })
    });
    found.collect()
}

/// The children of a process that have ended and were not waited for.
pub(crate) fn zombies(parent: u32) -> Vec<u32> {
    let is_zombie = |pid: &u32| stat(*pid).is_some_and(|it| it.parent == parent && it.state == "Z");
    pids().filter(is_zombie).collect()
}

struct Stat {
    state: String,
    parent: u32,
    started: u64,
}

fn stat(pid: u32) -> Option<Stat> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name before the bracket may hold anything.
    let mut fields = text.rsplit_once(") ")?.1.split(' ');
    Some(Stat {
        state: fields.next()?.to_owned(),
        parent: fields.next()?.parse().ok()?,
        // The state is field 3, the parent field 4, the start field 22.
        started: fields.nth(17)?.parse().ok()?,
    })
}

fn pids() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten();
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}
