//! The application: the configuration, the servers and the toolboxes, for all clients together. It knows nothing
//! about transports.
//!
//! The configured state is a [`Snapshot`], which is replaced as a whole when the file changes. Readers use the
//! current one and never wait.

pub(crate) mod call;
mod filters;
mod finder;
mod following;
mod observation;
mod registered;
mod reload;
mod results;
mod sharing;

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, Weak, atomic::AtomicU64},
    time::Duration,
};

use ident::{ClientName, ServerIdentifier, ToolIdentifier, ToolboxName};
use indexmap::IndexMap;
use rawjson::RawJson;
use search::{Explanation, Query};
use tokio::{sync::watch, time::Instant};
use tokio_util::sync::CancellationToken;

use crate::{
    call::{ClientCapabilities, ClientHandle, ClientId, ExtensionSet, Owner, Principal},
    config::{Config, Limits, MetaTool, ToolMode},
    downstream::{ClientKind, Events as ServerEvents, Pool, ServerHandle, ViewId},
    era::Era,
    events::Events,
    jq::Filter,
    lock::{NoticeScope, Pins},
    native::{Native, OpenLists, OpenServer},
    oauth::{CredentialOwner, UserCredentials},
    offload::offload,
    scripts::Scripts,
    toolbox::{ChangedFiles, Links, OpenError, Opened, Registry, Toolbox, registered_definition},
};

pub(crate) use call::Sent;
pub(crate) use call::{
    CallFailure, CallReply, CallStart, ClientRequest, LookupError, Mode, ReadyCall, Select,
    Settled, ToolCall, ToolNames, WaitingCall,
    approvals::{Approvals, Decision, NotPending, PendingApproval},
    budget::{Origin, count, fit, fit_page},
};
use call::{consent::Consents, oauth::open_with_sign_in};
use filters::Filters;
pub(crate) use filters::SelectError;
use finder::{Finder, SEARCH_WAIT};
pub(crate) use finder::{FoundTool, Search};
use following::follow;
pub(crate) use observation::Observation;
pub(crate) use registered::NamedTool;
use registered::{RegisteredTool, register};
pub(crate) use reload::{ApplyConfigError, ConfigChanges};
pub(crate) use results::{PageError, Results, StoredResult, find_result};
pub(crate) use sharing::{OwnServer, own_servers, stop_scripts};

/// The state that one process serves.
pub(crate) struct Workbench {
    this: Weak<Self>,
    now: watch::Sender<Arc<Snapshot>>,
    pool: Arc<Pool>,
    /// The names of registered tools: in dynamic mode all tools, otherwise only those with a user interface.
    registry: Registry,
    /// The toolbox of native mode.
    native: Option<Native>,
    /// The prompts and resources of open toolboxes, in the other modes.
    open_lists: OpenLists,
    /// The links to resources in results.
    links: Links,
    finder: Finder,
    /// The stored results that clients received in part. One bound applies to all workbenches with this configuration.
    results: Arc<Results>,
    observation: Observation,
    filters: Filters,
    scripts: Scripts,
    /// The consents that are valid for longer than one call.
    consents: Consents,
    /// Counts the changes of `tools/list`.
    tools_changed: watch::Sender<u64>,
    /// Counts the changes of the meta-tools' definitions.
    definitions_changed: watch::Sender<u64>,
    /// Counts the changes of the tools that only clients with MCP Apps see.
    apps_changed: watch::Sender<u64>,
    /// Cancelled when no more changes are announced.
    announcing_end: CancellationToken,
    /// The numbers of the servers whose lists are followed.
    followed: Mutex<HashSet<u64>>,
    /// The workbenches of users and of sets of extensions with this configuration.
    users: Mutex<Vec<Weak<Self>>>,
    /// The changes of the lock file that were applied.
    lock_changes: AtomicU64,
}

/// The configuration with its toolboxes at one moment.
struct Snapshot {
    config: Arc<Config>,
    /// A toolbox keeps its identity as long as its name is in the file.
    toolboxes: IndexMap<ToolboxName, Arc<Toolbox>>,
}

impl Workbench {
    /// Creates the workbench of the only client, or of the first client of a process. No server is started.
    pub(crate) fn new(config: Arc<Config>, owner: CredentialOwner) -> Arc<Self> {
        let observation = Observation::default();
        let pool = Pool::new(&config, owner, &observation.events);
        let results = Arc::new(Results::new(&config));
        Self::with_pool(config, pool, observation, results)
    }

    /// Creates the workbench of a configured client, next to the common one. Both share the servers that are defined
    /// alike, and an observer of one observes both.
    pub(crate) fn beside(&self, config: Arc<Config>) -> Arc<Self> {
        let pool = self.pool.for_client(&config, ClientKind::Client);
        let results = Arc::new(Results::new(&config));
        Self::sharing(config, pool, self.observation.beside(), results)
    }

    /// Creates the workbench of a user, next to the one that has the user's configuration and follows its changes.
    pub(crate) fn for_user(&self, user: &Arc<UserCredentials>) -> Arc<Self> {
        let config = self.config();
        let pool = self.pool.for_user(&config, user);
        sharing::beside(self, config, pool)
    }

    /// Creates the workbench of the clients that declare the same extensions, next to the one that has their configuration.
    pub(crate) fn for_extensions(&self, set: ExtensionSet) -> Arc<Self> {
        let config = self.config();
        let pool = self.pool.for_extensions(&config, set);
        sharing::beside(self, config, pool)
    }

    /// Creates the workbench of a client that shares servers with the other clients of the process. An observer of one
    /// workbench observes all of them.
    pub(crate) fn for_client(
        config: Arc<Config>,
        pool: &Pool,
        kind: ClientKind,
        observation: &Observation,
    ) -> Arc<Self> {
        let pool = pool.for_client(&config, kind);
        let results = Arc::new(Results::new(&config));
        Self::sharing(config, pool, observation.beside(), results)
    }

    /// Returns the pool, which also has the state that all workbenches of the process share.
    pub(crate) fn pool(&self) -> &Pool {
        &self.pool
    }

    fn sharing(
        config: Arc<Config>,
        pool: Pool,
        observation: Observation,
        results: Arc<Results>,
    ) -> Arc<Self> {
        let reserved = pool.reserved();
        let workbench = Self::with_pool(config, pool, observation, results);
        // Weak, or this task would keep the workbench alive.
        let separating = sharing::separate_reserved(Arc::downgrade(&workbench), reserved);
        workbench.spawn(separating);
        workbench
    }

    fn with_pool(
        config: Arc<Config>,
        pool: Pool,
        observation: Observation,
        results: Arc<Results>,
    ) -> Arc<Self> {
        observation.renew(&config);
        let pool = Arc::new(pool);
        let toolboxes = config.toolboxes.iter().map(|(name, toolbox)| {
            let toolbox = Toolbox::new(Arc::clone(toolbox), Arc::clone(&pool));
            (name.clone(), Arc::new(toolbox))
        });
        let toolboxes: IndexMap<_, _> = toolboxes.collect();
        let limit = config.tool_name_limit;
        let native = match &config.tool_mode {
            ToolMode::Proxy | ToolMode::Dynamic => None,
            ToolMode::Native(name) => toolboxes.get(name).map(Arc::clone),
        };
        let native = native.map(|it| Native::new(it, limit, pool.events()));
        let filters = Filters::new(&config);
        let now = Snapshot { config, toolboxes };
        Arc::new_cyclic(|this| Self {
            this: Weak::clone(this),
            now: watch::channel(Arc::new(now)).0,
            registry: Registry::new(limit),
            native,
            open_lists: OpenLists::new(limit, pool.events()),
            links: Links::default(),
            finder: Finder::default(),
            results,
            consents: Consents::new(Arc::clone(&observation.approvals)),
            observation,
            filters,
            scripts: Scripts::new(pool.processes()),
            tools_changed: watch::channel(0).0,
            definitions_changed: watch::channel(0).0,
            apps_changed: watch::channel(0).0,
            announcing_end: CancellationToken::new(),
            followed: Mutex::default(),
            users: Mutex::default(),
            lock_changes: AtomicU64::new(pool.pins().known_changes()),
            pool,
        })
    }

    /// Records the capabilities of the only client of this workbench. They decide which servers it shares with others.
    pub(crate) fn declare(&self, capabilities: &ClientCapabilities, era: Era) {
        self.pool.declare(capabilities, era);
    }

    pub(crate) fn config(&self) -> Arc<Config> {
        Arc::clone(&self.now.borrow().config)
    }

    /// Returns the limits of each principal over HTTP.
    pub(crate) fn limits(&self) -> Limits {
        self.now.borrow().config.limits
    }

    /// Returns the name of the client that the configuration was made for.
    pub(crate) fn client_name(&self) -> Option<ClientName> {
        self.now.borrow().config.client.clone()
    }

    pub(crate) fn toolbox(&self, name: &str) -> Option<Arc<Toolbox>> {
        self.now.borrow().toolboxes.get(name).cloned()
    }

    /// Returns the names of all toolboxes, in the order of the file.
    pub(crate) fn toolbox_names(&self) -> Vec<ToolboxName> {
        self.now.borrow().toolboxes.keys().cloned().collect()
    }

    /// Returns whether a meta-tool is enabled.
    pub(crate) fn has(&self, tool: MetaTool) -> bool {
        self.now.borrow().config.meta_tools.contains(&tool)
    }

    /// Opens a toolbox, and in dynamic mode registers its tools.
    pub(crate) async fn open(
        &self,
        toolbox: &Toolbox,
        client: &Arc<dyn ClientHandle>,
    ) -> Result<Arc<Opened>, OpenError> {
        let opened = toolbox.open(client, self.config().open_wait).await;
        if self.native.is_some() {
            // Followed even if the open fails, because servers that are still starting come up later.
            follow(self, toolbox);
        }
        let opened = opened?;
        follow(self, toolbox);
        self.pool.record_soon();
        if self.native.is_none() {
            let new = self.open_lists.announce(&self.open_servers());
            for (family, server) in &new.lists {
                self.pool.announce(server, &[*family]);
            }
            if new.has_ui {
                self.apps_changed.send_modify(|changes| *changes += 1);
            }
        }
        if self.is_dynamic() {
            // Names are only added, so the count shows whether clients have to be notified.
            let before = self.registry.len();
            register(&self.registry, toolbox);
            if self.registry.len() > before {
                self.tools_changed.send_modify(|changes| *changes += 1);
            }
        }
        Ok(opened)
    }

    /// Opens a toolbox for a client, and offers to sign its user in to the servers that require it.
    pub(crate) async fn open_with_sign_in(
        &self,
        toolbox: &Toolbox,
        client: &Arc<dyn ClientHandle>,
    ) -> Result<Arc<Opened>, OpenError> {
        open_with_sign_in(self, toolbox, client).await
    }

    /// Opens the toolbox of native mode. Servers that failed are logged. If none came up, the next request tries
    /// again.
    pub(crate) async fn open_native(&self, client: &Arc<dyn ClientHandle>) {
        let Some(native) = &self.native else { return };
        let opened = self.open(native.toolbox(), client).await;
        let failures = match &opened {
            Ok(opened) => {
                // The log is the only place to report changes in native mode, and it has them already.
                self.mark_reported(native.toolbox());
                for (server, list) in &opened.catalogue {
                    if let Some(incomplete) = &list.incomplete {
                        tracing::warn!("incomplete tool list of server '{server}': {incomplete}");
                    }
                }
                &opened.failures
            }
            Err(error) => &error.failures,
        };
        for failure in failures {
            tracing::warn!("{failure}");
        }
    }

    /// Opens a toolbox in the background of a call, which waits only for the one server that it needs.
    fn open_in_background(&self, toolbox: &Arc<Toolbox>, client: &Arc<dyn ClientHandle>) {
        // Ten calls at once must not open the toolbox ten times.
        let Some(this) = self.this.upgrade().filter(|_| !toolbox.is_being_opened()) else {
            return;
        };
        let (toolbox, client) = (Arc::clone(toolbox), Arc::clone(client));
        self.pool.spawn(async move {
            let opened = this.open(&toolbox, &client).await;
            let failures = match &opened {
                Ok(opened) => &opened.failures,
                Err(error) => &error.failures,
            };
            for failure in failures {
                tracing::warn!("{failure}");
            }
        });
    }

    /// Takes the first steps of a call, up to where it can be sent or has to wait.
    pub(crate) fn start_call(self: &Arc<Self>, call: ToolCall<'_>) -> CallStart {
        call::start(self, call)
    }

    /// Searches one toolbox or all. Starts only servers whose tools are unknown. The toolboxes of the hits count as
    /// open. Dropping the future does not stop servers that are starting.
    pub(crate) async fn search(&self, query: &Query<'_>, client: &Arc<dyn ClientHandle>) -> Search {
        finder::search(self, query, client, SEARCH_WAIT).await
    }

    /// Searches like [`search`](Self::search), and waits at most `wait` for servers that have to be started.
    pub(crate) async fn search_within(
        &self,
        query: &Query<'_>,
        client: &Arc<dyn ClientHandle>,
        wait: Duration,
    ) -> Search {
        finder::search(self, query, client, wait).await
    }

    /// Explains why a query finds tools, based on the last search.
    pub(crate) async fn explain(
        &self,
        query: &Query<'_>,
        tools: Vec<ToolIdentifier>,
    ) -> Vec<(ToolIdentifier, Option<Explanation>)> {
        self.finder.explain(query, tools).await
    }

    /// Applies a filter to a value. Returns the outputs, one per line.
    pub(crate) async fn select(
        &self,
        filter: &Filter,
        input: &RawJson,
    ) -> Result<String, SelectError> {
        filters::run(self, filter, input).await
    }

    /// Returns the stored results that clients received in part.
    pub(crate) fn results(&self) -> &Results {
        &self.results
    }

    /// Returns the workers for scripts.
    pub(crate) fn scripts(&self) -> &Scripts {
        &self.scripts
    }

    /// Returns the maximum length of a result of this server that is sent to a client at once, if there is one.
    pub(crate) fn budget(&self, server: &ServerIdentifier) -> Option<usize> {
        let config = self.config();
        let toolbox = config.toolboxes.get(&server.toolbox)?;
        toolbox.servers.get(&server.server)?.max_result_chars
    }

    /// Applies a configuration. Servers whose entries did not change are not touched. For the others, running calls
    /// finish on the old server, and new calls use the new configuration.
    pub(crate) fn reload(
        &self,
        config: Config,
        files: &ChangedFiles,
    ) -> Result<ConfigChanges, ApplyConfigError> {
        reload::reload_with_users(self, config, files)
    }

    pub(crate) fn pins(&self) -> &Arc<Pins> {
        self.pool.pins()
    }

    /// Records that the changes in a toolbox have been reported, so that they are not reported again.
    pub(crate) fn mark_reported(&self, toolbox: &Toolbox) {
        self.pool
            .pins()
            .mark_reported(NoticeScope::Toolbox(toolbox.name()));
        self.pool.record_soon();
    }

    /// Applies a lock file that may have changed. Running servers are compared with it at once, others at their next
    /// start.
    pub(crate) async fn apply_lock_file(&self) {
        sharing::apply_lock_file(self).await;
    }

    /// Removes the state of a client that has gone: its consents and its links.
    pub(crate) fn forget_client(&self, client: ClientId) {
        self.consents.forget(client);
        self.links.forget_client(Owner::Session(client));
        self.open_lists.forget_client(Owner::Session(client));
    }

    /// Removes the consents of a run of a script that has ended.
    pub(crate) fn forget_run(&self, run: &Arc<str>) {
        self.consents.forget_run(run);
    }

    /// Returns the links to resources in results.
    pub(crate) fn links(&self) -> &Links {
        &self.links
    }

    /// Returns a server of an open toolbox.
    pub(crate) fn server(&self, place: &ServerIdentifier) -> Option<Arc<ServerHandle>> {
        let toolbox = self.toolbox(place.toolbox.as_str())?;
        if !toolbox.is_usable() {
            return None;
        }
        toolbox.server(&place.server)
    }

    /// Returns the servers of all toolboxes that were used, in the order of the file.
    pub(crate) fn servers(&self) -> Vec<Arc<ServerHandle>> {
        let now = Arc::clone(&self.now.borrow());
        let toolboxes = now.toolboxes.values();
        let servers = toolboxes.flat_map(|toolbox| toolbox.contents().known_servers());
        servers.collect()
    }

    /// Returns the servers of all open toolboxes, in the order of the file.
    pub(crate) fn open_servers(&self) -> Vec<OpenServer> {
        let now = Arc::clone(&self.now.borrow());
        let toolboxes = now.toolboxes.values().filter(|it| it.is_usable());
        let servers = toolboxes.flat_map(|toolbox| {
            let contents = toolbox.contents();
            let servers = contents
                .servers()
                .iter()
                .map(|(server, handle)| OpenServer {
                    identifier: ServerIdentifier {
                        toolbox: toolbox.name().clone(),
                        server: server.clone(),
                    },
                    handle: Arc::clone(handle),
                });
            servers.collect::<Vec<_>>()
        });
        servers.collect()
    }

    /// Returns the prompts and resources of open toolboxes.
    pub(crate) fn open_lists(&self) -> &OpenLists {
        &self.open_lists
    }

    /// Returns the server of a task and the server's own id for it, from the id that the client was given.
    pub(crate) fn task(
        &self,
        sealed: &str,
        principal: Principal,
    ) -> Option<(Arc<ServerHandle>, String)> {
        let (place, inner) = self.pool.open_task(sealed, principal)?;
        Some((self.server(&place)?, inner))
    }

    /// Returns the view of the toolbox in native mode.
    pub(crate) fn native(&self) -> Option<&Native> {
        self.native.as_ref()
    }

    /// Returns the calls that wait for a decision.
    pub(crate) fn approvals(&self) -> &Arc<Approvals> {
        &self.observation.approvals
    }

    pub(crate) fn observed(&self) -> &Arc<Events> {
        &self.observation.events
    }

    /// Subscribes to the events that servers send from now on.
    pub(crate) fn events(&self) -> ServerEvents {
        self.pool.events()
    }

    /// Returns whether all tools are registered on the workbench itself.
    pub(crate) fn is_dynamic(&self) -> bool {
        self.now.borrow().config.tool_mode == ToolMode::Dynamic
    }

    /// Returns the tool that a client means by a name that is not a meta-tool's.
    pub(crate) fn named(&self, name: &str, client: &dyn ClientHandle) -> NamedTool {
        registered::named(self, name, client)
    }

    /// Returns the definition of the tool that is registered under a name, as its server sent it.
    pub(crate) fn registered_tool(&self, name: &str) -> Option<RawJson> {
        registered::definition(self, name)
    }

    /// Returns the definitions of the registered tools that a client sees, in the order of the file.
    pub(crate) async fn registered_definitions(&self, client: &dyn ClientHandle) -> Vec<RawJson> {
        let tools = registered::shown(self, client);
        let sizes = tools.iter().map(|it| it.definition.as_bytes().len());
        let bytes = sizes.sum();
        // Thousands of definitions take long enough to hold up all clients.
        offload(bytes, move || {
            let definitions = tools.iter().map(
                |RegisteredTool {
                     name,
                     tool,
                     definition,
                 }| { registered_definition(name, tool, definition) },
            );
            definitions.collect()
        })
        .await
    }

    /// Returns a counter of the changes of `tools/list`.
    pub(crate) fn tools_changed(&self) -> watch::Receiver<u64> {
        self.tools_changed.subscribe()
    }

    /// Returns a counter of the changes of the meta-tools' definitions.
    pub(crate) fn definitions_changed(&self) -> watch::Receiver<u64> {
        self.definitions_changed.subscribe()
    }

    /// Returns a counter of the changes of the tools that only clients with MCP Apps see.
    pub(crate) fn apps_changed(&self) -> watch::Receiver<u64> {
        self.apps_changed.subscribe()
    }

    /// Spawns a task that runs as long as the servers. It must end when changes are no longer announced.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.pool.spawn(task);
    }

    /// Returns the id of the client in the pool.
    pub(crate) fn view(&self) -> ViewId {
        self.pool.view()
    }

    /// Stops announcing changes to listeners, at the start of a shutdown.
    pub(crate) fn stop_announcing(&self) {
        sharing::stop_announcing(self);
    }

    /// Waits until changes are no longer announced. Cancel-safe.
    pub(crate) async fn announcing_stopped(&self) {
        self.announcing_end.cancelled().await;
    }

    /// Shuts everything down. The servers' grace period starts at `since`.
    pub(crate) async fn shut_down(&self, since: Instant) {
        self.stop_announcing();
        stop_scripts(self);
        self.pool.shut_down(since).await;
        // Last, because the end of the servers ends their calls, whose entries belong into the audit log.
        self.observation.close().await;
    }

    /// Ends the workbench of a client that has gone. Servers that no other client uses are stopped with it.
    pub(crate) fn leave(&self) {
        sharing::close(self);
    }

    /// Ends the workbench of a user who has not used it for long.
    pub(crate) fn end_user(&self) {
        sharing::close(self);
        stop_scripts(self);
    }
}
