//! A running server: calls go down, responses and progress come up in the server's order, the tool list is read again
//! when the server announces a change, and the server is stopped when it becomes unusable.

pub(crate) mod calls;
mod end;
mod fair_queue;
pub(crate) mod health;
pub(crate) mod hops;
pub(crate) mod pending;
pub(crate) mod progress;
pub(crate) mod refresh;
pub(crate) mod reply;
pub(crate) mod resubscriptions;
pub(crate) mod unreadable;

use std::sync::Arc;

use rawjson::{ObjectText, RawJson};
use tokio::{
    sync::{mpsc, watch},
    time::Instant,
};

use crate::{
    alarm::Alarm,
    call::{ClientHandle, Outcome},
    config::Server,
    downstream::{
        asks::{
            Asks,
            unattributed::{self, UnattributedQuestions},
            users::{Users, wait_for_room},
        },
        error::{CallError, HttpFault, StopReason},
        event::Change,
        introduction::Introduction,
        link::{Link, LinkEvent, Origin},
        listing::{ListRules, ToolList},
        pool::Shutdown,
        protocol::{
            local::{self, LocalRequest, untagged},
            replaced::{self, ProtocolCheck},
            subscription::Subscription,
        },
        server::{About, Command, QueuedCall, Status},
        session::{
            calls::Calls,
            health::Health,
            pending::PendingRequest,
            refresh::{ListReader, PageOutcome, Refresh},
            resubscriptions::Resubscriptions,
        },
        snapshot::ServerSnapshot,
        supervisor::{adapt, cached_list::CacheWriter, start::Started, waiting::WaitingCommands},
    },
    era::Era,
    lock::ServerPins,
    policy::clean,
    rare::Rare,
    wire::{Answer, Message, Notification, RequestId, Response, id_from_tail},
};

pub(crate) use end::SessionEnd;

/// A connection to a running server.
pub(crate) struct Session {
    pub(crate) server: Arc<Server>,
    pub(crate) link: Link,
    pub(crate) calls: Calls,
    pub(crate) refresh: Refresh,
    pub(crate) health: Health,
    pub(crate) asks: Asks,
    /// Questions that could belong to several principals.
    pub(crate) unattributed: UnattributedQuestions,
    pub(crate) users: Users,
    /// The subscription to a modern server.
    pub(crate) subscription: Subscription,
    /// The check for a changed protocol.
    pub(crate) protocol_check: ProtocolCheck,
    pub(crate) used_at: Instant,
    /// The pins of the server at its start.
    pub(crate) pins: ServerPins,
    /// The fault that ends the session, if there is one.
    pub(crate) lost: Option<HttpFault>,
}

/// The environment of a session: the channels that it publishes to, and the shutdown signal.
pub(crate) struct SessionContext<'a> {
    pub(crate) status: &'a watch::Sender<Status>,
    pub(crate) shutdown: &'a Shutdown,
    /// Sends a change to all subscribers.
    pub(crate) tell: &'a (dyn Fn(Change) + Sync),
    pub(crate) cache_writer: &'a CacheWriter,
}

impl Session {
    /// Creates a session with a server that just started, for the client that needed it.
    pub(crate) fn new(
        about: &Arc<About>,
        started: Started,
        client: Option<Arc<dyn ClientHandle>>,
        resubscriptions: Resubscriptions,
        status: watch::Receiver<Status>,
    ) -> Self {
        let server = Arc::clone(&about.entry().server);
        let mut session = Self {
            link: started.link,
            calls: Calls::new(
                started.next_id,
                about,
                resubscriptions,
                started.dialect,
                status,
            ),
            subscription: Subscription::new(started.announced),
            asks: started.asks,
            unattributed: UnattributedQuestions::default(),
            users: client.map_or(Users::Nobody, |client| Users::One(client.lasting())),
            refresh: Refresh::default(),
            health: Health::default(),
            protocol_check: ProtocolCheck::default(),
            used_at: Instant::now(),
            pins: started.pins,
            lost: None,
            server,
        };
        match session.calls.era() {
            Era::Legacy => session.calls.resubscribe(&mut session.link),
            Era::Modern => session.listen(),
        }
        session
    }

    /// Serves until the end, in turns: one per event, with everything that arrived together with it. Messages to the
    /// server are written at the end of each turn, in one piece.
    pub(crate) async fn run(
        &mut self,
        commands: &mut mpsc::UnboundedReceiver<Command>,
        context: &SessionContext<'_>,
    ) -> SessionEnd {
        let mut alarm = Alarm::default();
        let mut shutdown = Rare::new(Box::pin(context.shutdown.begun()));
        loop {
            if replaced::is_replaced(self) {
                return SessionEnd::Replaced;
            }
            unattributed::release(self);
            if replaced::is_replaced(self) {
                return SessionEnd::Replaced;
            }
            if let Some(fault) = self.lost.take() {
                return SessionEnd::Lost(fault);
            }
            let full_client = self.users.full_client();
            // While a full client blocks reading, the server's deadlines do not count.
            let due = full_client.is_none().then(|| self.due()).flatten();
            // Rare and bounded events come first, so that a server that never stops writing delays nothing else.
            tokio::select! {
                biased;
                () = &mut shutdown => {
                    return SessionEnd::Shutdown(context.shutdown.since());
                }
                () = alarm.wait(due) => if let Some(end) = self.take_time(context) {
                    return end;
                },
                closed = self.asks.next_answer() => unattributed::take_answer(self, closed),
                () = self.refresh.check_ended(), if self.refresh.is_in_work() => {
                    self.take_checked_page(context);
                }
                command = commands.recv() => match command {
                    Some(command) => {
                        if self.take_commands(command, commands, context) {
                            return SessionEnd::Stopped;
                        }
                    }
                    None => return SessionEnd::Retired,
                },
                () = wait_for_room(full_client.as_ref()), if full_client.is_some() => {
                    // The server could not be heard while its client was full, so its silence does not count.
                    self.health.excuse(Instant::now());
                    self.link.excuse_stall();
                }
                event = self.link.next_event(), if full_client.is_none() => {
                    if let Some(end) = self.take_events(event, context) {
                        return end;
                    }
                }
            }
        }
    }

    /// Handles an event, and all events that were read together with it.
    fn take_events(
        &mut self,
        first: LinkEvent,
        context: &SessionContext<'_>,
    ) -> Option<SessionEnd> {
        self.calls.begin_turn();
        let mut next = Some(first);
        while let Some(event) = next {
            match event {
                LinkEvent::Ended(exit) => return Some(SessionEnd::Exited(exit)),
                LinkEvent::Lost(fault) => return Some(SessionEnd::Lost(fault)),
                LinkEvent::Nonsense => return Some(SessionEnd::GivenUp(StopReason::Nonsense)),
                event => self.take_event(event, context),
            }
            next = self.link.ready_event();
        }
        self.report_questions(context);
        context.cache_writer.learn_shapes();
        None
    }

    /// Records that the server has asked its client something. A question during the start counts too.
    fn report_questions(&self, context: &SessionContext<'_>) {
        if self.asks.has_asked() {
            context.cache_writer.write_asks_back();
        }
    }

    /// Handles a command, and all commands that are queued behind it. Returns true if one of them stops the server.
    fn take_commands(
        &mut self,
        first: Command,
        others: &mut mpsc::UnboundedReceiver<Command>,
        context: &SessionContext<'_>,
    ) -> bool {
        self.calls.begin_turn();
        let mut next = Some(first);
        while let Some(command) = next {
            if matches!(command, Command::Stop) {
                return true;
            }
            self.take_command(command, context.status);
            next = others.try_recv().ok();
        }
        false
    }

    /// Returns the time of the next scheduled action.
    fn due(&self) -> Option<Instant> {
        let moments = [
            self.calls.due(),
            self.refresh.due(),
            self.health.due(),
            self.link.stalls_at(),
            self.subscription.due(),
            self.unattributed.due(),
            self.idle_at(),
        ];
        moments.into_iter().flatten().min()
    }

    fn take_time(&mut self, context: &SessionContext<'_>) -> Option<SessionEnd> {
        self.calls.begin_turn();
        let now = self.calls.now();
        let status = context.status;
        if let Some((page, outcome)) = self.refresh.give_up_if_due(now, status) {
            self.forget_page(page);
            self.settle_page(outcome);
        }
        unattributed::refuse_due(self, now);
        self.calls.release_progress(now);
        let timeouts = self.calls.expire(now, &mut self.link);
        if timeouts > 0 && self.health.timed_out(timeouts, now) {
            let nothing = ObjectText::new().finish();
            // The modern era has no `ping`, but every modern server answers `server/discover`.
            let method = match self.calls.era() {
                Era::Legacy => "ping",
                Era::Modern => "server/discover",
            };
            self.calls
                .ask(&mut self.link, PendingRequest::Ping, method, &nothing);
        }
        if self.subscription.due().is_some_and(|due| due <= now) {
            local::listen_again(self, context);
        }
        if let Some(params) = self.refresh.begin_if_due(now, self.server.list_bounds) {
            self.request_page(&params);
        }
        let stalled = self.link.stalls_at().is_some_and(|at| at <= now);
        let given_up = self
            .health
            .verdict(self.link.oversized_bytes(), now)
            .or(stalled.then_some(StopReason::NotReading));
        let idle = self.idle_at().is_some_and(|idle| idle <= now);
        given_up
            .map(SessionEnd::GivenUp)
            .or(idle.then_some(SessionEnd::Idle))
    }

    pub(crate) fn take_command(&mut self, command: Command, status: &watch::Sender<Status>) {
        match command {
            Command::Call(call) => self.take_call(call),
            // Whoever opens a toolbox gets the list that is being read, not the stale one.
            Command::Connect { reply, .. } if self.refresh.is_on() => {
                self.refresh.wait(reply, self.calls.now());
            }
            Command::Connect { reply, .. } => {
                let tools = status.borrow().tools.clone().unwrap_or_default();
                let _ = reply.send(Ok(tools));
            }
            Command::Cancel(ticket) => self.calls.cancel(ticket, &mut self.link),
            Command::Follow(following) => {
                self.used_at = self.calls.now();
                self.calls.resubscriptions().follow(following);
            }
            change => adapt::take_change(self, change, status),
        }
    }

    /// Sends a call, or queues it.
    pub(crate) fn take_call(&mut self, call: Box<QueuedCall>) {
        self.used_at = self.calls.now();
        self.users.record(&call.call.context.client);
        if self.calls.era() == Era::Modern
            && let Some(local) = LocalRequest::of(&call.call.request)
        {
            local.take(self, call);
        } else {
            self.calls.take(call, &mut self.link);
            self.list_now_if_awaited();
        }
    }

    /// Lists the tools at once if a call waits for that.
    pub(crate) fn list_now_if_awaited(&mut self) {
        if self.calls.has_queued() && self.calls.is_unlisted() {
            self.refresh.list_now(self.calls.now());
        }
    }

    /// Returns the client that a message is for, if there can be only one. A message on the stream of a request
    /// belongs to that request only.
    pub(crate) fn meant_client(&self, origin: Origin) -> Option<&Arc<dyn ClientHandle>> {
        if let Origin::Request(id) = origin {
            return self.calls.client_of(id);
        }
        match &self.users {
            // A modern client has no connection besides its calls.
            Users::One(client) if client.own_era() == Era::Legacy => {
                Some(self.calls.only_client(&self.asks).unwrap_or(client))
            }
            Users::Nobody | Users::One(_) | Users::Several => self.calls.only_client(&self.asks),
        }
    }

    pub(crate) fn take_event(&mut self, event: LinkEvent, context: &SessionContext<'_>) {
        match event {
            LinkEvent::Message { message, origin } => {
                self.health.heard();
                self.take_message(message, origin, context);
            }
            LinkEvent::Failed { id, fault, outcome } => {
                replaced::take_failure(self, id, fault, outcome, context);
            }
            // Nothing is sent to the new session before it has listed its tools.
            LinkEvent::SessionLost => {
                let page = self.refresh.lose();
                self.forget_page(page);
                context.status.send_modify(|it| it.stale = true);
            }
            // The checks of the known tools hold for the former account only.
            LinkEvent::AccountChanged => {
                self.calls.resubscribe(&mut self.link);
                let known = context.status.borrow().tools.clone();
                let introduction = known.unwrap_or_default().introduction.clone();
                let page = self.refresh.require(introduction);
                self.forget_page(page);
                self.announce_everything(context);
            }
            LinkEvent::Renewed(said) => {
                self.calls.resubscribe(&mut self.link);
                let mut introduction = Introduction::of(&said, self.calls.era());
                // Skills are read only when a server starts.
                let known = context.status.borrow().tools.clone().unwrap_or_default();
                introduction.set_skills(known.introduction.skills().to_vec());
                let page = self.refresh.require(introduction);
                self.forget_page(page);
                self.announce_everything(context);
            }
            LinkEvent::BadLine(line) => unreadable::take_bad_line(self, &line),
            LinkEvent::TooLarge(head) => unreadable::take_oversized(self, &head),
            LinkEvent::TooLargeEnded(tail) => {
                if self.health.oversized_ended() {
                    unreadable::fail_oversized(self, id_from_tail(&tail).as_ref());
                }
                // No call was sent while the message went on, because it could have been endless.
                self.calls.send_queued(&mut self.link);
            }
            // These end the session, so `take_events` has handled them.
            LinkEvent::Nonsense | LinkEvent::Lost(_) | LinkEvent::Ended(_) => {}
        }
    }

    fn take_message(&mut self, message: Message, origin: Origin, context: &SessionContext<'_>) {
        let message = if self.server.sanitize {
            clean::cleaned_message(message, |id| self.calls.pending.is_call(id))
        } else {
            message
        };
        match message {
            Message::Response(response) => self.take_answer(response, context),
            Message::Notification(notification) => {
                self.take_notification(&notification, origin, context);
            }
            // A modern server must not send requests, and must not be answered.
            Message::Request(_) if self.calls.era() == Era::Modern => {}
            Message::Request(request) => unattributed::take_question(self, request, origin),
        }
    }

    fn take_answer(&mut self, response: Response, context: &SessionContext<'_>) {
        let Some(id) = response.id.as_ref().and_then(RequestId::as_u64) else {
            return;
        };
        self.used_at = self.calls.now();
        // Before the call ends: if it is sent again, it must wait for the list that this refusal outdates.
        if matches!(response.answer, Answer::Error(_)) && self.calls.pending.is_call(id) {
            replaced::take_refusal(self, &response.answer, context.status);
        }
        let (answer, marks) = (response.answer, response.marks);
        match self.calls.answer(id, answer, marks, &mut self.link) {
            Some((PendingRequest::List, answer)) => self.take_page(id, &answer, context),
            Some((PendingRequest::Listen, answer)) => self.subscription.take_answer(id, &answer),
            Some((PendingRequest::Ping, _)) => self.protocol_check.take_sign_of_life(),
            // A response without a request is late or a duplicate, and is dropped.
            _ => self.calls.send_queued(&mut self.link),
        }
    }

    fn take_notification(
        &mut self,
        notification: &Notification,
        origin: Origin,
        context: &SessionContext<'_>,
    ) {
        match (&*notification.method, &notification.params) {
            ("notifications/progress", Some(params)) => self.calls.forward_progress(params),
            ("notifications/tools/list_changed", _) => self.announce_change(context.status),
            ("notifications/prompts/list_changed", _) => (context.tell)(Change::Prompts),
            ("notifications/resources/list_changed", _) => (context.tell)(Change::Resources),
            ("notifications/resources/updated", Some(params)) => {
                (context.tell)(Change::Resource(untagged(params)));
            }
            ("notifications/subscriptions/acknowledged", _) => {
                local::take_granted(self, context);
            }
            ("notifications/message", Some(params)) => {
                if let Some(client) = self.meant_client(origin) {
                    client.log(params);
                }
            }
            ("notifications/cancelled", Some(params)) => {
                let id = params.member("requestId").and_then(RequestId::from_json);
                if let Some(id) = id {
                    self.take_cancel(&id);
                }
            }
            _ => {}
        }
    }

    /// Handles a cancellation by the server: of a question, or of our subscription.
    fn take_cancel(&mut self, id: &RequestId) {
        match id.as_u64() {
            Some(ours) if self.calls.era() == Era::Modern && self.subscription.is_open(ours) => {
                self.calls.forget(ours);
                self.subscription.ended(ours, Instant::now());
            }
            _ => unattributed::cancel_question(self, id),
        }
    }

    /// Schedules a new reading of the tool list.
    pub(crate) fn announce_change(&mut self, status: &watch::Sender<Status>) {
        self.refresh.announce();
        status.send_modify(|status| status.stale = true);
        self.list_now_if_awaited();
    }

    /// Announces that everything the server offers may have changed.
    pub(crate) fn announce_everything(&mut self, context: &SessionContext<'_>) {
        self.announce_change(context.status);
        (context.tell)(Change::Prompts);
        (context.tell)(Change::Resources);
    }

    /// Subscribes again with the current filter.
    pub(crate) fn listen(&mut self) {
        self.subscription.listen(&mut self.calls, &mut self.link);
    }

    pub(crate) fn request_page(&mut self, params: &RawJson) {
        let asked = self
            .calls
            .ask(&mut self.link, PendingRequest::List, "tools/list", params);
        self.refresh.asked(asked.0);
    }

    /// Forgets a request for a page that is no longer needed.
    fn forget_page(&mut self, page: Option<u64>) {
        if let Some(id) = page {
            self.calls.forget(id);
        }
    }

    pub(crate) fn take_page(&mut self, id: u64, answer: &Answer, context: &SessionContext<'_>) {
        let era = self.calls.era();
        let (server, pins) = (Arc::clone(&self.server), self.pins.clone());
        let shapes = Arc::clone(context.cache_writer.shapes());
        let reading = ListReader {
            era,
            permissions: &self.server.permissions,
            make_list: Box::new(move |snapshot| {
                let rules = ListRules::of(&server, era).with_pins(&pins, server.pin);
                ToolList::of(snapshot, &rules.with_shapes(&server, &shapes))
            }),
            keep: &|snapshot| cache_snapshot(&self.server, &self.link, snapshot, context),
        };
        let status = context.status;
        let page = self.refresh.take_page(id, answer, reading, status);
        self.settle_page(page);
    }

    /// Handles a page that was checked on a thread.
    fn take_checked_page(&mut self, context: &SessionContext<'_>) {
        self.calls.begin_turn();
        let keep = |snapshot: &ServerSnapshot| {
            cache_snapshot(&self.server, &self.link, snapshot, context);
        };
        let permissions = &self.server.permissions;
        let status = context.status;
        let page = self.refresh.take_checked(permissions, &keep, status);
        self.settle_page(page);
    }

    /// Acts on the outcome of a reading.
    pub(crate) fn settle_page(&mut self, page: PageOutcome) {
        match page {
            PageOutcome::Next(params) => self.request_page(&params),
            PageOutcome::InWork | PageOutcome::Ignored => {}
            PageOutcome::Listed => {
                hops::report_listed(&mut self.calls);
                self.calls.send_listed(&mut self.link);
            }
            PageOutcome::ChangedAgain => self.list_now_if_awaited(),
            PageOutcome::Unreadable => self.calls.fail_unlisted(),
            PageOutcome::Lost => self.lost = Some(HttpFault::Unlisted),
        }
    }

    /// Returns the time at which the server becomes idle.
    pub(crate) fn idle_at(&self) -> Option<Instant> {
        let idle = self.server.times.idle?;
        let unused = self.calls.is_empty() && !self.calls.is_waited_for();
        unused.then_some(self.used_at + idle)
    }

    /// Returns the last lines of the server's stderr.
    pub(crate) async fn stderr_tail(&mut self) -> Vec<String> {
        self.link.stderr_tail().await
    }

    /// Counts the deadlines for ending the process from `since`.
    pub(crate) fn closing_since(&mut self, since: Instant) {
        self.link.closing_since(since);
    }

    /// Fails the calls that reached the server; returns those that wait for the next start. The link is dropped, and
    /// the process with it.
    pub(crate) fn end(mut self, error: impl Fn(Outcome) -> CallError) -> WaitingCommands {
        let (calls, resubscriptions) = self.calls.end(&mut self.link, error);
        WaitingCommands {
            connects: self.refresh.into_waiting(),
            calls,
            resubscriptions,
            asked_for: false,
            asker: None,
        }
    }
}

/// Writes a snapshot of the server to the cache.
fn cache_snapshot(
    server: &Arc<Server>,
    link: &Link,
    snapshot: &ServerSnapshot,
    context: &SessionContext<'_>,
) {
    let secrets = link.secrets();
    context.cache_writer.write(server, snapshot, &secrets);
}
