//! Tools that send messages before their result: progress, log messages, updates, and a dropped stream.

#![expect(
    deprecated,
    reason = "2025-11-25 has log messages; rmcp marks what 2026-07-28 dropped"
)]

use std::time::Duration;

use axum::http::request::Parts;
use rmcp::{
    RoleServer,
    model::{
        CallToolResult, ContentBlock, LoggingLevel, LoggingMessageNotificationParam,
        ProgressNotificationParam,
    },
    service::{RequestContext, ServiceError},
};
use serde_json::Value;
use tokio::time::sleep;

use crate::{changes::Change, fixture::Fixture, http::Dropped, interview::is_modern, resources};

/// The time between two messages, as the suite asks for it.
const PAUSE: Duration = Duration::from_millis(50);

/// The time for a client whose stream was dropped to reconnect. rmcp stores no response for later ones, so this is much
/// longer than the reconnection delay.
const AWAY: Duration = Duration::from_secs(2);

/// Reports 0, 50 and 100 of 100 to a client that gave a token for it.
pub(crate) async fn report_progress(
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResult, ServiceError> {
    for (step, progress) in [0.0, 50.0, 100.0].into_iter().enumerate() {
        if step > 0 {
            sleep(PAUSE).await;
        }
        if let Some(token) = context.meta.get_progress_token() {
            let report = ProgressNotificationParam::new(token, progress).with_total(100.0);
            context.peer.notify_progress(report).await?;
        }
    }
    Ok(done("Tool with progress completed"))
}

/// Sends three log messages of level info, if the client wants that level.
pub(crate) async fn log(
    fixture: &Fixture,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResult, ServiceError> {
    let messages = [
        "Tool execution started",
        "Tool processing data",
        "Tool execution completed",
    ];
    for (step, message) in messages.into_iter().enumerate() {
        if step > 0 {
            sleep(PAUSE).await;
        }
        if wants_log(fixture, context) {
            let data = Value::from(message);
            let message = LoggingMessageNotificationParam::new(LoggingLevel::Info, data);
            context.peer.notify_logging_message(message).await?;
        }
    }
    Ok(done("Tool with logging completed"))
}

/// Over HTTP, ends the response stream, so that the client must reconnect for the response.
pub(crate) async fn drop_stream(
    fixture: &Fixture,
    context: &RequestContext<RoleServer>,
) -> CallToolResult {
    if let (Some(streams), Some(request)) = (fixture.streams(), context.extensions.get::<Parts>())
        && streams.drop_those_of(request).await == Dropped::Some
    {
        sleep(AWAY).await;
    }
    done("Reconnection test completed")
}

/// Notifies subscribers that the watched resource has changed. In the new era a subscription is a separate stream, so
/// it is unknown here if there is one.
pub(crate) async fn update_watched_resource(
    fixture: &Fixture,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResult, ServiceError> {
    if !is_modern(context) && !fixture.is_subscribed(resources::WATCHED) {
        return Ok(done("Nobody has subscribed"));
    }
    change(fixture, Change::WatchedResource, context).await
}

/// Makes a change, and notifies its subscribers.
pub(crate) async fn change(
    fixture: &Fixture,
    change: Change,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResult, ServiceError> {
    fixture.changes().make(change, context).await?;
    Ok(done("Who wants to know was told"))
}

/// Returns true if the client wants log messages of level info. In the new era each request says so.
fn wants_log(fixture: &Fixture, context: &RequestContext<RoleServer>) -> bool {
    let least = if is_modern(context) {
        context.meta.log_level()
    } else {
        Some(fixture.log_level())
    };
    least.is_some_and(|least| LoggingLevel::Info as u8 >= least as u8)
}

fn done(text: &str) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(text)])
}
