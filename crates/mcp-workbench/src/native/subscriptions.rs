//! Who wants to hear of changes of which resource. A server is told when the last one is gone.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::timeout;

use super::{nobody::Nobody, requests::relayed};
use crate::{
    call::{ClientHandle, ClientId},
    ident::ServerName,
    toolbox::Toolbox,
    wire::{ObjectText, RawJson},
};

/// The methods by which a server is told.
pub(super) const SUBSCRIBE: &str = "resources/subscribe";
pub(super) const UNSUBSCRIBE: &str = "resources/unsubscribe";

/// How long servers may take to hear that somebody who has gone wants nothing more.
const FAREWELL: Duration = Duration::from_secs(30);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Subscriber {
    /// A client that says so for each resource.
    Client(ClientId),
    /// A request that listens, by its number.
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
    table: Mutex<Table>,
}

/// Who has subscribed to what.
#[derive(Default)]
struct Table {
    by_resource: HashMap<Resource, HashSet<Subscriber>>,
    /// How many requests have listened.
    watches: u64,
}

impl Subscriptions {
    /// Nobody has subscribed to anything of a toolbox.
    pub(super) fn new(toolbox: Arc<Toolbox>) -> Self {
        Self {
            toolbox,
            table: Mutex::default(),
        }
    }

    /// A subscriber that nobody else is.
    pub(super) fn new_watch(&self) -> Subscriber {
        let mut table = self.table();
        table.watches += 1;
        Subscriber::Watch(table.watches)
    }

    pub(super) fn add(&self, subscriber: Subscriber, resource: &Resource) {
        self.table().add(subscriber, resource);
    }

    /// Takes a subscription away; true if nobody else has one to the resource.
    pub(super) fn remove(&self, subscriber: Subscriber, resource: &Resource) -> bool {
        self.table().remove(subscriber, resource)
    }

    /// Whether somebody has subscribed to a resource.
    pub(super) fn has(&self, subscriber: Subscriber, resource: &Resource) -> bool {
        let table = self.table();
        let subscribers = table.by_resource.get(resource);
        subscribers.is_some_and(|it| it.contains(&subscriber))
    }

    /// What somebody has subscribed to under a URI.
    pub(super) fn of(&self, subscriber: Subscriber, uri: &str) -> Option<Resource> {
        let table = self.table();
        let mut subscriptions = table.by_resource.iter();
        let found = subscriptions.find(|(it, who)| it.uri == uri && who.contains(&subscriber));
        found.map(|(resource, _)| resource.clone())
    }

    /// Takes all subscriptions of somebody away. The servers hear of what nobody wants any more, beside
    /// everything else.
    pub(super) fn release(self: &Arc<Self>, subscriber: Subscriber) {
        let unwanted = self.table().remove_all(subscriber);
        if unwanted.is_empty() {
            return;
        }
        let subscriptions = Arc::clone(self);
        self.toolbox.spawn(async move {
            let told = subscriptions.unsubscribe_all(&unwanted);
            if timeout(FAREWELL, told).await.is_err() {
                tracing::warn!(
                    "timed out after {} s waiting for a server to end a subscription",
                    FAREWELL.as_secs()
                );
            }
        });
    }

    async fn unsubscribe_all(&self, resources: &[Resource]) {
        let nobody: Arc<dyn ClientHandle> = Arc::new(Nobody);
        for resource in resources {
            if !self.is_wanted(resource) {
                self.tell(UNSUBSCRIBE, resource, &nobody).await;
                self.renew_if_wanted(resource, &nobody).await;
            }
        }
    }

    /// Subscribes again to what somebody has come to want while its server was told that nobody does: which
    /// of the two the server heard last is not known.
    pub(super) async fn renew_if_wanted(
        &self,
        resource: &Resource,
        client: &Arc<dyn ClientHandle>,
    ) {
        if self.is_wanted(resource) {
            self.tell(SUBSCRIBE, resource, client).await;
        }
    }

    /// Tells the server of a resource; true if it agrees.
    pub(super) async fn tell(
        &self,
        method: &'static str,
        resource: &Resource,
        client: &Arc<dyn ClientHandle>,
    ) -> bool {
        let Some(server) = self.toolbox.server(&resource.server) else {
            return false;
        };
        let params = ObjectText::new().member("uri", &resource.uri).finish();
        let told = server.call(relayed(method, &params, client)).await;
        if let Err(error) = &told {
            tracing::debug!("{method} of {}: {error}", resource.server);
        }
        told.is_ok()
    }

    fn is_wanted(&self, resource: &Resource) -> bool {
        self.table().by_resource.contains_key(resource)
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn add(&mut self, subscriber: Subscriber, resource: &Resource) {
        let subscribers = self.by_resource.entry(resource.clone()).or_default();
        subscribers.insert(subscriber);
    }

    /// True if nobody else has a subscription to the resource.
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

    /// The resources that nobody wants any more.
    fn remove_all(&mut self, subscriber: Subscriber) -> Vec<Resource> {
        let unwanted = self
            .by_resource
            .extract_if(|_, subscribers| subscribers.remove(&subscriber) && subscribers.is_empty());
        unwanted.map(|(resource, _)| resource).collect()
    }
}

/// The URI that the parameters of a notification name, as a resource of its server.
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
    fn the_last_of_all_kinds_of_subscribers_is_the_last() {
        let mut table = Table::default();
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
