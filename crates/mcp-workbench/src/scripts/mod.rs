//! Workers for scripts. A worker is a process of this same program that runs one script, without environment, files and
//! network (`crates/script`); the serving process never runs one. Two workers are started ahead, once a client has seen
//! `run_code`, so that a run does not wait for the start of a process.

mod worker;

use std::{
    io,
    sync::{Arc, Mutex, MutexGuard},
};

use thiserror::Error;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::{downstream::process::ProcessTable, sync::lock};
pub(crate) use worker::{Worker, WorkerGone};

/// The first argument that makes this program a worker. It is not a command for users.
pub(crate) const WORKER_ARGUMENT: &str = "run-script-worker";

/// The number of workers that wait for a script.
const WARM_WORKERS: usize = 2;
/// The number of runs at once, paused ones included.
const MAX_RUNS: usize = 32;

/// The workers of a workbench.
pub(crate) struct Scripts {
    processes: Arc<ProcessTable>,
    warm: Mutex<Vec<Worker>>,
    runs: Arc<Semaphore>,
}

/// The reason why a script cannot run.
#[derive(Debug, Error)]
pub(crate) enum StartError {
    #[error("{MAX_RUNS} scripts are running or waiting for answers; try again later")]
    TooMany,
    #[error(
        "scripts are not supported on this system, because it cannot confine them: they need Linux on x86_64, aarch64 or riscv64"
    )]
    Unsupported,
    #[error("failed to start a worker for scripts: {0}")]
    NotStarted(#[from] io::Error),
}

/// The right to run a script, for as long as the run takes.
pub(crate) struct RunSlot {
    _permit: OwnedSemaphorePermit,
}

impl Scripts {
    /// Creates the set of workers. None is started.
    pub(crate) fn new(processes: &Arc<ProcessTable>) -> Self {
        Self {
            processes: Arc::clone(processes),
            warm: Mutex::default(),
            runs: Arc::new(Semaphore::new(MAX_RUNS)),
        }
    }

    /// Starts the workers that wait for a script, as far as they are missing.
    pub(crate) fn warm_up(&self) {
        if !script::IS_SUPPORTED || self.runs.is_closed() {
            return;
        }
        let mut warm = self.warm();
        warm.retain_mut(Worker::is_alive);
        while warm.len() < WARM_WORKERS {
            match Worker::start(&self.processes) {
                Ok(worker) => warm.push(worker),
                Err(error) => {
                    tracing::warn!("failed to start a worker for scripts: {error}");
                    return;
                }
            }
        }
    }

    /// Returns a worker that waits for its script, and the right to use it.
    pub(crate) fn take(&self) -> Result<(Worker, RunSlot), StartError> {
        if !script::IS_SUPPORTED {
            return Err(StartError::Unsupported);
        }
        let permit = Arc::clone(&self.runs)
            .try_acquire_owned()
            .map_err(|_| StartError::TooMany)?;
        let mut warm = self.warm();
        let mut ready = std::iter::from_fn(|| warm.pop());
        let worker = match ready.find_map(|mut worker| worker.is_alive().then_some(worker)) {
            Some(worker) => worker,
            None => Worker::start(&self.processes)?,
        };
        Ok((worker, RunSlot { _permit: permit }))
    }

    /// Ends the workers that wait, because no client is offered scripts any more.
    pub(crate) fn cool_down(&self) {
        self.warm().clear();
    }

    /// Ends the workers that wait, for good.
    pub(crate) fn shut_down(&self) {
        self.runs.close();
        self.cool_down();
    }

    fn warm(&self) -> MutexGuard<'_, Vec<Worker>> {
        lock(&self.warm)
    }
}
