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
    pub server: ServerIdentifier,
    pub method: &'static str,
    pub tool: Option<ToolName>,
    /// The id of the request on the wire.
    pub request_id: u64,
    pub era: Era,
    pub carrier: Carrier,
    pub time: SystemTime,
    pub began: Instant,
    /// The time from the beginning of the operation.
    pub after: Duration,
    pub trace: Option<TraceContext>,
}

/// The parts of a hop that the server's task knows.
pub(crate) struct HopStart<'a> {
    pub span: &'a CallSpan,
    pub server: &'a ServerIdentifier,
    pub method: &'static str,
    pub tool: Option<&'a ToolName>,
    pub request_id: u64,
    pub era: Era,
    pub carrier: Carrier,
}

/// A hop that ended.
pub(crate) struct HopEnd<'a> {
    pub hop: &'a Arc<Hop>,
    pub duration: Duration,
    /// The code of the failure, if it failed.
    pub error: Option<&'static str>,
    /// The JSON-RPC code of an error response.
    pub response_code: Option<&'a str>,
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
    pub(crate) response_code: Option<&'a str>,
    pub(crate) result: Option<&'a RawJson>,
}

impl Events {
    /// Begins a hop of an operation.
    pub(crate) fn begin_hop(self: &Arc<Self>, start: &HopStart<'_>) -> HopGuard {
        let mut hop = Hop {
            operation: start.span.operation,
            server: start.server.clone(),
            method: start.method,
            tool: start.tool.cloned(),
            request_id: start.request_id,
            era: start.era,
            carrier: start.carrier,
            time: SystemTime::now(),
            after: start.span.began.elapsed(),
            began: Instant::now(),
            trace: None,
        };
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

    /// Reports the end.
    pub(crate) fn end(mut self, result: &HopResult<'_>) {
        self.report(result);
    }

    fn report(&mut self, ended: &HopResult<'_>) {
        if std::mem::replace(&mut self.has_ended, true) {
            return;
        }
        let wants_messages = self.events.wants_messages();
        self.events.emit(&Event::HopEnded(&HopEnd {
            hop: &self.hop,
            duration: self.hop.began.elapsed(),
            error: ended.error,
            response_code: ended.response_code,
            params: self.params.as_ref(),
            result: ended.result.filter(|_| wants_messages),
            result_bytes: ended.result.map(|it| it.as_bytes().len()),
        }));
    }
}

impl Drop for HopGuard {
    fn drop(&mut self) {
        self.report(&HopResult {
            error: Some("cancelled"),
            response_code: None,
            result: None,
        });
    }
}
