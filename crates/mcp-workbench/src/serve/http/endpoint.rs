//! The endpoint: what POST, GET and DELETE mean.

use std::sync::Arc;

use axum::{
    Router,
    body::Body,
    extract::{Extension, State},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use bytes::Bytes;
use tokio::{sync::Semaphore, time::timeout};

use super::{
    ENDPOINT_PATH, HEALTH_PATH,
    bodies::{EventBody, Opening, without_line_ends},
    headers::{self, EVENT_STREAM, JSON},
    limits::FIRST_WORD,
    refusal::{self, Refusal},
    request_body::{self, RequestBody},
    sessions::{Session, Sessions},
    streams::{Attachment, Beginning, EventStream, STANDALONE},
};
use crate::{
    call::Principal,
    serve::{ServeContext, batch::ReplyPlace, output::ClientOutput, unreadable::refusal_frame},
    wire::{Message, RawJson},
};

/// What all requests share.
pub(super) struct Endpoint {
    pub(super) context: ServeContext,
    pub(super) sessions: Sessions,
    /// A permit for every MiB of all bodies that are being read.
    pub(super) body_room: Arc<Semaphore>,
}

/// The routes. Who may come here at all has been checked before.
pub(super) fn router(endpoint: Arc<Endpoint>) -> Router {
    let methods = post(take_post)
        .get(take_get)
        .head(refuse_method)
        .delete(take_delete)
        .fallback(refuse_method);
    Router::new()
        .route(ENDPOINT_PATH, methods)
        .route(HEALTH_PATH, get(|| async { "ok" }))
        .fallback(async || Refusal::NotFound)
        .with_state(endpoint)
}

async fn refuse_method() -> Refusal {
    Refusal::MethodNotAllowed
}

/// A message of the client, or a batch of them.
async fn take_post(
    State(endpoint): State<Arc<Endpoint>>,
    Extension(principal): Extension<Principal>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Refusal> {
    headers::check_content_type(&headers)?;
    headers::check_accept(&headers, &[JSON, EVENT_STREAM])?;
    let session = match headers::session_id(&headers) {
        Some(id) => {
            headers::check_revision(&headers)?;
            Some(endpoint.sessions.find(id, principal)?)
        }
        None => None,
    };
    let body = request_body::read(&headers, body, &endpoint.body_room).await?;
    match session {
        Some(session) => take_message(&session, body).await,
        None => begin_session(&endpoint, principal, body).await,
    }
}

/// What a body holds.
enum Posted {
    Message(Message),
    Batch(Vec<RawJson>),
}

impl Posted {
    fn read(bytes: &Bytes, session: Option<&Session>) -> Result<Self, Refusal> {
        match Message::parse(bytes) {
            Ok(message) => Ok(Self::Message(message)),
            Err(error) => {
                let batch = session.and_then(|session| session.connection.batch(bytes));
                let refusal = || Refusal::NoMessage(Box::new(refusal_frame(&error, bytes)));
                batch.map(Self::Batch).ok_or_else(refusal)
            }
        }
    }

    /// Reads a body. What it relays will stand on one line.
    fn of(body: &Bytes, session: Option<&Session>) -> Result<Self, Refusal> {
        let posted = Self::read(body, session)?;
        let one_line = without_line_ends(body.clone());
        if one_line.as_ptr() == body.as_ptr() {
            return Ok(posted);
        }
        // Read in its own form first: a line end inside a string is an error and must stay one.
        Self::read(&one_line, session)
    }

    /// Whether something in it wants an answer.
    fn wants_answer(&self) -> bool {
        match self {
            Self::Message(message) => matches!(message, Message::Request(_)),
            Self::Batch(messages) => messages.iter().any(|message| {
                let message = Message::parse(message.as_bytes());
                !matches!(message, Ok(Message::Notification(_) | Message::Response(_)))
            }),
        }
    }
}

/// The first message of a client.
async fn begin_session(
    endpoint: &Endpoint,
    principal: Principal,
    body: RequestBody,
) -> Result<Response, Refusal> {
    let size = body.bytes.len();
    let message = match Posted::of(&body.bytes, None)? {
        Posted::Message(Message::Request(request)) if request.method == "initialize" => {
            Message::Request(request)
        }
        _ => return Err(Refusal::NoSession),
    };
    drop(body);
    let session = Session::new(endpoint.context.clone(), principal);
    let stream = session.begin_stream()?;
    let place = ReplyPlace::Line(ClientOutput::Stream(stream.clone()));
    session.connection.take_message(message, place, size);
    // Without an agreement there is a refusal, and no session.
    let agreed = session.connection.revision().is_some();
    if agreed {
        endpoint.sessions.add(&session)?;
    }
    let mut response = answer(&session, &stream).await?;
    if agreed {
        let id = HeaderValue::from_str(&session.id).expect("hexadecimal digits");
        response.headers_mut().insert(headers::SESSION_ID, id);
    }
    Ok(response)
}

/// A message within a session.
async fn take_message(session: &Arc<Session>, body: RequestBody) -> Result<Response, Refusal> {
    let posted = Posted::of(&body.bytes, Some(session))?;
    let size = body.bytes.len();
    drop(body);
    let wants_answer = posted.wants_answer();
    let stream = match posted {
        // What wants no answer says nothing, so no stream is begun for it.
        Posted::Message(_) if !wants_answer => session.streams.standalone(),
        _ => session.begin_stream()?,
    };
    let output = ClientOutput::Stream(stream.clone());
    match posted {
        Posted::Message(message) => {
            let place = ReplyPlace::Line(output);
            session.connection.take_message(message, place, size);
        }
        Posted::Batch(messages) => session.connection.take_batch(&messages, output),
    }
    if !wants_answer {
        return Ok(StatusCode::ACCEPTED.into_response());
    }
    answer(session, &stream).await
}

/// The answer to a request: JSON if it is the first thing to say, otherwise events.
async fn answer(session: &Arc<Session>, stream: &EventStream) -> Result<Response, Refusal> {
    let beginning = session.streams.beginning(stream.id());
    match timeout(FIRST_WORD, beginning).await {
        Ok(Beginning::Answer(frame)) => Ok(refusal::json(StatusCode::OK, frame)),
        // It was cancelled: there is no answer, and nothing to wait for.
        Ok(Beginning::Nothing) => Ok(StatusCode::ACCEPTED.into_response()),
        Ok(Beginning::Events) | Err(_) => events(session, stream.id(), None),
    }
}

/// Listens to what belongs to no request, or goes on with a stream that broke off.
async fn take_get(
    State(endpoint): State<Arc<Endpoint>>,
    Extension(principal): Extension<Principal>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    headers::check_accept(&headers, &[EVENT_STREAM])?;
    let session = find_session(&endpoint, principal, &headers)?;
    match headers::last_event(&headers)? {
        Some(last) => events(&session, last.stream, Some(last.number)),
        None => events(&session, STANDALONE, None),
    }
}

/// Ends a session.
async fn take_delete(
    State(endpoint): State<Arc<Endpoint>>,
    Extension(principal): Extension<Principal>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let session = find_session(&endpoint, principal, &headers)?;
    endpoint.sessions.end(&session);
    Ok(StatusCode::NO_CONTENT.into_response())
}

fn find_session(
    endpoint: &Endpoint,
    principal: Principal,
    headers: &HeaderMap,
) -> Result<Arc<Session>, Refusal> {
    let id = headers::session_id(headers).ok_or(Refusal::NoSession)?;
    headers::check_revision(headers)?;
    endpoint.sessions.find(id, principal)
}

/// A stream as a response, from after an event on, or from what was not sent yet.
fn events(session: &Session, stream: u64, after: Option<u64>) -> Result<Response, Refusal> {
    let reader = match session.streams.attach(stream, after) {
        Attachment::Reader(reader) => reader,
        // To those who read events this says: do not come back.
        Attachment::Over => return Ok(StatusCode::NO_CONTENT.into_response()),
        Attachment::Unknown => return Err(Refusal::UnknownEvent),
    };
    let opening = match session.connection.revision() {
        Some(revision) if revision.has_priming_events() => Opening::Priming,
        _ => Opening::Comment,
    };
    let mut response = Response::new(Body::new(EventBody::new(reader, opening)));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(EVENT_STREAM));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    Ok(response)
}
