//! The application: the configuration, the servers and the toolboxes, for all clients together. It
//! knows nothing of how it is reached.
//!
//! What the configuration says is a [`Snapshot`], which is replaced whole when the file has changed. Readers take
//! what is there and never wait.

mod renew;

use std::sync::{Arc, Weak};

use indexmap::IndexMap;
use tokio::{
    sync::{broadcast, watch},
    time::Instant,
};
use tokio_util::sync::CancellationToken;

use crate::{
    call::{ClientHandle, Principal},
    config::{Config, ToolMode},
    downstream::{ConnectError, Pool, ServerEvent, ServerHandle, Status, ToolList, Urgency},
    ident::{ServerIdentifier, ToolIdentifier, ToolboxName},
    native::Native,
    policy::lock::Pins,
    toolbox::{Links, OpenError, Opened, Registry, Toolbox, registered_definition},
    wire::RawJson,
};

pub use renew::{RenewError, Renewed};

/// Everything that one process serves.
pub struct Workbench {
    this: Weak<Self>,
    now: watch::Sender<Arc<Snapshot>>,
    pool: Arc<Pool>,
    /// The names of registered tools, in dynamic mode.
    registry: Option<Registry>,
    /// The toolbox that is shown as it is, in native mode.
    native: Option<Native>,
    /// The resources that servers have linked to.
    links: Links,
    /// Counts the changes of `tools/list`.
    tools_changed: watch::Sender<u64>,
    /// Counts the changes of the meta-tools' definitions.
    definitions_changed: watch::Sender<u64>,
    /// Nothing more is told to those who listen.
    silence: CancellationToken,
}

/// What is configured at a moment.
struct Snapshot {
    config: Arc<Config>,
    /// A toolbox is the same one for as long as its name is in the file.
    toolboxes: IndexMap<ToolboxName, Arc<Toolbox>>,
}

/// Why a tool could not be found.
#[derive(Debug)]
pub enum LookupError {
    /// No such toolbox is configured.
    ToolboxUnknown,
    /// The toolbox is not open.
    ToolboxNotOpen,
    /// The toolbox has no such server.
    ServerUnknown,
    /// The server has no such tool.
    ToolUnknown,
    /// The tool is withheld, since nobody has approved it.
    ToolNotApproved {
        /// The reason in words, with what to do.
        reason: String,
    },
    /// The server is not up and could not be started.
    NotConnected(Arc<ConnectError>),
}

impl Workbench {
    /// A workbench at rest: nothing is started.
    pub fn new(config: Arc<Config>) -> Arc<Self> {
        let pool = Arc::new(Pool::new(&config));
        let toolboxes = config.toolboxes.iter().map(|(name, toolbox)| {
            let toolbox = Toolbox::new(Arc::clone(toolbox), Arc::clone(&pool));
            (name.clone(), Arc::new(toolbox))
        });
        let toolboxes: IndexMap<_, _> = toolboxes.collect();
        let limit = config.tool_name_limit;
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
        let now = Snapshot { config, toolboxes };
        Arc::new_cyclic(|this| Self {
            this: Weak::clone(this),
            now: watch::channel(Arc::new(now)).0,
            registry,
            native,
            links: Links::default(),
            tools_changed: watch::channel(0).0,
            definitions_changed: watch::channel(0).0,
            silence: CancellationToken::new(),
            pool,
        })
    }

    /// The configuration as it is now.
    pub fn config(&self) -> Arc<Config> {
        Arc::clone(&self.now.borrow().config)
    }

    /// The toolbox of this name.
    pub fn toolbox(&self, name: &str) -> Option<Arc<Toolbox>> {
        self.now.borrow().toolboxes.get(name).cloned()
    }

    /// The names of all toolboxes, in the order of the file.
    pub fn toolbox_names(&self) -> Vec<ToolboxName> {
        self.now.borrow().toolboxes.keys().cloned().collect()
    }

    /// Opens a toolbox. In dynamic mode its tools are registered.
    pub async fn open(
        &self,
        toolbox: &Toolbox,
        client: &Arc<dyn ClientHandle>,
    ) -> Result<Arc<Opened>, OpenError> {
        let opened = toolbox.open(client).await?;
        self.pool.record_first().await;
        if let Some(registry) = &self.registry {
            let before = registry.len();
            register(registry, toolbox);
            if registry.len() > before {
                self.tools_changed.send_modify(|changes| *changes += 1);
            }
        }
        if self.registry.is_some() || self.native.is_some() {
            self.follow(toolbox);
        }
        Ok(opened)
    }

    /// Finds the server that has a tool: toolbox, then server, then tool. A server whose tools are not
    /// known is started for it. Whoever holds what comes back keeps the server, also one that is taken out of the
    /// configuration meanwhile.
    pub async fn find(
        &self,
        tool: &ToolIdentifier,
        client: &Arc<dyn ClientHandle>,
    ) -> Result<Arc<ServerHandle>, LookupError> {
        let toolbox = self.toolbox(tool.toolbox.as_str());
        let toolbox = toolbox.ok_or(LookupError::ToolboxUnknown)?;
        if toolbox.opened().is_none() && self.now.borrow().config.auto_open {
            self.open_beside(&toolbox, client);
        } else if !toolbox.is_open().await {
            return Err(LookupError::ToolboxNotOpen);
        }
        let server = toolbox.server(&tool.server);
        let server = server.ok_or(LookupError::ServerUnknown)?;
        let status = server.status();
        let is_known = |tools: &ToolList| tools.get(tool.tool.as_str()).is_some();
        match &status.tools {
            Some(tools) if is_known(tools) => return Ok(server),
            Some(tools) if !status.stale => return Err(missing(tools, tool)),
            _ => {}
        }
        let tools = server.connect(Urgency::ForCall, Arc::clone(client)).await;
        match tools.map_err(LookupError::NotConnected)? {
            tools if is_known(&tools) => Ok(server),
            tools => Err(missing(&tools, tool)),
        }
    }

    /// Has a toolbox opened beside the call that needs one of its servers: the call waits for that server only.
    fn open_beside(&self, toolbox: &Arc<Toolbox>, client: &Arc<dyn ClientHandle>) {
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

    /// The tool of these names and its server, if they are known without waiting.
    pub fn find_known(
        &self,
        toolbox: &str,
        server: &str,
        tool: &str,
    ) -> Option<(ToolIdentifier, Arc<ServerHandle>)> {
        let now = self.now.borrow();
        let toolbox = now.toolboxes.get(toolbox)?;
        toolbox.opened()?;
        let contents = toolbox.contents();
        let (name, server) = contents.servers().get_key_value(server)?;
        let identifier = ToolIdentifier {
            toolbox: toolbox.name().clone(),
            server: name.clone(),
            tool: server.known_tool(tool)?,
        };
        Some((identifier, Arc::clone(server)))
    }

    /// The names that a caller may have meant, where a lookup failed.
    pub fn known_names(&self, tool: &ToolIdentifier, error: &LookupError) -> Vec<String> {
        let toolbox = self.toolbox(tool.toolbox.as_str());
        match (error, toolbox) {
            (LookupError::ToolboxUnknown, _) => {
                let names = self.toolbox_names();
                names.iter().map(ToString::to_string).collect()
            }
            (LookupError::ServerUnknown, Some(toolbox)) => {
                let contents = toolbox.contents();
                let servers = contents.servers().keys();
                servers.map(ToString::to_string).collect()
            }
            (LookupError::ToolUnknown, Some(toolbox)) => {
                let server = toolbox.server(&tool.server);
                let tools = server
                    .and_then(|server| server.status().tools)
                    .unwrap_or_default();
                tools
                    .tools()
                    .iter()
                    .map(|tool| tool.name.to_string())
                    .collect()
            }
            _ => Vec::new(),
        }
    }

    /// The resources that servers have linked to.
    pub fn links(&self) -> &Links {
        &self.links
    }

    /// The server at a place of an open toolbox.
    pub fn server(&self, place: &ServerIdentifier) -> Option<Arc<ServerHandle>> {
        let toolbox = self.toolbox(place.toolbox.as_str())?;
        toolbox.opened()?;
        toolbox.server(&place.server)
    }

    /// The server of a task and its own name for the task, by the name that somebody was given for it.
    pub fn task(&self, sealed: &str, principal: Principal) -> Option<(Arc<ServerHandle>, String)> {
        let (place, inner) = self.pool.open_task(sealed, principal)?;
        Some((self.server(&place)?, inner))
    }

    /// The toolbox that is shown as it is, in native mode.
    pub fn native(&self) -> Option<&Native> {
        self.native.as_ref()
    }

    /// What is pinned of servers.
    pub fn pins(&self) -> &Arc<Pins> {
        self.pool.pins()
    }

    /// Notes that somebody is told what has changed in a toolbox, so that they are not told again.
    pub async fn told(&self, toolbox: &Toolbox) {
        self.pool.record_told(toolbox.name()).await;
    }

    /// Takes up a lock file that may have changed. Servers that run are compared with it at once, others at their next start.
    pub fn take_up_lock(&self) {
        if self.pool.pins().is_changed() {
            tracing::info!("the lock file has changed; tools are compared with it again");
            let now = Arc::clone(&self.now.borrow());
            for toolbox in now.toolboxes.values() {
                toolbox.contents().recheck();
            }
        }
    }

    /// What servers tell everybody from now on.
    pub fn events(&self) -> broadcast::Receiver<ServerEvent> {
        self.pool.events()
    }

    /// Whether tools are registered on the workbench itself.
    pub fn is_dynamic(&self) -> bool {
        self.registry.is_some()
    }

    /// The tool that was registered under a name.
    pub fn registered(&self, name: &str) -> Option<ToolIdentifier> {
        self.registry.as_ref()?.lookup(name)
    }

    /// The definitions of all registered tools, in the order of the file.
    pub fn registered_definitions(&self) -> Vec<RawJson> {
        let Some(registry) = &self.registry else {
            return Vec::new();
        };
        let now = Arc::clone(&self.now.borrow());
        let toolboxes = now.toolboxes.values();
        let tools = toolboxes.flat_map(|toolbox| register(registry, toolbox));
        let definitions =
            tools.map(|(name, tool, definition)| registered_definition(&name, &tool, &definition));
        definitions.collect()
    }

    /// Tells when `tools/list` has changed.
    pub fn tools_changed(&self) -> watch::Receiver<u64> {
        self.tools_changed.subscribe()
    }

    /// Tells when the definitions of the meta-tools have changed.
    pub fn definitions_changed(&self) -> watch::Receiver<u64> {
        self.definitions_changed.subscribe()
    }

    /// Runs something beside the servers, which must end when nothing more is told.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.pool.spawn(task);
    }

    /// Stops to tell changes to those who listen: the end has come.
    pub fn fall_silent(&self) {
        self.silence.cancel();
    }

    /// Waits until nothing more is told. Cancel-safe.
    pub async fn silent(&self) {
        self.silence.cancelled().await;
    }

    /// Ends everything. The servers' time counts from `since`.
    pub async fn shut_down(&self, since: Instant) {
        self.fall_silent();
        self.pool.shut_down(since).await;
    }

    /// Notices when a server of an open toolbox changes its list.
    fn follow(&self, toolbox: &Toolbox) {
        for server in toolbox.contents().servers().values() {
            if server.is_first_to_follow() {
                let changes = self.tools_changed.clone();
                self.pool.spawn(follow_list(server.updates(), changes));
            }
        }
    }
}

/// Why a server does not offer a tool.
fn missing(tools: &ToolList, tool: &ToolIdentifier) -> LookupError {
    let reason = tools.not_approved(tool.tool.as_str()).map(str::to_owned);
    reason.map_or(LookupError::ToolUnknown, |reason| {
        LookupError::ToolNotApproved { reason }
    })
}

/// Gives a name to every tool of an open toolbox; returns them in the order of the file.
fn register(registry: &Registry, toolbox: &Toolbox) -> Vec<(Arc<str>, ToolIdentifier, RawJson)> {
    let mut registered = Vec::new();
    for (server, list) in toolbox.catalogue().lists() {
        for tool in list.tools() {
            let identifier = ToolIdentifier {
                toolbox: toolbox.name().clone(),
                server: server.clone(),
                tool: tool.name.clone(),
            };
            let name = registry.register(&identifier);
            registered.push((name, identifier, tool.definition.clone()));
        }
    }
    registered
}

/// Counts a change each time the server has another list, until the server's task ends.
async fn follow_list(mut server: watch::Receiver<Status>, changes: watch::Sender<u64>) {
    let mut known = server.borrow().tools.clone();
    while server.changed().await.is_ok() {
        let tools = server.borrow_and_update().tools.clone();
        let same = match (&known, &tools) {
            (Some(known), Some(tools)) => Arc::ptr_eq(known, tools),
            (known, tools) => known.is_none() && tools.is_none(),
        };
        if !same {
            known = tools;
            changes.send_modify(|changes| *changes += 1);
        }
    }
}
