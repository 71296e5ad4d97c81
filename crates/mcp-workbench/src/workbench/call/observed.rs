//! The operation of a call in the event stream.

use ident::ToolIdentifier;
use rawjson::{ObjectText, RawJson};

use super::CallReply;
use crate::{
    call::CallContext,
    events::{CallOutcome, EventClient, OperationGuard, OperationReply, OperationStart},
    wire::{RequestId, code},
    workbench::Workbench,
};

/// A request as the client wrote it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ClientRequest<'a> {
    pub id: &'a RequestId,
    pub params: &'a RawJson,
}

/// The parts of a call that its operation shows.
pub(super) struct ObservedCall<'a> {
    pub(super) tool: &'a ToolIdentifier,
    pub(super) arguments: &'a RawJson,
    pub(super) request: Option<ClientRequest<'a>>,
}

/// Begins the operation of a call, and puts its span on the call.
pub(super) fn observe(
    workbench: &Workbench,
    call: &ObservedCall<'_>,
    context: &mut CallContext,
) -> OperationGuard {
    let observed = workbench.observed().begin(OperationStart {
        request_id: call.request.map(|it| it.id),
        method: "tools/call".into(),
        target: None,
        tool: Some(call.tool),
        arguments: Some(call.arguments),
        params: call.request.map(|it| it.params),
        meta: context.meta.as_ref(),
        client: EventClient::of(&*context.client, workbench.client_name()),
    });
    if workbench.observed().wants_hops() {
        context.reports.set_span(observed.span());
    }
    observed
}

/// Ends the operation of a call with its reply.
pub(super) fn end_with(observed: OperationGuard, outcome: CallOutcome, reply: &CallReply) {
    match reply {
        CallReply::Result(result) if observed.wants_reply() => {
            observed.end(outcome, Some(OperationReply::Result(&result.to_json())));
        }
        CallReply::Refused(error) => observed.end(outcome, Some(OperationReply::Error(error))),
        CallReply::Failed { failure, mode, .. } if failure.is_unknown_name(*mode) => {
            let error = ObjectText::new()
                .member("code", &code::INVALID_PARAMS)
                .member("message", "Unknown tool")
                .finish();
            observed.end(outcome, Some(OperationReply::Error(&error)));
        }
        CallReply::Result(_) | CallReply::Failed { .. } => observed.end(outcome, None),
    }
}
