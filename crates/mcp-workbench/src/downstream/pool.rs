//! The servers of one client. Each gets a task when it is first needed; the process starts when the task gets a command.
//! The pools of a process share everything but their settings, and a server if it is defined alike for both.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, OnceLock},
    time::Duration,
};

use ident::{ServerIdentifier, ToolboxName};
use rawjson::RawJson;
use serde_json::json;
use tokio::{
    sync::{broadcast, watch},
    time::{Instant, timeout},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tracing::Instrument;

use super::{
    deferred_writes::DeferredWrites,
    event::{Change, EventSource, Events, ServerEvent},
    instances::{InstanceUse, ViewId, difference, scope_of},
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
    call::{ClientCapabilities, ExtensionSet, Principal},
    config::{Config, NotShared, Server, Share, ToolMode},
    era::Era,
    events::Events as EventStream,
    lock::Pins,
    oauth::{CredentialOwner, UserCredentials, UserSignIns},
    offload::run_blocking,
    seal::Sealer,
    store::Store,
    sync::lock,
};

/// How long the shutdown waits for all processes: a little more than ending one takes.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(4500);

/// How many events a slow subscriber may lag behind before it misses some.
const EVENT_CAPACITY: usize = 256;

/// The rule for replacing a server whose entry has not changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Renewal {
    IfNeeded,
    /// It is replaced: something that its entry refers to has changed.
    Always,
}

/// The client that a pool belongs to.
pub(crate) struct View {
    pub(super) id: ViewId,
    /// The folder in which the client was started.
    pub(super) folder: PathBuf,
    /// Set if its servers may be those of other clients too.
    pub(super) shares: bool,
    kind: ClientKind,
    /// The owner of the credentials for servers where every user has their own.
    owner: CredentialOwner,
    /// The capabilities that the client declared first.
    declared: OnceLock<RawJson>,
    /// The extensions that all clients of the view declare, if it has several clients.
    extensions: Option<ExtensionSet>,
}

/// The kind of a client that shares servers with others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClientKind {
    Client,
    /// A command of the user, which ends soon. It joins servers of clients that declare other capabilities, because the user wants
    /// to see those; a question that it cannot answer is refused.
    Command,
}

impl View {
    fn new(config: &Config, kind: ClientKind, owner: CredentialOwner) -> Self {
        Self {
            kind,
            owner,
            declared: OnceLock::new(),
            extensions: None,
            id: ViewId::next(),
            folder: config.start_directory.clone(),
            // In native mode clients send subscriptions and log levels to the servers, and these belong to one client.
            shares: !matches!(config.tool_mode, ToolMode::Native(_)),
        }
    }

    /// Returns the capabilities that a server gets, if it may be shared.
    fn declared_to(&self, share: Share) -> Option<RawJson> {
        let declared = self.declared.get().filter(|_| self.shares)?;
        (share != Share::Client).then(|| declared.clone())
    }
}

/// The servers of one client.
pub(crate) struct Pool {
    view: View,
    tasks: TaskTracker,
    /// The settings for questions of servers.
    questions: Mutex<QuestionRules>,
    context: SupervisorContext,
}

impl Pool {
    /// Creates the first pool of a process, without servers.
    pub(crate) fn new(
        config: &Config,
        owner: CredentialOwner,
        observed: &Arc<EventStream>,
    ) -> Self {
        let tasks = TaskTracker::new();
        let sealer = Sealer::new(config.seal.as_ref());
        let store = config
            .store
            .as_ref()
            .map(|address| Store::connect(address, sealer.clone()));
        let shutdown = Arc::new(Shutdown::default());
        let processes = ProcessTable::new(tasks.clone());
        let pins = Arc::new(Pins::new(config));
        let links = LinkContext {
            processes,
            tasks: tasks.clone(),
            oauth: OAuthContext::of(config, &sealer, store.as_ref()),
        };
        Self {
            view: View::new(config, ClientKind::Client, owner),
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
                observed: Arc::clone(observed),
                tool_cache: Arc::new(ToolCache::new(
                    Arc::clone(pins.cache()),
                    config.state.as_deref(),
                )),
                sealer,
                store,
                instances: Arc::default(),
                pins,
            },
        }
    }

    /// Creates the pool of another client of the same process.
    pub(crate) fn for_client(&self, config: &Config, kind: ClientKind) -> Self {
        self.beside(config, kind, self.view.owner.clone())
    }

    /// Creates the pool of a user of the same process.
    pub(crate) fn for_user(&self, config: &Config, user: &Arc<UserCredentials>) -> Self {
        let owner = CredentialOwner::User(Arc::clone(user));
        self.beside(config, ClientKind::Client, owner)
    }

    /// Creates the pool of the clients of this one that declare the same extensions.
    pub(crate) fn for_extensions(&self, config: &Config, set: ExtensionSet) -> Self {
        let mut pool = self.for_client(config, ClientKind::Client);
        pool.view.extensions = Some(set);
        pool
    }

    fn beside(&self, config: &Config, kind: ClientKind, owner: CredentialOwner) -> Self {
        self.context.pins.adapt(config);
        Self {
            view: View::new(config, kind, owner),
            tasks: self.tasks.clone(),
            questions: Mutex::new(QuestionRules::of(config)),
            context: self.context.clone(),
        }
    }

    /// Returns the id of the client.
    pub(crate) fn view(&self) -> ViewId {
        self.view.id
    }

    /// Records the capabilities of the client, unless it has declared some before. They decide which servers it shares.
    pub(crate) fn declare(&self, capabilities: &ClientCapabilities, era: Era) {
        let declared = || capabilities.announced(era).minified();
        self.view.declared.get_or_init(declared);
    }

    /// Returns the servers of all clients of this process.
    pub(crate) fn all_instances(&self) -> Vec<InstanceUse> {
        self.context.instances.all()
    }

    /// Returns the server of an entry: one of another client that is defined alike, or a new one. A new server starts
    /// when its task gets the first command. The task ends when the last handle is dropped; every pending call holds
    /// one.
    pub(crate) fn add(&self, toolbox: &ToolboxName, server: &Arc<Server>) -> ServerHandle {
        let entry = self.entry(toolbox, server);
        self.join(&entry, false)
            .unwrap_or_else(|| self.run(toolbox, entry, Status::default(), false))
    }

    /// Updates a server to its current entry if it is reached as before; otherwise creates a new server that replaces
    /// it. Calls of the old server continue.
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
            Renewal::IfNeeded if difference(&before, &entry).is_none() => None,
            Renewal::IfNeeded => {
                // Another client may have applied the new file already.
                if let Some(joined) = self.join(&entry, handle.asks_back()) {
                    self.leave(handle);
                    return Some(joined);
                }
                // Another client may resolve the new file to something else, so that its server stays as it is.
                if same_way && self.is_only_user(handle) {
                    handle.adapt(entry);
                    return None;
                }
                Some(self.replace(handle, toolbox, entry))
            }
            Renewal::Always => Some(self.replace(handle, toolbox, entry)),
        }
    }

    /// Replaces a server that is reserved for another client because it asks back.
    pub(crate) fn separate(&self, handle: &ServerHandle) -> Option<ServerHandle> {
        if !self
            .context
            .instances
            .is_reserved_for_another(handle.number(), self.view.id)
        {
            return None;
        }
        let entry = handle.entry();
        let own = self.entry(&entry.toolbox, &entry.server);
        Some(self.replace(handle, &entry.toolbox, own))
    }

    fn replace(&self, old: &ServerHandle, toolbox: &ToolboxName, entry: Entry) -> ServerHandle {
        // Until the new server is up, its tools are those of the old one.
        let known = old.outlook(&entry.server);
        let successor = self.run(toolbox, entry, known, old.asks_back());
        // The new server gets the subscriptions and log levels of clients.
        old.hand_over_to(&successor);
        self.leave(old);
        successor
    }

    /// Records that the client no longer uses a server.
    fn leave(&self, server: &ServerHandle) {
        self.context.instances.leave(server.number(), self.view.id);
    }

    /// Returns the server of another client that is defined alike.
    fn join(&self, entry: &Entry, asks_back: bool) -> Option<ServerHandle> {
        let scope = scope_of(entry, &self.view, asks_back);
        let instances = &self.context.instances;
        instances.join(&scope, self.view.id, |other| {
            match difference(other, entry) {
                Some(NotShared::Capabilities) => self.view.kind == ClientKind::Command,
                difference => difference.is_none(),
            }
        })
    }

    fn is_only_user(&self, handle: &ServerHandle) -> bool {
        self.context
            .instances
            .is_only_user(handle.number(), self.view.id)
    }

    /// Adopts the settings of a changed configuration that concern all servers. Running servers get them at their
    /// next start.
    pub(crate) fn adapt(&self, config: &Config) {
        *self.questions() = QuestionRules::of(config);
        self.context.pins.adapt(config);
    }

    fn run(
        &self,
        toolbox: &ToolboxName,
        entry: Entry,
        known: Status,
        asks_back: bool,
    ) -> ServerHandle {
        let scope = scope_of(&entry, &self.view, asks_back);
        let span = tracing::info_span!("server", %toolbox, server = %entry.server.name);
        let (supervisor, handle) = Supervisor::new(toolbox, entry, known, self.context.clone());
        if asks_back {
            handle.set_asks_back();
        }
        self.context.instances.add(&handle, scope, self.view.id);
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
            declared: self.view.declared_to(server.share),
            extensions: self.view.extensions,
            owner: server.is_per_user().then(|| self.view.owner.clone()),
        }
    }

    fn questions(&self) -> MutexGuard<'_, QuestionRules> {
        lock(&self.questions)
    }

    /// Returns the sealer of the process.
    pub(crate) fn sealer(&self) -> &Sealer {
        &self.context.sealer
    }

    /// Returns the store that replicas share.
    pub(crate) fn store(&self) -> Option<&Store> {
        self.context.store.as_ref()
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

    /// Subscribes to the events of the servers that the client uses.
    pub(crate) fn events(&self) -> Events {
        let (view, instances) = (self.view.id, Arc::clone(&self.context.instances));
        Events::new(
            self.context.events.subscribe(),
            move |source| match source {
                EventSource::Server(number) => instances.is_user(number, view),
                EventSource::Configuration(of) => of == view,
            },
        )
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
                source: EventSource::Configuration(self.view.id),
                server: server.clone(),
                change,
            });
        }
    }

    /// Returns the processes of this workbench.
    pub(crate) fn processes(&self) -> &Arc<ProcessTable> {
        &self.context.links.processes
    }

    /// Returns the sign-ins of the users of the configuration, if it has any.
    pub(crate) fn user_sign_ins(&self) -> Option<&Arc<UserSignIns>> {
        self.context.links.oauth.users.as_ref()
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

    /// Waits until what is known about servers is in the server cache.
    pub(crate) async fn flush(&self) {
        self.context.deferred_writes.flush().await;
    }

    /// Returns a counter of the servers that are reserved for one client because they asked back.
    pub(crate) fn reserved(&self) -> watch::Receiver<u64> {
        self.context.instances.reserved()
    }

    /// Runs a task that ends with the servers.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(task);
    }

    /// Ends all servers. Their deadlines count from `since`, the start of the shutdown.
    pub(crate) async fn shut_down(&self, since: Instant) {
        // First, so that a server that ends on its own meanwhile gets no later deadline than the others.
        self.context.links.processes.closing_since(since);
        self.context.shutdown.begin(since);
        let pins = Arc::clone(&self.context.pins);
        if pins.has_news() {
            // On the tracker, so that the wait below includes it.
            self.tasks.spawn(async move {
                if let Err(error) = run_blocking(move || pins.record()).await {
                    tracing::warn!("failed to write the lock file: {error}");
                }
            });
        }
        // Only a closed tracker becomes done when it is empty.
        self.tasks.close();
        let left = (since + SHUTDOWN_TIMEOUT).saturating_duration_since(Instant::now());
        if timeout(left, self.tasks.wait()).await.is_err() {
            tracing::warn!("timed out stopping some servers");
        }
        // Also after the time limit, to kill the remaining processes.
        self.context.links.processes.sweep_all().await;
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.context.instances.forget(self.view.id);
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
        // Only the first one counts: a second request to stop does not prolong the shutdown.
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
