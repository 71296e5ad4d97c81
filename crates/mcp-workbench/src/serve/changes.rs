//! What a legacy client is told without having asked: lists and resources that have changed. A modern client
//! asks for that.

use std::sync::Arc;

use tokio::sync::broadcast::error::RecvError;

use super::{caller::Caller, connection::Connection};
use crate::{
    downstream::{Change, ServerEvent},
    wire::{self, RawJson},
};

impl Connection {
    /// Tells the client what changes, for as long as it is there.
    pub(super) async fn tell_changes(self: &Arc<Self>) {
        let mut tools = self.workbench().tools_changed();
        let mut events = self.workbench().events();
        loop {
            tokio::select! {
                Ok(()) = tools.changed() => self.tell("notifications/tools/list_changed", None),
                event = events.recv() => match event {
                    Ok(event) => self.tell_event(&event),
                    // What was missed is not known, so anything may have changed.
                    Err(RecvError::Lagged(_)) if self.workbench().native().is_some() => {
                        self.tell("notifications/prompts/list_changed", None);
                        self.tell("notifications/resources/list_changed", None);
                    }
                    Err(RecvError::Lagged(_)) => {}
                    Err(RecvError::Closed) => return,
                },
            }
        }
    }

    fn tell_event(self: &Arc<Self>, event: &ServerEvent) {
        let caller = Caller::new(Arc::clone(self), self.output());
        let native = self.workbench().native();
        if native.is_some_and(|native| native.concerns(event, &caller)) {
            match &event.change {
                Change::Prompts => self.tell("notifications/prompts/list_changed", None),
                Change::Resources => self.tell("notifications/resources/list_changed", None),
                Change::Resource(params) => {
                    self.tell("notifications/resources/updated", Some(params));
                }
            }
        }
    }

    /// Sends a notification, once the client is there to hear it.
    fn tell(&self, method: &str, params: Option<&RawJson>) {
        if self.revision().is_some() {
            self.output().notify(wire::notification(method, params));
        }
    }
}
