//! What servers tell everybody, and not the caller of one call.

use rawjson::RawJson;

use crate::ident::ServerIdentifier;

/// Something that a server has told.
#[derive(Debug, Clone)]
pub(crate) struct ServerEvent {
    pub server: ServerIdentifier,
    pub change: Change,
}

/// What can change on a server besides its tools.
#[derive(Debug, Clone)]
pub(crate) enum Change {
    Prompts,
    /// Its list of resources or templates.
    Resources,
    /// One resource; these are the parameters of the notification.
    Resource(RawJson),
}
