//! An immutable picture of an open toolbox: the catalogue of its servers' tools, and what was answered
//! to the caller that opened it.

use std::{fmt, sync::Arc};

use crate::{
    config,
    downstream::{ConnectError, ToolList},
    ident::{ServerName, ToolboxName},
    wire::RawJson,
};

/// What was found when a toolbox was opened.
pub struct Opened {
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

/// A server that is not up, and the words for it.
#[derive(Debug, Clone)]
pub struct ServerFailure {
    /// The toolbox.
    pub toolbox: ToolboxName,
    /// The server.
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
