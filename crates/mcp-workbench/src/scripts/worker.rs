//! A worker process, as its host sees it: lines of JSON to it and from it.

use std::{io, pin::pin, process::ExitStatus, sync::Arc};

use bytes::{BufMut, BytesMut};
use script::{FromWorker, ToWorker};
use tokio::{
    io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    process::{ChildStdin, ChildStdout},
};

use super::WORKER_ARGUMENT;
use crate::downstream::process::{LoneProcess, ProcessTable};

/// The longest line that a worker may send: the largest arguments of a call, with every character in three bytes.
const MAX_LINE_BYTES: u64 = 4 * 1024 * 1024;

/// A worker that runs, or will run, one script. Dropping it kills the process.
pub(crate) struct Worker {
    process: LoneProcess,
    /// The pipe to the worker, until it no longer reads.
    input: Option<ChildStdin>,
    /// The lines that are not written yet. The worker may be writing itself and not read before that is read, so both
    /// happen at once.
    unsent: BytesMut,
    output: BufReader<ChildStdout>,
    incoming: Incoming,
}

/// The state of reading a worker's messages.
#[derive(Default)]
struct Incoming {
    /// The line that is being read.
    line: Vec<u8>,
    /// The number of requests that the worker may still make. A worker that was taken over could make any number, whose
    /// answers it does not read.
    requests_left: u32,
}

/// A worker that ended without saying how its script ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum WorkerGone {
    /// It could not be confined, for this reason.
    NotConfined(String),
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
        Ok(Self {
            process,
            input: Some(stdin),
            unsent: BytesMut::new(),
            output: BufReader::new(stdout),
            incoming: Incoming::default(),
        })
    }

    pub(super) fn is_alive(&mut self) -> bool {
        self.process.is_alive()
    }

    /// Queues a message, which [`next`](Self::next) writes.
    pub(crate) fn send(&mut self, message: &ToWorker<'_>) {
        if let ToWorker::Run { limits, .. } = message {
            self.incoming.requests_left = limits.calls;
        }
        let writer = (&mut self.unsent).writer();
        serde_json::to_writer(writer, message).expect("messages have only text and JSON");
        self.unsent.put_u8(b'\n');
    }

    /// Writes what is queued, and returns the next message. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Result<FromWorker, WorkerGone> {
        let read = {
            let mut read = pin!(read_message(&mut self.output, &mut self.incoming));
            loop {
                tokio::select! {
                    biased;
                    // Reading continues meanwhile, because a worker that waits to write reads nothing.
                    () = write(&mut self.input, &mut self.unsent), if !self.unsent.is_empty() => {}
                    read = &mut read => break read,
                }
            }
        };
        match read {
            Some(message) => message,
            None => Err(gone(self.process.exited().await)),
        }
    }
}

/// Reads a message; `None` if the worker has ended. `incoming` has what was read of it before, so this is cancel-safe.
async fn read_message(
    output: &mut (impl AsyncBufRead + Unpin),
    incoming: &mut Incoming,
) -> Option<Result<FromWorker, WorkerGone>> {
    let line = &mut incoming.line;
    // `line` has the beginning of a message if an earlier call was cancelled.
    let left = MAX_LINE_BYTES.saturating_sub(line.len() as u64);
    let read = output.take(left).read_until(b'\n', line).await;
    // A compromised worker could send an endless line.
    if line.len() as u64 >= MAX_LINE_BYTES {
        return Some(Err(WorkerGone::Garbled));
    }
    if read.is_err() || !line.ends_with(b"\n") {
        return None;
    }
    let message = serde_json::from_slice(line);
    line.clear();
    if let Ok(FromWorker::Call(_) | FromWorker::Emit { .. }) = &message {
        match incoming.requests_left.checked_sub(1) {
            Some(left) => incoming.requests_left = left,
            None => return Some(Err(WorkerGone::Garbled)),
        }
    }
    Some(message.map_err(|_| WorkerGone::Garbled))
}

/// Writes a part of what is queued. Nothing is left for a worker that no longer reads: its end is noticed by reading.
/// Cancel-safe.
async fn write(input: &mut Option<ChildStdin>, unsent: &mut BytesMut) {
    let written = match input {
        Some(stdin) => stdin.write_buf(unsent).await.is_ok(),
        None => false,
    };
    if !written {
        *input = None;
        unsent.clear();
    }
}

#[cfg(unix)]
fn gone(status: Option<ExitStatus>) -> WorkerGone {
    use std::os::unix::process::ExitStatusExt;
    let signal = status.and_then(|status| status.signal());
    match signal {
        // The kernel sends SIGXCPU when the limit of CPU time is reached.
        Some(signal) if signal == rustix::process::Signal::XCPU.as_raw() => WorkerGone::HardLimit,
        signal => WorkerGone::Exited { signal },
    }
}

#[cfg(not(unix))]
fn gone(_status: Option<ExitStatus>) -> WorkerGone {
    WorkerGone::Exited { signal: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads all messages of a worker that sent these bytes and ended.
    async fn read(mut bytes: &[u8]) -> Vec<Result<FromWorker, WorkerGone>> {
        let mut incoming = Incoming {
            requests_left: 2,
            ..Incoming::default()
        };
        let mut messages = Vec::new();
        while let Some(message) = read_message(&mut bytes, &mut incoming).await {
            let is_last = message.is_err();
            messages.push(message);
            if is_last {
                break;
            }
        }
        messages
    }

    #[tokio::test]
    async fn a_worker_that_was_taken_over_can_send_nothing_but_messages_of_bounded_size() {
        let ten_megabytes = format!("\"{}\"\n", "x".repeat(10_000_000));
        let call = r#"{"call":{"id":1,"called":"search","arguments":{},"at":null}}"#;
        let emit = r#"{"emit":{"id":1,"reference":"1.1"}}"#;
        let [permitted, flood] = [[call, emit, ""], [call, emit, emit]].map(|it| it.join("\n"));
        let flood = flood + "\n";
        let rows: [(&[u8], Option<WorkerGone>); 7] = [
            (permitted.as_bytes(), None),
            (flood.as_bytes(), Some(WorkerGone::Garbled)),
            (b"\"ready\"\n", None),
            (b"\"ready\"\nnonsense\n", Some(WorkerGone::Garbled)),
            (
                b"\"ready\"\n{\"log\":\"\xff\"}\n",
                Some(WorkerGone::Garbled),
            ),
            (b"\"ready\"\n{\"log\":\"no end", None),
            (ten_megabytes.as_bytes(), Some(WorkerGone::Garbled)),
        ];
        for (bytes, expected) in rows {
            let last = read(bytes).await.pop().unwrap();
            assert_eq!(last.err(), expected);
        }
    }
}
