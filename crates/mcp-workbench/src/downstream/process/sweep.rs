//! Finding processes by what cannot be shaken off: their parent, their group, and the marker in their
//! environment. A process is signalled only through a descriptor that names it for good, so that a
//! reused id can never be hit.

use std::{
    fs,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// The variable that every server carries, and what it starts inherits.
pub(super) const MARKER_VARIABLE: &str = "MCP_WORKBENCH_PROCESS";

/// How many looks in a row must find nothing: a process that is just becoming another program has no
/// environment for a moment.
pub(super) const QUIET_LOOKS: u32 = 2;

/// A process that was found, held by a descriptor.
pub(super) struct Found {
    descriptor: OwnedFd,
    pid: Pid,
}

impl Found {
    /// Takes hold of a process, if it is still there.
    pub(super) fn hold(pid: Pid) -> Option<Self> {
        let descriptor = pidfd_open(pid, PidfdFlags::empty()).ok()?;
        Some(Self { descriptor, pid })
    }

    /// Whether the process carries a marker that begins with `marker`. Asked after the process is held:
    /// if the id had been reused in between, the answer would be about the process that is held.
    pub(super) fn carries(&self, marker: &str) -> bool {
        let needle = format!("{MARKER_VARIABLE}={marker}");
        let Ok(environment) = fs::read(proc_folder(self.pid).join("environ")) else {
            return false;
        };
        let mut variables = environment.split(|byte| *byte == 0);
        variables.any(|variable| variable.starts_with(needle.as_bytes()))
    }

    /// The process group and the start time in clock ticks.
    pub(super) fn group_and_start(&self) -> Option<(i32, u64)> {
        let stat = fs::read_to_string(proc_folder(self.pid).join("stat")).ok()?;
        // The second field is the program's name in parentheses and may hold anything.
        let after_name = &stat[stat.rfind(')')? + 2..];
        let fields: Vec<&str> = after_name.split(' ').collect();
        Some((fields.get(2)?.parse().ok()?, fields.get(19)?.parse().ok()?))
    }

    pub(super) fn kill(&self) {
        self.signal(Signal::KILL);
    }

    pub(super) fn signal(&self, signal: Signal) {
        // Gone already is as good as gone now.
        let _ = pidfd_send_signal(&self.descriptor, signal);
    }
}

/// The ids of our own children, adopted ones included.
pub(super) fn children() -> Vec<Pid> {
    let Ok(threads) = fs::read_dir("/proc/self/task") else {
        return Vec::new();
    };
    let lists = threads
        .flatten()
        .map(|thread| thread.path().join("children"));
    let lists = lists.filter_map(|list| fs::read_to_string(list).ok());
    lists
        .flat_map(|list| {
            list.split_whitespace()
                .filter_map(parse_pid)
                .collect::<Vec<_>>()
        })
        .collect()
}

/// The ids of all processes that we may see.
pub(super) fn everybody() -> Vec<Pid> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let names = entries.flatten().map(|entry| entry.file_name());
    names.filter_map(|name| parse_pid(name.to_str()?)).collect()
}

fn parse_pid(text: &str) -> Option<Pid> {
    Pid::from_raw(text.parse().ok()?)
}

fn proc_folder(pid: Pid) -> PathBuf {
    Path::new("/proc").join(pid.as_raw_nonzero().to_string())
}
