//! Subscriptions to resources. A server gets an unsubscribe request when the last subscriber is gone.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use ident::ServerName;
use rawjson::{ObjectText, RawJson};
use tokio::time::timeout;

use super::{nobody::Nobody, requests::relayed};
use crate::{
    call::{ClientHandle, ClientId},
    sync::lock,
    toolbox::Toolbox,
};

pub(super) const SUBSCRIBE: &str = "resources/subscribe";
pub(super) const UNSUBSCRIBE: &str = "resources/unsubscribe";

/// The timeout for the unsubscribe requests of a client that has gone.
const UNSUBSCRIBE_TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Subscriber {
    /// A client that subscribes to each resource.
    Client(ClientId),
    /// A listening request, by its number.
    Watch(u64),
}

/// A resource of a server.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Resource {
    pub(super) server: ServerName,
    pub(super) uri: String,
}

pub(super) struct Subscriptions {
    toolbox: Arc<Toolbox>,
    table: Mutex<SubscriptionTable>,
}

/// The subscribers of each resource.
#[derive(Default)]
struct SubscriptionTable {
    by_resource: HashMap<Resource, HashSet<Subscriber>>,
    /// The number of listening requests so far.
    watches: u64,
}

impl Subscriptions {
    /// Creates an empty table of subscriptions for a toolbox.
    pub(super) fn new(toolbox: Arc<Toolbox>) -> Self {
        Self {
            toolbox,
            table: Mutex::default(),
        }
    }

    /// Returns a new, unique subscriber.
    pub(super) fn new_watch(&self) -> Subscriber {
        let mut table = self.table();
        table.watches += 1;
        Subscriber::Watch(table.watches)
    }

    pub(super) fn add(&self, subscriber: Subscriber, resource: &Resource) {
        self.table().add(subscriber, resource);
    }

    /// Removes a subscription. Returns true if the resource has no other subscriber.
    pub(super) fn remove(&self, subscriber: Subscriber, resource: &Resource) -> bool {
        self.table().remove(subscriber, resource)
    }

    /// Returns whether a subscriber has subscribed to a resource.
    pub(super) fn has(&self, subscriber: Subscriber, resource: &Resource) -> bool {
        let table = self.table();
        let subscribers = table.by_resource.get(resource);
        subscribers.is_some_and(|it| it.contains(&subscriber))
    }

    /// Returns the resource that a subscriber has subscribed to under a URI.
    pub(super) fn of(&self, subscriber: Subscriber, uri: &str) -> Option<Resource> {
        let table = self.table();
        let mut subscriptions = table.by_resource.iter();
        let found = subscriptions.find(|(it, who)| it.uri == uri && who.contains(&subscriber));
        found.map(|(resource, _)| resource.clone())
    }

    /// Removes all subscriptions of a subscriber, and sends the unsubscribe requests in the background.
    pub(super) fn release(self: &Arc<Self>, subscriber: Subscriber) {
        let unwanted = self.table().remove_all(subscriber);
        if unwanted.is_empty() {
            return;
        }
        // In the background: the client is gone, and nobody waits for the servers.
        let subscriptions = Arc::clone(self);
        self.toolbox.spawn(async move {
            let sent = subscriptions.unsubscribe_all(&unwanted);
            if timeout(UNSUBSCRIBE_TIMEOUT, sent).await.is_err() {
                tracing::warn!(
                    "timed out after {} s waiting for a server to end a subscription",
                    UNSUBSCRIBE_TIMEOUT.as_secs()
                );
            }
        });
    }

    async fn unsubscribe_all(&self, resources: &[Resource]) {
        let nobody: Arc<dyn ClientHandle> = Arc::new(Nobody);
        for resource in resources {
            // A new subscriber may have come since the resource was found to be unwanted.
            if !self.is_wanted(resource) {
                self.send(UNSUBSCRIBE, resource, &nobody).await;
                self.renew_if_wanted(resource, &nobody).await;
            }
        }
    }

    /// Subscribes again if a new subscriber came while the server was sent an unsubscribe request. It is unknown
    /// which of the two requests the server processed last.
    pub(super) async fn renew_if_wanted(
        &self,
        resource: &Resource,
        client: &Arc<dyn ClientHandle>,
    ) {
        if self.is_wanted(resource) {
            self.send(SUBSCRIBE, resource, client).await;
        }
    }

    /// Sends a request about a resource to its server. Returns true if the server accepts it.
    pub(super) async fn send(
        &self,
        method: &'static str,
        resource: &Resource,
        client: &Arc<dyn ClientHandle>,
    ) -> bool {
        let Some(server) = self.toolbox.server(&resource.server) else {
            return false;
        };
        let params = ObjectText::new().member("uri", &resource.uri).finish();
        let sent = server.call(relayed(method, &params, client)).await;
        if let Err(error) = &sent {
            tracing::debug!("{method} of {}: {error}", resource.server);
        }
        sent.is_ok()
    }

    fn is_wanted(&self, resource: &Resource) -> bool {
        self.table().by_resource.contains_key(resource)
    }

    fn table(&self) -> MutexGuard<'_, SubscriptionTable> {
        lock(&self.table)
    }
}

impl SubscriptionTable {
    fn add(&mut self, subscriber: Subscriber, resource: &Resource) {
        let subscribers = self.by_resource.entry(resource.clone()).or_default();
        subscribers.insert(subscriber);
    }

    /// Returns true if the resource has no other subscriber.
    fn remove(&mut self, subscriber: Subscriber, resource: &Resource) -> bool {
        let Some(subscribers) = self.by_resource.get_mut(resource) else {
            return true;
        };
        subscribers.remove(&subscriber);
        let last = subscribers.is_empty();
        if last {
            self.by_resource.remove(resource);
        }
        last
    }

    /// Returns the resources that have no subscribers left.
    fn remove_all(&mut self, subscriber: Subscriber) -> Vec<Resource> {
        let unwanted = self
            .by_resource
            .extract_if(|_, subscribers| subscribers.remove(&subscriber) && subscribers.is_empty());
        unwanted.map(|(resource, _)| resource).collect()
    }
}

/// Returns the resource that the parameters of a server's notification name.
pub(super) fn resource_of(server: &ServerName, params: &RawJson) -> Option<Resource> {
    let uri = params.member("uri")?;
    Some(Resource {
        server: server.clone(),
        uri: uri.as_text()?.into_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resource(server: &str) -> Resource {
        Resource {
            server: server.into(),
            uri: "u:1".to_owned(),
        }
    }

    #[test]
    fn a_resource_is_unsubscribed_with_its_last_subscriber_of_any_kind() {
        let mut table = SubscriptionTable::default();
        let (client, watch) = (Subscriber::Client(ClientId(1)), Subscriber::Watch(1));
        table.add(client, &resource("a"));
        table.add(watch, &resource("a"));
        table.add(watch, &resource("b"));
        assert!(!table.remove(client, &resource("a")));
        assert!(table.remove(watch, &resource("a")));
        assert!(table.remove(client, &resource("a")), "nobody has one");
        table.add(client, &resource("a"));
        table.add(watch, &resource("a"));
        assert_eq!(table.remove_all(watch), [resource("b")]);
        assert_eq!(table.remove_all(watch), []);
        assert_eq!(table.remove_all(client), [resource("a")]);
        assert!(table.by_resource.is_empty());
    }
}
