//! The changes that a listening request subscribes to, as far as the servers can report them, and the
//! subscriptions at the servers that this needs while the request listens.

use std::sync::Arc;

use ident::ToolboxName;

use super::{
    Native,
    subscriptions::{Resource, SUBSCRIBE, Subscriber, Subscriptions, resource_of},
};
use crate::{
    call::ClientHandle,
    downstream::{Change, ServerEvent, ServerFamily},
};

/// The changes that a client subscribes to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Changes {
    /// Changes of the list of tools.
    pub tools: bool,
    /// Changes of the list of prompts.
    pub prompts: bool,
    /// Changes of the lists of resources and templates.
    pub resources: bool,
    pub uris: Vec<String>,
}

/// A listening request. Its subscriptions end when this is dropped.
pub(crate) struct Watch {
    toolbox: ToolboxName,
    subscriptions: Arc<Subscriptions>,
    subscriber: Subscriber,
    pub changes: Changes,
}

impl Watch {
    /// Starts to watch those of the changes that servers can report. Every notification from now on counts.
    pub(crate) async fn begin(
        native: &Native,
        wanted: &Changes,
        client: &Arc<dyn ClientHandle>,
    ) -> Self {
        let has = |family| !native.servers_with(family).is_empty();
        let mut watch = Self {
            toolbox: native.toolbox.name().clone(),
            subscriptions: Arc::clone(&native.subscriptions),
            subscriber: native.subscriptions.new_watch(),
            changes: Changes {
                tools: wanted.tools,
                prompts: wanted.prompts && has(ServerFamily::Prompts),
                resources: wanted.resources && has(ServerFamily::Resources),
                uris: Vec::new(),
            },
        };
        for uri in &wanted.uris {
            if let Some(resource) = subscribable(native, uri, client).await {
                watch.add(resource, client).await;
            }
        }
        watch
    }

    /// Adds a resource, if its server accepts the subscription.
    async fn add(&mut self, resource: Resource, client: &Arc<dyn ClientHandle>) {
        if self.changes.uris.contains(&resource.uri) {
            return;
        }
        // Added first, because the server may notify of a change before its response arrives.
        self.subscriptions.add(self.subscriber, &resource);
        if self.subscriptions.send(SUBSCRIBE, &resource, client).await {
            self.changes.uris.push(resource.uri);
        } else {
            self.subscriptions.remove(self.subscriber, &resource);
        }
    }

    /// Returns whether an event is one of the watched changes.
    pub(crate) fn concerns(&self, event: &ServerEvent) -> bool {
        if event.server.toolbox != self.toolbox {
            return false;
        }
        match &event.change {
            Change::Prompts => self.changes.prompts,
            Change::Resources => self.changes.resources,
            Change::Resource(params) => {
                let resource = resource_of(&event.server.server, params);
                resource.is_some_and(|it| self.subscriptions.has(self.subscriber, &it))
            }
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.subscriptions.release(self.subscriber);
    }
}

/// Returns the resource that a URI names, if its server supports subscriptions.
async fn subscribable(
    native: &Native,
    uri: &str,
    client: &Arc<dyn ClientHandle>,
) -> Option<Resource> {
    let route = native.resource_route(uri, client).await.ok()?;
    let server = native.toolbox.server(&route.server)?;
    let tells = server.status().tools?.introduction.subscriptions;
    tells.then(|| Resource {
        server: route.server,
        uri: uri.to_owned(),
    })
}
