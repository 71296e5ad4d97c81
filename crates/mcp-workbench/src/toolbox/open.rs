//! Opening a toolbox: all of its servers at once, whatever is up after a while, and from memory for as
//! long as nothing has changed.

use std::{
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::Duration,
};

use indexmap::IndexMap;
use tokio::{
    sync::watch,
    time::{Instant, timeout_at},
};

use super::{
    opened::{Opened, ServerFailure},
    render::render,
};
use crate::{
    call::ClientHandle,
    config,
    downstream::{ConnectError, Phase, Pool, ServerHandle, Status, ToolList, Urgency},
    ident::ServerName,
};

/// How long an open waits in all. Most clients give up after a minute.
const OPEN_WAIT: Duration = Duration::from_secs(45);

/// A toolbox of the configuration, and what has become of it.
pub struct Toolbox {
    config: Arc<config::Toolbox>,
    pool: Arc<Pool>,
    /// Made when the toolbox is first opened: what nobody opens costs nothing.
    servers: OnceLock<IndexMap<ServerName, ServerHandle>>,
    opened: Mutex<Option<Arc<Opened>>>,
    /// How many callers are opening it right now.
    opening: watch::Sender<usize>,
}

/// Why a toolbox could not be opened: no server of it is up.
#[derive(Debug)]
pub struct OpenError {
    /// Each server with its reason.
    pub failures: Vec<ServerFailure>,
}

impl Toolbox {
    /// A toolbox that nobody has opened.
    pub fn new(config: Arc<config::Toolbox>, pool: Arc<Pool>) -> Self {
        Self {
            config,
            pool,
            servers: OnceLock::new(),
            opened: Mutex::new(None),
            opening: watch::channel(0).0,
        }
    }

    /// What the configuration says of it.
    pub fn config(&self) -> &config::Toolbox {
        &self.config
    }

    /// Its servers, in the order of the file.
    pub fn servers(&self) -> &IndexMap<ServerName, ServerHandle> {
        self.servers.get_or_init(|| {
            let servers = self.config.servers.iter();
            servers
                .map(|(name, server)| (name.clone(), self.pool.add(&self.config.name, server)))
                .collect()
        })
    }

    /// Runs something beside its servers that ends when they do.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.pool.spawn(task);
    }

    /// What was found when it was last opened.
    pub fn opened(&self) -> Option<Arc<Opened>> {
        self.opened
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// The tools of its servers as they are known now; nothing while it is not open.
    pub fn catalogue(&self) -> Vec<(ServerName, Arc<ToolList>)> {
        if self.opened().is_none() {
            return Vec::new();
        }
        let servers = self.servers().iter();
        let known =
            servers.filter_map(|(name, server)| Some((name.clone(), server.status().tools?)));
        known.collect()
    }

    /// Whether it is open; waits for an open that is under way.
    pub async fn is_open(&self) -> bool {
        if self.opened().is_none() {
            let mut opening = self.opening.subscribe();
            // The sender lives as long as the toolbox.
            let _ = opening.wait_for(|count| *count == 0).await;
        }
        self.opened().is_some()
    }

    /// Connects to what is not connected, and tells what there is. Two callers at the same time
    /// connect once, because each server's task does.
    pub async fn open(&self, client: &Arc<dyn ClientHandle>) -> Result<Arc<Opened>, OpenError> {
        let _counted = Opening::begin(&self.opening);
        if let Some(opened) = self.opened()
            && self.is_current(&opened)
        {
            return Ok(opened);
        }
        let (catalogue, failures) = self.connect_all(client).await;
        if catalogue.is_empty() && !failures.is_empty() && failures.iter().all(is_final) {
            // One that was open stays open: its next call tries to start the server again.
            return Err(OpenError { failures });
        }
        let opened = match self.opened() {
            // Another caller has just found the same.
            Some(opened)
                if same(&opened, &catalogue)
                    && failures.is_empty()
                    && opened.failures.is_empty() =>
            {
                opened
            }
            _ => Arc::new(Opened {
                result: render(&self.config, &catalogue, &failures),
                catalogue,
                failures,
            }),
        };
        self.set_opened(&opened);
        Ok(opened)
    }

    /// Whether nothing has changed since.
    fn is_current(&self, opened: &Opened) -> bool {
        opened.failures.is_empty()
            && self
                .servers()
                .iter()
                .zip(&opened.catalogue)
                .all(|((_, server), (_, tools))| {
                    let status = server.status();
                    !status.stale
                        && !matches!(status.phase, Phase::Failed(_))
                        && status
                            .tools
                            .is_some_and(|current| Arc::ptr_eq(&current, tools))
                })
    }

    async fn connect_all(
        &self,
        client: &Arc<dyn ClientHandle>,
    ) -> (Vec<(ServerName, Arc<ToolList>)>, Vec<ServerFailure>) {
        let deadline = Instant::now() + OPEN_WAIT;
        let requests = self
            .servers()
            .iter()
            .map(|(name, server)| (name, ask(server, client)));
        let requests: Vec<_> = requests.collect();
        let mut catalogue = Vec::new();
        let mut failures = Vec::new();
        for (name, request) in requests {
            let answer = match request {
                Request::Known(tools) => Ok(tools),
                Request::Asked(answer) => timeout_at(deadline, answer)
                    .await
                    .unwrap_or_else(|_| Err(Arc::new(ConnectError::StillStarting))),
            };
            match answer {
                Ok(tools) => catalogue.push((name.clone(), tools)),
                Err(error) => failures.push(ServerFailure {
                    toolbox: self.config.name.clone(),
                    server: name.clone(),
                    error,
                }),
            }
        }
        (catalogue, failures)
    }

    fn set_opened(&self, opened: &Arc<Opened>) {
        *self.opened.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(opened));
    }
}

/// What has to be asked of a server to know its tools.
enum Request<F> {
    /// Nothing.
    Known(Arc<ToolList>),
    /// To be up.
    Asked(F),
}

/// A server that has ended since is not started again for this: its list is still true.
fn ask(
    server: &ServerHandle,
    client: &Arc<dyn ClientHandle>,
) -> Request<impl Future<Output = Result<Arc<ToolList>, Arc<ConnectError>>> + use<>> {
    match server.status() {
        Status {
            phase: Phase::Up | Phase::Resting,
            tools: Some(tools),
            stale: false,
        } => Request::Known(tools),
        _ => Request::Asked(server.connect(Urgency::AskedFor, Arc::clone(client))),
    }
}

/// Whether the failure is one that another moment would not have cured.
fn is_final(failure: &ServerFailure) -> bool {
    !matches!(*failure.error, ConnectError::StillStarting)
}

fn same(opened: &Opened, catalogue: &[(ServerName, Arc<ToolList>)]) -> bool {
    opened.catalogue.len() == catalogue.len()
        && opened
            .catalogue
            .iter()
            .zip(catalogue)
            .all(|(one, other)| Arc::ptr_eq(&one.1, &other.1))
}

/// Counts a caller that is opening, for as long as it is.
struct Opening<'a>(&'a watch::Sender<usize>);

impl<'a> Opening<'a> {
    fn begin(count: &'a watch::Sender<usize>) -> Self {
        count.send_modify(|count| *count += 1);
        Self(count)
    }
}

impl Drop for Opening<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}
