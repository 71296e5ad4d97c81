//! Processes on systems without process descriptors: the group is ended on Unix, the process itself on Windows.
//! Processes that leave their group are not tracked here.

use std::{
    io,
    process::{Command, Stdio},
    sync::Arc,
};

use tokio::{process::Child, time::Instant};
use tokio_util::task::TaskTracker;

use super::{Exit, Spawned, end};

/// All processes of this workbench.
pub(crate) struct ProcessTable {
    tasks: TaskTracker,
}

impl ProcessTable {
    /// Creates an empty table that runs its work on `tasks`.
    pub(crate) fn new(tasks: TaskTracker) -> Arc<Self> {
        Arc::new(Self { tasks })
    }

    pub(super) fn spawn(self: &Arc<Self>, command: Command) -> io::Result<Spawned> {
        let mut command = tokio::process::Command::from(command);
        #[cfg(unix)]
        command.process_group(0);
        let mut child = command
            .kill_on_drop(true)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let missing = || io::Error::from(io::ErrorKind::BrokenPipe);
        Ok(Spawned {
            stdin: child.stdin.take().ok_or_else(missing)?,
            stdout: child.stdout.take().ok_or_else(missing)?,
            stderr: child.stderr.take().ok_or_else(missing)?,
            process: Process {
                #[cfg(unix)]
                group: child.id(),
                child,
            },
        })
    }

    /// Ends a process whose stdin was closed at `closed_at`, in a task of its own.
    pub(crate) fn retire(self: &Arc<Self>, process: Process, closed_at: Instant) {
        self.tasks.spawn(end(process, closed_at));
    }

    /// Does nothing, because each process has a deadline of its own here.
    pub(crate) fn closing_since(&self, _since: Instant) {}

    /// Does nothing, because remaining processes cannot be found here.
    pub(crate) async fn sweep_all(&self) {}
}

pub(crate) struct Process {
    child: Child,
    /// The id of the process at its start; it identifies the group while the group has members.
    #[cfg(unix)]
    group: Option<u32>,
}

impl Process {
    /// Waits for the exit of the process. Cancel-safe.
    pub(crate) async fn exited(&mut self) -> Exit {
        match self.child.wait().await {
            Ok(status) => status.code().map_or(Exit::Closed, Exit::Code),
            Err(_) => Exit::Closed,
        }
    }

    /// Returns the id of the process, while it runs.
    pub(crate) fn id(&self) -> Option<u32> {
        self.child.id()
    }

    /// Sends SIGTERM to the group, on Unix.
    pub(super) fn terminate(&self) {
        #[cfg(unix)]
        self.signal_group(rustix::process::Signal::TERM);
    }

    /// Kills the group or the process, and reaps it.
    pub(super) async fn kill_tree(mut self) {
        #[cfg(unix)]
        self.signal_group(rustix::process::Signal::KILL);
        let _ = self.child.kill().await;
    }

    #[cfg(unix)]
    fn signal_group(&self, signal: rustix::process::Signal) {
        let id = self.group.and_then(|id| i32::try_from(id).ok());
        if let Some(group) = id.and_then(rustix::process::Pid::from_raw) {
            let _ = rustix::process::kill_process_group(group, signal);
        }
    }
}
