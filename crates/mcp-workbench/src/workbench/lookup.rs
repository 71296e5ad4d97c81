//! Finding the server that has a tool.

use std::sync::Arc;

use super::{Workbench, guarded::missing};
use crate::{
    call::ClientHandle,
    config::MetaTool,
    downstream::{ConnectError, ServerHandle, ToolList, Urgency},
    ident::ToolIdentifier,
    policy::permissions::NotPermitted,
    toolbox::Toolbox,
};

/// Why a tool could not be found.
#[derive(Debug)]
pub enum LookupError {
    /// No such toolbox is configured.
    ToolboxUnknown,
    /// The toolbox is not open; this would open it.
    ToolboxNotOpen(MetaTool),
    /// The toolbox has no such server.
    ServerUnknown,
    /// The server has no such tool.
    ToolUnknown,
    /// The server has one of this name, whose definition cannot be passed on.
    ToolWithheld {
        /// What is wrong with it.
        reason: String,
    },
    /// The tool may not be called.
    NotPermitted(NotPermitted),
    /// The tool is withheld, since nobody has approved it.
    ToolNotApproved {
        /// The reason in words, with what to do.
        reason: String,
    },
    /// The server is not up and could not be started.
    NotConnected(Arc<ConnectError>),
}

impl Workbench {
    /// The meta-tool with which a toolbox is opened.
    fn opener(&self) -> MetaTool {
        if self.has(MetaTool::OpenToolbox) {
            MetaTool::OpenToolbox
        } else {
            MetaTool::SearchTools
        }
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
        if !toolbox.is_usable() && self.now.borrow().config.auto_open {
            self.open_beside(&toolbox, client);
        } else if !toolbox.is_open().await {
            return Err(LookupError::ToolboxNotOpen(self.opener()));
        }
        let server = toolbox.server(&tool.server);
        let server = server.ok_or(LookupError::ServerUnknown)?;
        let status = server.status();
        let is_known = |tools: &ToolList| tools.get(tool.tool.as_str()).is_some();
        match &status.tools {
            // What is known from an earlier run is checked when it is first used.
            _ if status.recalled => {}
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

    /// The tool of these names and its server, if they are known without waiting, and nothing has to be asked or noted
    /// for a call.
    pub fn find_known(
        &self,
        toolbox: &str,
        server: &str,
        tool: &str,
    ) -> Option<(ToolIdentifier, Arc<ServerHandle>)> {
        if self.audit.is_on() {
            return None;
        }
        let now = self.now.borrow();
        let toolbox = now.toolboxes.get(toolbox)?;
        if !toolbox.is_usable() {
            return None;
        }
        toolbox.known_tool(server, tool)
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
}
