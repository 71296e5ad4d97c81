//! The operation of a call in the event stream.

use ident::ToolIdentifier;
use rawjson::RawJson;

use crate::{
    call::CallContext,
    events::{EventClient, OperationGuard, OperationStart},
    workbench::Workbench,
};

/// The parts of a call that its operation shows.
pub(super) struct ObservedCall<'a> {
    pub(super) tool: &'a ToolIdentifier,
    pub(super) arguments: &'a RawJson,
    /// The parameters as the client wrote them.
    pub(super) request: Option<&'a RawJson>,
}

/// Begins the operation of a call, and puts its span on the call.
pub(super) fn observe(
    workbench: &Workbench,
    call: &ObservedCall<'_>,
    context: &mut CallContext,
) -> OperationGuard {
    let observed = workbench.observed.begin(OperationStart {
        method: "tools/call".into(),
        target: None,
        tool: Some(call.tool),
        arguments: Some(call.arguments),
        params: call.request,
        meta: context.meta.as_ref(),
        client: EventClient::of(&*context.client),
    });
    context.span = Some(Box::new(observed.span()));
    observed
}
