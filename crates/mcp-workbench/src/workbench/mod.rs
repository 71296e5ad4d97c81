//! The application: the configuration, the servers and the toolboxes, for all clients together. It knows nothing
//! about transports.
//!
//! The configured state is a [`Snapshot`], which is replaced as a whole when the file changes. Readers use the
//! current one and never wait.

pub(crate) mod call;
mod filters;
mod finder;
mod registered;
mod reload;
mod results;
mod sharing;

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, Weak},
    time::Duration,
};

use ident::{ServerIdentifier, ToolIdentifier, ToolboxName};
use indexmap::IndexMap;
use rawjson::RawJson;
use search::{Explanation, Query};
use tokio::{sync::watch, time::Instant};
use tokio_util::sync::CancellationToken;

use crate::{
    audit::AuditLog,
    call::{ClientHandle, ClientId, Owner, Principal},
    config::{Config, MetaTool, ToolMode},
    downstream::{Events as ServerEvents, Pool, ServerHandle, Status, ToolList, ViewId},
    events::Events,
    jq::Filter,
    lock::{Pins, Scope},
    native::{Native, OpenLists, OpenServer},
    offload::{offload, run_blocking},
    scripts::Scripts,
    sync::lock,
    toolbox::{ChangedFiles, Links, OpenError, Opened, Registry, Toolbox, registered_definition},
};

pub(crate) use call::Sent;
pub(crate) use call::{
    CallFailure, CallReply, CallStart, LookupError, Mode, ReadyCall, Select, Settled, ToolCall,
    ToolNames, WaitingCall,
    approvals::{Approvals, Decision, NotPending, PendingApproval},
    budget::{Origin, count, fit, fit_page},
};
use call::{consent::Consents, oauth::open_signing_in};
use filters::Filters;
pub(crate) use filters::SelectError;
use finder::{Finder, SEARCH_WAIT};
pub(crate) use finder::{FoundTool, Search};
use registered::{register, withheld};
pub(crate) use reload::{ApplyConfigError, ConfigChanges};
pub(crate) use results::{PageError, Results, StoredResult};

/// The state that one process serves.
pub(crate) struct Workbench {
    this: Weak<Self>,
    now: watch::Sender<Arc<Snapshot>>,
    pool: Arc<Pool>,
    /// The names of registered tools, in dynamic mode.
    registry: Option<Registry>,
    /// The toolbox of native mode.
    native: Option<Native>,
    /// The prompts and resources of open toolboxes, in the other modes.
    open_lists: OpenLists,
    /// The links to resources in results.
    links: Links,
    /// The state for searching.
    finder: Finder,
    /// The stored results of which clients got a part.
    results: Results,
    /// The event stream.
    observed: Arc<Events>,
    filters: Filters,
    audit: AuditLog,
    /// The workers for scripts.
    scripts: Scripts,
    /// The consents that are valid for longer than one call.
    consents: Consents,
    /// Counts the changes of `tools/list`.
    tools_changed: watch::Sender<u64>,
    /// Counts the changes of the meta-tools' definitions.
    definitions_changed: watch::Sender<u64>,
    /// Cancelled when no more changes are announced.
    announcing_end: CancellationToken,
    /// The numbers of the servers whose lists are followed.
    followed: Mutex<HashSet<u64>>,
}

/// The configuration with its toolboxes at one moment.
struct Snapshot {
    config: Arc<Config>,
    /// A toolbox keeps its identity as long as its name is in the file.
    toolboxes: IndexMap<ToolboxName, Arc<Toolbox>>,
}

impl Workbench {
    /// Creates the workbench of the only client, or of the first client of a process. No server is started.
    pub(crate) fn new(config: Arc<Config>) -> Arc<Self> {
        let events = Arc::<Events>::default();
        let pool = Pool::new(&config, &events);
        Self::with_pool(config, pool, events)
    }

    /// Creates the workbench of a client that shares servers with the other clients of the process.
    pub(crate) fn for_client(config: Arc<Config>, pool: &Pool) -> Arc<Self> {
        let pool = pool.for_client(&config);
        let kept = pool.kept();
        let workbench = Self::with_pool(config, pool, Arc::default());
        let separating = sharing::separate_kept(Arc::downgrade(&workbench), kept);
        workbench.spawn(separating);
        workbench
    }

    fn with_pool(config: Arc<Config>, pool: Pool, events: Arc<Events>) -> Arc<Self> {
        events.renew(&config);
        let pool = Arc::new(pool);
        let toolboxes = config.toolboxes.iter().map(|(name, toolbox)| {
            let toolbox = Toolbox::new(Arc::clone(toolbox), Arc::clone(&pool));
            (name.clone(), Arc::new(toolbox))
        });
        let toolboxes: IndexMap<_, _> = toolboxes.collect();
        let limit = config.tool_name_limit;
        let audit = AuditLog::new(&config, &events);
        let (registry, native) = match &config.tool_mode {
            ToolMode::Proxy => (None, None),
            ToolMode::Dynamic => (Some(Registry::new(limit)), None),
            ToolMode::Native(name) => {
                let toolbox = toolboxes.get(name).map(Arc::clone);
                (
                    None,
                    toolbox.map(|it| Native::new(it, limit, pool.events())),
                )
            }
        };
        let results = Results::new(&config);
        let filters = Filters::new(&config);
        let now = Snapshot { config, toolboxes };
        Arc::new_cyclic(|this| Self {
            this: Weak::clone(this),
            now: watch::channel(Arc::new(now)).0,
            registry,
            native,
            open_lists: OpenLists::new(limit, pool.events()),
            links: Links::default(),
            finder: Finder::default(),
            results,
            observed: events,
            filters,
            audit,
            scripts: Scripts::new(pool.processes()),
            consents: Consents::default(),
            tools_changed: watch::channel(0).0,
            definitions_changed: watch::channel(0).0,
            announcing_end: CancellationToken::new(),
            followed: Mutex::default(),
            pool,
        })
    }

    /// Returns the current configuration.
    pub(crate) fn config(&self) -> Arc<Config> {
        Arc::clone(&self.now.borrow().config)
    }

    /// Returns the toolbox of this name.
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
            self.follow(toolbox);
        }
        let opened = opened?;
        self.pool.record_soon();
        if self.native.is_none() {
            for (family, server) in self.open_lists.announce(&self.open_servers()) {
                self.pool.announce(&server, &[family]);
            }
        }
        if let Some(registry) = &self.registry {
            let before = registry.len();
            register(registry, toolbox);
            if registry.len() > before {
                self.tools_changed.send_modify(|changes| *changes += 1);
            }
            self.follow(toolbox);
        }
        Ok(opened)
    }

    /// Opens a toolbox for a client, and offers its user to sign in to the servers that want it.
    pub(crate) async fn open_signing_in(
        &self,
        toolbox: &Toolbox,
        client: &Arc<dyn ClientHandle>,
    ) -> Result<Arc<Opened>, OpenError> {
        open_signing_in(self, toolbox, client).await
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

    /// Returns the stored results of which clients got a part.
    pub(crate) fn results(&self) -> &Results {
        &self.results
    }

    /// Returns the workers for scripts.
    pub(crate) fn scripts(&self) -> &Scripts {
        &self.scripts
    }

    /// Returns the maximum length of a result of this server that a client is sent at once, if it is limited.
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
        reload::reload(self, config, files)
    }

    pub(crate) fn pins(&self) -> &Arc<Pins> {
        self.pool.pins()
    }

    /// Records that the changes in a toolbox have been reported, so that they are not reported again.
    pub(crate) fn mark_reported(&self, toolbox: &Toolbox) {
        self.pool
            .pins()
            .mark_reported(Scope::Toolbox(toolbox.name()));
        self.pool.record_soon();
    }

    /// Applies a lock file that may have changed. Running servers are compared with it at once, others at their next
    /// start.
    pub(crate) async fn apply_lock_file(&self) {
        let pins = Arc::clone(self.pool.pins());
        let is_changed = run_blocking(move || pins.is_changed()).await;
        if is_changed.unwrap_or_default() {
            tracing::info!("the lock file changed; comparing the tools with it again");
            let now = Arc::clone(&self.now.borrow());
            for toolbox in now.toolboxes.values() {
                toolbox.contents().recheck();
            }
        }
    }

    /// Removes the state of a client that has gone: its consents and its links.
    pub(crate) fn forget_client(&self, client: ClientId) {
        self.consents.forget(client);
        self.links.forget_client(Owner::Session(client));
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
        self.consents.approvals()
    }

    /// Returns the event stream.
    pub(crate) fn observed(&self) -> &Arc<Events> {
        &self.observed
    }

    /// Subscribes to the events that servers send from now on.
    pub(crate) fn events(&self) -> ServerEvents {
        self.pool.events()
    }

    /// Returns whether tools are registered on the workbench itself.
    pub(crate) fn is_dynamic(&self) -> bool {
        self.registry.is_some()
    }

    /// Returns the tool that is registered under a name, or the withheld tool that would have it, so that a call gets
    /// the reason.
    pub(crate) fn registered(&self, name: &str) -> Option<ToolIdentifier> {
        let registry = self.registry.as_ref()?;
        registry.lookup(name).or_else(|| {
            let now = Arc::clone(&self.now.borrow());
            let mut withheld = now.toolboxes.values().flat_map(|it| withheld(it));
            withheld.find(|tool| registry.could_name(tool, name))
        })
    }

    /// Returns the definition of the tool that is registered under a name, as its server sent it.
    pub(crate) fn registered_tool(&self, name: &str) -> Option<RawJson> {
        let tool = self.registry.as_ref()?.lookup(name)?;
        let catalogue = self.toolbox(tool.toolbox.as_str())?.catalogue();
        let mut lists = catalogue.lists().iter();
        let (_, list) = lists.find(|(server, _)| *server == tool.server)?;
        Some(list.get(tool.tool.as_str())?.definition.clone())
    }

    /// Returns the definitions of all registered tools, in the order of the file.
    pub(crate) async fn registered_definitions(&self) -> Vec<RawJson> {
        let Some(registry) = &self.registry else {
            return Vec::new();
        };
        let now = Arc::clone(&self.now.borrow());
        let toolboxes = now.toolboxes.values();
        let tools = toolboxes.flat_map(|toolbox| register(registry, toolbox));
        let tools: Vec<(Arc<str>, ToolIdentifier, RawJson)> = tools.collect();
        let sizes = tools
            .iter()
            .map(|(_, _, definition)| definition.as_bytes().len());
        let bytes = sizes.sum();
        offload(bytes, move || {
            let definitions = tools.iter();
            let definitions = definitions
                .map(|(name, tool, definition)| registered_definition(name, tool, definition));
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
        self.announcing_end.cancel();
    }

    /// Waits until changes are no longer announced. Cancel-safe.
    pub(crate) async fn announcing_stopped(&self) {
        self.announcing_end.cancelled().await;
    }

    /// Shuts everything down. The servers' grace period starts at `since`.
    pub(crate) async fn shut_down(&self, since: Instant) {
        self.stop_announcing();
        self.scripts.shut_down();
        self.pool.shut_down(since).await;
        self.audit.close().await;
    }

    /// Ends the workbench of a client that has gone. Servers that no other client uses are stopped with it.
    pub(crate) async fn leave(&self) {
        self.stop_announcing();
        self.audit.close().await;
    }

    /// Replaces the servers that are kept for another client, because they ask back.
    fn separate(&self) {
        let now = Arc::clone(&self.now.borrow());
        for toolbox in now.toolboxes.values() {
            toolbox.separate();
            if self.registry.is_some() && toolbox.opened().is_some() {
                self.follow(toolbox);
            }
        }
    }

    /// Watches the servers of an open toolbox for changes of their lists.
    fn follow(&self, toolbox: &Toolbox) {
        for server in toolbox.contents().servers().values() {
            if lock(&self.followed).insert(server.number()) {
                let changes = self.tools_changed.clone();
                let known = server.status().tools;
                let following = follow_list(server.updates(), known, changes);
                let end = self.announcing_end.clone();
                self.pool.spawn(async move {
                    end.run_until_cancelled(following).await;
                });
            }
        }
    }
}

/// Counts a change each time the server's list changes, until the server's task ends.
async fn follow_list(
    mut server: watch::Receiver<Status>,
    mut known: Option<Arc<ToolList>>,
    changes: watch::Sender<u64>,
) {
    while server.changed().await.is_ok() {
        let Some(tools) = server.borrow_and_update().tools.clone() else {
            // The list from an earlier run is valid until the server sends its own.
            continue;
        };
        let same = known
            .as_ref()
            .is_some_and(|known| Arc::ptr_eq(known, &tools));
        if !same {
            known = Some(tools);
            changes.send_modify(|changes| *changes += 1);
        }
    }
}
