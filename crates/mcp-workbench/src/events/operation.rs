//! A request of a client, from its arrival to its reply.

use std::{
    borrow::Cow,
    sync::Arc,
    time::{Duration, SystemTime},
};

use ident::ToolIdentifier;
use rawjson::RawJson;
use tokio::time::Instant;

use super::{Event, EventClient, Events, Hop};
use crate::{
    era::{ResultType, result_type},
    trace::{CallSpan, RemoteParent, TraceContext},
    wire::{RequestId, ResultMarks},
};

/// A request of a client that is being worked on.
pub(crate) struct Operation {
    /// The number of the operation within this process.
    pub id: u64,
    /// The id of the request; `None` if it came from the command line or a script.
    pub request_id: Option<RequestId>,
    pub method: Cow<'static, str>,
    /// The name of a meta-tool or a prompt, or the URI of a resource.
    pub target: Option<String>,
    /// The tool of a server that is called.
    pub tool: Option<ToolIdentifier>,
    pub client: EventClient,
    /// The arguments of the tool, or the parameters of another request.
    pub arguments: Option<RawJson>,
    /// The parameters as the client wrote them, if a reader wants messages.
    pub params: Option<RawJson>,
    pub time: SystemTime,
    pub began: Instant,
    pub trace: Option<TraceContext>,
}

/// The parts of an operation that its caller knows.
pub(crate) struct OperationStart<'a> {
    /// The id of the request; `None` if it came from the command line or a script.
    pub request_id: Option<&'a RequestId>,
    pub method: Cow<'static, str>,
    /// The name of a meta-tool or a prompt, or the URI of a resource.
    pub target: Option<String>,
    pub tool: Option<&'a ToolIdentifier>,
    pub arguments: Option<&'a RawJson>,
    /// The parameters as the client wrote them.
    pub params: Option<&'a RawJson>,
    /// The `_meta` of the request.
    pub meta: Option<&'a RawJson>,
    pub client: EventClient,
}

pub(crate) enum TracedSpan<'a> {
    /// A request of a client.
    Operation {
        start: &'a OperationStart<'a>,
        parent: Option<RemoteParent>,
        time: SystemTime,
    },
    /// A request to a server.
    Hop {
        hop: &'a Hop,
        parent: &'a TraceContext,
    },
}

/// The outcome of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallOutcome {
    /// A result of this size.
    Ok(usize),
    /// A result of this size with `isError`.
    ToolError(usize),
    /// A question of this size: the client calls again with the answer.
    InputRequired(usize),
    /// A failure with this code.
    Error(&'static str),
    /// Not permitted, with this code.
    Denied(&'static str),
    /// The caller did not wait for the end.
    Cancelled,
}

impl CallOutcome {
    /// Returns the outcome of a call with this result, whose marks were found when it was scanned.
    pub(crate) fn with(result: &RawJson, marks: ResultMarks) -> Self {
        let size = result.as_bytes().len();
        if marks.is_error {
            Self::ToolError(size)
        } else if !marks.is_complete() && result_type(result) == ResultType::InputRequired {
            Self::InputRequired(size)
        } else {
            Self::Ok(size)
        }
    }

    /// Returns the outcome of a call that failed with this code.
    pub(crate) fn failed(code: &'static str) -> Self {
        if code.starts_with("permission_") {
            Self::Denied(code)
        } else {
            Self::Error(code)
        }
    }

    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Ok(_) => "ok",
            Self::ToolError(_) => "tool_error",
            Self::InputRequired(_) => "input_required",
            Self::Error(_) => "error",
            Self::Denied(_) => "denied",
            Self::Cancelled => "cancelled",
        }
    }

    pub(crate) fn code(self) -> Option<&'static str> {
        match self {
            Self::Error(code) | Self::Denied(code) => Some(code),
            _ => None,
        }
    }

    pub(crate) fn size(self) -> Option<usize> {
        match self {
            Self::Ok(size) | Self::ToolError(size) | Self::InputRequired(size) => Some(size),
            _ => None,
        }
    }
}

pub(crate) struct OperationEnd<'a> {
    pub operation: &'a Arc<Operation>,
    pub outcome: CallOutcome,
    pub duration: Duration,
    /// The result as the client gets it, if a reader wants messages and there is one.
    pub reply: Option<&'a RawJson>,
    /// The JSON-RPC error that the client gets, if it gets one.
    pub response_error: Option<&'a RawJson>,
}

/// The reply to a request.
#[derive(Debug, Clone, Copy)]
pub(crate) enum OperationReply<'a> {
    Result(&'a RawJson),
    /// A JSON-RPC error.
    Error(&'a RawJson),
}

/// Reports the end of an operation, and that it was cancelled if it is dropped before.
pub(crate) struct OperationGuard {
    events: Arc<Events>,
    operation: Arc<Operation>,
    has_ended: bool,
}

impl Events {
    /// Begins an operation. Callers check first that anybody listens.
    pub(crate) fn begin(self: &Arc<Self>, start: OperationStart<'_>) -> OperationGuard {
        let time = SystemTime::now();
        let trace = self.tracer.get().map(|tracer| {
            tracer.begin(&TracedSpan::Operation {
                start: &start,
                parent: RemoteParent::of(start.meta),
                time,
            })
        });
        let params = start.params.filter(|_| self.wants_messages());
        let operation = Arc::new(Operation {
            id: self.next_id(),
            request_id: start.request_id.cloned(),
            method: start.method,
            target: start.target,
            tool: start.tool.cloned(),
            client: start.client,
            arguments: start.arguments.cloned(),
            params: params.cloned(),
            time,
            began: Instant::now(),
            trace,
        });
        self.emit(&Event::OperationBegan(&operation));
        OperationGuard {
            events: Arc::clone(self),
            operation,
            has_ended: false,
        }
    }
}

impl OperationGuard {
    pub(crate) fn operation(&self) -> &Arc<Operation> {
        &self.operation
    }

    /// Returns the span for the calls of the operation.
    pub(crate) fn span(&self) -> CallSpan {
        CallSpan {
            operation: self.operation.id,
            began: self.operation.began,
            trace: self.operation.trace.clone(),
        }
    }

    /// Returns whether the end should have the reply.
    pub(crate) fn wants_reply(&self) -> bool {
        self.events.wants_messages()
    }

    pub(crate) fn end(mut self, outcome: CallOutcome, reply: Option<OperationReply<'_>>) {
        self.report(outcome, reply);
    }

    fn report(&mut self, outcome: CallOutcome, reply: Option<OperationReply<'_>>) {
        // `end` takes the guard, and its drop comes here a second time.
        if std::mem::replace(&mut self.has_ended, true) {
            return;
        }
        let (reply, response_error) = match reply {
            Some(OperationReply::Result(result)) => (Some(result), None),
            Some(OperationReply::Error(error)) => (Some(error), Some(error)),
            None => (None, None),
        };
        let reply = reply.filter(|_| self.events.wants_messages());
        self.events.emit(&Event::OperationEnded(&OperationEnd {
            operation: &self.operation,
            outcome,
            duration: self.operation.began.elapsed(),
            reply,
            response_error,
        }));
    }
}

impl Drop for OperationGuard {
    fn drop(&mut self) {
        self.report(CallOutcome::Cancelled, None);
    }
}
