//! The connection of one client: classifies its messages, runs its requests concurrently, and sends one response to
//! each.

use std::{
    pin::Pin,
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use bytes::Bytes;
use rawjson::RawJson;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    ClientLocation, ServeContext,
    batch::{self, ReplyPlace},
    calls::{self, CallMeta, CallParams},
    in_flight::{InFlight, MAX_REQUESTS, Runs},
    log_level::LogLevel,
    methods::{self, Reply, Requester},
    modern::{self, ModernRequest},
    operations,
    output::ClientOutput,
    parked::ParkedCalls,
    questions::Questions,
    revision::Revision,
    unreadable::refusal_frame,
};
use crate::{
    call::{
        Carrier, ClientCapabilities, ClientId, ClientIdentity, Declaration, Owner, Principal,
        Recipient,
    },
    contain::{contain, contain_now},
    era::Era,
    events::{EndedSession, OperationGuard, SessionGuard, Side},
    sync::lock,
    wire::{
        self, CallOutline, Line, MAX_FRAME_BYTES, Message, Notification, ParseError, Request,
        RequestId, code, id_from_head, id_from_tail,
    },
    workbench::Workbench,
};

/// The number of clients so far, whatever their kind and era.
static CLIENTS: AtomicU64 = AtomicU64::new(0);

/// A client that is connected.
pub(super) struct Connection {
    context: ServeContext,
    output: ClientOutput,
    id: ClientId,
    /// The principal that the client acts for.
    principal: Principal,
    /// The result of `initialize`, or `None` before it.
    agreed: Mutex<Option<Agreed>>,
    /// Set once there is one: every call asks for that, and must not take a lock.
    is_initialized: AtomicBool,
    /// The lowest level of log messages that the client wants, if it has set one.
    log_level: Mutex<Option<LogLevel>>,
    questions: Arc<Questions>,
    in_flight: InFlight,
    tasks: TaskTracker,
    /// True if the refusal of the current oversized message was sent.
    oversized_answered: AtomicBool,
    /// The id of its session, over HTTP.
    session: OnceLock<Arc<str>>,
    /// The session in the event stream, while anybody listens.
    measured: Mutex<Option<SessionGuard>>,
}

/// The way to interpret a request.
enum Speaker {
    /// A request within an initialized session.
    Legacy,
    Modern(ModernRequest),
}

/// The agreement of `initialize`, which holds for the rest of the session.
#[derive(Debug, Clone)]
pub(super) struct Agreed {
    /// The revision that is spoken.
    pub(super) revision: Revision,
    /// The description of the client for its servers.
    pub(super) declaration: Arc<Declaration>,
    /// The identity that the client reports.
    pub(super) identity: Arc<ClientIdentity>,
}

impl Agreed {
    fn set_log_level(&mut self, level: LogLevel) {
        Arc::make_mut(&mut self.declaration).log_level = Some(level.name());
    }
}

pub(super) fn next_client_id() -> ClientId {
    ClientId(CLIENTS.fetch_add(1, Ordering::Relaxed))
}

impl Connection {
    pub(super) fn new(
        context: ServeContext,
        output: ClientOutput,
        principal: Principal,
    ) -> Arc<Self> {
        let questions = Questions::new(Arc::clone(context.parked.replica()));
        Arc::new(Self {
            context,
            output,
            id: next_client_id(),
            principal,
            agreed: Mutex::new(None),
            is_initialized: AtomicBool::new(false),
            log_level: Mutex::default(),
            questions: Arc::new(questions),
            in_flight: InFlight::default(),
            tasks: TaskTracker::new(),
            oversized_answered: AtomicBool::new(false),
            session: OnceLock::new(),
            measured: Mutex::default(),
        })
    }

    /// Sets the id of the session that the connection belongs to.
    pub(super) fn name_session(&self, id: &str) {
        let _ = self.session.set(id.into());
    }

    /// Returns the id of the session that the connection belongs to.
    pub(super) fn session(&self) -> Option<Arc<str>> {
        self.session.get().cloned()
    }

    pub(super) fn id(&self) -> ClientId {
        self.id
    }

    pub(super) fn workbench(&self) -> &Arc<Workbench> {
        &self.context.workbench
    }

    pub(super) fn in_flight(&self) -> &InFlight {
        &self.in_flight
    }

    pub(super) fn tasks(&self) -> &TaskTracker {
        &self.tasks
    }

    /// Returns the context that all connections share.
    pub(super) fn context(&self) -> &ServeContext {
        &self.context
    }

    pub(super) fn parked(&self) -> &Arc<ParkedCalls> {
        &self.context.parked
    }

    pub(super) fn location(&self) -> ClientLocation {
        self.context.location
    }

    /// Returns the transport of the client.
    pub(super) fn carrier(&self) -> Carrier {
        match self.output {
            ClientOutput::Pipe(_) => Carrier::Pipe,
            ClientOutput::Stream(_) => Carrier::Tcp,
        }
    }

    /// Returns the name that the authorization server has for the user of the client.
    pub(super) fn user(&self) -> Option<Arc<str>> {
        self.context.user.clone()
    }

    /// Returns the principal that the client acts for.
    pub(super) fn principal(&self) -> Principal {
        self.principal
    }

    /// Returns true if the client is on this machine.
    pub(super) fn is_local(&self) -> bool {
        self.context.location == ClientLocation::Local
    }

    /// Returns the output for messages that belong to no request.
    pub(super) fn output(&self) -> ClientOutput {
        self.output.clone()
    }

    /// Returns what the client has declared to servers.
    pub(super) fn declaration(&self) -> Arc<Declaration> {
        let agreed = lock(&self.agreed);
        agreed
            .as_ref()
            .map_or_else(Arc::default, |it| Arc::clone(&it.declaration))
    }

    /// Returns the identity that the client reports.
    pub(super) fn identity(&self) -> Arc<ClientIdentity> {
        let agreed = lock(&self.agreed);
        agreed
            .as_ref()
            .map_or_else(Arc::default, |it| Arc::clone(&it.identity))
    }

    /// Returns the client as the recipient of a result that cannot be sent whole.
    pub(super) fn recipient(&self) -> Recipient {
        let revision = self.revision().unwrap_or_default();
        Recipient {
            owner: Owner::of(self.principal, Era::Legacy, self.id),
            knows_links: revision.has_resource_links(),
        }
    }

    /// Returns the questions that the client has not answered.
    pub(super) fn questions(&self) -> &Arc<Questions> {
        &self.questions
    }

    /// Returns the lowest level of log messages that the client wants.
    pub(super) fn log_level(&self) -> LogLevel {
        lock(&self.log_level).unwrap_or(LogLevel::Debug)
    }

    /// Sets the lowest level of log messages that the client wants.
    pub(super) fn set_log_level(&self, level: LogLevel) {
        *lock(&self.log_level) = Some(level);
        if let Some(agreed) = &mut *lock(&self.agreed) {
            agreed.set_log_level(level);
        }
    }

    /// Waits until there is room for another request. Cancel-safe.
    pub(super) async fn has_room(&self) {
        self.in_flight.room().await;
        self.output.has_room().await;
    }

    /// Returns true if there is room for another request.
    pub(super) fn has_room_now(&self) -> bool {
        self.in_flight.has_room() && !self.output.is_full()
    }

    /// Cancels all requests, because the client has ended its session.
    pub(super) fn abandon(&self) {
        self.questions.give_up();
        self.in_flight.cancel_all();
        self.workbench().forget_client(self.id);
        if let Some(native) = self.workbench().native() {
            native.forget_client(self.id);
        }
    }

    /// Waits until every request has been answered.
    pub(super) async fn all_answered(&self) {
        // First the requests, because they may still start tasks.
        self.in_flight.all_ended().await;
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// Takes a line of the client.
    pub(super) fn take_line(self: &Arc<Self>, line: Line) {
        match line {
            Line::Complete(frame) => self.take_frame(&frame),
            // An earlier host has answered it.
            Line::TooLong(_) if self.oversized_answered.load(Ordering::Relaxed) => {}
            Line::TooLong(head) => {
                // The client may wait for its response before it ends the line, so the id is searched for at once.
                let id = id_from_head(&head);
                if id.is_some() {
                    self.refuse_oversized(id.as_ref());
                }
                self.oversized_answered
                    .store(id.is_some(), Ordering::Relaxed);
            }
            Line::TooLongEnded(tail) => {
                if !self.oversized_answered.swap(false, Ordering::Relaxed) {
                    self.refuse_oversized(id_from_tail(&tail).as_ref());
                }
            }
        }
    }

    /// Expects the rest of a line that is too long, which an earlier host has refused.
    #[cfg(unix)]
    pub(super) fn expect_refused_line(&self) {
        self.oversized_answered.store(true, Ordering::Relaxed);
    }

    fn refuse_oversized(&self, id: Option<&RequestId>) {
        let limit = MAX_FRAME_BYTES / (1024 * 1024);
        let message = format!("Invalid request: the message is larger than {limit} MiB");
        self.refuse(id, code::INVALID_REQUEST, &message);
    }

    fn take_frame(self: &Arc<Self>, frame: &Bytes) {
        let known = self.context.known_client.meta();
        let mut outline = CallOutline::expecting(known.map(|known| &known.text));
        match Message::parse_line(frame, &mut outline) {
            Ok(message) => {
                let place = ReplyPlace::Line(self.output.for_request());
                self.take_message(message, &outline, place, frame.len());
            }
            // Batches are rare, so an array is considered only after the message could not be parsed.
            Err(error) => match batch::elements(self, &on_one_line(frame)) {
                Some(messages) => batch::take(self, &messages, self.output.for_request()),
                None => self.refuse_frame(&error, frame),
            },
        }
    }

    /// Takes a message of `size` bytes.
    pub(super) fn take_message(
        self: &Arc<Self>,
        message: Message,
        outline: &CallOutline,
        place: ReplyPlace,
        size: usize,
    ) {
        match message {
            Message::Request(request) => self.take_request(request, outline, place, size),
            Message::Notification(notification) => self.take_notification(&notification),
            Message::Response(response) => self.questions.take(response),
        }
    }

    /// Responds in order to requests that need no waiting; all others run concurrently.
    fn take_request(
        self: &Arc<Self>,
        request: Request,
        outline: &CallOutline,
        place: ReplyPlace,
        size: usize,
    ) {
        let mut call = match &*request.method {
            "tools/call" => {
                let known = self.context.known_client.meta();
                CallParams::read(request.params.as_ref(), outline, known).ok()
            }
            _ => None,
        };
        let speaker = match &mut call {
            Some(call) => self.caller_of(call),
            None => self.speaker(&request, outline),
        };
        match (speaker, call) {
            (Ok(Speaker::Modern(mut said)), call) => {
                said.size = size;
                modern::take(self, &request, place, said, call);
            }
            (Ok(Speaker::Legacy), Some(params)) => {
                let requester = Requester::Legacy(place.caller(self));
                // An uncaught panic would end the task that reads the client's messages.
                match contain_now(|| calls::begin(self.workbench(), &request.id, params, requester))
                {
                    Ok(begun) => calls::take_begun(self, begun, request.id, place, size),
                    Err(panicked) => {
                        place.answer(Reply::internal_error(panicked.to_string()).to(&request.id));
                    }
                }
            }
            (Ok(Speaker::Legacy), None) => {
                let id = request.id.clone();
                let answer = self.answer(request, &place);
                self.answer_in_task(answer, id, place, size);
            }
            (Err(refusal), _) => place.answer(refusal.to(&request.id)),
        }
    }

    pub(super) fn answer_in_task(
        self: &Arc<Self>,
        answer: ReplyFuture,
        id: RequestId,
        place: ReplyPlace,
        size: usize,
    ) {
        // Registered before the task exists, so that a cancellation on the next line finds it.
        let cancelled = CancellationToken::new();
        let runs = Runs::InTask(cancelled.clone());
        let running = match self.in_flight.begin(id, runs, size) {
            Ok(running) => running,
            Err(id) => return place.answer(too_many().to(&id)),
        };
        let connection = Arc::clone(self);
        self.tasks.spawn(async move {
            let reply = cancelled.run_until_cancelled(contain(answer)).await;
            let id = connection.in_flight.end(running);
            match (reply, id) {
                (Some(Ok(reply)), Some(id)) => place.answer(reply.to(&id)),
                (Some(Err(panicked)), Some(id)) => {
                    place.answer(Reply::internal_error(panicked.to_string()).to(&id));
                }
                // The client has cancelled it, and the specification wants no response then.
                (None, _) | (_, None) => place.withhold(),
            }
        });
    }

    /// Determines the era of a request. Each request decides for itself: a client may use both eras on one connection.
    fn speaker(&self, request: &Request, outline: &CallOutline) -> Result<Speaker, Reply> {
        if modern::is_modern(request, outline) {
            let said = ModernRequest::read(request)?;
            return Ok(Speaker::Modern(said));
        }
        self.agree_if_asked(request)?;
        // The specification allows a ping before `initialize`.
        if request.method != "ping" {
            self.check_initialized()?;
        }
        Ok(Speaker::Legacy)
    }

    /// Determines the era of a parsed `tools/call`.
    fn caller_of(&self, call: &mut CallParams<'_>) -> Result<Speaker, Reply> {
        let retry = call.retry.take();
        match &mut call.meta {
            CallMeta::Known(client) => {
                let said = ModernRequest::of(Arc::clone(client), None, retry);
                Ok(Speaker::Modern(said))
            }
            CallMeta::Read(meta) if meta.is_modern() => {
                let said = ModernRequest::new(meta, retry)?;
                let describes_only = said.progress_token.is_none() && meta.relayed.is_none();
                // Only lines are compared with it.
                if describes_only
                    && self.carrier() == Carrier::Pipe
                    && let Some(text) = call.meta_text()
                {
                    self.context.known_client.remember(&text);
                }
                Ok(Speaker::Modern(said))
            }
            CallMeta::Read(_) | CallMeta::None => {
                self.check_initialized()?;
                Ok(Speaker::Legacy)
            }
        }
    }

    fn check_initialized(&self) -> Result<(), Reply> {
        if self.is_initialized.load(Ordering::Relaxed) {
            return Ok(());
        }
        Err(Reply::invalid_params(
            "not initialized: send initialize first",
        ))
    }

    /// Repeats a request of the session that an earlier host has already answered. The client gets no second answer.
    #[cfg(unix)]
    pub(super) async fn restore(self: &Arc<Self>, request: Request) {
        if self.agree_if_asked(&request).is_ok() {
            let place = ReplyPlace::Line(self.output.for_request());
            self.answer(request, &place).await;
        }
    }

    /// Continues a session that another replica has begun with these parameters of `initialize`. Returns false if they
    /// are invalid.
    pub(super) fn agree_again(&self, params: &RawJson) -> bool {
        let agreed = methods::agree(Some(params));
        agreed.map(|agreed| self.begin(agreed)).is_ok()
    }

    /// Stores the result of `initialize` before any later message is handled.
    fn agree_if_asked(&self, request: &Request) -> Result<(), Reply> {
        if request.method == "initialize" {
            self.begin(methods::agree(request.params.as_ref())?);
        }
        Ok(())
    }

    fn begin(&self, mut agreed: Agreed) {
        // First: a server that starts for the next message gets these capabilities.
        self.declare(&agreed.declaration.capabilities, Era::Legacy);
        if let Some(level) = *lock(&self.log_level) {
            agreed.set_log_level(level);
        }
        *lock(&self.agreed) = Some(agreed);
        self.is_initialized.store(true, Ordering::Relaxed);
        *lock(&self.measured) = Some(self.workbench().observed().begin_session());
    }

    /// Records the capabilities of a client that has a workbench of its own.
    pub(super) fn declare(&self, capabilities: &ClientCapabilities, era: Era) {
        if matches!(self.principal, Principal::Attached(_)) {
            self.workbench().declare(capabilities, era);
        }
    }

    /// Answers a request of the legacy era. The future is on the heap, because it is large and would be copied into
    /// each one around it.
    fn answer(self: &Arc<Self>, request: Request, place: &ReplyPlace) -> ReplyFuture {
        let connection = Arc::clone(self);
        let revision = self.revision().unwrap_or_default();
        let caller = place.caller(self);
        let observed = operations::begin(self.workbench(), &request, &caller);
        let caller = caller.with_span(observed.as_ref().map(OperationGuard::span));
        Box::pin(async move {
            let reply = methods::answer(connection.workbench(), caller, revision, &request).await;
            operations::end(observed, &reply);
            reply
        })
    }

    fn take_notification(&self, notification: &Notification) {
        if notification.method == "notifications/cancelled" {
            let params = notification.params.as_ref();
            let id = params.and_then(|params| params.member("requestId"));
            if let Some(id) = id.and_then(RequestId::from_json) {
                self.in_flight.cancel(&id);
            }
        }
    }

    /// Refuses a frame that is not a message.
    fn refuse_frame(&self, error: &ParseError, frame: &Bytes) {
        self.output.send(refusal_frame(error, frame));
    }

    fn refuse(&self, id: Option<&RequestId>, code: i64, message: &str) {
        self.output.send(wire::error(id, code, message));
    }

    /// Returns the negotiated revision, or `None` before `initialize`.
    pub(super) fn revision(&self) -> Option<Revision> {
        let agreed = lock(&self.agreed);
        agreed.as_ref().map(|agreed| agreed.revision)
    }
}

impl Drop for Connection {
    /// Reports the end of the session.
    fn drop(&mut self) {
        let carrier = self.carrier();
        let revision = self.revision().map(|it| it.name().to_owned());
        if let Some(measured) = lock(&self.measured).take() {
            measured.end(|duration| EndedSession {
                side: Side::Client,
                era: Era::Legacy,
                carrier,
                revision,
                server: None,
                address: None,
                duration,
                error: None,
            });
        }
    }
}

/// The reply to a request that is being worked on.
pub(super) type ReplyFuture = Pin<Box<dyn Future<Output = Reply> + Send>>;

/// Returns the refusal of a request for which there is no room.
pub(super) fn too_many() -> Reply {
    Reply::internal_error(format!("more than {MAX_REQUESTS} requests at once"))
}

/// Removes carriage returns between the tokens of a frame, because some readers take them for line ends.
fn on_one_line(frame: &Bytes) -> Bytes {
    // Line feeds cannot occur: the frame was read as a line.
    let value = memchr::memchr(b'\r', frame).and_then(|_| RawJson::parse(frame).ok());
    value.map_or_else(
        || frame.clone(),
        |value| value.minified().as_bytes().clone(),
    )
}
