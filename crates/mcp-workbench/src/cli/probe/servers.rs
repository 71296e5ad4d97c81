//! Starts the servers of a configuration to list their tools: several in parallel, results in the order of the
//! file.

use std::{sync::Arc, time::Duration};

use ident::ToolboxName;
use tokio::{sync::Semaphore, task::JoinSet, time::Instant};

use super::client::ShellClient;
use crate::{
    call::ClientHandle,
    cli::{host::Sharing, terminal::Progress},
    config::Server,
    downstream::{ConnectError, Phase, ServerHandle, ToolList, Urgency, load_cached_lists},
    visible::visible,
    workbench::Workbench,
};

/// The number of servers started in parallel. A start is expensive and has a time limit, so too many at once
/// would time out.
const MAX_PARALLEL_STARTS: usize = 8;

/// The result of starting a server.
pub(in crate::cli) struct ProbeResult {
    pub(in crate::cli) toolbox: ToolboxName,
    pub(in crate::cli) server: Arc<Server>,
    /// Its tools, or the reason why it failed.
    pub(in crate::cli) tools: Result<Arc<ToolList>, Arc<ConnectError>>,
    pub(in crate::cli) took: Duration,
    /// Set if the server runs already and was not started again.
    pub(in crate::cli) is_hosted: bool,
}

impl ProbeResult {
    /// Returns true if the command stopped before the server was up or had failed.
    pub(in crate::cli) fn is_unfinished(&self) -> bool {
        matches!(&self.tools, Err(error) if matches!(**error, ConnectError::StillStarting))
    }
}

/// Starts the servers of a toolbox, or of all toolboxes, and shows progress.
pub(in crate::cli) async fn probe_servers(
    workbench: &Workbench,
    chosen: Option<&str>,
    progress: &Progress,
) -> Vec<ProbeResult> {
    let tasks = probe_tasks(workbench, chosen);
    run_tasks(&tasks, progress, std::future::pending()).await
}

/// Starts the servers of a toolbox, or of all toolboxes, except those that are up in the host.
pub(in crate::cli) async fn probe_others(
    workbench: &Workbench,
    chosen: Option<&str>,
    sharing: Option<&Sharing>,
    progress: &Progress,
) -> Vec<ProbeResult> {
    let mut tasks = probe_tasks(workbench, chosen);
    use_hosted(&mut tasks, sharing).await;
    run_tasks(&tasks, progress, std::future::pending()).await
}

/// Starts all servers that are not up in the host, until `stop` is ready. A server that is neither up nor failed by then is
/// reported as [`ConnectError::StillStarting`].
pub(in crate::cli) async fn probe_others_until(
    workbench: &Workbench,
    sharing: Option<&Sharing>,
    progress: &Progress,
    stop: impl Future<Output = ()>,
) -> Vec<ProbeResult> {
    let mut tasks = probe_tasks(workbench, None);
    use_hosted(&mut tasks, sharing).await;
    run_tasks(&tasks, progress, stop).await
}

/// Returns the tools that a running workbench knows. Servers whose tools it does not know are started, until `stop` is
/// ready.
pub(in crate::cli) async fn known_servers(
    workbench: &Workbench,
    progress: &Progress,
    stop: impl Future<Output = ()>,
) -> Vec<ProbeResult> {
    let mut tasks = probe_tasks(workbench, None);
    load_cached_lists(tasks.iter().map(|task| &*task.handle)).await;
    for task in &mut tasks {
        let status = task.handle.status();
        task.known = match (status.tools, status.phase) {
            (Some(tools), _) => Some(Ok(tools)),
            (None, Phase::Failed(error)) => Some(Err(error)),
            (None, _) => None,
        };
    }
    run_tasks(&tasks, progress, stop).await
}

/// Takes the tools of servers that are up in the host from the cache.
async fn use_hosted(tasks: &mut [ProbeTask], sharing: Option<&Sharing>) {
    let Some(sharing) = sharing else { return };
    let is_hosted = |task: &&mut ProbeTask| sharing.is_up(&task.handle);
    let mut hosted: Vec<&mut ProbeTask> = tasks.iter_mut().filter(is_hosted).collect();
    load_cached_lists(hosted.iter().map(|task| &*task.handle)).await;
    for task in &mut hosted {
        // A server that cannot be cached is started.
        task.known = task.handle.status().tools.map(Ok);
    }
}

/// Returns a task for each server to start, in the order of the file.
fn probe_tasks(workbench: &Workbench, chosen: Option<&str>) -> Vec<ProbeTask> {
    let mut tasks = Vec::new();
    let config = workbench.config();
    for (name, toolbox) in &config.toolboxes {
        let wanted = chosen.is_none_or(|chosen| chosen == name.as_str());
        let Some(handles) = workbench.toolbox(name.as_str()).filter(|_| wanted) else {
            continue;
        };
        for server in toolbox.servers.values() {
            let Some(handle) = handles.server(&server.name) else {
                continue;
            };
            tasks.push(ProbeTask {
                number: tasks.len(),
                toolbox: name.clone(),
                server: Arc::clone(server),
                handle,
                known: None,
            });
        }
    }
    tasks
}

async fn run_tasks(
    tasks: &[ProbeTask],
    progress: &Progress,
    stop: impl Future<Output = ()>,
) -> Vec<ProbeResult> {
    let slots = Arc::new(Semaphore::new(MAX_PARALLEL_STARTS));
    let mut running = JoinSet::new();
    for task in tasks {
        running.spawn(task.clone().run(Arc::clone(&slots), progress.clone()));
    }
    progress.expect(tasks.len());
    let began = Instant::now();
    let mut found: Vec<Option<ProbeResult>> = tasks.iter().map(|_| None).collect();
    let all = async {
        while let Some(finished) = running.join_next().await {
            // The panic has been reported already; the server counts as not finished.
            if let Ok((number, probed)) = finished {
                found[number] = Some(probed);
            }
        }
    };
    let all = progress.during(all);
    tokio::select! {
        // Results that are ready when `stop` fires still count.
        biased;
        () = all => {}
        () = stop => {}
    }
    let found = found
        .into_iter()
        .zip(tasks)
        .map(|(probed, task)| probed.unwrap_or_else(|| task.unfinished(began)));
    found.collect()
}

/// The task of starting one server.
#[derive(Clone)]
struct ProbeTask {
    /// The index in the list of servers.
    number: usize,
    toolbox: ToolboxName,
    server: Arc<Server>,
    handle: Arc<ServerHandle>,
    /// The result for a server that need not be started.
    known: Option<Result<Arc<ToolList>, Arc<ConnectError>>>,
}

impl ProbeTask {
    /// Waits for a free slot and starts the server.
    async fn run(self, slots: Arc<Semaphore>, progress: Progress) -> (usize, ProbeResult) {
        if let Some(tools) = self.known {
            let probed = ProbeResult {
                toolbox: self.toolbox,
                server: self.server,
                tools,
                took: Duration::ZERO,
                is_hosted: true,
            };
            progress.done(self.number);
            return (self.number, probed);
        }
        // Held until the server is up or has failed.
        let _slot = slots.acquire().await;
        let name = format!("{}/{}", self.toolbox, self.server.name);
        progress.begin(self.number, &visible(&name));
        let (tools, took) = start(&self.handle, &progress).await;
        progress.done(self.number);
        let probed = ProbeResult {
            toolbox: self.toolbox,
            server: self.server,
            tools,
            took,
            is_hosted: false,
        };
        (self.number, probed)
    }

    /// Returns the result for a server that did not finish.
    fn unfinished(&self, since: Instant) -> ProbeResult {
        ProbeResult {
            toolbox: self.toolbox.clone(),
            server: Arc::clone(&self.server),
            tools: Err(Arc::new(ConnectError::StillStarting)),
            took: since.elapsed(),
            is_hosted: false,
        }
    }
}

async fn start(
    server: &ServerHandle,
    progress: &Progress,
) -> (Result<Arc<ToolList>, Arc<ConnectError>>, Duration) {
    let client: Arc<dyn ClientHandle> = Arc::new(ShellClient::observer(progress.clone()));
    let began = Instant::now();
    let tools = server.connect(Urgency::AskedFor, client).await;
    (tools, began.elapsed())
}
