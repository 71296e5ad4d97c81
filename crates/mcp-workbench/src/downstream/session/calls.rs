//! The calls of one connection: sent up to a bound, queued beyond it, answered, timed out, withdrawn.

use std::{collections::VecDeque, sync::Arc};

use rawjson::{ObjectText, RawJson};
use tokio::{sync::watch, time::Instant};

use crate::{
    call::{CallRequest, ClientHandle, Outcome, Principal, Question},
    config::ServerTimes,
    downstream::{
        asks::{
            Asks,
            attribution::{self, ActiveCall, Addressee, Asker},
            cancelled_calls::CancelledCalls,
        },
        error::{CallError, TimeLimit},
        link::Link,
        listing::ToolList,
        protocol::{
            conversation::call_answer,
            dialect::{ClientMeta, Dialect},
            tasks,
        },
        server::{About, CallTicket, QueuedCall, Status},
        session::{
            fair_queue::{FairQueue, WaitingCall},
            hops,
            pending::{PendingCall, PendingRequest, PendingRequests},
            progress::report,
            resubscriptions::Resubscriptions,
        },
    },
    era::Era,
    wire::{self, Answer, FrameTicket, ResultMarks},
};

/// Upper bound on the calls that a server has at once.
const MAX_IN_FLIGHT: usize = 64;
/// Upper bound on the calls of one principal that a server has at once. The rest is for others, who would otherwise wait
/// for calls that may take an hour.
const MAX_SHARE: usize = 48;
/// Upper bound on the bytes of messages that the server does not read.
const MAX_BACKLOG_BYTES: usize = 64 * 1024 * 1024;

/// How often a call is queued again for a server that ends before the call is sent.
const MAX_PUT_BACK: u32 = 2;

/// The calls of one connection.
pub(crate) struct Calls {
    pub(crate) pending: PendingRequests,
    queue: FairQueue,
    times: ServerTimes,
    cancelled: CancelledCalls,
    /// The subscriptions to restore after a restart.
    resubscriptions: Resubscriptions,
    /// The form of requests to the server.
    dialect: Dialect,
    client_meta: ClientMeta,
    listing: Listing,
    about: Arc<About>,
    /// The time at which the current turn began. Reading the clock for each call is too expensive.
    now: Instant,
}

/// The tools of the server in its published status.
struct Listing {
    status: watch::Receiver<Status>,
    /// The tools of the last status that was read.
    tools: Option<Arc<ToolList>>,
    /// Set if they must be listed again before a call is sent.
    is_stale: bool,
}

impl Listing {
    fn new(status: watch::Receiver<Status>) -> Self {
        let now = status.borrow();
        let (tools, is_stale) = (now.tools.clone(), now.stale);
        drop(now);
        Self {
            status,
            tools,
            is_stale,
        }
    }

    /// Reads the present status. A call does so several times, and only a change takes the lock.
    fn read(&mut self) -> &Self {
        // Without a sender the last status stays.
        if self.status.has_changed().unwrap_or(true) {
            let now = self.status.borrow_and_update();
            (self.tools, self.is_stale) = (now.tools.clone(), now.stale);
        }
        self
    }
}

impl Calls {
    pub(crate) fn new(
        next_id: u64,
        about: &Arc<About>,
        resubscriptions: Resubscriptions,
        dialect: Dialect,
        status: watch::Receiver<Status>,
    ) -> Self {
        let times = about.entry().server.times;
        Self {
            pending: PendingRequests::new(next_id, times),
            queue: FairQueue::default(),
            times,
            cancelled: CancelledCalls::default(),
            resubscriptions,
            dialect,
            client_meta: ClientMeta::default(),
            listing: Listing::new(status),
            about: Arc::clone(about),
            now: Instant::now(),
        }
    }

    /// Begins a turn of the session.
    pub(crate) fn begin_turn(&mut self) {
        self.now = Instant::now();
    }

    pub(crate) fn now(&self) -> Instant {
        self.now
    }

    pub(crate) fn era(&self) -> Era {
        self.dialect.era
    }

    /// Returns the current list of tools.
    pub(crate) fn listed(&mut self) -> Option<Arc<ToolList>> {
        self.listing.read().tools.clone()
    }

    pub(crate) fn about(&self) -> &Arc<About> {
        &self.about
    }

    /// Sends a request of the workbench itself.
    pub(crate) fn ask(
        &mut self,
        link: &mut Link,
        asked: PendingRequest,
        method: &str,
        params: &RawJson,
    ) -> (u64, FrameTicket) {
        let id = self.pending.fresh_id();
        let params = self.dialect.own_params(params, None);
        let frame = link.request(id, method, params.into(), &[]);
        self.pending.insert(id, asked);
        (id, frame)
    }

    /// Withdraws a request of the workbench itself.
    pub(crate) fn take_back(&mut self, link: &mut Link, id: u64, frame: FrameTicket) {
        if self.pending.remove(id).is_some() {
            withdraw(id, frame, "it is not needed any more", link);
        }
    }

    /// Forgets a request of the workbench that the server will not answer.
    pub(crate) fn forget(&mut self, id: u64) {
        self.pending.remove(id);
    }

    /// Restores the subscriptions and the log level after a restart.
    pub(crate) fn resubscribe(&mut self, link: &mut Link) {
        for (method, params) in self.resubscriptions.requests() {
            self.ask(link, PendingRequest::Again, method, &params);
        }
    }

    /// Sets the limits of calls that are sent from now on.
    pub(crate) fn set_times(&mut self, times: ServerTimes) {
        self.times = times;
        self.pending.set_times(times);
    }

    /// Returns the subscriptions to restore after a restart.
    pub(crate) fn resubscriptions(&mut self) -> &mut Resubscriptions {
        &mut self.resubscriptions
    }

    /// Returns true if the server is in use even without calls.
    pub(crate) fn is_waited_for(&self) -> bool {
        self.resubscriptions.is_waited_for()
    }

    /// Records an open question to a client.
    pub(crate) fn question_opened(&mut self, asker: Asker) {
        self.pending.question_opened(asker);
    }

    /// Records that a question was answered or withdrawn.
    pub(crate) fn question_closed(&mut self, asker: Asker) {
        self.pending.question_closed(asker);
    }

    /// Sends a call, or queues it.
    pub(crate) fn take(&mut self, call: Box<QueuedCall>, link: &mut Link) {
        if let Err(error) = self.dialect.check(&call.call) {
            return call.answer(Err(error));
        }
        // Calls that are already waiting go first, so a new one is sent at once only if none waits.
        let is_next = self.queue.is_empty() && !self.is_held(&call) && self.has_room(link);
        if is_next && has_share(&self.pending, &call) {
            return self.send(call, link);
        }
        let refused = self.queue.push(WaitingCall {
            queued: call,
            until: self.now + self.times.call,
        });
        let waiting = self.queue.len();
        for call in refused {
            call.queued.answer(Err(CallError::Overloaded { waiting }));
        }
        // The calls before it may belong to a principal that already has its share.
        self.send_queued(link);
    }

    /// Returns true if the tools must be listed again before a call is sent.
    pub(crate) fn is_unlisted(&mut self) -> bool {
        self.listing.read().is_stale
    }

    /// Returns true if a call must wait until the tools are listed.
    fn is_held(&mut self, call: &QueuedCall) -> bool {
        matches!(call.call.request, CallRequest::Tool(_)) && self.is_unlisted()
    }

    /// Fails the calls that wait for a tool list that cannot be read.
    pub(crate) fn fail_unlisted(&mut self) {
        let is_tool = |call: &QueuedCall| matches!(call.call.request, CallRequest::Tool(_));
        while let Some(call) = self.queue.pop_any(is_tool) {
            call.answer(Err(CallError::Unlisted));
        }
    }

    /// Returns true if a call waits to be sent.
    pub(crate) fn has_queued(&self) -> bool {
        !self.queue.is_empty()
    }

    /// Queues a call again that did not run because the server lost the session. It is sent after the new session has
    /// listed its tools.
    pub(crate) fn put_back(&mut self, id: u64, error: CallError) {
        let Some(mut call) = self.pending.take_call(id) else {
            return;
        };
        // Once only: with a server that loses every session the call would never end.
        if call.queued.put_back > 0 {
            return finish(call, Err(error));
        }
        call.queued.put_back += 1;
        self.queue.put_back(WaitingCall {
            until: call.silent_until,
            queued: call.queued,
        });
    }

    /// Sends queued calls while there is room, unless the tools must be listed again first.
    pub(crate) fn send_queued(&mut self, link: &mut Link) {
        while !self.queue.is_empty() && self.has_room(link) {
            let is_unlisted = self.is_unlisted();
            let pending = &self.pending;
            let next = self.queue.pop(|call| {
                let is_held = is_unlisted && matches!(call.call.request, CallRequest::Tool(_));
                !is_held && has_share(pending, call)
            });
            let Some(call) = next else { return };
            self.send(call, link);
        }
    }

    /// Sends the calls that waited for the tool list that was just read. A server that announces another change
    /// meanwhile cannot delay these calls.
    pub(crate) fn send_listed(&mut self, link: &mut Link) {
        while self.has_room(link)
            && let Some(call) = self.queue.pop(|call| has_share(&self.pending, call))
        {
            self.send(call, link);
        }
    }

    /// Cancels the call of a caller that stopped waiting.
    pub(crate) fn cancel(&mut self, ticket: CallTicket, link: &mut Link) {
        // A call is either queued or pending, and the ticket does not tell which.
        self.queue.cancel(ticket);
        if let Some((id, call)) = self.pending.remove_call(ticket) {
            let outcome = withdraw(id, call.frame, "the caller cancelled", link);
            self.record_cancelled(id, &call, outcome, self.now);
            self.send_queued(link);
        }
    }

    /// Passes a response to its receiver; returns the request if it was not a call.
    pub(crate) fn answer(
        &mut self,
        id: u64,
        answer: Answer,
        marks: ResultMarks,
        link: &mut Link,
    ) -> Option<(PendingRequest, Answer)> {
        let Some(asked) = self.pending.remove(id) else {
            // The late response to a cancelled call. If it started a task, nobody would follow that task, so it is
            // cancelled too.
            if self.cancelled.answered(id) {
                tasks::cancel_late(self, &answer, link);
            }
            return None;
        };
        match asked {
            PendingRequest::Call(mut call) => {
                let answer = call_answer(answer, link);
                if answer.is_ok() {
                    self.resubscriptions.record(&call.queued.call.request);
                }
                call.queued.answered_by = Some(self.dialect.era);
                call.queued.marks = marks;
                finish(call, answer);
                self.send_queued(link);
                None
            }
            asked => Some((asked, answer)),
        }
    }

    /// Removes a failed request; returns it if it was not a call.
    pub(crate) fn failed(
        &mut self,
        id: u64,
        error: CallError,
        link: &mut Link,
    ) -> Option<PendingRequest> {
        match self.pending.remove(id)? {
            PendingRequest::Call(call) => {
                finish(call, Err(error));
                self.send_queued(link);
                None
            }
            asked => Some(asked),
        }
    }

    /// Returns the client whose call has this id.
    pub(crate) fn client_of(&self, id: u64) -> Option<&Arc<dyn ClientHandle>> {
        self.pending
            .call(id)
            .map(|call| &call.queued.call.context.client)
    }

    /// Fails the call with an id; returns false if there is none.
    pub(crate) fn fail(&mut self, id: u64, error: CallError, link: &mut Link) -> bool {
        if !self.pending.is_call(id) {
            return false;
        }
        if let Some(PendingRequest::Call(call)) = self.pending.remove(id) {
            finish(call, Err(error));
        }
        self.send_queued(link);
        true
    }

    /// Fails the calls that timed out; returns their number.
    pub(crate) fn expire(&mut self, now: Instant, link: &mut Link) -> usize {
        // Nothing of a queued call was written, so the caller may repeat it safely.
        while let Some(call) = self.queue.pop_expired(now) {
            call.answer(Err(CallError::Timeout {
                limit: TimeLimit::Silence(self.times.call),
                outcome: Outcome::NotSent,
            }));
        }
        let expired = self.pending.expire(now);
        let count = expired.len();
        for (id, call, limit) in expired {
            let outcome = withdraw(id, call.frame, "the call took too long", link);
            self.record_cancelled(id, &call, outcome, now);
            finish(call, Err(CallError::Timeout { limit, outcome }));
        }
        self.send_queued(link);
        count
    }

    /// Passes progress on with the caller's progress token.
    pub(crate) fn forward_progress(&mut self, params: &RawJson) {
        let token = params.member("progressToken");
        // Our token is the id of our request, so that no table of tokens is needed.
        let id = token.and_then(|token| token.as_str().parse().ok());
        let Some(call) = id.and_then(|id| self.pending.progress(id)) else {
            return;
        };
        if let Some(params) = call.progress.pass(params.clone(), Instant::now()) {
            report(&mut call.queued.call.context, &params);
        } else if let Some(due) = call.progress.due() {
            self.pending.expect_report(due);
        }
    }

    /// Passes on progress that was held back and is due.
    pub(crate) fn release_progress(&mut self, now: Instant) {
        for call in self.pending.calls_mut() {
            if let Some(params) = call.progress.release_due(now) {
                report(&mut call.queued.call.context, &params);
            }
        }
        self.pending.reports_released();
    }

    /// Records a cancelled call, if it may have reached the server.
    fn record_cancelled(&mut self, id: u64, call: &PendingCall, outcome: Outcome, now: Instant) {
        if outcome == Outcome::Unknown {
            self.cancelled.record(id, call, now);
        }
    }

    /// Returns the time of the next scheduled action for a call.
    pub(crate) fn due(&self) -> Option<Instant> {
        let moments = [
            self.pending.next_expiry(),
            self.pending.next_report(),
            self.queue.next_expiry(),
        ];
        moments.into_iter().flatten().min()
    }

    /// Returns the server's pending call, if there is exactly one.
    pub(crate) fn only_one(&self) -> Option<u64> {
        match self.pending.call_ids()[..] {
            [id] => Some(id),
            _ => None,
        }
    }

    /// Returns the client of a message that names no request, if there can be only one.
    pub(crate) fn only_client(&self, asks: &Asks) -> Option<&Arc<dyn ClientHandle>> {
        attribution::meant(&self.at_work(asks), &self.cancelled, Instant::now())
    }

    /// Returns the client that gets a question, if the question can belong to one principal only.
    pub(crate) fn addressee(
        &self,
        asks: &Asks,
        can_answer: impl Fn(&Arc<dyn ClientHandle>) -> bool,
    ) -> Option<Addressee> {
        let at_work = self.at_work(asks);
        attribution::addressee(&at_work, &self.cancelled, Instant::now(), can_answer)
    }

    /// Returns the pending calls of the server, oldest first.
    fn at_work(&self, asks: &Asks) -> Vec<ActiveCall<'_>> {
        let ids = self.pending.call_ids().into_iter();
        let clients = ids.filter_map(|id| self.client_of(id));
        let at_work = clients.map(|client| ActiveCall {
            client,
            is_asked: asks.is_asked(client.id()),
        });
        at_work.collect()
    }

    /// Returns true if the client of a pending call can answer a question.
    pub(crate) fn somebody_can_answer(&self, question: Question) -> bool {
        let mut calls = self.pending.calls();
        calls.any(|call| call.queued.call.context.client.can_answer(question))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.pending.call_count() == 0 && self.queue.is_empty()
    }

    /// Ends the connection: fails the calls that reached the server, and those that were queued again too often.
    /// Returns the other calls and the subscriptions to restore.
    pub(crate) fn end(
        mut self,
        link: &mut Link,
        error: impl Fn(Outcome) -> CallError,
    ) -> (VecDeque<Box<QueuedCall>>, Resubscriptions) {
        let mut unsent = VecDeque::new();
        for id in self.pending.call_ids() {
            match self.pending.remove(id) {
                Some(PendingRequest::Call(call))
                    // A byte of it was written, so it may have run and is never sent again.
                    if link.outcome(call.frame) == Outcome::Unknown =>
                {
                    finish(call, Err(error(Outcome::Unknown)));
                }
                // A server that exits whenever it gets this call must not be restarted for it endlessly.
                Some(PendingRequest::Call(call)) if call.queued.put_back == MAX_PUT_BACK => {
                    finish(call, Err(error(Outcome::NotSent)));
                }
                Some(PendingRequest::Call(mut call)) => {
                    call.queued.put_back += 1;
                    unsent.push_back(call.queued);
                }
                _ => {}
            }
        }
        // Behind those above, which had their turn already.
        unsent.extend(self.queue.into_calls());
        (unsent, self.resubscriptions)
    }

    /// Returns true if a call can be sent now. A server in the middle of an oversized message may never end it, and
    /// the outcome of calls that were sent meanwhile would be unknown.
    fn has_room(&self, link: &mut Link) -> bool {
        self.pending.call_count() < MAX_IN_FLIGHT
            && link.backlog() < MAX_BACKLOG_BYTES
            && !link.is_mid_oversized()
    }

    /// Checks a call against the current tool list of the server, at the moment of sending.
    fn admit(&mut self, queued: &mut QueuedCall) -> Result<(), CallError> {
        let CallRequest::Tool(request) = &queued.call.request else {
            return Ok(());
        };
        let tools = self.listing.read().tools.as_ref();
        let tools = tools.ok_or(CallError::ToolGone)?;
        let tool = tools.admit(request, &*queued.call.context.client)?;
        // A call that was queued again may have the headers of an earlier definition.
        queued.headers = tool.headers(&request.arguments).into();
        // A call that was queued again has its place still.
        queued.shape = queued.shape.take().or_else(|| tool.shape.due());
        Ok(())
    }

    fn send(&mut self, mut queued: Box<QueuedCall>, link: &mut Link) {
        if let Err(error) = self.admit(&mut queued) {
            return queued.answer(Err(error));
        }
        let id = self.pending.fresh_id();
        queued.sent_at = Some(self.now);
        // One load of a flag while nobody listens.
        if self.about.observed.wants_hops() {
            let tools = self.listing.read().tools.as_deref();
            let peer = hops::peer(&self.about, self.dialect.era, link, tools);
            hops::begin(&self.about, &mut queued, id, peer);
        }
        let method = queued.call.request.method();
        let own = self
            .client_meta
            .of(self.dialect, &*queued.call.context.client);
        let params = self.dialect.call_params(&queued.call, id, own);
        // The parameters move into the frame, so a reader of messages gets a copy that is made before.
        let recorded = match &queued.hop {
            Some(hop) if hop.wants_params() => Some(params.clone().into_json()),
            _ => None,
        };
        let frame = link.request(id, method, params, &queued.headers);
        if let (Some(hop), Some(params)) = (&mut queued.hop, recorded) {
            hop.record_params(params);
        }
        self.pending.insert_call(id, queued, frame, self.now);
    }
}

/// Returns true if the principal of a call may have another call at its server. The share does not limit a local client
/// or anonymous clients.
fn has_share(pending: &PendingRequests, call: &QueuedCall) -> bool {
    // Nobody can have more than the share yet. The usual call skips the scan below.
    if pending.call_count() < MAX_SHARE {
        return true;
    }
    let principal = call.call.context.client.principal();
    // A client is alone over stdio, and with `--no-auth` clients are not told apart, so there is nobody to keep room
    // for.
    if matches!(principal, Principal::Local | Principal::Anybody) {
        return true;
    }
    let of_principal = |it: &&PendingCall| it.queued.call.context.client.principal() == principal;
    pending.calls().filter(of_principal).count() < MAX_SHARE
}

/// Withdraws a call before it is sent if that is still possible; otherwise cancels it at the server.
fn withdraw(id: u64, frame: FrameTicket, reason: &str, link: &mut Link) -> Outcome {
    let outcome = link.withdraw(frame);
    // The server never saw the call, or its transport cancels by closing the stream of the request.
    if outcome != Outcome::Unknown || !link.cancels_by_notification() {
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

/// Answers a call, after passing on the progress that was held back.
fn finish(mut call: PendingCall, answer: Result<RawJson, CallError>) {
    if let Some(params) = call.progress.release() {
        report(&mut call.queued.call.context, &params);
    }
    call.queued.answer(answer);
}
