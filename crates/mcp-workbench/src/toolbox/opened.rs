//! An immutable picture of an open toolbox: the catalogue of its servers' tools, and what was answered
//! to the caller that opened it.

use std::{fmt, sync::Arc};

use super::render::render;
use crate::{
    config::{self, Detail},
    downstream::{ConnectError, ToolDefinition, ToolList},
    ident::{ServerName, ToolboxName},
    wire::RawJson,
};

/// What was found when a toolbox was opened.
pub(crate) struct Opened {
    /// What the configuration said of the toolbox.
    pub(super) config: Arc<config::Toolbox>,
    /// How many servers were connected.
    pub(super) connected: usize,
    /// The tools of the servers that are up, or whose tools are known without that, in the order of the file.
    pub catalogue: Vec<(ServerName, Arc<ToolList>)>,
    /// The servers that are not.
    pub failures: Vec<ServerFailure>,
    /// All of it as the result of `open_toolbox`.
    pub result: RawJson,
}

impl Opened {
    /// The picture of what was found, with how many servers connected.
    pub(crate) fn new(
        config: Arc<config::Toolbox>,
        catalogue: Vec<(ServerName, Arc<ToolList>)>,
        connected: usize,
        failures: Vec<ServerFailure>,
    ) -> Self {
        Self {
            result: render(&config, &catalogue, connected, &failures, Detail::Full),
            config,
            connected,
            catalogue,
            failures,
        }
    }

    pub(crate) fn name(&self) -> &ToolboxName {
        &self.config.name
    }

    /// Returns the size of the definitions of all tools.
    pub(crate) fn bytes(&self) -> usize {
        let lists = self.catalogue.iter();
        lists.map(|(_, list)| list.bytes()).sum()
    }

    /// A tool of a server that is up.
    pub(crate) fn tool(&self, server: &ServerName, tool: &str) -> Option<&ToolDefinition> {
        let mut servers = self.catalogue.iter();
        let (_, list) = servers.find(|(name, _)| name == server)?;
        list.get(tool)
    }
}

/// A server that is not up, and the words for it.
#[derive(Debug, Clone)]
pub(crate) struct ServerFailure {
    pub toolbox: ToolboxName,
    pub server: ServerName,
    /// Why it is not up.
    pub error: Arc<ConnectError>,
}

impl fmt::Display for ServerFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Failed to connect to server '{}' in toolbox '{}': {}",
            self.server, self.toolbox, self.error
        )
    }
}
