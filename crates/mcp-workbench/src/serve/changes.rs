//! Unsolicited notifications to a legacy client: changed lists and resources. A modern client subscribes to them.

use std::sync::Arc;

use rawjson::RawJson;
use tokio::sync::broadcast::error::RecvError;

use super::{caller::Caller, connection::Connection};
use crate::{
    call::ClientHandle,
    downstream::{Change, ServerEvent},
    era::UI_EXTENSION,
    wire,
};

/// Sends the client a notification for each change, for as long as it is connected.
pub(super) async fn tell_changes(connection: &Arc<Connection>) {
    let mut tools = connection.workbench().tools_changed();
    let mut apps = connection.workbench().apps_changed();
    let mut events = connection.workbench().events();
    loop {
        tokio::select! {
            Ok(()) = tools.changed() => tell(connection, "notifications/tools/list_changed", None),
            Ok(()) = apps.changed() => tell_apps(connection),
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

/// Notifies a client with MCP Apps of other tools with user interfaces. In the modes that list all tools it gets every
/// change anyway.
fn tell_apps(connection: &Arc<Connection>) {
    let caller = Caller::new(Arc::clone(connection), connection.output());
    let workbench = connection.workbench();
    let lists_all = workbench.native().is_some() || workbench.is_dynamic();
    if !lists_all && caller.capabilities().has_extension(UI_EXTENSION) {
        tell(connection, "notifications/tools/list_changed", None);
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
