//! The clients that have used a server since its start. They decide who gets a message of the server that belongs to
//! no request.

use std::sync::Arc;

use crate::call::ClientHandle;

/// The clients that have used a server since its start.
pub(crate) enum Users {
    Nobody,
    /// One client, which gets everything that the server sends.
    One(Arc<dyn ClientHandle>),
    /// Several clients. Only the pending calls show which of them the server means.
    Several,
}

impl Users {
    /// Records that a client uses the server.
    pub(crate) fn record(&mut self, client: &Arc<dyn ClientHandle>) {
        *self = match self {
            // The handle of a request ends with the request.
            Self::Nobody => Self::One(client.lasting()),
            Self::One(known) if known.id() == client.id() => return,
            Self::One(_) | Self::Several => Self::Several,
        };
    }

    /// Returns the server's only client if its queue is full. Nothing is read from the server until that client
    /// reads.
    pub(crate) fn full_client(&self) -> Option<Arc<dyn ClientHandle>> {
        match self {
            Self::One(client) if client.is_full() => Some(Arc::clone(client)),
            // With several clients, one that does not read must not hold up the others.
            _ => None,
        }
    }
}

/// Waits until a client has room again. Cancel-safe.
pub(crate) async fn wait_for_room(client: Option<&Arc<dyn ClientHandle>>) {
    if let Some(client) = client {
        client.room().await;
    }
}
