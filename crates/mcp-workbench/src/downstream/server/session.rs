//! A server that is up: calls go down, answers and progress come up in the order in which the server
//! gave them, and its list is read again when it says that it has changed.

use std::{collections::VecDeque, sync::Arc};

use bytes::Bytes;
use tokio::{
    sync::{mpsc, watch},
    time::Instant,
};

use super::{
    Command, QueuedCall, Status,
    pending::{Asked, Pending, PendingCall},
    refresh::Refresh,
    start::{answer_server, error_code, error_message},
    supervisor::{Waiting, earliest},
};
use crate::{
    call::Outcome,
    config::Server,
    downstream::{
        error::CallError,
        listing::ToolList,
        pool::Shutdown,
        process::Exit,
        stdio::{LinkEvent, StdioLink},
    },
    wire::{self, Answer, MAX_FRAME_BYTES, Message, Notification, ObjectText, RawJson, Response},
};

/// How many calls a server has at once, and how many more may wait for it.
const MAX_IN_FLIGHT: usize = 64;
const MAX_WAITING: usize = 256;
/// Answers to a server that asks without reading are dropped beyond this.
const MAX_OUTBOX_BYTES: usize = 64 * 1024 * 1024;

/// Why a session is over.
pub(super) enum SessionEnd {
    /// The server ended.
    Exited(Exit),
    /// Nobody used it for its `idleTimeoutMs`.
    Idle,
    /// The workbench is ending, since then.
    Shutdown(Instant),
}

/// A connection to a server that is up.
pub(super) struct Session {
    server: Arc<Server>,
    link: StdioLink,
    pending: Pending,
    /// Calls beyond what the server may have at once.
    queue: VecDeque<QueuedCall>,
    refresh: Refresh,
    used_at: Instant,
    /// What came when it was too late for this session.
    late: Waiting,
}

impl Session {
    pub(super) fn new(server: &Arc<Server>, link: StdioLink, next_id: u64) -> Self {
        Self {
            server: Arc::clone(server),
            link,
            pending: Pending::new(next_id, server.times),
            queue: VecDeque::new(),
            refresh: Refresh::default(),
            used_at: Instant::now(),
            late: Waiting::default(),
        }
    }

    /// Serves until the end.
    pub(super) async fn run(
        &mut self,
        commands: &mut mpsc::UnboundedReceiver<Command>,
        status: &watch::Sender<Status>,
        shutdown: &Shutdown,
    ) -> SessionEnd {
        loop {
            let moments = [
                self.pending.next_expiry(),
                self.refresh.due(),
                self.idle_at(),
            ];
            tokio::select! {
                event = self.link.next_event() => match event {
                    LinkEvent::Ended(exit) => return SessionEnd::Exited(exit),
                    event => self.take_event(event, status),
                },
                Some(command) = commands.recv() => self.take_command(command, status),
                () = earliest(moments) => {
                    let now = Instant::now();
                    self.expire(now);
                    self.refresh_if_due(now);
                    if self.idle_at().is_some_and(|idle| idle <= now) {
                        return SessionEnd::Idle;
                    }
                }
                () = shutdown.begun() => return SessionEnd::Shutdown(shutdown.since()),
            }
        }
    }

    fn take_command(&mut self, command: Command, status: &watch::Sender<Status>) {
        match command {
            Command::Call(call) => {
                let tools = status.borrow().tools.clone().unwrap_or_default();
                self.take_call(call, &tools);
            }
            Command::Connect(reply) if self.refresh.is_on() => self.refresh.wait(reply),
            Command::Connect(reply) => {
                let tools = status.borrow().tools.clone().unwrap_or_default();
                let _ = reply.send(Ok(tools));
            }
            Command::Cancel(ticket) => {
                self.queue.retain(|call| call.ticket != ticket);
                if let Some((id, call)) = self.pending.remove_call(ticket) {
                    self.withdraw(id, &call, "the caller cancelled");
                    self.send_queued();
                }
            }
        }
    }

    /// Sends a call, or lets it wait its turn.
    pub(super) fn take_call(&mut self, call: QueuedCall, tools: &ToolList) {
        self.used_at = Instant::now();
        if tools.get(call.call.tool.as_str()).is_none() {
            call.answer(Err(CallError::ToolGone));
        } else if self.pending.calls() < MAX_IN_FLIGHT {
            self.send_call(call);
        } else if self.queue.len() < MAX_WAITING {
            self.queue.push_back(call);
        } else {
            call.answer(Err(CallError::Overloaded {
                waiting: MAX_WAITING,
            }));
        }
    }

    fn send_queued(&mut self) {
        while self.pending.calls() < MAX_IN_FLIGHT
            && let Some(call) = self.queue.pop_front()
        {
            self.send_call(call);
        }
    }

    fn send_call(&mut self, queued: QueuedCall) {
        let id = self.pending.fresh_id();
        let frame = self
            .link
            .send(wire::request(id, "tools/call", &call_params(&queued, id)));
        self.pending.insert_call(id, queued, frame);
    }

    fn take_event(&mut self, event: LinkEvent, status: &watch::Sender<Status>) {
        match event {
            LinkEvent::Message(Message::Response(response)) => self.take_answer(response, status),
            LinkEvent::Message(Message::Notification(it)) => self.take_notification(&it, status),
            LinkEvent::Message(Message::Request(request)) => {
                if self.link.outbox().len() < MAX_OUTBOX_BYTES {
                    self.link.send(answer_server(&request));
                }
            }
            LinkEvent::Garbage => tracing::debug!("a line on stdout is no message"),
            LinkEvent::TooLarge(excerpt) | LinkEvent::TooLargeEnded(excerpt) => {
                self.fail_too_large(&excerpt);
            }
            LinkEvent::Ended(_) => {}
        }
    }

    fn take_answer(&mut self, response: Response, status: &watch::Sender<Status>) {
        let id = response.id.as_ref().and_then(wire::RequestId::as_u64);
        match id.and_then(|id| self.pending.remove(id)) {
            Some(Asked::Call(call)) => {
                self.used_at = Instant::now();
                call.queued.answer(call_answer(response.answer));
                self.send_queued();
            }
            Some(Asked::List) => self.take_page(&response.answer, status),
            None => tracing::debug!("an answer belongs to no request"),
        }
    }

    fn take_notification(&mut self, notification: &Notification, status: &watch::Sender<Status>) {
        match (notification.method.as_str(), &notification.params) {
            ("notifications/progress", Some(params)) => self.forward_progress(params),
            ("notifications/tools/list_changed", _) => {
                self.refresh.announce();
                status.send_modify(|status| status.stale = true);
            }
            _ => {}
        }
    }

    /// Passes progress on with the caller's own token in place of ours.
    fn forward_progress(&mut self, params: &RawJson) {
        let id = params
            .member("progressToken")
            .and_then(|token| token.as_str().parse().ok());
        let Some(call) = id.and_then(|id| self.pending.progress(id)) else {
            return;
        };
        let context = &call.queued.call.context;
        if let Some(token) = &context.progress_token {
            let params = replace_member(params, "progressToken", token);
            context
                .client
                .send(wire::notification("notifications/progress", Some(&params)));
        }
    }

    fn expire(&mut self, now: Instant) {
        for (id, call, limit) in self.pending.expire(now) {
            let outcome = self.withdraw(id, &call, "the call took too long");
            call.queued
                .answer(Err(CallError::Timeout { limit, outcome }));
        }
        self.send_queued();
    }

    /// Takes a call back: out of the queue if it was not sent, else the server is told.
    fn withdraw(&mut self, id: u64, call: &PendingCall, reason: &str) -> Outcome {
        if self.link.outbox().remove(call.frame) {
            return Outcome::NotSent;
        }
        let params = ObjectText::new()
            .member("requestId", &id)
            .member("reason", reason)
            .finish();
        self.link
            .send(wire::notification("notifications/cancelled", Some(&params)));
        Outcome::Unknown
    }

    /// Fails the call whose answer is too large, as far as it can be told which that is.
    fn fail_too_large(&mut self, excerpt: &Bytes) {
        let ids = self.pending.call_ids();
        let named = ids.iter().copied().find(|id| names_id(excerpt, *id));
        let alone = (ids.len() == 1).then(|| ids[0]);
        let Some(Asked::Call(call)) = named.or(alone).and_then(|id| self.pending.remove(id)) else {
            return;
        };
        call.queued.answer(Err(CallError::TooLarge {
            limit: MAX_FRAME_BYTES,
        }));
        self.send_queued();
    }

    fn refresh_if_due(&mut self, now: Instant) {
        if let Some(params) = self.refresh.begin_if_due(now) {
            self.request_page(&params);
        }
    }

    fn request_page(&mut self, params: &RawJson) {
        let id = self.pending.fresh_id();
        self.link.send(wire::request(id, "tools/list", params));
        self.pending.insert_list(id);
    }

    fn take_page(&mut self, answer: &Answer, status: &watch::Sender<Status>) {
        if let Some(params) = self.refresh.take_page(answer, &self.server.filters, status) {
            self.request_page(&params);
        }
    }

    fn idle_at(&self) -> Option<Instant> {
        let unused = self.pending.calls() == 0 && self.queue.is_empty();
        unused.then_some(self.used_at + self.server.times.idle?)
    }

    /// The last lines of the server's stderr.
    pub(super) async fn stderr_tail(&mut self) -> Vec<String> {
        self.link.stderr_tail().await
    }

    /// Makes the end of the process count from `since`.
    pub(super) fn closing_since(&mut self, since: Instant) {
        self.link.closing_since(since);
    }

    /// Fails the calls that have reached the server; those that have not wait for the next start.
    pub(super) fn fail_sent(&mut self, error: impl Fn() -> CallError) {
        for id in self.pending.call_ids() {
            let Some(Asked::Call(call)) = self.pending.remove(id) else {
                continue;
            };
            if self.link.outbox().has_started(call.frame) {
                call.queued.answer(Err(error()));
            } else {
                self.late.calls.push_back(call.queued);
            }
        }
    }

    /// What has to wait for the next start. The link is dropped, and the process with it.
    pub(super) fn into_waiting(mut self) -> Waiting {
        self.late.calls.append(&mut self.queue);
        self.late.connects.append(&mut self.refresh.into_waiting());
        self.late
    }
}

/// The parameters of a call: the original name, exactly the caller's arguments, and the caller's
/// `_meta` with a progress token of ours in place of its own.
fn call_params(queued: &QueuedCall, id: u64) -> RawJson {
    let call = &queued.call;
    let params = ObjectText::new()
        .member("name", call.tool.as_str())
        .raw("arguments", &call.arguments);
    let meta = match (&call.context.meta, &call.context.progress_token) {
        (Some(meta), Some(_)) => Some(replace_member(meta, "progressToken", &RawJson::of(&id))),
        (meta, _) => meta.clone(),
    };
    match meta {
        Some(meta) => params.raw("_meta", &meta).finish(),
        None => params.finish(),
    }
}

fn replace_member(object: &RawJson, name: &str, value: &RawJson) -> RawJson {
    let members = object.members().unwrap_or_default().into_iter();
    let replaced = members.fold(ObjectText::new(), |text, member| {
        if member.key == name {
            text.raw(name, value)
        } else {
            text.relay(&member)
        }
    });
    replaced.finish()
}

fn call_answer(answer: Answer) -> Result<RawJson, CallError> {
    match answer {
        Answer::Result(result) => Ok(result),
        Answer::Error(error) => Err(CallError::Refused {
            code: error_code(&error),
            message: error_message(&error),
        }),
        Answer::Invalid => Err(CallError::InvalidAnswer),
    }
}

/// Whether an excerpt of a message holds this id.
fn names_id(excerpt: &[u8], id: u64) -> bool {
    let text = String::from_utf8_lossy(excerpt);
    let mut rest = text.as_ref();
    while let Some(at) = rest.find("\"id\"") {
        rest = rest[at + 4..].trim_start();
        let Some(value) = rest.strip_prefix(':') else {
            continue;
        };
        let digits: String = value
            .trim_start()
            .chars()
            .take_while(char::is_ascii_digit)
            .collect();
        if digits == id.to_string() {
            return true;
        }
    }
    false
}
