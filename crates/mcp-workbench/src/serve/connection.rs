//! One client: what it sends is classified, requests run side by side, and each gets its one answer.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, broadcast::error::RecvError};
use tokio_util::task::TaskTracker;

use super::{
    batch::{BatchPart, ReplyPlace},
    caller::Caller,
    code,
    in_flight::{InFlight, Running},
    log_level::LogLevel,
    methods::{self, Reply},
    output::ClientOutput,
    questions::Questions,
    revision::Revision,
};
use crate::{
    call::{ClientCapabilities, ClientId, Principal},
    contain::contain,
    downstream::{Change, ServerEvent},
    wire::{
        self, Frame, InvalidMessage, Line, MAX_FRAME_BYTES, Message, Notification, ParseError,
        RawJson, Request, RequestId, ScanError, id_from_head, id_from_tail, recover_id,
    },
    workbench::Workbench,
};

/// How many requests of one client run at once. Beyond that no more is read until one is answered. A
/// large request counts as several, so that their bytes are bounded too.
const MAX_REQUESTS: usize = 4096;
const REQUEST_BYTES: usize = 64 * 1024;

/// How many clients there have been.
static CLIENTS: AtomicU64 = AtomicU64::new(0);

/// A client that is connected.
pub(super) struct Connection {
    workbench: Arc<Workbench>,
    output: ClientOutput,
    id: ClientId,
    /// Who is behind the client.
    principal: Principal,
    /// What was agreed on; nothing before `initialize`.
    agreed: Mutex<Option<Agreed>>,
    /// The least urgent log messages that the client wants.
    log_level: Mutex<LogLevel>,
    questions: Arc<Questions>,
    in_flight: InFlight,
    tasks: TaskTracker,
    room: Arc<Semaphore>,
    /// Whether the client was told of the message that is too large and not over yet.
    oversized_answered: AtomicBool,
}

/// What a client and we have told each other at its start.
#[derive(Debug, Clone)]
pub(super) struct Agreed {
    /// The revision that is spoken.
    pub(super) revision: Revision,
    /// What the client can do for servers.
    pub(super) capabilities: ClientCapabilities,
}

impl Connection {
    pub(super) fn new(
        workbench: Arc<Workbench>,
        output: ClientOutput,
        principal: Principal,
    ) -> Arc<Self> {
        Arc::new(Self {
            workbench,
            output,
            id: ClientId(CLIENTS.fetch_add(1, Ordering::Relaxed)),
            principal,
            agreed: Mutex::new(None),
            log_level: Mutex::new(LogLevel::Debug),
            questions: Arc::default(),
            in_flight: InFlight::default(),
            tasks: TaskTracker::new(),
            room: Arc::new(Semaphore::new(MAX_REQUESTS)),
            oversized_answered: AtomicBool::new(false),
        })
    }

    /// Which client it is.
    pub(super) fn id(&self) -> ClientId {
        self.id
    }

    /// Who is behind the client.
    pub(super) fn principal(&self) -> Principal {
        self.principal
    }

    /// The way to the client for what belongs to no request.
    pub(super) fn output(&self) -> ClientOutput {
        self.output.clone()
    }

    /// What the client can do for servers.
    pub(super) fn capabilities(&self) -> ClientCapabilities {
        self.agreed()
            .map_or_else(ClientCapabilities::default, |agreed| agreed.capabilities)
    }

    /// What was asked of the client.
    pub(super) fn questions(&self) -> &Arc<Questions> {
        &self.questions
    }

    /// The least urgent log messages that the client wants.
    pub(super) fn log_level(&self) -> LogLevel {
        *self
            .log_level
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes which log messages the client wants.
    pub(super) fn set_log_level(&self, level: LogLevel) {
        *self
            .log_level
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = level;
    }

    /// Waits until another request may be read. Cancel-safe.
    pub(super) async fn has_room(&self) {
        // The semaphore is never closed.
        let _ = self.room.acquire().await;
        self.output.has_room().await;
    }

    /// The client has ended its session: nobody waits for what runs.
    pub(super) fn abandon(&self) {
        self.questions.give_up();
        self.in_flight.cancel_all();
        if let Some(native) = self.workbench.native() {
            native.forget_client(self.id);
        }
    }

    /// Waits until every request has been answered.
    pub(super) async fn all_answered(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// Tells the client what changes, for as long as it is there.
    pub(super) async fn tell_changes(self: &Arc<Self>) {
        let mut tools = self.workbench.tools_changed();
        let mut events = self.workbench.events();
        loop {
            tokio::select! {
                Ok(()) = tools.changed() => self.tell("notifications/tools/list_changed", None),
                event = events.recv() => match event {
                    Ok(event) => self.tell_event(&event),
                    // What was missed is not known, so anything may have changed.
                    Err(RecvError::Lagged(_)) if self.workbench.native().is_some() => {
                        self.tell("notifications/prompts/list_changed", None);
                        self.tell("notifications/resources/list_changed", None);
                    }
                    Err(RecvError::Lagged(_)) => {}
                    Err(RecvError::Closed) => return,
                },
            }
        }
    }

    fn tell_event(self: &Arc<Self>, event: &ServerEvent) {
        let caller = Caller::new(Arc::clone(self), self.output.clone());
        let native = self.workbench.native();
        if native.is_some_and(|native| native.concerns(event, &caller)) {
            match &event.change {
                Change::Prompts => self.tell("notifications/prompts/list_changed", None),
                Change::Resources => self.tell("notifications/resources/list_changed", None),
                Change::Resource(params) => {
                    self.tell("notifications/resources/updated", Some(params));
                }
            }
        }
    }

    /// Sends a notification, once the client is there to hear it.
    fn tell(&self, method: &str, params: Option<&RawJson>) {
        if self.revision().is_some() {
            self.output.notify(wire::notification(method, params));
        }
    }

    /// Takes a line of the client.
    pub(super) fn take_line(self: &Arc<Self>, line: Line) {
        match line {
            Line::Complete(frame) => self.take_frame(&frame),
            Line::TooLong(head) => {
                let id = id_from_head(&head);
                if id.is_some() {
                    self.refuse_oversized(id.as_ref());
                }
                self.oversized_answered
                    .store(id.is_some(), Ordering::Relaxed);
            }
            Line::TooLongEnded(tail) => {
                if !self.oversized_answered.load(Ordering::Relaxed) {
                    self.refuse_oversized(id_from_tail(&tail).as_ref());
                }
            }
        }
    }

    fn refuse_oversized(&self, id: Option<&RequestId>) {
        let limit = MAX_FRAME_BYTES / (1024 * 1024);
        let message = format!("Invalid request: the message is larger than {limit} MiB");
        self.refuse(id, code::INVALID_REQUEST, &message);
    }

    fn take_frame(self: &Arc<Self>, frame: &Bytes) {
        let frame = &on_one_line(frame);
        match Message::parse(frame) {
            Ok(message) => {
                let place = ReplyPlace::Line(self.output.clone());
                self.take_message(message, place, frame.len());
            }
            Err(error) => match self.batch(frame) {
                Some(messages) => self.take_batch(&messages, self.output.clone()),
                None => self.refuse_frame(&error, frame),
            },
        }
    }

    /// The elements of a batch, if that is what the frame is and the revision has batches.
    pub(super) fn batch(&self, frame: &Bytes) -> Option<Vec<RawJson>> {
        if !self.revision().is_some_and(Revision::has_batches) {
            return None;
        }
        let elements = RawJson::parse(frame).ok()?.elements()?;
        (!elements.is_empty()).then_some(elements)
    }

    /// Takes the messages of a batch; its one answer goes to `output`.
    pub(super) fn take_batch(self: &Arc<Self>, messages: &[RawJson], output: ClientOutput) {
        let batch = BatchPart::new(output);
        for message in messages {
            match Message::parse(message.as_bytes()) {
                Ok(message) => {
                    self.take_message(message, ReplyPlace::Batch(batch.clone()), 0);
                }
                Err(error) => {
                    let (id, code, message) = refusal(&error);
                    batch.add(wire::error(id, code, &message));
                }
            }
        }
    }

    /// Takes a message of `size` bytes.
    pub(super) fn take_message(self: &Arc<Self>, message: Message, place: ReplyPlace, size: usize) {
        match message {
            Message::Request(request) => self.take_request(request, place, size),
            Message::Notification(notification) => self.take_notification(&notification),
            Message::Response(response) => self.questions.take(response),
        }
    }

    /// Answers what can be answered at once, in order; everything else runs beside it.
    fn take_request(self: &Arc<Self>, request: Request, place: ReplyPlace, size: usize) {
        if let Err(refusal) = self.agree_if_asked(&request) {
            return place.answer(refusal.into_frame(&request.id));
        }
        if self.revision().is_none() && !methods::stands_alone(&request) {
            let reply = Reply::invalid_params("not initialized: send initialize first");
            return place.answer(reply.into_frame(&request.id));
        }
        let Some(permit) = self.permit(size) else {
            let reply = Reply::Error {
                code: code::INTERNAL_ERROR,
                message: format!("more than {MAX_REQUESTS} requests at once"),
            };
            return place.answer(reply.into_frame(&request.id));
        };
        // Noted before the task exists, so that a cancel on the next line finds it.
        let running = self.in_flight.begin(&request.id);
        let connection = Arc::clone(self);
        self.tasks.spawn(async move {
            let caller = place.caller(&connection);
            let reply = connection.answer(&request, caller, &running).await;
            drop(permit);
            match reply {
                Some(reply) => place.answer(reply.into_frame(&request.id)),
                None => place.withhold(),
            }
        });
    }

    /// Notes what is agreed on by `initialize`, before anything that was sent behind it is looked at.
    fn agree_if_asked(&self, request: &Request) -> Result<(), Reply> {
        if request.method == "initialize" {
            let agreed = methods::agree(request.params.as_ref())?;
            *self.agreed.lock().unwrap_or_else(PoisonError::into_inner) = Some(agreed);
        }
        Ok(())
    }

    /// The answer to a request; none if it was cancelled.
    async fn answer(&self, request: &Request, caller: Caller, running: &Running) -> Option<Reply> {
        let revision = self.revision().unwrap_or_default();
        let answer = methods::answer(&self.workbench, caller, revision, request);
        let answer = contain(answer);
        let reply = running.cancelled.run_until_cancelled(answer).await;
        self.in_flight.end(&request.id, running);
        Some(reply?.unwrap_or_else(|panicked| Reply::Error {
            code: code::INTERNAL_ERROR,
            message: panicked.to_string(),
        }))
    }

    /// Takes room for a request, as much as there is; nothing if there is none.
    fn permit(&self, size: usize) -> Option<OwnedSemaphorePermit> {
        let available = self.room.available_permits();
        if available == 0 {
            return None;
        }
        let units = u32::try_from((1 + size / REQUEST_BYTES).min(available)).ok()?;
        Arc::clone(&self.room).try_acquire_many_owned(units).ok()
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

    /// Refuses a frame that is no message.
    fn refuse_frame(&self, error: &ParseError, frame: &Bytes) {
        self.output.send(refusal_frame(error, frame));
    }

    fn refuse(&self, id: Option<&RequestId>, code: i64, message: &str) {
        self.output.send(wire::error(id, code, message));
    }

    /// The revision that is spoken; none before `initialize`.
    pub(super) fn revision(&self) -> Option<Revision> {
        self.agreed().map(|agreed| agreed.revision)
    }

    fn agreed(&self) -> Option<Agreed> {
        self.agreed
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

/// The answer to a frame that is no message, with its id if one can be found in it.
pub(super) fn refusal_frame(error: &ParseError, frame: &Bytes) -> Frame {
    let (id, code, message) = refusal(error);
    let deep = matches!(error, ParseError::NotJson(ScanError::TooDeep));
    let recovered = deep.then(|| recover_id(frame)).flatten();
    wire::error(id.or(recovered.as_ref()), code, &message)
}

/// What is answered to a frame that is no message.
fn refusal(error: &ParseError) -> (Option<&RequestId>, i64, String) {
    match error {
        ParseError::NotJson(ScanError::Syntax(_)) => {
            (None, code::PARSE_ERROR, format!("Parse error: {error}"))
        }
        ParseError::NotJson(ScanError::TooDeep) => (
            None,
            code::INVALID_REQUEST,
            format!("Invalid request: {error}"),
        ),
        ParseError::Invalid(InvalidMessage { id, .. }) => (
            id.as_ref(),
            code::INVALID_REQUEST,
            format!("Invalid request: {error}"),
        ),
    }
}

/// The frame without carriage returns between its tokens: some readers take them for line ends.
fn on_one_line(frame: &Bytes) -> Bytes {
    let value = memchr::memchr(b'\r', frame).and_then(|_| RawJson::parse(frame).ok());
    value.map_or_else(
        || frame.clone(),
        |value| value.minified().as_bytes().clone(),
    )
}
