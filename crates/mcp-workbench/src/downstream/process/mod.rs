//! Child processes and everything that they start. On Linux the whole tree is known and killed: each
//! server leads a process group, carries a marker variable, and what leaves the group is adopted by
//! us and found by that marker; a guard process does the same if we are killed ourselves. Elsewhere
//! the group (Unix) or the process (Windows) is ended.

#[cfg(target_os = "linux")]
pub(crate) mod guard;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod portable;
#[cfg(target_os = "linux")]
mod sweep;

use std::{fmt, process::Command, sync::Arc, time::Duration};

use tokio::{
    process::{ChildStderr, ChildStdin, ChildStdout},
    time::Instant,
};

#[cfg(target_os = "linux")]
pub(crate) use linux::{Process, ProcessTable};
#[cfg(not(target_os = "linux"))]
pub(crate) use portable::{Process, ProcessTable};

/// When the group is asked to end, counted from the closing of its stdin.
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
    /// It stopped talking, and how it ended is not known yet.
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

/// Starts `command` under the care of `table`.
pub(super) fn spawn(table: &Arc<ProcessTable>, command: Command) -> std::io::Result<Spawned> {
    table.spawn(command)
}

/// Ends a process and its tree. Its stdin must be closed already: it gets the time until the ladder's
/// next rung to leave by itself, is asked at the first, and killed at the second.
async fn end(mut process: Process, closed_at: Instant) {
    let rungs = [closed_at + TERMINATE_AFTER, closed_at + KILL_AFTER];
    if tokio::time::timeout_at(rungs[0], process.exited())
        .await
        .is_err()
    {
        process.terminate();
        let _ = tokio::time::timeout_at(rungs[1], process.exited()).await;
    }
    process.kill_tree().await;
}
