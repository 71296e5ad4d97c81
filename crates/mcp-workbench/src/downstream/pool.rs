//! All servers of a configuration. Their tasks exist from the first need on; the processes start when
//! a task is asked for something.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use tokio::time::{Instant, timeout};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tracing::Instrument;

use super::{
    process::ProcessTable,
    server::{ServerHandle, Supervisor, SupervisorContext},
};
use crate::{config::Server, ident::ToolboxName};

/// How long the ends of all processes are waited for: a little more than the ladder takes.
const LAST_WAIT: Duration = Duration::from_millis(4500);

/// The tasks of all servers.
pub struct Pool {
    tasks: TaskTracker,
    context: SupervisorContext,
}

impl Pool {
    /// A pool without servers.
    pub fn new() -> Self {
        let tasks = TaskTracker::new();
        let shutdown = Arc::new(Shutdown::default());
        let processes = ProcessTable::new(tasks.clone());
        Self {
            tasks,
            context: SupervisorContext {
                processes,
                shutdown,
            },
        }
    }

    /// Makes the task of a server. Nothing is started before it is asked for something.
    pub fn add(&self, toolbox: &ToolboxName, server: &Arc<Server>) -> ServerHandle {
        let (supervisor, handle) = Supervisor::new(Arc::clone(server), self.context.clone());
        let span = tracing::info_span!("server", %toolbox, server = %server.name);
        self.tasks.spawn(supervisor.run().instrument(span));
        handle
    }

    /// Runs something beside the servers that ends when they do.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(task);
    }

    /// Ends all servers. Their time counts from `since`, when the end of the workbench began.
    pub async fn shut_down(&self, since: Instant) {
        self.context.shutdown.begin(since);
        self.tasks.close();
        let left = (since + LAST_WAIT).saturating_duration_since(Instant::now());
        if timeout(left, self.tasks.wait()).await.is_err() {
            tracing::warn!("some servers could not be ended in time");
        }
        self.context.processes.sweep_all().await;
    }
}

impl Default for Pool {
    fn default() -> Self {
        Self::new()
    }
}

/// The end of the workbench, as the servers see it.
#[derive(Default)]
pub(super) struct Shutdown {
    token: CancellationToken,
    since: OnceLock<Instant>,
}

impl Shutdown {
    fn begin(&self, since: Instant) {
        let _ = self.since.set(since);
        self.token.cancel();
    }

    pub(super) fn has_begun(&self) -> bool {
        self.token.is_cancelled()
    }

    pub(super) async fn begun(&self) {
        self.token.cancelled().await;
    }

    /// When it began; now, if it has not.
    pub(super) fn since(&self) -> Instant {
        self.since.get().copied().unwrap_or_else(Instant::now)
    }
}
