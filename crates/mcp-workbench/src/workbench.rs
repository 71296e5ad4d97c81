//! The application: the configuration, the servers and the toolboxes, for all clients together. It
//! knows nothing of how it is reached.

use std::sync::Arc;

use indexmap::IndexMap;
use tokio::{sync::watch, time::Instant};

use crate::{
    config::{Config, ToolMode},
    downstream::{ConnectError, Pool, ServerHandle},
    ident::{ToolIdentifier, ToolboxName},
    toolbox::{OpenError, Opened, Registry, Toolbox, registered_definition},
    wire::RawJson,
};

/// Everything that one process serves.
pub struct Workbench {
    config: Arc<Config>,
    pool: Arc<Pool>,
    toolboxes: IndexMap<ToolboxName, Toolbox>,
    /// The names of registered tools, in dynamic mode.
    registry: Option<Registry>,
    /// Counts the changes of `tools/list`.
    tools_changed: watch::Sender<u64>,
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
        let pool = Arc::new(Pool::new());
        let toolboxes = config.toolboxes.iter();
        let toolboxes = toolboxes.map(|(name, toolbox)| {
            (
                name.clone(),
                Toolbox::new(Arc::clone(toolbox), Arc::clone(&pool)),
            )
        });
        Arc::new(Self {
            toolboxes: toolboxes.collect(),
            registry: match config.tool_mode {
                ToolMode::Proxy => None,
                ToolMode::Dynamic => Some(Registry::new(config.tool_name_limit)),
            },
            tools_changed: watch::channel(0).0,
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
        self.toolboxes.get(name)
    }

    /// The names of all toolboxes, in the order of the file.
    pub fn toolbox_names(&self) -> impl Iterator<Item = &ToolboxName> {
        self.toolboxes.keys()
    }

    /// Opens a toolbox. In dynamic mode its tools are registered.
    pub async fn open(&self, toolbox: &Toolbox) -> Result<Arc<Opened>, OpenError> {
        let opened = toolbox.open().await?;
        self.register(&toolbox.config().name, &opened);
        Ok(opened)
    }

    /// Finds the server that has a tool: toolbox, then server, then tool. A server whose tools are not
    /// known is started for it.
    pub async fn find(&self, tool: &ToolIdentifier) -> Result<&ServerHandle, LookupError> {
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
            None => server.connect().await.map_err(LookupError::NotConnected)?,
        };
        match tools.get(tool.tool.as_str()) {
            Some(_) => Ok(server),
            None => Err(LookupError::ToolUnknown),
        }
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
        let mut definitions = Vec::new();
        for (name, toolbox) in &self.toolboxes {
            let Some(opened) = toolbox.opened() else {
                continue;
            };
            for_each_tool(name, &opened, |tool, definition| {
                let registered = registry.register(&tool, is_reserved);
                definitions.push(registered_definition(&registered, &tool, definition));
            });
        }
        definitions
    }

    /// Tells when `tools/list` has changed.
    pub fn tools_changed(&self) -> watch::Receiver<u64> {
        self.tools_changed.subscribe()
    }

    /// Ends everything. The servers' time counts from `since`.
    pub async fn shut_down(&self, since: Instant) {
        self.pool.shut_down(since).await;
    }

    fn register(&self, name: &ToolboxName, opened: &Opened) {
        let Some(registry) = &self.registry else {
            return;
        };
        let before = registry.len();
        for_each_tool(name, opened, |tool, _| {
            registry.register(&tool, is_reserved);
        });
        if registry.len() > before {
            self.tools_changed.send_modify(|changes| *changes += 1);
        }
    }
}

/// The names of our own tools. They have no two double underscores, so no tool can ask for them; this
/// says so where it matters.
fn is_reserved(name: &str) -> bool {
    matches!(name, "open_toolbox" | "use_tool")
}

fn for_each_tool(
    toolbox: &ToolboxName,
    opened: &Opened,
    mut visit: impl FnMut(ToolIdentifier, &RawJson),
) {
    for (server, list) in &opened.catalogue {
        for tool in list.tools() {
            let identifier = ToolIdentifier {
                toolbox: toolbox.clone(),
                server: server.clone(),
                tool: tool.name.clone(),
            };
            visit(identifier, &tool.definition);
        }
    }
}
