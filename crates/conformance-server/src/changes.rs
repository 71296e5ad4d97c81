//! The changes while the fixture runs, and their recipients: the lists of tools and prompts, and a resource.

use std::sync::atomic::{AtomicBool, Ordering};

use rmcp::{
    RoleServer,
    model::{ResourceUpdatedNotificationParam, SubscriptionFilter},
    service::{
        RequestContext, ServiceError, SubscriptionContext, SubscriptionSendError, SubscriptionSink,
    },
};
use tokio::sync::broadcast::{self, error::RecvError};

use crate::{interview::is_modern, resources};

/// How many changes a slow listener may be behind.
const BACKLOG: usize = 64;

#[derive(Clone, Copy)]
pub(crate) enum Change {
    Tools,
    Prompts,
    WatchedResource,
}

/// The changes of this process, for all its sessions.
pub(crate) struct Changes {
    /// True while the changing list contains the extra tool.
    extra_tool: AtomicBool,
    /// True while the changing list contains the extra prompt.
    extra_prompt: AtomicBool,
    listeners: broadcast::Sender<Change>,
}

impl Default for Changes {
    fn default() -> Self {
        Self {
            extra_tool: AtomicBool::default(),
            extra_prompt: AtomicBool::default(),
            listeners: broadcast::Sender::new(BACKLOG),
        }
    }
}

impl Changes {
    /// Returns true if the extra tool is listed.
    pub(crate) fn has_extra_tool(&self) -> bool {
        self.extra_tool.load(Ordering::Relaxed)
    }

    /// Returns true if the extra prompt is listed.
    pub(crate) fn has_extra_prompt(&self) -> bool {
        self.extra_prompt.load(Ordering::Relaxed)
    }

    /// Makes a change, and notifies every subscription. A legacy client that asked for the change is notified too,
    /// because its notifications do not depend on subscriptions.
    pub(crate) async fn make(
        &self,
        change: Change,
        context: &RequestContext<RoleServer>,
    ) -> Result<(), ServiceError> {
        match change {
            Change::Tools => _ = self.extra_tool.fetch_xor(true, Ordering::Relaxed),
            Change::Prompts => _ = self.extra_prompt.fetch_xor(true, Ordering::Relaxed),
            Change::WatchedResource => {}
        }
        // An error means that there are no subscriptions.
        let _ = self.listeners.send(change);
        match change {
            _ if is_modern(context) => Ok(()),
            Change::Tools => context.peer.notify_tool_list_changed().await,
            Change::Prompts => context.peer.notify_prompt_list_changed().await,
            Change::WatchedResource => {
                let update = ResourceUpdatedNotificationParam::new(resources::WATCHED);
                context.peer.notify_resource_updated(update).await
            }
        }
    }

    /// Notifies a subscription of the changes that it asked for, until the client ends it.
    pub(crate) async fn tell(&self, subscription: &SubscriptionContext) {
        let mut changes = self.listeners.subscribe();
        loop {
            let change = tokio::select! {
                () = subscription.cancelled() => return,
                change = changes.recv() => change,
            };
            let outcome = match change {
                Ok(change) => tell_one(subscription.sink(), change).await,
                Err(RecvError::Lagged(_)) => continue,
                Err(RecvError::Closed) => return,
            };
            match outcome {
                Ok(()) | Err(SubscriptionSendError::NotificationNotAccepted(_)) => {}
                Err(_) => return,
            }
        }
    }
}

/// Returns the part of a filter that the fixture can serve.
pub(crate) fn accepted(requested: &SubscriptionFilter) -> SubscriptionFilter {
    let mut accepted = requested.clone();
    if let Some(uris) = &mut accepted.resource_subscriptions {
        uris.retain(|uri| resources::read(uri).is_ok());
    }
    accepted
}

async fn tell_one(sink: &SubscriptionSink, change: Change) -> Result<(), SubscriptionSendError> {
    match change {
        Change::Tools => sink.notify_tool_list_changed().await,
        Change::Prompts => sink.notify_prompt_list_changed().await,
        Change::WatchedResource => sink.notify_resource_updated(resources::WATCHED).await,
    }
}
