//! An immutable snapshot of an open toolbox: the catalogue of its servers' tools, and the result that the caller got.

use std::{
    fmt,
    sync::{Arc, OnceLock},
};

use ident::{ServerName, ToolboxName};
use rawjson::RawJson;

use super::render::render;
use crate::{
    config::{self, Detail},
    downstream::{ConnectError, ToolDefinition, ToolList},
    visible::visible,
};

/// The result of opening a toolbox.
pub(crate) struct Opened {
    /// The configuration of the toolbox at that time.
    pub(super) config: Arc<config::Toolbox>,
    /// The number of connected servers.
    pub(super) connected: usize,
    /// The tools of the servers that are up, or whose tools are known anyway, in the order of the file.
    pub catalogue: Vec<(ServerName, Arc<ToolList>)>,
    /// The servers that are not up.
    pub failures: Vec<ServerFailure>,
    /// The result of `open_toolbox`, once it was asked for: native mode and calls to a closed toolbox do not need it.
    full_result: OnceLock<RawJson>,
}

impl Opened {
    /// Creates the snapshot.
    pub(crate) fn new(
        config: Arc<config::Toolbox>,
        catalogue: Vec<(ServerName, Arc<ToolList>)>,
        connected: usize,
        failures: Vec<ServerFailure>,
    ) -> Self {
        Self {
            config,
            connected,
            catalogue,
            failures,
            full_result: OnceLock::new(),
        }
    }

    /// Returns the result of `open_toolbox` in full detail. The first call renders it.
    pub(super) fn full_result(&self) -> RawJson {
        let result = self.full_result.get_or_init(|| {
            let Self {
                config,
                catalogue,
                connected,
                failures,
                ..
            } = self;
            render(config, catalogue, *connected, failures, Detail::Full)
        });
        result.clone()
    }

    /// Returns how many bytes are read to render the result in a detail.
    pub(crate) fn unrendered_bytes(&self, detail: Detail) -> usize {
        match (detail, self.full_result.get()) {
            (Detail::Full, Some(_)) => 0,
            _ => self.bytes(),
        }
    }

    /// Returns true if a tool is for user interfaces only.
    pub(crate) fn has_app_only(&self) -> bool {
        self.catalogue.iter().any(|(_, list)| list.has_app_only())
    }

    /// Returns the toolbox without the tools that are for user interfaces only.
    pub(crate) fn for_model(&self) -> Arc<Self> {
        let catalogue = self.catalogue.iter();
        let catalogue =
            catalogue.map(|(server, list)| (server.clone(), Arc::new(list.for_model())));
        Arc::new(Self::new(
            Arc::clone(&self.config),
            catalogue.collect(),
            self.connected,
            self.failures.clone(),
        ))
    }

    pub(crate) fn name(&self) -> &ToolboxName {
        &self.config.name
    }

    /// Returns the size of the definitions of all tools.
    pub(crate) fn bytes(&self) -> usize {
        let lists = self.catalogue.iter();
        lists.map(|(_, list)| list.bytes()).sum()
    }

    /// Returns a tool of a server that is up.
    pub(crate) fn tool(&self, server: &ServerName, tool: &str) -> Option<&ToolDefinition> {
        let mut servers = self.catalogue.iter();
        let (_, list) = servers.find(|(name, _)| name == server)?;
        list.get(tool)
    }
}

/// A server that is not up, with its message.
#[derive(Debug, Clone)]
pub(crate) struct ServerFailure {
    pub toolbox: ToolboxName,
    pub server: ServerName,
    /// The reason why it is not up.
    pub error: Arc<ConnectError>,
}

impl fmt::Display for ServerFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Failed to connect to server '{}' in toolbox '{}': {}",
            visible(self.server.as_str()),
            visible(self.toolbox.as_str()),
            self.error
        )
    }
}
