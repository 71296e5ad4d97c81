//! The clients that have used a server since its start: whom it means by what it says without saying to whom.

use std::sync::Arc;

use crate::call::ClientHandle;

/// The clients that have used a server since its start.
pub(crate) enum Users {
    Nobody,
    /// One, to whom everything that the server says belongs.
    One(Arc<dyn ClientHandle>),
    /// Several: only the calls that the server has tell whom it means.
    Several,
}

impl Users {
    /// Notes that a client uses the server.
    pub(crate) fn note(&mut self, client: &Arc<dyn ClientHandle>) {
        *self = match self {
            Self::Nobody => Self::One(client.lasting()),
            Self::One(known) if known.id() == client.id() => return,
            Self::One(_) | Self::Several => Self::Several,
        };
    }

    /// The client that does not read what the server has for it, if the server works for no other: then
    /// nothing more is read from the server either.
    pub(crate) fn held_up(&self) -> Option<Arc<dyn ClientHandle>> {
        match self {
            Self::One(client) if client.is_full() => Some(Arc::clone(client)),
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
