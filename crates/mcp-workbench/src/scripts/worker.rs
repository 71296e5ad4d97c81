//! A worker process, as its host sees it: lines of JSON to it and from it.

use std::{io, process::ExitStatus, sync::Arc};

use script::{FromWorker, ToWorker};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    process::{ChildStdin, ChildStdout},
    sync::mpsc,
    task::JoinSet,
};

use super::WORKER_ARGUMENT;
use crate::downstream::process::{LoneProcess, ProcessTable};

/// The longest line that a worker may send: the largest arguments of a call, with every character in three bytes.
const MAX_LINE_BYTES: u64 = 4 * 1024 * 1024;

/// A worker that runs, or will run, one script. Dropping it kills the process.
pub(crate) struct Worker {
    process: LoneProcess,
    /// The lines for the worker. They are written by a task of their own: the worker may be writing itself, and would not
    /// read before that is read.
    input: mpsc::UnboundedSender<Vec<u8>>,
    writer: JoinSet<()>,
    output: BufReader<ChildStdout>,
    /// The line that is being read.
    line: Vec<u8>,
}

/// A worker that ended without saying how its script ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WorkerGone {
    /// The system ended it because it used too much CPU time.
    HardLimit,
    /// A signal ended it, or it exited.
    Exited { signal: Option<i32> },
    /// It sent something that is not a message.
    Garbled,
}

impl Worker {
    pub(super) fn start(processes: &Arc<ProcessTable>) -> io::Result<Self> {
        let (process, stdin, stdout) = LoneProcess::start(processes, WORKER_ARGUMENT)?;
        let (input, lines) = mpsc::unbounded_channel();
        let mut writer = JoinSet::new();
        writer.spawn(write(stdin, lines));
        Ok(Self {
            process,
            input,
            writer,
            output: BufReader::new(stdout),
            line: Vec::new(),
        })
    }

    /// Returns whether the worker can still be written to.
    pub(super) fn is_alive(&mut self) -> bool {
        self.process.is_alive() && self.writer.try_join_next().is_none()
    }

    /// Sends a message. The end of a worker is noticed by [`next`](Self::next).
    pub(crate) fn send(&self, message: &ToWorker<'_>) {
        let mut line = serde_json::to_vec(message).expect("messages have only text and JSON");
        line.push(b'\n');
        let _ = self.input.send(line);
    }

    /// Returns the next message. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Result<FromWorker, WorkerGone> {
        let left = MAX_LINE_BYTES.saturating_sub(self.line.len() as u64);
        let mut output = (&mut self.output).take(left);
        let read = output.read_until(b'\n', &mut self.line).await;
        if read.is_err() || !self.line.ends_with(b"\n") {
            if self.line.len() as u64 >= MAX_LINE_BYTES {
                return Err(WorkerGone::Garbled);
            }
            let status = self.process.exited().await;
            return Err(gone(status));
        }
        let message = serde_json::from_slice(&self.line);
        self.line.clear();
        message.map_err(|_| WorkerGone::Garbled)
    }
}

/// Writes lines to a worker until there are no more, or it does not read any more.
async fn write(mut stdin: ChildStdin, mut lines: mpsc::UnboundedReceiver<Vec<u8>>) {
    while let Some(line) = lines.recv().await {
        if stdin.write_all(&line).await.is_err() {
            return;
        }
    }
}

#[cfg(unix)]
fn gone(status: Option<ExitStatus>) -> WorkerGone {
    use std::os::unix::process::ExitStatusExt;
    let signal = status.and_then(|status| status.signal());
    match signal {
        Some(signal) if signal == rustix::process::Signal::XCPU.as_raw() => WorkerGone::HardLimit,
        signal => WorkerGone::Exited { signal },
    }
}

#[cfg(not(unix))]
fn gone(_status: Option<ExitStatus>) -> WorkerGone {
    WorkerGone::Exited { signal: None }
}
