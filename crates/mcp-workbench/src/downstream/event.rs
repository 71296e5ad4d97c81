//! Events of servers that concern all clients, not only the caller of one call.

use ident::ServerIdentifier;
use rawjson::RawJson;

/// An event of one server.
#[derive(Debug, Clone)]
pub(crate) struct ServerEvent {
    pub server: ServerIdentifier,
    pub change: Change,
}

/// A change on a server that does not concern its tools.
#[derive(Debug, Clone)]
pub(crate) enum Change {
    Prompts,
    Resources,
    /// One resource, with the parameters of the notification.
    Resource(RawJson),
}
