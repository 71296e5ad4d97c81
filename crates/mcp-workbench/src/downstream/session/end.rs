//! The end of a session.

use tokio::time::Instant;

use crate::downstream::{
    error::{HttpFault, StopReason},
    process::Exit,
};

/// The reason why a session ended.
pub(crate) enum SessionEnd {
    Exited(Exit),
    /// The connection to a remote server was lost.
    Lost(HttpFault),
    /// The server became unusable and is stopped.
    GivenUp(StopReason),
    /// It was unused for its `idleTimeoutMs`.
    Idle,
    /// A command stops it.
    Stopped,
    /// The last handle was dropped.
    Retired,
    /// A server with a different protocol is at its address now.
    Replaced,
    /// The workbench is shutting down, since this moment.
    Shutdown(Instant),
}

impl SessionEnd {
    /// Returns the type of the error, if the session did not end in order.
    pub(crate) fn error_type(&self) -> Option<&'static str> {
        match self {
            Self::Exited(_) => Some("server_exited"),
            Self::Lost(fault) => Some(fault.code()),
            Self::GivenUp(_) => Some("server_stopped"),
            Self::Idle | Self::Stopped | Self::Retired | Self::Replaced | Self::Shutdown(_) => None,
        }
    }
}
