//! Events of servers that concern all clients, not only the caller of one call.

use ident::ServerIdentifier;
use rawjson::RawJson;
use tokio::sync::broadcast::{
    Receiver,
    error::{RecvError, TryRecvError},
};

use super::instances::ViewId;

/// An event of one server.
#[derive(Debug, Clone)]
pub(crate) struct ServerEvent {
    pub source: EventSource,
    pub server: ServerIdentifier,
    pub change: Change,
}

/// The origin of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EventSource {
    /// The server with this number.
    Server(u64),
    /// A change of one client's configuration.
    Configuration(ViewId),
}

/// The events that concern one client.
pub(crate) struct Events {
    events: Receiver<ServerEvent>,
    concerns: Box<dyn Fn(EventSource) -> bool + Send + Sync>,
}

impl Events {
    pub(super) fn new(
        events: Receiver<ServerEvent>,
        concerns: impl Fn(EventSource) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self {
            events,
            concerns: Box::new(concerns),
        }
    }

    /// Waits for the next event. Cancel-safe.
    pub(crate) async fn recv(&mut self) -> Result<ServerEvent, RecvError> {
        loop {
            let event = self.events.recv().await?;
            if (self.concerns)(event.source) {
                return Ok(event);
            }
        }
    }

    /// Returns the next event that has happened.
    pub(crate) fn try_recv(&mut self) -> Result<ServerEvent, TryRecvError> {
        loop {
            let event = self.events.try_recv()?;
            if (self.concerns)(event.source) {
                return Ok(event);
            }
        }
    }
}

/// A change on a server that does not concern its tools.
#[derive(Debug, Clone)]
pub(crate) enum Change {
    Prompts,
    Resources,
    /// One resource, with the parameters of the notification.
    Resource(RawJson),
}
