//! The endpoint: handles POST, GET and DELETE.

use std::sync::Arc;

use bytes::Bytes;
use hyper::{HeaderMap, Method, Request, StatusCode, body::Incoming, header::HeaderValue};
use rawjson::RawJson;
use tokio::{sync::Semaphore, time::Instant};

use super::{
    ENDPOINT_PATH, HEALTH_PATH, METRICS_PATH,
    bodies::{EventBody, Opening, event_response, without_line_ends},
    headers::{self, EVENT_STREAM, JSON, NamedRevision},
    limits::FIRST_MESSAGE_TIMEOUT,
    refusal::Refusal,
    request_body,
    response::{self, Response, empty},
    sessions::{Session, Sessions},
    stateless::{Stateless, StatelessRequest},
    streams::{Attachment, EventStream, FirstMessage, STANDALONE, Streams},
    unread::UnreadBudget,
    wait_timer::WaitTimer,
};
use crate::{
    call::Principal,
    downstream::Phase,
    era,
    metrics::{CONTENT_TYPE, Gauge, Metrics},
    serve::{
        ServeContext,
        batch::{self, ReplyPlace},
        modern,
        output::ClientOutput,
        unreadable::refusal_frame,
    },
    wire::{CallOutline, Message},
};

pub(super) struct Endpoint {
    pub(super) context: ServeContext,
    pub(super) sessions: Sessions,
    pub(super) stateless: Arc<Stateless>,
    /// A permit for every MiB of all bodies that are being read.
    pub(super) body_room: Arc<Semaphore>,
    /// The bytes that wait for all clients.
    pub(super) unread: Arc<UnreadBudget>,
    pub(super) metrics: Metrics,
}

/// The timers of the requests of one connection, which run one after the other.
#[derive(Default)]
pub(super) struct Waits {
    /// The next bytes of a body.
    pub(super) body: WaitTimer,
    /// The wait for the first message of a response.
    pub(super) first_message: WaitTimer,
}

/// The sender of a request, and the timers of its connection.
#[derive(Clone, Copy)]
struct Caller<'a> {
    principal: Principal,
    waits: &'a Waits,
}

/// A message that was posted, and the size of its body.
struct PostedMessage {
    message: Message,
    outline: Box<CallOutline>,
    size: usize,
}

impl Endpoint {
    /// Handles a request that has passed the guard.
    pub(super) async fn take(
        &self,
        request: Request<Incoming>,
        principal: Principal,
        waits: &Waits,
    ) -> Result<Response, Refusal> {
        let (head, body) = request.into_parts();
        match (head.uri.path(), head.method) {
            (ENDPOINT_PATH, Method::POST) => {
                take_post(self, Caller { principal, waits }, &head.headers, body).await
            }
            (ENDPOINT_PATH, Method::GET) => take_get(self, principal, &head.headers),
            (ENDPOINT_PATH, Method::DELETE) => take_delete(self, principal, &head.headers),
            (ENDPOINT_PATH, _) => Err(Refusal::MethodNotAllowed),
            (HEALTH_PATH, Method::GET | Method::HEAD) => Ok(response::text("ok")),
            (METRICS_PATH, Method::GET) => Ok(self.metrics()),
            (HEALTH_PATH | METRICS_PATH, _) => Err(Refusal::OnlyRead),
            _ => Err(Refusal::NotFound),
        }
    }

    /// Returns the metrics for Prometheus.
    fn metrics(&self) -> Response {
        let workbench = &self.context.workbench;
        let gauges = workbench.servers().into_iter().map(|server| Gauge {
            name: "mcp_workbench_server_up",
            help: "Whether a server runs.",
            labels: vec![
                ("toolbox", server.identifier().toolbox.to_string()),
                ("server", server.identifier().server.to_string()),
            ],
            value: server.inspect(|status| u64::from(matches!(status.phase, Phase::Up))),
        });
        let gauges: Vec<Gauge> = gauges.collect();
        let text = self.metrics.text(workbench.observed(), &gauges);
        response::typed(CONTENT_TYPE, text)
    }

    /// Returns the streams of all sessions, and of all requests without one.
    pub(super) fn all_streams(&self) -> Vec<Arc<Streams>> {
        let sessions = self.sessions.all();
        let sessions = sessions.iter().map(|session| Arc::clone(&session.streams));
        sessions.chain(self.stateless.streams()).collect()
    }
}

/// Handles a posted message, or a batch of them.
async fn take_post(
    endpoint: &Endpoint,
    caller: Caller<'_>,
    headers: &HeaderMap,
    body: Incoming,
) -> Result<Response, Refusal> {
    headers::check_content_type(headers)?;
    headers::check_accept(headers, &[JSON, EVENT_STREAM])?;
    let revision = headers::named_revision(headers);
    let session = find_posted(endpoint, caller.principal, headers, revision)?;
    let body = request_body::read(headers, body, &endpoint.body_room, &caller.waits.body).await?;
    let size = body.bytes.len();
    let posted = Posted::of(&body.bytes, session.as_deref())?;
    drop(body);
    match (session, posted) {
        (session, Posted::Message(message, outline))
            if is_stateless(&message, &outline, session.as_deref(), revision) =>
        {
            let message = PostedMessage {
                message,
                outline,
                size,
            };
            take_stateless(endpoint, caller, headers, message).await
        }
        (Some(_), _) if revision == NamedRevision::Other => Err(Refusal::UnknownRevision),
        (Some(session), posted) => take_posted(&session, caller.waits, posted, size).await,
        (None, posted) => begin_session(endpoint, caller, posted, size).await,
    }
}

/// Returns the session that a message is posted to. A request without a session may name one, which is ignored.
fn find_posted(
    endpoint: &Endpoint,
    principal: Principal,
    headers: &HeaderMap,
    revision: NamedRevision,
) -> Result<Option<Arc<Session>>, Refusal> {
    let Some(id) = headers::session_id(headers) else {
        return Ok(None);
    };
    match (endpoint.sessions.find(id, principal), revision) {
        (Ok(session), _) => Ok(Some(session)),
        (Err(_), NamedRevision::Other) => Ok(None),
        (Err(refusal), NamedRevision::WithSessions) => Err(refusal),
    }
}

/// Returns true if a message belongs to no session: because of its body, and outside of sessions also because of the
/// revision in its headers. `initialize` starts a session in any case.
fn is_stateless(
    message: &Message,
    outline: &CallOutline,
    session: Option<&Session>,
    revision: NamedRevision,
) -> bool {
    let by_header = session.is_none() && revision == NamedRevision::Other;
    match message {
        Message::Request(request) => {
            modern::is_modern(request, outline) || (by_header && request.method != "initialize")
        }
        Message::Notification(notification) => {
            by_header || (session.is_none() && era::are_modern(notification.params.as_ref()))
        }
        Message::Response(_) => by_header,
    }
}

/// Handles a message without a session.
async fn take_stateless(
    endpoint: &Endpoint,
    caller: Caller<'_>,
    headers: &HeaderMap,
    posted: PostedMessage,
) -> Result<Response, Refusal> {
    let PostedMessage {
        message,
        outline,
        size,
    } = posted;
    match message {
        Message::Request(request) => {
            let (stateless, context) = (&endpoint.stateless, &endpoint.context);
            let request = StatelessRequest {
                request,
                outline,
                size,
            };
            let exchange = stateless.begin_request(context, caller.principal, headers, request)?;
            Ok(exchange.answer(&caller.waits.first_message).await)
        }
        // It belongs to no request and to no session, so it is ignored.
        Message::Notification(_) => Ok(empty(StatusCode::ACCEPTED)),
        Message::Response(_) => Err(Refusal::NothingAsked),
    }
}

enum Posted {
    Message(Message, Box<CallOutline>),
    Batch(Vec<RawJson>),
}

impl Posted {
    fn read(bytes: &Bytes, session: Option<&Session>) -> Result<Self, Refusal> {
        let mut outline = Box::<CallOutline>::default();
        match Message::parse_outlined(bytes, &mut outline) {
            Ok(message) => Ok(Self::Message(message, outline)),
            Err(error) => {
                let batch = session.and_then(|session| batch::elements(&session.connection, bytes));
                let refusal = || Refusal::NoMessage(Box::new(refusal_frame(&error, bytes)));
                batch.map(Self::Batch).ok_or_else(refusal)
            }
        }
    }

    /// Parses a body. The parts that are relayed are put on one line.
    fn of(body: &Bytes, session: Option<&Session>) -> Result<Self, Refusal> {
        let posted = Self::read(body, session)?;
        let one_line = without_line_ends(body.clone());
        if one_line.as_ptr() == body.as_ptr() {
            return Ok(posted);
        }
        // Read in its own form first: a line end inside a string is an error and must stay one.
        Self::read(&one_line, session)
    }

    /// Returns true if a message in it needs a response.
    fn wants_answer(&self) -> bool {
        match self {
            Self::Message(message, _) => matches!(message, Message::Request(_)),
            Self::Batch(messages) => messages.iter().any(|message| {
                let message = Message::parse(message.as_bytes());
                !matches!(message, Ok(Message::Notification(_) | Message::Response(_)))
            }),
        }
    }
}

/// Starts a session with the first message of a client.
async fn begin_session(
    endpoint: &Endpoint,
    caller: Caller<'_>,
    posted: Posted,
    size: usize,
) -> Result<Response, Refusal> {
    let message = match posted {
        Posted::Message(Message::Request(request), _) if request.method == "initialize" => {
            Message::Request(request)
        }
        _ => return Err(Refusal::NoSession),
    };
    let session = Session::new(endpoint.context.clone(), caller.principal, &endpoint.unread);
    let stream = session.begin_stream()?;
    let place = ReplyPlace::Line(ClientOutput::Stream(stream.clone()));
    let outline = CallOutline::default();
    session
        .connection
        .take_message(message, &outline, place, size);
    // Without an agreement there is a refusal, and no session.
    let agreed = session.connection.revision().is_some();
    if agreed {
        endpoint.sessions.add(&session)?;
    }
    let mut response = answer(&session, caller.waits, &stream).await?;
    if agreed {
        let id = HeaderValue::from_str(&session.id).expect("hexadecimal digits");
        response.headers_mut().insert(headers::SESSION_ID, id);
    }
    Ok(response)
}

/// Handles a message within a session.
async fn take_posted(
    session: &Arc<Session>,
    waits: &Waits,
    posted: Posted,
    size: usize,
) -> Result<Response, Refusal> {
    let wants_answer = posted.wants_answer();
    let stream = match posted {
        // A message without a response sends nothing, so it gets no stream.
        Posted::Message(..) if !wants_answer => session.streams.standalone(),
        _ => session.begin_stream()?,
    };
    let output = ClientOutput::Stream(stream.clone());
    match posted {
        Posted::Message(message, outline) => {
            let place = ReplyPlace::Line(output);
            session
                .connection
                .take_message(message, &outline, place, size);
        }
        Posted::Batch(messages) => batch::take(&session.connection, &messages, output),
    }
    if !wants_answer {
        return Ok(empty(StatusCode::ACCEPTED));
    }
    answer(session, waits, &stream).await
}

/// Returns the response to a request: JSON if the response is the first message, otherwise events.
async fn answer(
    session: &Arc<Session>,
    waits: &Waits,
    stream: &EventStream,
) -> Result<Response, Refusal> {
    let first = session.streams.first_message(stream.id());
    let end = Instant::now() + FIRST_MESSAGE_TIMEOUT;
    match waits.first_message.until(end, first).await {
        Some(FirstMessage::Answer(frame)) => Ok(response::json(StatusCode::OK, frame)),
        // The request was cancelled, so there is no response to wait for.
        Some(FirstMessage::Nothing) => Ok(empty(StatusCode::ACCEPTED)),
        Some(FirstMessage::Events) | None => events(session, stream.id(), None),
    }
}

/// Opens the stream for messages that belong to no request, or resumes an interrupted stream.
fn take_get(
    endpoint: &Endpoint,
    principal: Principal,
    headers: &HeaderMap,
) -> Result<Response, Refusal> {
    headers::check_accept(headers, &[EVENT_STREAM])?;
    let session = find_session(endpoint, principal, headers)?;
    match headers::last_event(headers)? {
        Some(last) => events(&session, last.stream, Some(last.number)),
        None => events(&session, STANDALONE, None),
    }
}

fn take_delete(
    endpoint: &Endpoint,
    principal: Principal,
    headers: &HeaderMap,
) -> Result<Response, Refusal> {
    let session = find_session(endpoint, principal, headers)?;
    endpoint.sessions.end(&session);
    Ok(empty(StatusCode::NO_CONTENT))
}

fn find_session(
    endpoint: &Endpoint,
    principal: Principal,
    headers: &HeaderMap,
) -> Result<Arc<Session>, Refusal> {
    let id = headers::session_id(headers);
    match headers::named_revision(headers) {
        NamedRevision::WithSessions => {
            let id = id.ok_or(Refusal::NoSession)?;
            endpoint.sessions.find(id, principal)
        }
        NamedRevision::Other => Err(match id.map(|id| endpoint.sessions.find(id, principal)) {
            Some(Ok(_)) => Refusal::UnknownRevision,
            Some(Err(_)) | None => Refusal::OnlyPosted,
        }),
    }
}

/// Returns a stream as a response, after an event, or from the first event that was not sent.
fn events(session: &Session, stream: u64, after: Option<u64>) -> Result<Response, Refusal> {
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
    Ok(event_response(EventBody::new(reader, opening)))
}
