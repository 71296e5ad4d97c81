//! The calls of one connection: sent up to a number, queued beyond it, answered, timed out, withdrawn.

use std::{
    collections::{HashSet, VecDeque},
    sync::Arc,
};

use tokio::time::Instant;

use super::{
    CallTicket, QueuedCall,
    lasting::Lasting,
    pending::{Asked, Pending, PendingCall},
    start::{error_code, error_message},
};
use crate::{
    call::{CallRequest, ClientHandle, ClientId, Outcome},
    config::{Secrets, ServerTimes},
    downstream::{
        error::{CallError, TimeLimit},
        link::Link,
        listing::ToolList,
    },
    wire::{self, Answer, ObjectText, RawJson},
};

/// How many calls a server has at once, and how many more may wait for it.
const MAX_IN_FLIGHT: usize = 64;
const MAX_WAITING: usize = 256;
/// How many bytes may wait for it, in calls that were not sent and in what it does not read.
const MAX_WAITING_BYTES: usize = 64 * 1024 * 1024;

/// How often a call is kept for another start of a server that ends before the call is sent.
const MAX_PUT_BACK: u32 = 2;

/// The calls of one connection.
pub(super) struct Calls {
    pending: Pending,
    queue: VecDeque<WaitingCall>,
    queued_bytes: usize,
    times: ServerTimes,
    /// The clients whose calls were taken back: the server may still work, and ask, for them.
    taken_back: HashSet<ClientId>,
    /// What must hold when the server has come back.
    lasting: Lasting,
}

/// A call that waits until the server has room for it.
struct WaitingCall {
    queued: QueuedCall,
    until: Instant,
}

impl Calls {
    pub(super) fn new(next_id: u64, times: ServerTimes, lasting: Lasting) -> Self {
        Self {
            pending: Pending::new(next_id, times),
            queue: VecDeque::new(),
            queued_bytes: 0,
            times,
            taken_back: HashSet::new(),
            lasting,
        }
    }

    /// Sends a request of our own.
    pub(super) fn ask(&mut self, link: &mut Link, asked: Asked, method: &str, params: &RawJson) {
        let id = self.pending.fresh_id();
        link.request(id, method, params, &[]);
        self.pending.insert(id, asked);
    }

    /// Makes hold again what held before the server came back.
    pub(super) fn repeat_lasting(&mut self, link: &mut Link) {
        for (method, params) in self.lasting.requests() {
            self.ask(link, Asked::Again, method, &params);
        }
    }

    /// Whether the server is of use to somebody even without calls.
    pub(super) fn has_subscriptions(&self) -> bool {
        self.lasting.has_subscriptions()
    }

    /// Sends a call, or lets it wait its turn.
    pub(super) fn take(&mut self, call: QueuedCall, tools: &ToolList, link: &mut Link) {
        let size = call.call.request.size();
        if is_gone(&call, tools) {
            call.answer(Err(CallError::ToolGone));
        } else if self.queue.is_empty() && self.has_room(link) {
            self.send(call, link);
        } else if self.queue.len() < MAX_WAITING && self.queued_bytes + size < MAX_WAITING_BYTES {
            self.queued_bytes += size;
            self.queue.push_back(WaitingCall {
                queued: call,
                until: Instant::now() + self.times.call,
            });
        } else {
            call.answer(Err(CallError::Overloaded {
                waiting: self.queue.len(),
            }));
        }
    }

    /// Sends what waits, as far as there is room.
    pub(super) fn send_queued(&mut self, link: &mut Link) {
        while self.has_room(link)
            && let Some(call) = self.leave_queue(0)
        {
            self.send(call, link);
        }
    }

    /// Takes back the call of a caller that is no longer interested.
    pub(super) fn cancel(&mut self, ticket: CallTicket, link: &mut Link) {
        if let Some(at) = self
            .queue
            .iter()
            .position(|call| call.queued.ticket == ticket)
        {
            self.leave_queue(at);
        }
        if let Some((id, call)) = self.pending.remove_call(ticket) {
            self.taken_back.insert(call.queued.call.context.client.id());
            withdraw(id, &call, "the caller cancelled", link);
            self.send_queued(link);
        }
    }

    /// Gives an answer to whoever waits for it; returns what was asked if it was no call.
    pub(super) fn answer(
        &mut self,
        id: u64,
        answer: Answer,
        link: &mut Link,
    ) -> Option<(Asked, Answer)> {
        match self.pending.remove(id)? {
            Asked::Call(call) => {
                let answer = call_answer(answer, link.secrets());
                if answer.is_ok() {
                    self.lasting.note(&call.queued.call.request);
                }
                finish(call, answer);
                self.send_queued(link);
                None
            }
            asked => Some((asked, answer)),
        }
    }

    /// Takes out a request that has failed by itself; returns what was asked if it was no call.
    pub(super) fn failed(&mut self, id: u64, error: CallError, link: &mut Link) -> Option<Asked> {
        match self.pending.remove(id)? {
            Asked::Call(call) => {
                finish(call, Err(error));
                self.send_queued(link);
                None
            }
            asked => Some(asked),
        }
    }

    /// The client whose call has this id.
    pub(super) fn client_of(&self, id: u64) -> Option<&Arc<dyn ClientHandle>> {
        self.pending
            .call(id)
            .map(|call| &call.queued.call.context.client)
    }

    /// Fails the call under an id; false if there is none.
    pub(super) fn fail(&mut self, id: u64, error: CallError, link: &mut Link) -> bool {
        if !self.pending.is_call(id) {
            return false;
        }
        if let Some(Asked::Call(call)) = self.pending.remove(id) {
            finish(call, Err(error));
        }
        self.send_queued(link);
        true
    }

    /// Passes progress on with the caller's own token in place of ours.
    pub(super) fn forward_progress(&mut self, params: &RawJson) {
        let token = params.member("progressToken");
        let id = token.and_then(|token| token.as_str().parse().ok());
        let Some(call) = id.and_then(|id| self.pending.progress(id)) else {
            return;
        };
        let context = &call.queued.call.context;
        if let Some(token) = context.client.progress_token() {
            let params = params.with_member("progressToken", &token);
            let report = wire::notification("notifications/progress", Some(&params));
            if let Some(report) = call.progress.pass(report, Instant::now()) {
                context.client.notify(report);
            }
        }
    }

    /// Passes on progress that was held back and is due.
    pub(super) fn release_progress(&mut self, now: Instant) {
        for call in self.pending.calls_mut() {
            if let Some(report) = call.progress.release_due(now) {
                call.queued.call.context.client.notify(report);
            }
        }
    }

    /// Fails the calls whose time is over; returns how many.
    pub(super) fn expire(&mut self, now: Instant, link: &mut Link) -> usize {
        while self.queue.front().is_some_and(|call| call.until <= now)
            && let Some(call) = self.leave_queue(0)
        {
            call.answer(Err(CallError::Timeout {
                limit: TimeLimit::Silence(self.times.call),
                outcome: Outcome::NotSent,
            }));
        }
        let expired = self.pending.expire(now);
        let count = expired.len();
        for (id, call, limit) in expired {
            self.taken_back.insert(call.queued.call.context.client.id());
            let outcome = withdraw(id, &call, "the call took too long", link);
            finish(call, Err(CallError::Timeout { limit, outcome }));
        }
        self.send_queued(link);
        count
    }

    /// When something is to be done for a call next.
    pub(super) fn due(&self) -> Option<Instant> {
        let moments = [
            self.pending.next_expiry(),
            self.pending.next_report(),
            self.queue.front().map(|call| call.until),
        ];
        moments.into_iter().flatten().min()
    }

    /// The one call that the server has, if it is the only one.
    pub(super) fn only_one(&self) -> Option<u64> {
        match self.pending.call_ids()[..] {
            [id] => Some(id),
            _ => None,
        }
    }

    /// The client that the server works for, if it can only be one: all its calls are of that client, and
    /// so were those that were taken back.
    pub(super) fn only_client(&self) -> Option<&Arc<dyn ClientHandle>> {
        let mut clients = self
            .pending
            .calls()
            .map(|call| &call.queued.call.context.client);
        let first = clients.next()?;
        let alone = clients.all(|client| client.id() == first.id())
            && self.taken_back.iter().all(|client| *client == first.id());
        alone.then_some(first)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pending.call_count() == 0 && self.queue.is_empty()
    }

    /// The end of the connection: calls that have reached the server fail, and so do those that were put
    /// back too often. The others are returned, and what must hold when the server has come back.
    pub(super) fn end(
        mut self,
        link: &mut Link,
        error: impl Fn(Outcome) -> CallError,
    ) -> (VecDeque<QueuedCall>, Lasting) {
        let mut unsent = VecDeque::new();
        for id in self.pending.call_ids() {
            match self.pending.remove(id) {
                Some(Asked::Call(call)) if link.outcome(call.frame) == Outcome::Unknown => {
                    finish(call, Err(error(Outcome::Unknown)));
                }
                Some(Asked::Call(call)) if call.queued.put_back == MAX_PUT_BACK => {
                    finish(call, Err(error(Outcome::NotSent)));
                }
                Some(Asked::Call(mut call)) => {
                    call.queued.put_back += 1;
                    unsent.push_back(call.queued);
                }
                _ => {}
            }
        }
        unsent.extend(self.queue.into_iter().map(|call| call.queued));
        (unsent, self.lasting)
    }

    fn leave_queue(&mut self, at: usize) -> Option<QueuedCall> {
        let call = self.queue.remove(at)?.queued;
        self.queued_bytes -= call.call.request.size();
        Some(call)
    }

    fn has_room(&self, link: &mut Link) -> bool {
        self.pending.call_count() < MAX_IN_FLIGHT && link.backlog() < MAX_WAITING_BYTES
    }

    fn send(&mut self, queued: QueuedCall, link: &mut Link) {
        let id = self.pending.fresh_id();
        let method = queued.call.request.method();
        let frame = link.request(id, method, &call_params(&queued, id), &[]);
        self.pending.insert_call(id, queued, frame);
    }
}

/// Takes a call back: before it is sent if that is still possible, else the server is told.
fn withdraw(id: u64, call: &PendingCall, reason: &str, link: &mut Link) -> Outcome {
    let outcome = link.withdraw(call.frame);
    if outcome != Outcome::Unknown {
        return outcome;
    }
    let params = ObjectText::new()
        .member("requestId", &id)
        .member("reason", reason);
    link.send(wire::notification(
        "notifications/cancelled",
        Some(&params.finish()),
    ));
    Outcome::Unknown
}

/// Answers a call, after the last that was heard of its progress.
fn finish(mut call: PendingCall, answer: Result<RawJson, CallError>) {
    if let Some(report) = call.progress.release() {
        call.queued.call.context.client.notify(report);
    }
    call.queued.answer(answer);
}

/// Whether the server came back without the tool that is to be run.
fn is_gone(call: &QueuedCall, tools: &ToolList) -> bool {
    match &call.call.request {
        CallRequest::Tool { name, .. } => tools.get(name.as_str()).is_none(),
        CallRequest::Relayed { .. } => false,
    }
}

/// The parameters of a call: exactly the caller's, and its `_meta` with a progress token of ours in
/// place of its own.
fn call_params(queued: &QueuedCall, id: u64) -> RawJson {
    let context = &queued.call.context;
    let meta = match (&context.meta, context.client.progress_token()) {
        (Some(meta), Some(_)) => Some(meta.with_member("progressToken", &RawJson::of(&id))),
        (meta, _) => meta.clone(),
    };
    match (&queued.call.request, meta) {
        (CallRequest::Tool { name, arguments }, meta) => {
            let params = ObjectText::new()
                .member("name", name.as_str())
                .raw("arguments", arguments);
            match meta {
                Some(meta) => params.raw("_meta", &meta).finish(),
                None => params.finish(),
            }
        }
        (CallRequest::Relayed { params, .. }, Some(meta)) => params.with_member("_meta", &meta),
        (CallRequest::Relayed { params, .. }, None) => params.clone(),
    }
}

fn call_answer(answer: Answer, secrets: &Secrets) -> Result<RawJson, CallError> {
    match answer {
        Answer::Result(result) => Ok(result),
        Answer::Error(error) => Err(CallError::Refused {
            code: error_code(&error),
            message: error_message(&error, secrets),
            error,
        }),
        Answer::Invalid => Err(CallError::InvalidAnswer),
    }
}
