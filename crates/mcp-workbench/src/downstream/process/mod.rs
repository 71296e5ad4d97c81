//! Child processes and everything that they start. On Linux the whole tree is tracked and killed: each server leads a
//! process group and carries a marker variable. Processes that leave the group become children of the workbench and
//! are found by that marker; a guard process does the same if the workbench itself is killed. On other systems the
//! group (Unix) or the process (Windows) is ended.

#[cfg(target_os = "linux")]
pub(crate) mod guard;
#[cfg(target_os = "linux")]
mod linux;
mod lone;
#[cfg(not(target_os = "linux"))]
mod portable;
#[cfg(target_os = "linux")]
mod sweep;
pub(super) mod worker;

pub(crate) use lone::LoneProcess;

use std::{fmt, process::Command, sync::Arc, time::Duration};

use tokio::{
    process::{ChildStderr, ChildStdin, ChildStdout},
    time::Instant,
};

#[cfg(target_os = "linux")]
pub(crate) use linux::{Process, ProcessTable};
#[cfg(not(target_os = "linux"))]
pub(crate) use portable::{Process, ProcessTable};

/// The time from the closing of stdin until the group gets SIGTERM.
const TERMINATE_AFTER: Duration = Duration::from_secs(2);
const KILL_AFTER: Duration = Duration::from_millis(3500);

/// A process that was just started, and its pipes.
pub(super) struct Spawned {
    pub(super) process: Process,
    pub(super) stdin: ChildStdin,
    pub(super) stdout: ChildStdout,
    pub(super) stderr: ChildStderr,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    Code(i32),
    Signal(i32),
    /// It closed its output; the exit status is not known yet.
    Closed,
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exited with code {code}"),
            Self::Signal(9) => f.write_str("was killed by signal 9 (out of memory?)"),
            Self::Signal(signal) => write!(f, "was killed by signal {signal}"),
            Self::Closed => f.write_str("closed its output"),
        }
    }
}

pub(super) fn spawn(table: &Arc<ProcessTable>, command: Command) -> std::io::Result<Spawned> {
    table.spawn(command)
}

/// Ends a process and its tree. Its stdin must be closed already. The process may exit by itself until the first
/// deadline, then gets SIGTERM, and is killed at the second.
async fn end(mut process: Process, closed_at: Instant) {
    let rungs = [closed_at + TERMINATE_AFTER, closed_at + KILL_AFTER];
    if tokio::time::timeout_at(rungs[0], process.exited())
        .await
        .is_err()
    {
        process.terminate();
        // What it started may still run when it has exited, so its tree is killed in both cases.
        let _ = tokio::time::timeout_at(rungs[1], process.exited()).await;
    }
    process.kill_tree().await;
}
