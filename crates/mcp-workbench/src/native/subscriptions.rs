//! Which client wants to hear of changes of which resource.

use std::{
    collections::{HashMap, HashSet},
    sync::{Mutex, MutexGuard, PoisonError},
};

use crate::call::ClientId;

/// The subscriptions of all clients.
#[derive(Default)]
pub(super) struct Subscriptions {
    by_uri: Mutex<HashMap<String, HashSet<ClientId>>>,
}

impl Subscriptions {
    pub(super) fn add(&self, client: ClientId, uri: &str) {
        self.by_uri()
            .entry(uri.to_owned())
            .or_default()
            .insert(client);
    }

    /// Takes a subscription away; true if nobody else has one to the resource.
    pub(super) fn remove(&self, client: ClientId, uri: &str) -> bool {
        let mut by_uri = self.by_uri();
        let Some(clients) = by_uri.get_mut(uri) else {
            return true;
        };
        clients.remove(&client);
        let last = clients.is_empty();
        if last {
            by_uri.remove(uri);
        }
        last
    }

    /// Takes all subscriptions of a client away.
    pub(super) fn remove_client(&self, client: ClientId) {
        self.by_uri().retain(|_, clients| {
            clients.remove(&client);
            !clients.is_empty()
        });
    }

    pub(super) fn has(&self, client: ClientId, uri: &str) -> bool {
        self.by_uri()
            .get(uri)
            .is_some_and(|clients| clients.contains(&client))
    }

    fn by_uri(&self) -> MutexGuard<'_, HashMap<String, HashSet<ClientId>>> {
        self.by_uri.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
