//! Streams of events as responses of a session, and their resumption: here, on the replica that has the stream, or from the
//! store of the replicas if that one is gone.

use std::sync::Arc;

use bytes::{BufMut, BytesMut};
use hyper::StatusCode;
use tokio::time::Instant;

use super::{
    bodies::{EventBody, Opening, WholeBody, event_response, event_text, lone_event},
    endpoint::Waits,
    headers::LastEvent,
    limits::FIRST_MESSAGE_TIMEOUT,
    owners::{Forwarder, Posting, forward_to, lost_answer},
    refusal::Refusal,
    response::{Answered, Response, ResponseBody, empty},
    sessions::Session,
    shared_events::{SharedPlace, SharedStream},
    streams::{Attachment, EventStream, FirstMessage, STANDALONE},
};
use crate::{
    call::Owner,
    seal::SealPurpose,
    serve::replica::{Elsewhere, HandleOwner, Replica},
    wire::Message,
};

/// Returns the response to a request: JSON if the response is the first message, otherwise events, whose ids say what the
/// request is about.
pub(super) async fn answer(
    session: &Arc<Session>,
    waits: &Waits,
    stream: &EventStream,
    about: &str,
) -> Result<Answered, Refusal> {
    let first = session.streams.first_message(stream.id());
    let end = Instant::now() + FIRST_MESSAGE_TIMEOUT;
    match waits.first_message.until(end, first).await {
        Some(FirstMessage::Answer(frame)) => Ok(Answered::Message(StatusCode::OK, frame)),
        // The request was cancelled, so there is no response to wait for.
        Some(FirstMessage::Nothing) => Ok(Answered::Response(empty(StatusCode::ACCEPTED))),
        Some(FirstMessage::Events) | None => {
            let handle = stream_handle(session, stream.id(), about);
            if let Some(handle) = &handle {
                share(session, stream, handle);
            }
            events(session, stream.id(), None, handle).map(Answered::Response)
        }
    }
}

/// Opens the stream for messages that belong to no request.
pub(super) fn standalone(session: &Session) -> Result<Response, Refusal> {
    let handle = stream_handle(session, STANDALONE, "");
    events(session, STANDALONE, None, handle)
}

/// Resumes a stream after the last event that its client got.
pub(super) async fn resume(
    replica: &Arc<Replica>,
    session: &Session,
    from: Forwarder<'_>,
    last: LastEvent<'_>,
) -> Result<Response, Refusal> {
    let LastEvent { stream, id } = last;
    if !replica.has_others() {
        // Without replicas no event has a handle in its id, so such an id is not ours.
        let is_plain = stream.is_none().then_some(());
        is_plain.ok_or(Refusal::UnknownEvent)?;
        return events(session, id.stream, Some(id.number), None);
    }
    let handle = stream.ok_or(Refusal::UnknownEvent)?;
    match replica.place(SealPurpose::Stream, handle) {
        Some(HandleOwner::Here(stream)) if stream == id.stream => {
            events(session, stream, Some(id.number), Some(handle.to_owned()))
        }
        Some(HandleOwner::Elsewhere(elsewhere)) => {
            let Elsewhere { about, .. } = elsewhere.clone();
            let taken = forward_to(replica, from, elsewhere, Posting::reading()).await;
            match taken {
                Some(taken) => Ok(taken),
                None => left_behind(session, handle, last, &about).await,
            }
        }
        _ => Err(Refusal::UnknownEvent),
    }
}

/// Returns the rest of a stream whose replica is gone: the events that it has put into the store, and if the answer is not
/// among them, that the outcome is unknown.
async fn left_behind(
    session: &Session,
    handle: &str,
    last: LastEvent<'_>,
    about: &str,
) -> Result<Response, Refusal> {
    let Some(lost) = lost_answer(about) else {
        // Nothing was asked on it, so the client only has to hear from now on.
        return standalone(session);
    };
    let rest = match shared_place(session, handle) {
        Some(place) => place.read(last.id.number).await,
        None => None,
    };
    let Some(events) = rest else {
        return Ok(event_response(ResponseBody::whole(WholeBody::text(
            lone_event(lost),
        ))));
    };
    if events.is_empty() {
        return Ok(empty(StatusCode::NO_CONTENT));
    }
    let mut text = BytesMut::new();
    for (number, event) in events {
        // The call that asked has ended, so an answer would reach nobody.
        if !matches!(Message::parse(&event), Ok(Message::Request(_))) {
            let id = format!("{handle}.{}-{number}", last.id.stream);
            text.put(event_text(&id, &event));
        }
    }
    Ok(event_response(ResponseBody::whole(WholeBody::text(
        text.freeze(),
    ))))
}

/// Puts the events of a stream into the store of the replicas from now on.
fn share(session: &Session, stream: &EventStream, handle: &str) {
    if let Some(place) = shared_place(session, handle) {
        let (shared, writing) = SharedStream::new(place);
        session.connection.workbench().spawn(writing);
        stream.share(shared);
    }
}

/// Returns the place of a stream in the store; `None` if there is no store, or other replicas do not know the client.
fn shared_place(session: &Session, handle: &str) -> Option<SharedPlace> {
    let store = session.connection.workbench().pool().store()?;
    Some(SharedPlace {
        store: store.clone(),
        owner: Owner::Principal(session.connection.principal()).shared()?,
        handle: handle.to_owned(),
    })
}

/// Returns the handle of a stream in the ids of its events, if there are replicas.
fn stream_handle(session: &Session, stream: u64, about: &str) -> Option<String> {
    let replica = session.connection.parked().replica();
    let handle = || replica.handle_about(SealPurpose::Stream, stream, about);
    replica.has_others().then(handle)
}

/// Returns a stream as a response, after an event, or from the first event that was not sent.
fn events(
    session: &Session,
    stream: u64,
    after: Option<u64>,
    handle: Option<String>,
) -> Result<Response, Refusal> {
    let reader = match session.streams.attach(stream, after) {
        Attachment::Reader(reader) => reader,
        // For readers of event streams this status means: do not reconnect.
        Attachment::Over => return Ok(empty(StatusCode::NO_CONTENT)),
        Attachment::Unknown => return Err(Refusal::UnknownEvent),
    };
    let opening = match session.connection.revision() {
        Some(revision) if revision.has_priming_events() => Opening::Priming,
        _ => Opening::Comment,
    };
    Ok(event_response(ResponseBody::events(EventBody::new(
        reader, opening, handle,
    ))))
}
