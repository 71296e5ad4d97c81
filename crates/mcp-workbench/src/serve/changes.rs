//! Unsolicited notifications to a legacy client: changed lists and resources. A modern client subscribes to them.

use std::sync::Arc;

use rawjson::RawJson;
use tokio::sync::broadcast::error::RecvError;

use super::{caller::Caller, connection::Connection};
use crate::{
    downstream::{Change, ServerEvent},
    wire,
};

/// Sends the client a notification for each change, for as long as it is connected.
pub(super) async fn tell_changes(connection: &Arc<Connection>) {
    let mut tools = connection.workbench().tools_changed();
    let mut events = connection.workbench().events();
    loop {
        tokio::select! {
            Ok(()) = tools.changed() => tell(connection, "notifications/tools/list_changed", None),
            event = events.recv() => match event {
                Ok(event) => tell_event(connection, &event),
                // The missed events are unknown, so anything may have changed.
                Err(RecvError::Lagged(_)) => {
                    tell(connection, "notifications/prompts/list_changed", None);
                    tell(connection, "notifications/resources/list_changed", None);
                }
                Err(RecvError::Closed) => return,
            },
        }
    }
}

fn tell_event(connection: &Arc<Connection>, event: &ServerEvent) {
    let caller = Caller::new(Arc::clone(connection), connection.output());
    let workbench = connection.workbench();
    let concerns = match workbench.native() {
        Some(native) => native.concerns(event, &caller),
        // Subscriptions to single resources are for native mode.
        None => {
            let is_list = !matches!(event.change, Change::Resource(_));
            is_list && workbench.server(&event.server).is_some()
        }
    };
    if concerns {
        match &event.change {
            Change::Prompts => tell(connection, "notifications/prompts/list_changed", None),
            Change::Resources => tell(connection, "notifications/resources/list_changed", None),
            Change::Resource(params) => {
                tell(connection, "notifications/resources/updated", Some(params));
            }
        }
    }
}

/// Sends a notification, unless the client has not sent `initialize` yet.
fn tell(connection: &Connection, method: &str, params: Option<&RawJson>) {
    if connection.revision().is_some() {
        connection
            .output()
            .announce(wire::notification(method, params));
    }
}
