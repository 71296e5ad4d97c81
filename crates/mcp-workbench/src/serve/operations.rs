//! Requests other than calls of servers' tools, in the event stream. The call pipeline reports those itself.

use std::borrow::Cow;

use rawjson::{ObjectText, RawJson};

use super::methods::Reply;
use crate::{
    call::ClientHandle,
    events::{CallOutcome, EventClient, OperationGuard, OperationReply, OperationStart},
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
        request_id: Some(&request.id),
        method: known_method(&request.method),
        target: target.map(|it| cut(&it)),
        tool: None,
        arguments: params,
        params,
        meta: meta.as_ref(),
        client: EventClient::of(client, workbench.client_name()),
    }))
}

/// Returns the part of a name or URI that the event stream has.
pub(super) fn cut(name: &str) -> String {
    name.chars().take(MAX_TARGET).collect()
}

/// Ends the operation of a request with its reply.
pub(super) fn end(observed: Option<OperationGuard>, reply: &Reply) {
    end_as(observed, reply, None);
}

/// Ends the operation of a call whose tool does not exist.
pub(super) fn end_unknown(observed: Option<OperationGuard>, reply: &Reply) {
    end_as(observed, reply, Some(CallOutcome::Error("tool_unknown")));
}

/// Ends an operation with its reply, and with this outcome if the reply does not say it.
fn end_as(observed: Option<OperationGuard>, reply: &Reply, outcome: Option<CallOutcome>) {
    let Some(observed) = observed else { return };
    let end = |sent: OperationReply<'_>| {
        let outcome = outcome.unwrap_or_else(|| outcome_of(sent));
        observed.end(outcome, Some(sent));
    };
    match reply {
        Reply::Result(result) | Reply::Own(result) => end(OperationReply::Result(result)),
        Reply::Called(result) => end(OperationReply::Result(&result.to_json())),
        Reply::ErrorAsSent(error) => end(OperationReply::Error(error)),
        Reply::Error { code, message } => {
            let error = ObjectText::new().member("code", code);
            end(OperationReply::Error(
                &error.member("message", message).finish(),
            ));
        }
    }
}

fn outcome_of(reply: OperationReply<'_>) -> CallOutcome {
    let result = match reply {
        OperationReply::Result(result) => result,
        OperationReply::Error(_) => return CallOutcome::Error("refused"),
    };
    let size = result.as_bytes().len();
    if result.member("isError").is_some_and(|it| it.is_true()) {
        CallOutcome::ToolError(size)
    } else {
        CallOutcome::Ok(size)
    }
}

/// Returns the method. Unknown ones have one name, because a client could send any number of them.
fn known_method(method: &str) -> Cow<'static, str> {
    const KNOWN: [&str; 18] = [
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
        "subscriptions/listen",
        "tasks/cancel",
        "tasks/get",
        "tasks/update",
        "tools/call",
        "tools/list",
    ];
    let known = KNOWN.into_iter().find(|it| *it == method);
    known.unwrap_or("unknown").into()
}
