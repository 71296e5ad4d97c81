//! Requests other than calls of servers' tools, in the event stream. The call pipeline reports those itself.

use std::borrow::Cow;

use rawjson::RawJson;

use super::methods::Reply;
use crate::{
    call::ClientHandle,
    events::{CallOutcome, EventClient, OperationGuard, OperationStart},
    wire::Request,
    workbench::Workbench,
};

/// The longest name or URI in the event stream. Clients can send any length.
const MAX_TARGET: usize = 200;
/// The parameters in which methods name what they want.
const TARGETS: [&str; 2] = ["name", "uri"];

/// Begins the operation of a request, if anybody listens.
pub(super) fn begin(
    workbench: &Workbench,
    request: &Request,
    client: &dyn ClientHandle,
) -> Option<OperationGuard> {
    let observed = workbench.observed();
    if !observed.is_listened() {
        return None;
    }
    let params = request.params.as_ref();
    let meta = params.and_then(|params| params.member("_meta"));
    let target = TARGETS.iter().find_map(|name| params?.member(name));
    let target = target.as_ref().and_then(RawJson::as_text);
    Some(observed.begin(OperationStart {
        method: known_method(&request.method),
        target: target.map(|it| it.chars().take(MAX_TARGET).collect()),
        tool: None,
        arguments: params,
        params,
        meta: meta.as_ref(),
        client: EventClient::of(client),
    }))
}

/// Ends the operation of a request with its reply.
pub(super) fn end(observed: Option<OperationGuard>, reply: &Reply) {
    let Some(observed) = observed else { return };
    let (outcome, sent) = match reply {
        Reply::Result(result) | Reply::Own(result) => {
            let size = result.as_bytes().len();
            let is_error = result.member("isError").is_some_and(|it| it.is_true());
            let outcome = if is_error {
                CallOutcome::ToolError(size)
            } else {
                CallOutcome::Ok(size)
            };
            (outcome, Some(result.clone()))
        }
        Reply::Called(result) => {
            let result = result.to_json();
            (CallOutcome::Ok(result.as_bytes().len()), Some(result))
        }
        Reply::Error { .. } => (CallOutcome::Error("refused"), None),
        Reply::ErrorAsSent(error) => (CallOutcome::Error("refused"), Some(error.clone())),
    };
    observed.end(outcome, sent.as_ref());
}

/// Returns the method. Unknown ones have one name, because a client could send any number of them.
fn known_method(method: &str) -> Cow<'static, str> {
    const KNOWN: [&str; 16] = [
        "completion/complete",
        "initialize",
        "logging/setLevel",
        "ping",
        "prompts/get",
        "prompts/list",
        "resources/list",
        "resources/read",
        "resources/subscribe",
        "resources/templates/list",
        "resources/unsubscribe",
        "server/discover",
        "tasks/get",
        "tasks/cancel",
        "tools/call",
        "tools/list",
    ];
    let known = KNOWN.into_iter().find(|it| *it == method);
    known.unwrap_or("unknown").into()
}
