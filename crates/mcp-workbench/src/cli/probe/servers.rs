//! Starting the servers of a configuration to see what they have: several at once, each by itself, in the order of
//! the file.

use std::{sync::Arc, time::Duration};

use tokio::{sync::Semaphore, task::JoinSet, time::Instant};

use super::client::Shell;
use crate::{
    call::ClientHandle,
    cli::terminal::Progress,
    config::Server,
    downstream::{ConnectError, ServerHandle, ToolList, Urgency},
    ident::ToolboxName,
    visible::visible,
    workbench::Workbench,
};

/// How many servers are started at once: starting is hard work for a machine, and each has a time limit.
const AT_ONCE: usize = 8;

/// What was found of a server.
pub(in crate::cli) struct Probed {
    /// Its toolbox.
    pub(in crate::cli) toolbox: ToolboxName,
    /// Its entry.
    pub(in crate::cli) server: Arc<Server>,
    /// Its tools, or why it is not up.
    pub(in crate::cli) tools: Result<Arc<ToolList>, Arc<ConnectError>>,
    /// How long its start took.
    pub(in crate::cli) took: Duration,
}

/// Starts the servers of a toolbox, or of all where none is chosen, and shows how it goes.
pub(in crate::cli) async fn look_at(
    workbench: &Workbench,
    chosen: Option<&str>,
    progress: &Progress,
) -> Vec<Probed> {
    let places = Arc::new(Semaphore::new(AT_ONCE));
    let mut looking = JoinSet::new();
    for name in workbench.toolbox_names() {
        let wanted = chosen.is_none_or(|chosen| chosen == name.as_str());
        let toolbox = workbench.toolbox(name.as_str());
        let Some(toolbox) = toolbox.filter(|_| wanted) else {
            continue;
        };
        for (server, handle) in toolbox
            .config()
            .servers
            .values()
            .zip(toolbox.servers().values())
        {
            let number = looking.len();
            let (places, progress) = (Arc::clone(&places), progress.clone());
            let label = format!(
                "{}/{}",
                visible(name.as_str()),
                visible(server.name.as_str())
            );
            let (toolbox, server, handle) = (name.clone(), Arc::clone(server), handle.clone());
            looking.spawn(async move {
                let _place = places.acquire().await;
                progress.begin(number, &label);
                let (tools, took) = start(&handle, &progress).await;
                progress.done(number);
                let probed = Probed {
                    toolbox,
                    server,
                    tools,
                    took,
                };
                (number, probed)
            });
        }
    }
    let mut found = progress.during(looking.join_all()).await;
    found.sort_by_key(|(number, _)| *number);
    found.into_iter().map(|(_, probed)| probed).collect()
}

async fn start(
    server: &ServerHandle,
    progress: &Progress,
) -> (Result<Arc<ToolList>, Arc<ConnectError>>, Duration) {
    let client: Arc<dyn ClientHandle> = Arc::new(Shell::onlooker(progress.clone()));
    let began = Instant::now();
    let tools = server.connect(Urgency::AskedFor, client).await;
    (tools, began.elapsed())
}
