//! Short-lived processes of this program, for work that must be stopped from outside.

use std::{io, process::Command, sync::Arc, time::Duration};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    time::{Instant, timeout},
};

use super::{Exit, Process, ProcessTable, Spawned, spawn};
use crate::program_lookup::own_program;

/// The work of a process: its argument, its input, and its bounds.
pub(crate) struct WorkerRun<'a> {
    /// The first argument, which selects the kind of work.
    pub argument: &'a str,
    /// The parts of its stdin.
    pub input: &'a [&'a [u8]],
    /// The time from its start to its end.
    pub time: Duration,
    pub max_output_bytes: usize,
}

pub(crate) struct WorkerEnd {
    /// Its stdout, up to the bound.
    pub output: Vec<u8>,
    pub exit: Exit,
}

/// The reason why a worker has no end of its own.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WorkerError {
    #[error("timed out after {} s", .0.as_secs())]
    TimedOut(Duration),
    #[error("failed to start a process: {0}")]
    NotStarted(io::Error),
}

/// Starts this program with an argument, writes its stdin, and returns its stdout. Dropping the future ends the process.
pub(crate) async fn run_worker(
    table: &Arc<ProcessTable>,
    run: &WorkerRun<'_>,
) -> Result<WorkerEnd, WorkerError> {
    let mut worker = Worker::start(table, run.argument).map_err(WorkerError::NotStarted)?;
    let ended = timeout(run.time, worker.work(run)).await;
    ended.map_err(|_| WorkerError::TimedOut(run.time))
}

/// A running worker. It is ended when this is dropped.
struct Worker {
    process: Option<Process>,
    pipes: Option<Pipes>,
    table: Arc<ProcessTable>,
}

struct Pipes {
    stdin: tokio::process::ChildStdin,
    stdout: tokio::process::ChildStdout,
}

impl Worker {
    fn start(table: &Arc<ProcessTable>, argument: &str) -> io::Result<Self> {
        let mut command = Command::new(own_program()?);
        command.arg(argument).env_clear().current_dir("/");
        let Spawned {
            process,
            stdin,
            stdout,
            // Closed: it has nothing to say there but that it crashed.
            stderr: _,
        } = spawn(table, command)?;
        Ok(Self {
            process: Some(process),
            pipes: Some(Pipes { stdin, stdout }),
            table: Arc::clone(table),
        })
    }

    /// Writes the input, reads the output and waits for the end. A process that ends before it has read everything is
    /// judged by its exit.
    async fn work(&mut self, run: &WorkerRun<'_>) -> WorkerEnd {
        let mut output = Vec::new();
        if let Some(Pipes { mut stdin, stdout }) = self.pipes.take() {
            let write = async move {
                for part in run.input {
                    if stdin.write_all(part).await.is_err() {
                        return;
                    }
                }
            };
            let most = u64::try_from(run.max_output_bytes).unwrap_or(u64::MAX);
            let mut stdout = stdout.take(most);
            // Both at once: a worker that writes before it has read everything would block on a full pipe.
            let ((), _) = tokio::join!(write, stdout.read_to_end(&mut output));
        }
        let exit = match &mut self.process {
            Some(process) => process.exited().await,
            None => Exit::Closed,
        };
        WorkerEnd { output, exit }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        if let Some(process) = self.process.take() {
            // Nobody reads what it would still write.
            process.terminate();
            self.table.retire(process, Instant::now());
        }
    }
}
