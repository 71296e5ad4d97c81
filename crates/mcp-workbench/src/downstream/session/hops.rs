//! The requests and questions of a server in the event stream.

use rawjson::ObjectText;

use crate::{
    call::{CallRequest, Question},
    downstream::{
        link::Link,
        server::{About, QueuedCall},
        session::calls::Calls,
        supervisor::report_trust,
    },
    era::Era,
    events::{AskedQuestion, Event, HopStart, QuestionState},
};

/// Begins a request that is about to be sent. While tracing is on, its span becomes the parent in `_meta`.
pub(crate) fn begin(about: &About, queued: &mut QueuedCall, id: u64, to: (Era, &Link)) {
    let (era, link) = to;
    let call = &mut queued.call;
    let Some(span) = &call.context.span else {
        return;
    };
    let hop = about.observed.begin_hop(&HopStart {
        span,
        server: &about.identifier,
        method: call.request.method(),
        tool: match &call.request {
            CallRequest::Tool(request) => Some(&request.name),
            CallRequest::Relayed { .. } => None,
        },
        request_id: id,
        era,
        carrier: link.carrier(),
    });
    if let Some(trace) = hop.trace() {
        let meta = call.context.meta.take();
        let meta = meta.unwrap_or_else(|| ObjectText::new().finish());
        call.context.meta = Some(trace.put_on(&meta));
    }
    queued.hop = Some(Box::new(hop));
}

/// Reports a list that was read again, if it differs from the lock file.
pub(crate) fn report_listed(calls: &Calls) {
    if let Some(tools) = calls.listed() {
        report_trust(calls.about(), &tools);
    }
}

/// Reports a question of the server.
pub(crate) fn report_question(about: &About, question: Question, state: QuestionState) {
    about.observed.emit_with(|| {
        Event::Question(AskedQuestion {
            server: about.identifier.clone(),
            question,
            state,
        })
    });
}
