//! The application: the configuration, the servers and the toolboxes, for all clients together. It
//! knows nothing of how it is reached.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, PoisonError},
};

use indexmap::IndexMap;
use tokio::{
    sync::{broadcast, watch},
    time::Instant,
};
use tokio_util::sync::CancellationToken;

use crate::{
    call::{ClientHandle, Principal},
    config::{Config, ToolMode},
    downstream::{ConnectError, Pool, ServerEvent, ServerHandle, Urgency},
    ident::{ServerIdentifier, ToolIdentifier, ToolboxName},
    native::Native,
    toolbox::{Links, OpenError, Opened, Registry, Toolbox, registered_definition},
    wire::RawJson,
};

/// Everything that one process serves.
pub struct Workbench {
    config: Arc<Config>,
    pool: Arc<Pool>,
    toolboxes: IndexMap<ToolboxName, Arc<Toolbox>>,
    /// The names of registered tools, in dynamic mode.
    registry: Option<Registry>,
    /// The toolbox that is shown as it is, in native mode.
    native: Option<Native>,
    /// The resources that servers have linked to.
    links: Links,
    /// Counts the changes of `tools/list`.
    tools_changed: watch::Sender<u64>,
    /// The toolboxes whose servers are followed for changes, in dynamic mode.
    followed: Mutex<HashSet<ToolboxName>>,
    /// Nothing more is told to those who listen.
    silence: CancellationToken,
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
        Arc::new(Self {
            toolboxes,
            registry,
            native,
            links: Links::default(),
            tools_changed: watch::channel(0).0,
            followed: Mutex::default(),
            silence: CancellationToken::new(),
            config,
            pool,
        })
    }

    /// The configuration.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The toolbox of this name.
    pub fn toolbox(&self, name: &str) -> Option<&Toolbox> {
        self.toolboxes.get(name).map(AsRef::as_ref)
    }

    /// The names of all toolboxes, in the order of the file.
    pub fn toolbox_names(&self) -> impl Iterator<Item = &ToolboxName> {
        self.toolboxes.keys()
    }

    /// Opens a toolbox. In dynamic mode its tools are registered.
    pub async fn open(
        &self,
        toolbox: &Toolbox,
        client: &Arc<dyn ClientHandle>,
    ) -> Result<Arc<Opened>, OpenError> {
        let opened = toolbox.open(client).await?;
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
    /// known is started for it.
    pub async fn find(
        &self,
        tool: &ToolIdentifier,
        client: &Arc<dyn ClientHandle>,
    ) -> Result<&ServerHandle, LookupError> {
        let toolbox = self
            .toolboxes
            .get(&tool.toolbox)
            .ok_or(LookupError::ToolboxUnknown)?;
        if !toolbox.is_open().await {
            return Err(LookupError::ToolboxNotOpen);
        }
        let server = toolbox
            .servers()
            .get(&tool.server)
            .ok_or(LookupError::ServerUnknown)?;
        let tools = match server.status().tools {
            Some(tools) => tools,
            None => server
                .connect(Urgency::ForCall, Arc::clone(client))
                .await
                .map_err(LookupError::NotConnected)?,
        };
        match tools.get(tool.tool.as_str()) {
            Some(_) => Ok(server),
            None => Err(LookupError::ToolUnknown),
        }
    }

    /// The server that has a tool, if that is known without waiting.
    pub fn find_known(&self, tool: &ToolIdentifier) -> Option<&ServerHandle> {
        let toolbox = self.toolboxes.get(&tool.toolbox)?;
        toolbox.opened()?;
        let server = toolbox.servers().get(&tool.server)?;
        server.knows(tool.tool.as_str()).then_some(server)
    }

    /// The names that a caller may have meant, where a lookup failed.
    pub fn known_names(&self, tool: &ToolIdentifier, error: &LookupError) -> Vec<String> {
        let toolbox = self.toolboxes.get(&tool.toolbox);
        match (error, toolbox) {
            (LookupError::ToolboxUnknown, _) => {
                self.toolbox_names().map(ToString::to_string).collect()
            }
            (LookupError::ServerUnknown, Some(toolbox)) => {
                toolbox.servers().keys().map(ToString::to_string).collect()
            }
            (LookupError::ToolUnknown, Some(toolbox)) => {
                let server = toolbox.servers().get(&tool.server);
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
    pub fn server(&self, place: &ServerIdentifier) -> Option<&ServerHandle> {
        let toolbox = self.toolboxes.get(&place.toolbox)?;
        toolbox.opened()?;
        toolbox.servers().get(&place.server)
    }

    /// The server of a task and its own name for the task, by the name that somebody was given for it.
    pub fn task(&self, sealed: &str, principal: Principal) -> Option<(&ServerHandle, String)> {
        let (place, inner) = self.pool.open_task(sealed, principal)?;
        Some((self.server(&place)?, inner))
    }

    /// The toolbox that is shown as it is, in native mode.
    pub fn native(&self) -> Option<&Native> {
        self.native.as_ref()
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
        let tools = self
            .toolboxes
            .values()
            .flat_map(|toolbox| register(registry, toolbox));
        let definitions =
            tools.map(|(name, tool, definition)| registered_definition(&name, &tool, &definition));
        definitions.collect()
    }

    /// Tells when `tools/list` has changed.
    pub fn tools_changed(&self) -> watch::Receiver<u64> {
        self.tools_changed.subscribe()
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
        let mut followed = self.followed.lock().unwrap_or_else(PoisonError::into_inner);
        if followed.insert(toolbox.config().name.clone()) {
            for server in toolbox.servers().values() {
                self.pool
                    .spawn(follow_list(server.clone(), self.tools_changed.clone()));
            }
        }
    }
}

/// Gives a name to every tool of an open toolbox; returns them in the order of the file.
fn register(registry: &Registry, toolbox: &Toolbox) -> Vec<(Arc<str>, ToolIdentifier, RawJson)> {
    let mut registered = Vec::new();
    for (server, list) in toolbox.catalogue() {
        for tool in list.tools() {
            let identifier = ToolIdentifier {
                toolbox: toolbox.config().name.clone(),
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
async fn follow_list(mut server: ServerHandle, changes: watch::Sender<u64>) {
    let mut known = server.status().tools;
    while server.changed().await {
        let tools = server.status().tools;
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
