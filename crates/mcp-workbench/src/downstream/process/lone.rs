//! A process of our own program that starts no others, so that it needs neither a group nor a sweep: it is killed and
//! reaped when its handle is dropped.

use std::{
    io,
    process::{ExitStatus, Stdio},
    sync::Arc,
};

use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use super::ProcessTable;
use crate::program_lookup::own_program;

/// A child that runs this program.
pub(crate) struct LoneProcess {
    child: Child,
    #[cfg(target_os = "linux")]
    table: Arc<ProcessTable>,
    #[cfg(target_os = "linux")]
    pid: Option<rustix::process::Pid>,
}

impl LoneProcess {
    /// Starts this program with one argument, without environment and with pipes for stdin and stdout.
    pub(crate) fn start(
        table: &Arc<ProcessTable>,
        argument: &str,
    ) -> io::Result<(Self, ChildStdin, ChildStdout)> {
        #[cfg(not(target_os = "linux"))]
        // Only on Linux does a table reap adopted children, so that it has to know its own.
        let _ = table;
        let mut child = Command::new(own_program()?)
            .arg(argument)
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()?;
        let missing = || io::Error::from(io::ErrorKind::BrokenPipe);
        let stdin = child.stdin.take().ok_or_else(missing)?;
        let stdout = child.stdout.take().ok_or_else(missing)?;
        #[cfg(target_os = "linux")]
        let process = {
            let id = child.id().and_then(|id| i32::try_from(id).ok());
            let pid = id.and_then(rustix::process::Pid::from_raw);
            // Otherwise it would be taken for an adopted child and reaped, and its owner would wait for its status
            // forever.
            table.keep(pid);
            Self {
                child,
                table: Arc::clone(table),
                pid,
            }
        };
        #[cfg(not(target_os = "linux"))]
        let process = Self { child };
        Ok((process, stdin, stdout))
    }

    /// Returns whether it still runs.
    pub(crate) fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Waits for the exit. Cancel-safe.
    pub(crate) async fn exited(&mut self) -> Option<ExitStatus> {
        self.child.wait().await.ok()
    }
}

#[cfg(target_os = "linux")]
impl Drop for LoneProcess {
    fn drop(&mut self) {
        // From here on nobody waits for its status, so that anybody may reap it.
        let _ = self.child.start_kill();
        self.table.release(self.pid);
    }
}
