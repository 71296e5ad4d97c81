//! The endpoint: handles POST, GET and DELETE.

use std::sync::Arc;

use bytes::Bytes;
use hyper::{HeaderMap, Method, Request, StatusCode, body::Incoming, header::HeaderValue};
use rawjson::RawJson;
use tokio::sync::Semaphore;

use super::{
    ENDPOINT_PATH, METRICS_PATH,
    bodies::without_line_ends,
    contexts::Contexts,
    event_streams::{answer, resume, standalone},
    forward,
    guard::Sender,
    headers::{self, EVENT_STREAM, JSON, NamedRevision},
    limits::{FIRST_MESSAGE_TIMEOUT, REPLICA_FIRST_MESSAGE_TIMEOUT},
    owners::{Forwarder, Posting, about, asked_elsewhere, forward_to, parked_elsewhere},
    quotas::{Exceeded, InFlight, Quotas, take_shared},
    refusal::Refusal,
    request_body::{self, RequestBody},
    response::{self, Answered, Response, empty},
    sealed_session::SealedSession,
    sessions::{Session, Sessions},
    stateless::{Stateless, StatelessRequest},
    streams::Streams,
    unread::UnreadBudget,
    wait_timer::WaitTimer,
};
use crate::{
    call::Principal,
    config::Limits,
    era::{self, RequestMeta},
    metrics::{CONTENT_TYPE, Metrics},
    serve::{
        ServeContext,
        batch::{self, ReplyPlace},
        connection::Connection,
        modern,
        output::ClientOutput,
        replica::Replica,
        unreadable::refusal_frame,
    },
    wire::{CallOutline, Message},
    workbench::Workbench,
};

pub(super) struct Endpoint {
    pub(super) contexts: Contexts,
    pub(super) sessions: Sessions,
    pub(super) stateless: Arc<Stateless>,
    /// A permit for every MiB of all bodies that are being read.
    pub(super) body_room: Arc<Semaphore>,
    /// The bytes that wait to be read by clients, of all clients together.
    pub(super) unread: Arc<UnreadBudget>,
    /// The use of each principal's limits.
    pub(super) quotas: Arc<Quotas>,
    pub(super) metrics: Metrics,
    pub(super) replica: Arc<Replica>,
}

/// The timers of the requests of one connection, which run one after the other.
#[derive(Default)]
pub(super) struct Waits {
    /// The next bytes of a body.
    pub(super) body: WaitTimer,
    /// The wait for the first message of a response.
    pub(super) first_message: WaitTimer,
}

/// The sender of a request with its headers, and the timers of its connection.
#[derive(Clone, Copy)]
struct Caller<'a> {
    sender: &'a Sender,
    principal: Principal,
    limits: Limits,
    headers: &'a HeaderMap,
    /// True if another replica has forwarded the request.
    is_forwarded: bool,
    waits: &'a Waits,
}

impl<'a> Caller<'a> {
    fn forwarder(self) -> Forwarder<'a> {
        Forwarder {
            sender: self.sender,
            headers: self.headers,
        }
    }
}

/// A message that was posted, with its body.
struct PostedMessage {
    message: Message,
    outline: Box<CallOutline<'static>>,
    body: Bytes,
    cost: Cost,
}

/// The cost of a body for its sender: its size, and the requests in it until they are answered.
struct Cost {
    size: usize,
    in_flight: Option<InFlight>,
}

impl Endpoint {
    /// Handles a request that has passed the guard.
    pub(super) async fn take(
        &self,
        request: Request<Incoming>,
        sender: &Sender,
        waits: &Waits,
    ) -> Result<Response, Refusal> {
        let (head, body) = request.into_parts();
        if !self.contexts.knows(sender) {
            return Err(Refusal::WrongToken);
        }
        let principal = sender.principal();
        let is_forwarded = forward::is_forwarded(&head.headers);
        // The replica that forwards a request has counted it.
        let limits = if is_forwarded {
            Limits::default()
        } else {
            self.contexts.limits(sender)
        };
        self.contexts.touch(sender);
        let caller = Caller {
            sender,
            principal,
            limits,
            headers: &head.headers,
            is_forwarded,
            waits,
        };
        let response = match (head.uri.path(), head.method) {
            (ENDPOINT_PATH, Method::POST) => {
                let answered = take_post(self, caller, body).await;
                answered.map(|it| it.into_response(head.headers))
            }
            // On the heap, like other parts that most requests do not need: hyper moves the future of each request.
            (ENDPOINT_PATH, Method::GET) => Box::pin(take_get(self, caller)).await,
            (ENDPOINT_PATH, Method::DELETE) => take_delete(self, caller),
            (ENDPOINT_PATH, _) => Err(Refusal::MethodNotAllowed),
            // They cover all clients, so a sender that may not see all of them must not read them.
            (METRICS_PATH, Method::GET) if self.contexts.sees_all(sender) => Ok(self.metrics()),
            (METRICS_PATH, Method::GET) => Err(Refusal::NotFound),
            (METRICS_PATH, _) => Err(Refusal::OnlyRead),
            _ => Err(Refusal::NotFound),
        };
        let mut response = response?;
        if let Some(meter) = self.quotas.meter(principal, limits) {
            response.body_mut().set_meter(meter);
        }
        Ok(response)
    }

    /// Returns the context of a sender that declares these capabilities.
    fn context(&self, sender: &Sender, declared: Option<RawJson>) -> Result<ServeContext, Refusal> {
        let contexts = &self.contexts;
        let base = contexts.of(sender, |principal| self.is_busy(principal))?;
        contexts.with_extensions(base, declared, sender.principal(), |it| self.is_used(it))
    }

    /// Removes the state of clients that were idle for too long.
    pub(super) fn sweep(&self) {
        self.sessions.sweep();
        self.contexts
            .sweep(|principal| self.is_busy(principal), |it| self.is_used(it));
    }

    /// Returns whether a principal has a session or a running request.
    fn is_busy(&self, principal: Principal) -> bool {
        self.sessions.has(principal) || self.stateless.has(principal)
    }

    /// Returns whether a workbench has a session or a running request.
    fn is_used(&self, workbench: &Arc<Workbench>) -> bool {
        let is_its = |it: &Connection| Arc::ptr_eq(it.workbench(), workbench);
        self.sessions.all().iter().any(|it| is_its(&it.connection))
            || self.stateless.all().iter().any(|it| is_its(it))
    }

    /// Returns the metrics for Prometheus.
    pub(super) fn metrics(&self) -> Response {
        let observed = self.contexts.everybody().workbench.observed();
        let text = self.metrics.text(observed, &self.contexts.gauges());
        response::typed(CONTENT_TYPE, text)
    }

    /// Returns a client with a request that runs.
    pub(super) fn running(&self) -> Option<Arc<Connection>> {
        let sessions = self
            .sessions
            .all()
            .into_iter()
            .map(|session| Arc::clone(&session.connection));
        let mut all = sessions.chain(self.stateless.all());
        all.find(|connection| connection.in_flight().count() > 0)
    }

    /// Returns the streams of all sessions, and of all requests without one.
    pub(super) fn all_streams(&self) -> Vec<Arc<Streams>> {
        let sessions = self.sessions.all();
        let sessions = sessions.iter().map(|session| Arc::clone(&session.streams));
        sessions.chain(self.stateless.streams()).collect()
    }
}

/// Admits the requests of a body within the limits of their sender.
async fn admit(
    endpoint: &Endpoint,
    caller: Caller<'_>,
    requests: usize,
    size: usize,
) -> Result<Option<InFlight>, Exceeded> {
    let Caller {
        principal, limits, ..
    } = caller;
    let in_flight = endpoint.quotas.admit(principal, limits, requests, size)?;
    if let Some(store) = endpoint.contexts.everybody().workbench.pool().store() {
        Box::pin(take_shared(store, principal, limits, requests)).await?;
    }
    Ok(in_flight)
}

/// Handles a posted message, or a batch of them.
async fn take_post(
    endpoint: &Endpoint,
    caller: Caller<'_>,
    body: Incoming,
) -> Result<Answered, Refusal> {
    let headers = caller.headers;
    headers::check_content_type(headers)?;
    headers::check_accept(headers, &[JSON, EVENT_STREAM])?;
    let revision = headers::named_revision(headers);
    // Before the body is read, so that a request to an unknown session costs no memory.
    let session = find_posted(endpoint, caller, revision)?;
    let RequestBody {
        bytes: body,
        room: _room,
    } = request_body::read(headers, body, &endpoint.body_room, &caller.waits.body).await?;
    if caller.is_forwarded {
        forward::check_body(endpoint.replica.sealer(), headers, &body)?;
    }
    let size = body.len();
    let posted = Posted::of(&body, session.as_deref())?;
    // Only here is the number of requests known while none of them has run.
    let in_flight = admit(endpoint, caller, posted.requests(), size)
        .await
        .map_err(Refusal::Limited)?;
    let cost = Cost { size, in_flight };
    match (session, posted) {
        (session, Posted::Message(message, outline))
            if is_stateless(&message, &outline, session.as_deref(), revision) =>
        {
            let message = PostedMessage {
                message,
                outline,
                body,
                cost,
            };
            take_stateless(endpoint, caller, message).await
        }
        // After the check for stateless messages, which may name a session that does not count.
        (Some(_), _) if revision == NamedRevision::Other => Err(Refusal::UnknownRevision),
        (Some(session), posted) => {
            if let Posted::Message(Message::Response(answer), _) = &posted
                && let Some(elsewhere) = asked_elsewhere(&endpoint.replica, answer)
            {
                // If the replica that asked is gone, its call is gone too.
                let posting = Posting::answer(body);
                let from = caller.forwarder();
                let taken = Box::pin(forward_to(&endpoint.replica, from, elsewhere, posting)).await;
                let taken = taken.unwrap_or_else(|| empty(StatusCode::ACCEPTED));
                return Ok(Answered::Response(taken));
            }
            take_posted(&session, caller.waits, posted, cost).await
        }
        (None, posted) => Box::pin(begin_session(endpoint, caller, posted, cost)).await,
    }
}

/// Returns the session that a message is posted to. A request without a session may name one, which is ignored.
fn find_posted(
    endpoint: &Endpoint,
    caller: Caller<'_>,
    revision: NamedRevision,
) -> Result<Option<Arc<Session>>, Refusal> {
    let Some(id) = headers::session_id(caller.headers) else {
        return Ok(None);
    };
    match (find_or_continue(endpoint, caller, id), revision) {
        (Ok(session), _) => Ok(Some(session)),
        (Err(_), NamedRevision::Other) => Ok(None),
        (Err(refusal), NamedRevision::WithSessions) => Err(refusal),
    }
}

/// Returns the session with an id. One that another replica has begun is continued here.
fn find_or_continue(
    endpoint: &Endpoint,
    caller: Caller<'_>,
    id: &str,
) -> Result<Arc<Session>, Refusal> {
    let found = endpoint.sessions.find(id, caller.principal);
    // A sealed id stays valid forever, so a session that its client has ended must not come back.
    if found.is_ok() || endpoint.sessions.has_ended(id) {
        return found;
    }
    let sealed = SealedSession::open_at(&endpoint.replica, id, caller.principal);
    let sealed = sealed.ok_or(Refusal::UnknownSession)?;
    let context = endpoint.context(caller.sender, sealed.initialize.member("capabilities"))?;
    let (principal, unread) = (caller.principal, &endpoint.unread);
    let continued = Session::continued(context, principal, unread, id, sealed);
    let session = continued.ok_or(Refusal::UnknownSession)?;
    endpoint.sessions.add(&session)?;
    Ok(session)
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
    posted: PostedMessage,
) -> Result<Answered, Refusal> {
    let PostedMessage {
        message,
        outline,
        body,
        cost,
    } = posted;
    match message {
        Message::Request(request) => {
            if let Some(elsewhere) = parked_elsewhere(&endpoint.replica, &request) {
                let posting = Posting::request(body, &request);
                let from = caller.forwarder();
                let taken = Box::pin(forward_to(&endpoint.replica, from, elsewhere, posting)).await;
                // If the replica is gone, the request is answered here, with an unknown outcome.
                if let Some(taken) = taken {
                    return Ok(Answered::Response(taken));
                }
            }
            let declared = RequestMeta::declared(request.params.as_ref(), &outline);
            let context = endpoint.context(caller.sender, declared)?;
            let request = StatelessRequest {
                request,
                outline,
                size: cost.size,
                in_flight: cost.in_flight,
            };
            let (principal, headers) = (caller.principal, caller.headers);
            let stateless = &endpoint.stateless;
            let exchange = stateless.begin_request(&context, principal, headers, request)?;
            // A replica waits for the response to a request that it forwards for a short time only.
            let time = if endpoint.replica.has_others() && !caller.is_forwarded {
                REPLICA_FIRST_MESSAGE_TIMEOUT
            } else {
                FIRST_MESSAGE_TIMEOUT
            };
            Ok(exchange.answer(&caller.waits.first_message, time).await)
        }
        // It belongs to no request and to no session, so it is ignored.
        Message::Notification(_) => Ok(Answered::Response(empty(StatusCode::ACCEPTED))),
        Message::Response(_) => Err(Refusal::NothingAsked),
    }
}

enum Posted {
    Message(Message, Box<CallOutline<'static>>),
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

    /// Returns the part of a request that another replica needs to report that its answer is lost.
    fn about(&self) -> String {
        match self {
            Self::Message(Message::Request(request), _) => about(request),
            Self::Message(..) | Self::Batch(_) => String::new(),
        }
    }

    /// Returns how many messages in it need a response.
    fn requests(&self) -> usize {
        match self {
            Self::Message(message, _) => usize::from(matches!(message, Message::Request(_))),
            Self::Batch(messages) => {
                let needs_response = |message: &&RawJson| {
                    let message = Message::parse(message.as_bytes());
                    // An element that is not a message is answered with an error.
                    !matches!(message, Ok(Message::Notification(_) | Message::Response(_)))
                };
                messages.iter().filter(needs_response).count()
            }
        }
    }
}

/// Starts a session with the first message of a client.
async fn begin_session(
    endpoint: &Endpoint,
    caller: Caller<'_>,
    posted: Posted,
    cost: Cost,
) -> Result<Answered, Refusal> {
    let request = match posted {
        Posted::Message(Message::Request(request), _) if request.method == "initialize" => request,
        _ => return Err(Refusal::NoSession),
    };
    let params = request.params.as_ref();
    let declared = params.and_then(|params| params.member("capabilities"));
    let context = endpoint.context(caller.sender, declared)?;
    let session = Session::new(context, caller.principal, &endpoint.unread, params);
    let message = Message::Request(request);
    let stream = session.begin_stream(cost.in_flight)?;
    let place = ReplyPlace::Line(ClientOutput::Stream(stream.clone()));
    let outline = CallOutline::default();
    session
        .connection
        .take_message(message, &outline, place, cost.size);
    // Without an agreement there is a refusal, and no session.
    let agreed = session.connection.revision().is_some();
    if agreed {
        endpoint.sessions.add(&session)?;
    }
    let answered = answer(&session, caller.waits, &stream, "").await?;
    let mut response = answered.into_response(HeaderMap::new());
    if agreed {
        let id = HeaderValue::from_str(&session.id).expect("visible characters");
        response.headers_mut().insert(headers::SESSION_ID, id);
    }
    Ok(Answered::Response(response))
}

/// Handles a message within a session.
async fn take_posted(
    session: &Arc<Session>,
    waits: &Waits,
    posted: Posted,
    cost: Cost,
) -> Result<Answered, Refusal> {
    let wants_answer = posted.requests() > 0;
    // Only replicas put it into the ids of events.
    let about = if session.connection.parked().replica().has_others() {
        posted.about()
    } else {
        String::new()
    };
    let stream = match posted {
        // A message without a response needs no stream.
        Posted::Message(..) if !wants_answer => session.streams.standalone(),
        _ => session.begin_stream(cost.in_flight)?,
    };
    let output = ClientOutput::Stream(stream.clone());
    match posted {
        Posted::Message(message, outline) => {
            let place = ReplyPlace::Line(output);
            session
                .connection
                .take_message(message, &outline, place, cost.size);
        }
        Posted::Batch(messages) => batch::take(&session.connection, &messages, output),
    }
    if !wants_answer {
        return Ok(Answered::Response(empty(StatusCode::ACCEPTED)));
    }
    answer(session, waits, &stream, &about).await
}

/// Opens the stream for messages that belong to no request, or resumes an interrupted stream.
async fn take_get(endpoint: &Endpoint, caller: Caller<'_>) -> Result<Response, Refusal> {
    headers::check_accept(caller.headers, &[EVENT_STREAM])?;
    let session = find_session(endpoint, caller)?;
    match headers::last_event(caller.headers)? {
        Some(last) => resume(&endpoint.replica, &session, caller.forwarder(), last).await,
        None => standalone(&session),
    }
}

fn take_delete(endpoint: &Endpoint, caller: Caller<'_>) -> Result<Response, Refusal> {
    let session = find_session(endpoint, caller)?;
    endpoint.sessions.end(&session);
    Ok(empty(StatusCode::NO_CONTENT))
}

fn find_session(endpoint: &Endpoint, caller: Caller<'_>) -> Result<Arc<Session>, Refusal> {
    let id = headers::session_id(caller.headers);
    match headers::named_revision(caller.headers) {
        NamedRevision::WithSessions => {
            let id = id.ok_or(Refusal::NoSession)?;
            find_or_continue(endpoint, caller, id)
        }
        NamedRevision::Other => Err(match id.map(|id| find_or_continue(endpoint, caller, id)) {
            Some(Ok(_)) => Refusal::UnknownRevision,
            Some(Err(_)) | None => Refusal::OnlyPosted,
        }),
    }
}
