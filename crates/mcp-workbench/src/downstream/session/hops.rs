//! The requests and questions of a server in the event stream.

use rawjson::{ObjectText, RawJson};

use crate::{
    call::{CallRequest, Question},
    downstream::{
        link::Link,
        listing::ToolList,
        server::{About, QueuedCall},
        session::calls::Calls,
        supervisor::report_trust,
    },
    era::Era,
    events::{AskedQuestion, Event, HopStart, Peer, QuestionState},
};

/// The longest name or URI in the event stream.
const MAX_TARGET: usize = 200;

/// Begins a request that is about to be sent. While tracing is on, its span becomes the parent in `_meta`.
pub(crate) fn begin(about: &About, queued: &mut QueuedCall, id: u64, peer: Peer) {
    let call = &mut queued.call;
    let Some(span) = call.context.reports.span() else {
        return;
    };
    let (tool, target) = match &call.request {
        CallRequest::Tool(request) => (Some(&request.name), None),
        CallRequest::Relayed { params, .. } => (None, target(params)),
    };
    let hop = about.observed.begin_hop(HopStart {
        span,
        peer,
        method: call.request.method(),
        tool,
        target,
        request_id: id,
    });
    // The server continues the trace from our span, not from the client's.
    if let Some(trace) = hop.trace() {
        let meta = call
            .context
            .meta
            .take()
            .unwrap_or_else(|| ObjectText::new().finish());
        call.context.meta = Some(trace.put_on(&meta));
    }
    queued.hop = Some(Box::new(hop));
}

/// Returns the server of a request, and the connection to it.
pub(crate) fn peer(about: &About, era: Era, link: &Link, tools: Option<&ToolList>) -> Peer {
    let revision = tools.map(|it| it.introduction.revision.as_str());
    Peer {
        server: about.identifier.clone(),
        era,
        carrier: link.carrier(),
        revision: revision.filter(|it| !it.is_empty()).map(str::to_owned),
        address: link.address(),
        session: link.session(),
    }
}

/// Returns the name of a prompt or the URI of a resource.
fn target(params: &RawJson) -> Option<String> {
    let target = params.member("name").or_else(|| params.member("uri"))?;
    Some(target.as_text()?.chars().take(MAX_TARGET).collect())
}

/// Reports a list that was read again, if it differs from the lock file.
pub(crate) fn report_listed(calls: &mut Calls) {
    if let Some(tools) = calls.listed() {
        report_trust(calls.about(), &tools, 0);
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
