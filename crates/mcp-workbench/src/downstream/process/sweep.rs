//! Finds processes by properties that they cannot drop: their parent, their group, and the marker in their
//! environment. A process is signalled only through a pidfd, so that a reused id is never hit.

use std::{
    fs,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// The marker variable of every server, which its child processes inherit.
pub(super) const MARKER_VARIABLE: &str = "MCP_WORKBENCH_PROCESS";

/// The number of consecutive rounds that must find nothing: during `exec` a process has no environment for a moment.
pub(super) const QUIET_ROUNDS: u32 = 2;

/// A process that is held by a pidfd.
pub(super) struct HeldProcess {
    descriptor: OwnedFd,
    pid: Pid,
}

impl HeldProcess {
    /// Opens a process, if it still exists.
    pub(super) fn hold(pid: Pid) -> Option<Self> {
        let descriptor = pidfd_open(pid, PidfdFlags::empty()).ok()?;
        Some(Self { descriptor, pid })
    }

    /// Returns true if the process carries a marker that begins with `marker`. The pidfd is opened before this check,
    /// so the check is about the process that a signal would hit, even if the id was reused.
    pub(super) fn carries(&self, marker: &str) -> bool {
        let needle = format!("{MARKER_VARIABLE}={marker}");
        let Ok(environment) = fs::read(proc_folder(self.pid).join("environ")) else {
            return false;
        };
        let mut variables = environment.split(|byte| *byte == 0);
        variables.any(|variable| variable.starts_with(needle.as_bytes()))
    }

    /// Returns the process group and the start time in clock ticks.
    pub(super) fn group_and_start(&self) -> Option<(i32, u64)> {
        let stat = fs::read_to_string(proc_folder(self.pid).join("stat")).ok()?;
        // The second field is the program's name in parentheses and may contain anything.
        let after_name = &stat[stat.rfind(')')? + 2..];
        let fields: Vec<&str> = after_name.split(' ').collect();
        Some((fields.get(2)?.parse().ok()?, fields.get(19)?.parse().ok()?))
    }

    pub(super) fn kill(&self) {
        self.signal(Signal::KILL);
    }

    pub(super) fn signal(&self, signal: Signal) {
        // An error means that the process has exited already.
        let _ = pidfd_send_signal(&self.descriptor, signal);
    }
}

/// Returns the ids of our children, including adopted ones.
pub(super) fn children() -> Vec<Pid> {
    let Ok(threads) = fs::read_dir("/proc/self/task") else {
        return Vec::new();
    };
    // The kernel has a list of children for each thread.
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

/// Returns the ids of all visible processes.
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
