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
            let look = Look {
                number: looking.len(),
                toolbox: name.clone(),
                server: Arc::clone(server),
                handle,
            };
            looking.spawn(look.take(Arc::clone(&places), progress.clone()));
        }
    }
    progress.expect(looking.len());
    let mut found = progress.during(looking.join_all()).await;
    found.sort_by_key(|(number, _)| *number);
    found.into_iter().map(|(_, probed)| probed).collect()
}

/// A look at one server.
struct Look {
    /// Its place among the others.
    number: usize,
    toolbox: ToolboxName,
    server: Arc<Server>,
    handle: Arc<ServerHandle>,
}

impl Look {
    /// Waits for a place among those that are started at once, and starts the server.
    async fn take(self, places: Arc<Semaphore>, progress: Progress) -> (usize, Probed) {
        let _place = places.acquire().await;
        let name = format!("{}/{}", self.toolbox, self.server.name);
        progress.begin(self.number, &visible(&name));
        let (tools, took) = start(&self.handle, &progress).await;
        progress.done(self.number);
        let probed = Probed {
            toolbox: self.toolbox,
            server: self.server,
            tools,
            took,
        };
        (self.number, probed)
    }
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
