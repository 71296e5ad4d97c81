//! All servers of a configuration. Each gets a task when it is first needed; the process starts when the task gets a
//! command.

use std::{
    sync::{Arc, Mutex, MutexGuard, OnceLock},
    time::Duration,
};

use ident::{ServerIdentifier, ToolboxName};
use rawjson::RawJson;
use serde_json::json;
use tokio::{
    sync::broadcast,
    time::{Instant, timeout},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tracing::Instrument;

use super::{
    deferred_writes::DeferredWrites,
    event::{Change, ServerEvent},
    introduction::ServerFamily,
    link::LinkContext,
    oauth::OAuthContext,
    process::{
        ProcessTable,
        worker::{WorkerEnd, WorkerError, WorkerRun, run_worker},
    },
    protocol::tasks::open_task,
    server::{ServerHandle, Status},
    supervisor::{Supervisor, SupervisorContext, adapt::Entry},
    tool_cache::ToolCache,
};
use crate::{
    call::Principal,
    config::{Config, Server},
    lock::Pins,
    offload::run_blocking,
    sync::lock,
};

/// How long the shutdown waits for all processes: a little more than ending one takes.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(4500);

/// How many events a slow subscriber may lag behind before it misses some.
const EVENT_CAPACITY: usize = 256;

/// Decides if a server with an unchanged entry is replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Renewal {
    IfNeeded,
    /// It is replaced: something that its entry refers to has changed.
    Always,
}

/// The tasks of all servers.
pub(crate) struct Pool {
    tasks: TaskTracker,
    /// The settings for questions of servers.
    questions: Mutex<QuestionRules>,
    context: SupervisorContext,
}

impl Pool {
    /// Creates a pool for a configuration, without servers.
    pub(crate) fn new(config: &Config) -> Self {
        let tasks = TaskTracker::new();
        let shutdown = Arc::new(Shutdown::default());
        let processes = ProcessTable::new(tasks.clone());
        let pins = Arc::new(Pins::new(config));
        let links = LinkContext {
            processes,
            tasks: tasks.clone(),
            oauth: OAuthContext::of(config),
        };
        Self {
            tasks: tasks.clone(),
            questions: Mutex::new(QuestionRules::of(config)),
            context: SupervisorContext {
                links,
                deferred_writes: Arc::new(DeferredWrites::new(
                    tasks.clone(),
                    Arc::clone(&shutdown),
                )),
                shutdown,
                events: broadcast::channel(EVENT_CAPACITY).0,
                tool_cache: Arc::new(ToolCache::new(
                    Arc::clone(pins.cache()),
                    config.state.as_deref(),
                )),
                sealer: Arc::default(),
                pins,
            },
        }
    }

    /// Creates the task of a server. The server starts when the task gets its first command. The task ends when its
    /// last handle is dropped; every pending call holds one.
    pub(crate) fn add(&self, toolbox: &ToolboxName, server: &Arc<Server>) -> ServerHandle {
        self.run(toolbox, server, Status::default())
    }

    /// Updates a server to its current entry if it is reached as before; otherwise creates a new server that replaces
    /// it. Calls of the old one continue.
    pub(crate) fn renew(
        &self,
        toolbox: &ToolboxName,
        handle: &ServerHandle,
        server: &Arc<Server>,
        renewal: Renewal,
    ) -> Option<ServerHandle> {
        let entry = self.entry(toolbox, server);
        let before = handle.entry();
        let same_way =
            before.server.transport == server.transport && before.server.era == server.era;
        match renewal {
            Renewal::IfNeeded if *before == entry => None,
            Renewal::IfNeeded if same_way => {
                handle.adapt(entry);
                None
            }
            Renewal::IfNeeded | Renewal::Always => {
                let successor = self.run(toolbox, server, handle.outlook(server));
                handle.hand_over_to(&successor);
                Some(successor)
            }
        }
    }

    /// Adopts the settings of a changed configuration that concern all servers. Running servers get them at their
    /// next start.
    pub(crate) fn adapt(&self, config: &Config) {
        *self.questions() = QuestionRules::of(config);
        self.context.pins.adapt(config);
    }

    fn run(&self, toolbox: &ToolboxName, server: &Arc<Server>, known: Status) -> ServerHandle {
        let entry = self.entry(toolbox, server);
        let (supervisor, handle) = Supervisor::new(toolbox, entry, known, self.context.clone());
        let span = tracing::info_span!("server", %toolbox, server = %server.name);
        self.tasks.spawn(supervisor.run().instrument(span));
        handle
    }

    fn entry(&self, toolbox: &ToolboxName, server: &Arc<Server>) -> Entry {
        let questions = self.questions();
        Entry {
            toolbox: toolbox.clone(),
            server: Arc::clone(server),
            roots: questions.roots.clone(),
            names_asker: questions.names_asker,
        }
    }

    fn questions(&self) -> MutexGuard<'_, QuestionRules> {
        lock(&self.questions)
    }

    /// Returns the server of a task and its own name for the task, from the name that this principal got; `None` if
    /// the principal did not get it.
    pub(crate) fn open_task(
        &self,
        sealed: &str,
        principal: Principal,
    ) -> Option<(ServerIdentifier, String)> {
        open_task(&self.context.sealer, sealed, principal)
    }

    /// Runs this program as a short-lived process.
    pub(crate) async fn run_worker(&self, run: &WorkerRun<'_>) -> Result<WorkerEnd, WorkerError> {
        run_worker(&self.context.links.processes, run).await
    }

    /// Subscribes to the events of all servers.
    pub(crate) fn events(&self) -> broadcast::Receiver<ServerEvent> {
        self.context.events.subscribe()
    }

    /// Announces that the prompts or resources of a server may have changed.
    pub(crate) fn announce(&self, server: &ServerIdentifier, families: &[ServerFamily]) {
        for family in families {
            let change = match family {
                ServerFamily::Prompts => Change::Prompts,
                ServerFamily::Resources => Change::Resources,
                ServerFamily::Completions | ServerFamily::Logging => continue,
            };
            // Without subscribers the event is dropped.
            let _ = self.context.events.send(ServerEvent {
                server: server.clone(),
                change,
            });
        }
    }

    pub(crate) fn pins(&self) -> &Arc<Pins> {
        &self.context.pins
    }

    /// Writes first contacts and reported changes in the background.
    pub(crate) fn record_soon(&self) {
        let pins = Arc::clone(&self.context.pins);
        if pins.has_news() {
            self.context.deferred_writes.add(move || pins.record());
        }
    }

    /// Runs a task that ends with the servers.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(task);
    }

    /// Ends all servers. Their deadlines count from `since`, the begin of the shutdown.
    pub(crate) async fn shut_down(&self, since: Instant) {
        self.context.links.processes.closing_since(since);
        self.context.shutdown.begin(since);
        let pins = Arc::clone(&self.context.pins);
        if pins.has_news() {
            self.tasks.spawn(async move {
                if let Err(error) = run_blocking(move || pins.record()).await {
                    tracing::warn!("failed to write the lock file: {error}");
                }
            });
        }
        self.tasks.close();
        let left = (since + SHUTDOWN_TIMEOUT).saturating_duration_since(Instant::now());
        if timeout(left, self.tasks.wait()).await.is_err() {
            tracing::warn!("timed out stopping some servers");
        }
        self.context.links.processes.sweep_all().await;
    }
}

/// The settings for questions of all servers.
struct QuestionRules {
    /// The answer to `roots/list`, if the configuration gives it.
    roots: Option<RawJson>,
    /// Set if questions name the server that asks.
    names_asker: bool,
}

impl QuestionRules {
    fn of(config: &Config) -> Self {
        Self {
            roots: roots_of(config),
            names_asker: config.names_asker(),
        }
    }
}

/// Returns the answer to `roots/list`, if the configuration gives it.
fn roots_of(config: &Config) -> Option<RawJson> {
    let roots = config.roots.as_ref()?;
    let roots: Vec<_> = roots.iter().map(|uri| json!({ "uri": uri })).collect();
    Some(RawJson::of(&json!({ "roots": roots })))
}

/// The shutdown signal for the servers.
#[derive(Default)]
pub(crate) struct Shutdown {
    token: CancellationToken,
    since: OnceLock<Instant>,
}

impl Shutdown {
    fn begin(&self, since: Instant) {
        let _ = self.since.set(since);
        self.token.cancel();
    }

    pub(crate) fn has_begun(&self) -> bool {
        self.token.is_cancelled()
    }

    pub(crate) async fn begun(&self) {
        self.token.cancelled().await;
    }

    /// Returns when the shutdown began; now, if it has not.
    pub(crate) fn since(&self) -> Instant {
        self.since.get().copied().unwrap_or_else(Instant::now)
    }
}
