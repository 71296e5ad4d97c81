//! Spans: one of kind SERVER for a request of a client, and one of kind CLIENT for each request to a server.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use ident::ToolName;
use opentelemetry::{
    Context, KeyValue,
    trace::{
        Span as _, SpanContext, SpanId, SpanKind, Status, TraceContextExt, TraceFlags, TraceId,
        TraceState, Tracer as _,
    },
};
use opentelemetry_sdk::trace::{SdkTracer, Span};
use rawjson::RawJson;

use super::export::value;
use crate::{
    audit::redact_and_cut,
    events::{
        Event, EventDetail, Events, Reader, TracedSpan, Tracer,
        conventions::{ERROR, Measurement, hop_details, operation_details, span_name},
    },
    sync::lock,
    trace::TraceContext,
};

/// The most spans at once. Requests are bounded where they are read, so this is only a safeguard.
const MAX_SPANS: usize = 10_000;
/// The longest message of an error in the status of a span.
const MAX_MESSAGE: usize = 200;

/// The spans that have begun and not ended.
pub(super) struct Spans {
    tracer: SdkTracer,
    events: Arc<Events>,
    open: Mutex<HashMap<u64, Span>>,
}

impl Spans {
    pub(super) fn new(tracer: SdkTracer, events: &Arc<Events>) -> Self {
        Self {
            tracer,
            events: Arc::clone(events),
            open: Mutex::default(),
        }
    }

    /// Ends the span with the attributes of its measurement, so that both say the same.
    fn end(&self, trace: Option<&TraceContext>, event: &Event<'_>, end: SpanEnd<'_>) {
        let span = trace.and_then(|trace| lock(&self.open).remove(&trace.span_id));
        let Some(mut span) = span else { return };
        if let Some(measurement) = Measurement::of(event) {
            for attribute in measurement.attributes {
                if attribute.0 == ERROR {
                    let message = end.response_error.and_then(|it| self.message(it));
                    span.set_status(Status::error(message.unwrap_or_default()));
                }
                span.set_attribute(value(attribute));
            }
        }
        span.set_attributes(end.details);
        span.end();
    }

    /// Returns the message of a JSON-RPC error, without secrets.
    fn message(&self, error: &RawJson) -> Option<String> {
        let message = error.member("message")?;
        let text = message.as_text()?;
        let secrets = self.events.secrets();
        Some(redact_and_cut(text, &secrets, MAX_MESSAGE).into_owned())
    }
}

/// The parts of a span that its measurement does not have.
struct SpanEnd<'a> {
    details: Vec<KeyValue>,
    response_error: Option<&'a RawJson>,
}

impl Tracer for Spans {
    fn begin(&self, traced: &TracedSpan<'_>) -> TraceContext {
        let (name, kind, time, parent) = match traced {
            TracedSpan::Operation {
                start,
                parent,
                time,
            } => {
                let tool = start.tool.map(|it| it.tool.as_str());
                let name = span_name(&start.method, tool, start.target.as_deref());
                let parent = parent.as_ref().map(|it| &it.0);
                (name, SpanKind::Server, *time, parent)
            }
            TracedSpan::Hop { hop, parent } => {
                let tool = hop.tool.as_ref().map(ToolName::as_str);
                let name = span_name(hop.method, tool, hop.target.as_deref());
                (name, SpanKind::Client, hop.time, Some(*parent))
            }
        };
        let context = match parent {
            Some(parent) => Context::new().with_remote_span_context(to_context(parent)),
            None => Context::new(),
        };
        let builder = self
            .tracer
            .span_builder(name)
            .with_kind(kind)
            .with_start_time(time);
        let span = self.tracer.build_with_context(builder, &context);
        let trace = of_context(span.span_context());
        let mut open = lock(&self.open);
        // A span beyond the bound is not exported. Its context is still passed on, so that the trace is not torn.
        if open.len() < MAX_SPANS {
            open.insert(trace.span_id, span);
        }
        trace
    }
}

impl Reader for Spans {
    fn detail(&self) -> EventDetail {
        EventDetail::Hops
    }

    fn take(&self, event: &Event<'_>) {
        match event {
            Event::OperationEnded(end) => {
                let details = operation_details(end.operation).into_iter().map(value);
                let ended = SpanEnd {
                    details: details.collect(),
                    response_error: end.response_error,
                };
                self.end(end.operation.trace.as_ref(), event, ended);
            }
            Event::HopEnded(end) => {
                let ended = SpanEnd {
                    details: hop_details(end.hop).into_iter().map(value).collect(),
                    response_error: end.response_error,
                };
                self.end(end.hop.trace.as_ref(), event, ended);
            }
            _ => {}
        }
    }
}

fn to_context(trace: &TraceContext) -> SpanContext {
    let flags = if trace.is_sampled {
        TraceFlags::SAMPLED
    } else {
        TraceFlags::default()
    };
    let state = trace.state.as_deref().and_then(|it| it.parse().ok());
    SpanContext::new(
        TraceId::from(trace.trace_id),
        SpanId::from(trace.span_id),
        flags,
        true,
        state.unwrap_or(TraceState::NONE),
    )
}

fn of_context(context: &SpanContext) -> TraceContext {
    let state = context.trace_state().header();
    TraceContext {
        trace_id: u128::from_be_bytes(context.trace_id().to_bytes()),
        span_id: u64::from_be_bytes(context.span_id().to_bytes()),
        is_sampled: context.is_sampled(),
        state: (!state.is_empty()).then_some(state),
    }
}
