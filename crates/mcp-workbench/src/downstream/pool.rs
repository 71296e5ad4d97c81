//! All servers of a configuration. Their tasks exist from the first need on; the processes start when
//! a task is asked for something.

use std::{
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::Duration,
};

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
    link::LinkContext,
    oauth::OAuthContext,
    process::ProcessTable,
    protocol::tasks::open_task,
    server::{ServerHandle, Status},
    supervisor::{Supervisor, SupervisorContext, adapt::Entry},
    tool_cache::ToolCache,
};
use crate::{
    call::Principal,
    config::{Config, Server},
    ident::{ServerIdentifier, ToolboxName},
    lock::Pins,
    offload::run_blocking,
};

/// How long the ends of all processes are waited for: a little more than the ladder takes.
const LAST_WAIT: Duration = Duration::from_millis(4500);

/// How many events a slow listener may be behind before it misses some.
const EVENTS: usize = 256;

/// Whether a server whose entry is as before is left alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Renewal {
    IfNeeded,
    /// It is not: something has changed that its entry only names.
    Always,
}

/// The tasks of all servers.
pub(crate) struct Pool {
    tasks: TaskTracker,
    /// What the configuration says about questions of servers.
    questions: Mutex<QuestionRules>,
    context: SupervisorContext,
}

impl Pool {
    /// A pool for a configuration, without servers.
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
                events: broadcast::channel(EVENTS).0,
                tool_cache: Arc::new(ToolCache::new(
                    Arc::clone(pins.cache()),
                    config.state.as_deref(),
                )),
                sealer: Arc::default(),
                pins,
            },
        }
    }

    /// Makes the task of a server. Nothing is started before it is asked for something, and it ends when its handle is
    /// dropped everywhere: whoever makes a call holds one.
    pub(crate) fn add(&self, toolbox: &ToolboxName, server: &Arc<Server>) -> ServerHandle {
        self.run(toolbox, server, Status::default())
    }

    /// Has a server take up its entry as it is now, if it is reached as before; else makes another one that takes its
    /// place. Calls of the old one are not touched.
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
                let heir = self.run(toolbox, server, handle.outlook(server));
                handle.hand_over_to(&heir);
                Some(heir)
            }
        }
    }

    /// Takes up what a changed configuration says that holds for all servers. Servers that run are told at their
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
        self.questions
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// The server of a task and its own name for it, from the name that was given out to this principal; nothing
    /// if it was not.
    pub(crate) fn open_task(
        &self,
        sealed: &str,
        principal: Principal,
    ) -> Option<(ServerIdentifier, String)> {
        open_task(&self.context.sealer, sealed, principal)
    }

    /// What servers tell everybody from now on.
    pub(crate) fn events(&self) -> broadcast::Receiver<ServerEvent> {
        self.context.events.subscribe()
    }

    /// Tells everybody that what a server has may be different now.
    pub(crate) fn announce(&self, server: &ServerIdentifier) {
        for change in [Change::Prompts, Change::Resources] {
            // Nobody listens in a mode that has no use for it.
            let _ = self.context.events.send(ServerEvent {
                server: server.clone(),
                change,
            });
        }
    }

    /// What is pinned of servers.
    pub(crate) fn pins(&self) -> &Arc<Pins> {
        &self.context.pins
    }

    /// Has first contacts written, and what has changed and was told, when nobody waits for it.
    pub(crate) fn record_soon(&self) {
        let pins = Arc::clone(&self.context.pins);
        if pins.has_news() {
            self.context.deferred_writes.add(move || pins.record());
        }
    }

    /// Runs something beside the servers that ends when they do.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(task);
    }

    /// Ends all servers. Their time counts from `since`, when the end of the workbench began.
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
        let left = (since + LAST_WAIT).saturating_duration_since(Instant::now());
        if timeout(left, self.tasks.wait()).await.is_err() {
            tracing::warn!("timed out stopping some servers");
        }
        self.context.links.processes.sweep_all().await;
    }
}

/// What the configuration says about questions of all servers.
struct QuestionRules {
    /// The answer to a question for roots, where the configuration gives it.
    roots: Option<RawJson>,
    /// Whether questions name the server that asks.
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

/// The answer to a server that asks for roots, where the configuration gives it.
fn roots_of(config: &Config) -> Option<RawJson> {
    let roots = config.roots.as_ref()?;
    let roots: Vec<_> = roots.iter().map(|uri| json!({ "uri": uri })).collect();
    Some(RawJson::of(&json!({ "roots": roots })))
}

/// The end of the workbench, as the servers see it.
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

    /// When it began; now, if it has not.
    pub(crate) fn since(&self) -> Instant {
        self.since.get().copied().unwrap_or_else(Instant::now)
    }
}
