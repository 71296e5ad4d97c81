//! A request to a server, which belongs to an operation of a client. An operation has as many as the workbench sends
//! for it: none if the call is refused, several if a server asks back.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use ident::{ServerIdentifier, ToolName};
use rawjson::RawJson;
use tokio::time::Instant;

use super::{Event, Events, TracedSpan};
use crate::{
    call::Carrier,
    era::Era,
    trace::{CallSpan, TraceContext},
};

/// A request to a server that is not answered yet.
pub(crate) struct Hop {
    /// The number of the operation that it belongs to.
    pub operation: u64,
    pub peer: Peer,
    pub method: &'static str,
    pub tool: Option<ToolName>,
    /// The name of a prompt, or the URI of a resource.
    pub target: Option<String>,
    /// The id of the request on the wire.
    pub request_id: u64,
    pub time: SystemTime,
    pub began: Instant,
    /// The time from the beginning of the operation.
    pub after: Duration,
    pub trace: Option<TraceContext>,
}

/// The server of a hop, and the connection to it.
#[derive(Debug, Clone)]
pub(crate) struct Peer {
    pub server: ServerIdentifier,
    pub era: Era,
    pub carrier: Carrier,
    /// The protocol revision of the connection.
    pub revision: Option<String>,
    pub address: Option<RemoteAddress>,
    /// The session that a remote server gave the workbench.
    pub session: Option<String>,
}

/// The address of a remote server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RemoteAddress {
    pub host: String,
    pub port: u16,
}

/// The parts of a hop that the server's task knows.
pub(crate) struct HopStart<'a> {
    pub span: &'a CallSpan,
    pub peer: Peer,
    pub method: &'static str,
    pub tool: Option<&'a ToolName>,
    pub target: Option<String>,
    pub request_id: u64,
}

pub(crate) struct HopEnd<'a> {
    pub hop: &'a Arc<Hop>,
    pub duration: Duration,
    /// The code of the failure, if it failed.
    pub error: Option<&'static str>,
    /// The JSON-RPC error of the response.
    pub response_error: Option<&'a RawJson>,
    /// The parameters as they were sent, if a reader wants messages.
    pub params: Option<&'a RawJson>,
    /// The result as the server sent it, if a reader wants messages.
    pub result: Option<&'a RawJson>,
    pub result_bytes: Option<usize>,
}

/// Reports the end of a hop, and that it was cancelled if it is dropped before.
pub(crate) struct HopGuard {
    events: Arc<Events>,
    hop: Arc<Hop>,
    params: Option<RawJson>,
    has_ended: bool,
}

/// The end of a hop, as the server's task sees it.
pub(crate) struct HopResult<'a> {
    pub(crate) error: Option<&'static str>,
    /// The JSON-RPC error of the response.
    pub(crate) response_error: Option<&'a RawJson>,
    pub(crate) result: Option<&'a RawJson>,
}

impl Events {
    /// Begins a hop of an operation.
    pub(crate) fn begin_hop(self: &Arc<Self>, start: HopStart<'_>) -> HopGuard {
        let mut hop = Hop {
            operation: start.span.operation,
            peer: start.peer,
            method: start.method,
            tool: start.tool.cloned(),
            target: start.target,
            request_id: start.request_id,
            time: SystemTime::now(),
            after: start.span.began.elapsed(),
            began: Instant::now(),
            trace: None,
        };
        // Before it is announced, so that readers get it with its place in the trace.
        if let (Some(tracer), Some(parent)) = (self.tracer.get(), &start.span.trace) {
            hop.trace = Some(tracer.begin(&TracedSpan::Hop { hop: &hop, parent }));
        }
        let hop = Arc::new(hop);
        self.emit(&Event::HopBegan(&hop));
        HopGuard {
            events: Arc::clone(self),
            hop,
            params: None,
            has_ended: false,
        }
    }
}

impl HopGuard {
    /// Returns the span of the hop, while tracing is on.
    pub(crate) fn trace(&self) -> Option<&TraceContext> {
        self.hop.trace.as_ref()
    }

    /// Returns whether the parameters should be recorded.
    pub(crate) fn wants_params(&self) -> bool {
        self.events.wants_messages()
    }

    /// Records the parameters as they are sent.
    pub(crate) fn record_params(&mut self, params: RawJson) {
        self.params = Some(params);
    }

    pub(crate) fn end(mut self, result: &HopResult<'_>) {
        self.report(result);
    }

    fn report(&mut self, ended: &HopResult<'_>) {
        // `end` takes the guard, and its drop comes here a second time.
        if std::mem::replace(&mut self.has_ended, true) {
            return;
        }
        let wants_messages = self.events.wants_messages();
        let response = ended.result.or(ended.response_error);
        self.events.emit(&Event::HopEnded(&HopEnd {
            hop: &self.hop,
            duration: self.hop.began.elapsed(),
            error: ended.error,
            response_error: ended.response_error,
            params: self.params.as_ref(),
            result: response.filter(|_| wants_messages),
            result_bytes: response.map(|it| it.as_bytes().len()),
        }));
    }
}

impl Drop for HopGuard {
    fn drop(&mut self) {
        self.report(&HopResult {
            error: Some("cancelled"),
            response_error: None,
            result: None,
        });
    }
}
