//! Runs the filters of clients and of the configuration, a few at a time.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use ident::ToolIdentifier;
use rawjson::RawJson;
use thiserror::Error;
use tokio::sync::Semaphore;

use super::Workbench;
use crate::{
    config::Config,
    downstream::{Exit, WorkerError, WorkerRun},
    jq::{Filter, worker},
    visible::visible,
};

/// The maximum number of filters that run at once. Others wait.
const MAX_RUNNING: usize = 4;
/// The time that a filter may take.
const MAX_TIME: Duration = Duration::from_secs(5);

/// The state for running filters.
pub(super) struct Filters {
    permits: Semaphore,
    /// Set if the configuration has a filter for any tool. Most have none, and calls cost nothing more than this check.
    has_defaults: AtomicBool,
}

/// The reason why a filter has no output.
#[derive(Debug, Error)]
pub(crate) enum SelectError {
    #[error("{0}")]
    Failed(String),
    #[error(
        "the filter needs more than 512 MiB of memory or 2 s of CPU time, or recurses too deeply"
    )]
    OverLimits,
    #[error("the filter {0}")]
    NotRun(#[from] WorkerError),
    #[error("the workbench is shutting down")]
    Closing,
}

impl Filters {
    pub(super) fn new(config: &Config) -> Self {
        Self {
            permits: Semaphore::new(MAX_RUNNING),
            has_defaults: AtomicBool::new(has_defaults(config)),
        }
    }

    pub(super) fn adapt(&self, config: &Config) {
        self.has_defaults
            .store(has_defaults(config), Ordering::Relaxed);
    }
}

/// Returns the filter that the configuration has for a tool.
pub(super) fn default_filter(workbench: &Workbench, tool: &ToolIdentifier) -> Option<Filter> {
    if !workbench.filters.has_defaults.load(Ordering::Relaxed) {
        return None;
    }
    let config = workbench.config();
    let toolbox = config.toolboxes.get(&tool.toolbox)?;
    let server = toolbox.servers.get(&tool.server)?;
    server.result_select.get(tool.tool.as_str()).cloned()
}

/// Applies a filter to a value, in a process of its own. Returns the outputs, one per line.
pub(super) async fn run(
    workbench: &Workbench,
    filter: &Filter,
    input: &RawJson,
) -> Result<String, SelectError> {
    // Each process may take 512 MiB.
    let permit = workbench.filters.permits.acquire().await;
    let _permit = permit.map_err(|_| SelectError::Closing)?;
    let head = worker::head(filter);
    let run = WorkerRun {
        argument: worker::WORKER_ARGUMENT,
        input: &[head.as_bytes(), input.as_bytes()],
        time: MAX_TIME,
        max_output_bytes: worker::MAX_OUTPUT_BYTES,
    };
    let end = workbench.pool.run_worker(&run).await?;
    let output = String::from_utf8_lossy(&end.output);
    match end.exit {
        Exit::Code(0) => Ok(output.into_owned()),
        Exit::Code(code) if code == i32::from(worker::EXIT_FAILED) => {
            Err(SelectError::Failed(visible(&output).to_string()))
        }
        // The limits end a worker in several ways: by a signal, by an abort of the allocator, or by a full stack.
        Exit::Code(_) | Exit::Signal(_) | Exit::Closed => Err(SelectError::OverLimits),
    }
}

fn has_defaults(config: &Config) -> bool {
    let toolboxes = config.toolboxes.values();
    let mut servers = toolboxes.flat_map(|toolbox| toolbox.servers.values());
    servers.any(|server| !server.result_select.is_empty())
}
