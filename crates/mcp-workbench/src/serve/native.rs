//! The responses of native mode.

use std::sync::Arc;

use rawjson::{ObjectText, RawJson};
use serde_json::Value;

use super::{
    caller::Caller,
    log_level::LogLevel,
    methods::{Reply, Requester},
};
use crate::{
    call::ClientHandle,
    era::Era,
    meta,
    native::{Native, NativeError},
    toolbox::Opened,
    wire::{Request, code},
    workbench::Workbench,
};

/// Opens the toolbox for the first client, so that the announced capabilities are those of the servers.
pub(super) async fn introduce(
    workbench: &Workbench,
    native: &Native,
    client: Arc<dyn ClientHandle>,
) -> (Value, Option<String>) {
    workbench.open_native(&client).await;
    let introduced = match client.era() {
        Era::Legacy => native.introduce(),
        Era::Modern => native.discover(),
    };
    (introduced.capabilities, introduced.instructions)
}

/// Returns the response to a request.
pub(super) async fn answer(
    workbench: &Workbench,
    native: &Native,
    requester: Requester,
    request: &Request,
) -> Reply {
    let nothing = ObjectText::new().finish();
    let params = request.params.as_ref().unwrap_or(&nothing);
    let context = requester.context_of(params);
    // A list is the moment to look again for servers that were not up.
    let lacks = |opened: Arc<Opened>| request.method == "tools/list" && !opened.failures.is_empty();
    let toolbox = native.toolbox();
    // Or for servers that a reload has added since.
    let outdated = request.method.ends_with("/list") && toolbox.is_outdated();
    if !toolbox.is_open().await || outdated || toolbox.opened().is_some_and(lacks) {
        workbench.open_native(&context.client).await;
    }
    let answered = native.answer(&request.method, params, context).await;
    reply(&request.method, answered)
}

pub(super) fn reply(method: &str, answered: Result<RawJson, NativeError>) -> Reply {
    match answered {
        // A list combines those of all servers.
        Ok(list) if method.ends_with("/list") => Reply::Own(list),
        Ok(result) => Reply::Result(result),
        Err(error) => refusal(method, error),
    }
}

/// Opens the toolbox if it is closed.
pub(super) async fn open_if_closed(
    workbench: &Workbench,
    native: &Native,
    client: &Arc<dyn ClientHandle>,
) {
    if !native.toolbox().is_open().await {
        workbench.open_native(client).await;
    }
}

/// Stores the log level that a client sets.
pub(super) fn record_log_level(caller: &Caller, params: Option<&RawJson>) {
    let level = params.and_then(|params| params.member("level"));
    let level = level.as_ref().and_then(RawJson::as_text);
    if let Some(level) = level.and_then(|level| LogLevel::named(&level)) {
        caller.connection.set_log_level(level);
    }
}

fn refusal(method: &str, error: NativeError) -> Reply {
    match error {
        NativeError::NotOffered => Reply::method_not_found(method),
        NativeError::Invalid(message) => Reply::invalid_params(message),
        NativeError::ResourceNotFound(uri) => Reply::resource_not_found(&uri),
        NativeError::Refused(error) => Reply::ErrorAsSent(error),
        NativeError::Failed {
            server,
            what,
            error,
        } => Reply::Error {
            code: code::INTERNAL_ERROR,
            message: meta::failed_request_text(method, &what, &server, &error),
        },
    }
}
