//! One server: the handle that callers hold, and the task that owns everything else.
//!
//! No lock and no shared table is needed here: the pending calls, the ids, the deadlines and the process belong to
//! the one task. A call can be completed by a response, a timeout, a cancellation, an exit or a shutdown, and exactly
//! one of them finds it in the table.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use ident::ServerIdentifier;
use rawjson::RawJson;
use tokio::{
    sync::{mpsc, oneshot, watch},
    time::Instant,
};

use crate::{
    call::{Call, ClientHandle, Outcome},
    config::{ListBounds, Server},
    downstream::{
        error::{CallError, ConnectError},
        listing::ToolList,
        oauth::ServerOAuth,
        open_wait::OpenWait,
        session::{
            reply::{AnswerCallback, AnswerReceiver, CallEnd, CompletedCall},
            resubscriptions::Resubscriptions,
        },
        stray::StrayText,
        supervisor::{
            adapt::{Entry, EntryChange},
            cached_list::CachedList,
        },
    },
    era::Era,
    events::{Events, HopGuard, HopResult},
    seal::Sealer,
    server_cache::NotCached,
    shapes::DueSample,
    sync::lock,
    wire::ResultMarks,
};

/// The handle of one server. Cheap to clone.
#[derive(Clone)]
pub(crate) struct ServerHandle {
    pub(crate) commands: mpsc::UnboundedSender<Command>,
    pub(crate) status: watch::Receiver<Status>,
    pub(crate) about: Arc<About>,
}

/// The data that all calls of one server share.
pub(crate) struct About {
    pub(crate) tickets: AtomicU64,
    pub(crate) identifier: ServerIdentifier,
    pub(crate) entry: Mutex<Arc<Entry>>,
    /// Set once it has asked its client something.
    pub(crate) asks_back: AtomicBool,
    /// Its tools from earlier runs.
    pub(crate) cached_list: CachedList,
    /// Seals task names.
    pub(crate) sealer: Sealer,
    /// The OAuth state of the server.
    pub(crate) oauth: ServerOAuth,
    /// How long opens have waited for it.
    pub(crate) open_wait: Mutex<OpenWait>,
    /// Text on its stdout that is not a message.
    pub(crate) stray: StrayText,
    /// The number and the time of its starts.
    pub(crate) activity: Mutex<Activity>,
    /// Its last process, from its start on; `None` for a remote server.
    pub(crate) process: Mutex<Option<ProcessView>>,
    /// A number that is unique in this process: not even an earlier server of the same name has it.
    pub(crate) number: u64,
    pub(crate) observed: Arc<Events>,
}

/// The starts of a server.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Activity {
    /// The time of its last start.
    pub(crate) up_since: Option<Instant>,
    /// How often it came up.
    pub(crate) starts: u64,
}

impl About {
    /// Records that the server came up.
    pub(crate) fn record_start(&self) {
        let mut activity = lock(&self.activity);
        activity.up_since = Some(Instant::now());
        activity.starts += 1;
    }

    /// Records that the server has ended.
    pub(crate) fn record_end(&self) {
        lock(&self.activity).up_since = None;
    }

    /// Returns the current configuration of the server.
    pub(crate) fn entry(&self) -> Arc<Entry> {
        let entry = lock(&self.entry);
        Arc::clone(&entry)
    }
}

/// The published status of a server.
#[derive(Debug, Clone, Default)]
pub(crate) struct Status {
    pub phase: Phase,
    /// The tools of its last list.
    pub tools: Option<Arc<ToolList>>,
    /// Set if the server has announced a change of its tools that has not been read yet.
    pub stale: bool,
    /// Set if the tools are from an earlier run and the server has not been up since.
    pub from_cache: bool,
}

/// The process of a server, as others see it.
#[derive(Debug, Clone)]
pub(crate) struct ProcessView {
    pub pid: u32,
    pub(crate) stderr: Arc<Mutex<VecDeque<String>>>,
}

impl ProcessView {
    /// Returns the last lines of stderr, without secrets.
    pub(crate) fn stderr(&self) -> Vec<String> {
        lock(&self.stderr).iter().cloned().collect()
    }
}

#[derive(Debug, Clone, Default)]
pub(crate) enum Phase {
    /// It has not been needed yet.
    #[default]
    Untried,
    Starting,
    /// It runs and has listed its tools.
    Up,
    /// It has ended, and restarts when it is needed.
    Resting,
    /// It could not be started.
    Failed(Arc<ConnectError>),
}

/// A command for the task. The channel has no bound of its own: the requests of all clients together are bounded
/// where they are read, and each has at most a few commands here at once.
pub(crate) enum Command {
    /// Start the server if necessary, and reply with a current list.
    Connect {
        reply: ConnectReply,
        urgency: Urgency,
        client: Arc<dyn ClientHandle>,
    },
    Call(Box<QueuedCall>),
    /// The caller dropped the call.
    Cancel(CallTicket),
    /// A multi-step call begins or ends a pause between two of its requests.
    Follow(FollowState),
    /// The entry of the server has changed, but not how it is reached.
    Adapt(EntryChange),
    /// The lock file has changed: compare the tools with it again.
    Recheck,
    /// The user stops the server. It starts again when it is needed.
    Stop,
    /// A new server replaces this one: send it the state to inherit.
    HandOver(mpsc::UnboundedSender<Self>),
    /// The state of the server that this one replaces.
    Inherit(Resubscriptions),
}

/// The state of a multi-step call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FollowState {
    /// Another request of the call will follow: the server is not idle.
    Began,
    Ended,
}

/// The reason why a server is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Urgency {
    /// A caller asks for the server itself: the pause after a failed start does not apply.
    AskedFor,
    /// A call needs it, or an open retries it: the pause applies.
    ForCall,
}

pub(crate) type ConnectReply = oneshot::Sender<Result<Arc<ToolList>, Arc<ConnectError>>>;

/// Identifies a call of one server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CallTicket(pub(crate) u64);

/// An unanswered call. It is on the heap because it is moved often.
pub(crate) struct QueuedCall {
    pub(crate) ticket: CallTicket,
    pub(crate) call: Call,
    pub(crate) reply: AnswerReceiver,
    /// How often the server ended before a byte of the call was sent.
    pub(crate) put_back: u32,
    /// The headers of its arguments.
    pub(crate) headers: Box<[(String, String)]>,
    /// The era of the server that answered.
    pub(crate) answered_by: Option<Era>,
    pub(crate) marks: ResultMarks,
    /// The time at which it was last passed to a connection.
    pub(crate) sent_at: Option<Instant>,
    /// The deadline of the call, counted from its first sending.
    pub(crate) ends_at: Option<Instant>,
    /// The request in the event stream, while anybody listens.
    pub(crate) hop: Option<Box<HopGuard>>,
    /// The place for its result, if its shape is read.
    pub(crate) shape: Option<DueSample>,
}

impl QueuedCall {
    pub(crate) fn new(ticket: CallTicket, call: Call, reply: AnswerReceiver) -> Box<Self> {
        Box::new(Self {
            ticket,
            call,
            reply,
            put_back: 0,
            headers: Box::default(),
            answered_by: None,
            marks: ResultMarks::default(),
            sent_at: None,
            ends_at: None,
            hop: None,
            shape: None,
        })
    }

    pub(crate) fn answer(mut self: Box<Self>, answer: Result<RawJson, CallError>) {
        // The request ends before the operation that it belongs to, which the reply may end.
        if let Some(hop) = self.hop.take() {
            end_hop(*hop, &answer, self.marks);
        }
        // An error says nothing about the shape of a success.
        if let (Ok(result), false) = (&answer, self.marks.is_error)
            && let Some(sample) = self.shape.take()
        {
            sample.offer(result);
        }
        self.reply.give(CompletedCall {
            call: self.call,
            answer,
            by: self.answered_by,
            marks: self.marks,
            sent_at: self.sent_at,
        });
    }
}

/// Reports the end of a request to the event stream.
fn end_hop(hop: HopGuard, answer: &Result<RawJson, CallError>, marks: ResultMarks) {
    hop.end(&match answer {
        Ok(result) => HopResult {
            error: marks.is_error.then_some("tool_error"),
            response_error: None,
            result: Some(result),
        },
        Err(failure) => HopResult {
            error: Some(failure.code()),
            response_error: match failure {
                CallError::Refused { error, .. } => Some(error),
                _ => None,
            },
            result: None,
        },
    });
}

impl ServerHandle {
    pub(crate) fn identifier(&self) -> &ServerIdentifier {
        &self.about.identifier
    }

    /// Returns the current status of the server.
    pub(crate) fn status(&self) -> Status {
        let mut status = self.status.borrow().clone();
        if status.tools.is_none() {
            status.tools = self.about.cached_list.get();
            status.from_cache = status.tools.is_some();
        }
        status
    }

    /// Returns the last process of the server, even if the server is starting or has failed.
    pub(crate) fn process(&self) -> Option<ProcessView> {
        lock(&self.about.process).clone()
    }

    /// Returns the reason why the last snapshot is not in the cache, if there is one.
    pub(crate) fn not_cached(&self) -> Option<Arc<NotCached>> {
        self.about.cached_list.not_cached()
    }

    /// Returns the bounds of the lists of the server.
    pub(crate) fn list_bounds(&self) -> ListBounds {
        self.about.entry().server.list_bounds
    }

    /// Returns the first line that the server wrote to stdout during a start and that is not a message.
    pub(crate) fn stray_text(&self) -> Option<&str> {
        self.about.stray.get()
    }

    /// Returns the unique number of this server.
    pub(crate) fn number(&self) -> u64 {
        self.about.number
    }

    pub(crate) fn oauth(&self) -> &ServerOAuth {
        &self.about.oauth
    }

    /// Reads the status of the server without copying it. `look` must not read any status of this server.
    pub(crate) fn inspect<T>(&self, look: impl FnOnce(&Status) -> T) -> T {
        look(&self.status.borrow())
    }

    /// Subscribes to the status of the server. The subscription does not keep the server alive.
    pub(crate) fn updates(&self) -> watch::Receiver<Status> {
        self.status.clone()
    }

    /// Returns whether the server has asked its client something, now or in an earlier run.
    pub(crate) fn asks_back(&self) -> bool {
        self.about.asks_back.load(Ordering::Relaxed)
    }

    pub(crate) fn set_asks_back(&self) {
        self.about.asks_back.store(true, Ordering::Relaxed);
    }

    /// Requests a running server with a current list, for a client. The command is sent now; the future only waits,
    /// and dropping it does not stop the start.
    pub(crate) fn connect(
        &self,
        urgency: Urgency,
        client: Arc<dyn ClientHandle>,
    ) -> impl Future<Output = Result<Arc<ToolList>, Arc<ConnectError>>> + use<> {
        let (reply, answer) = oneshot::channel();
        // Without a task the reply is dropped, and the error below is returned.
        let _ = self.commands.send(Command::Connect {
            reply,
            urgency,
            client,
        });
        async {
            answer
                .await
                .unwrap_or_else(|_| Err(Arc::new(ConnectError::ShuttingDown)))
        }
    }

    /// Makes a call and starts the server if necessary. Questions in the response are put to the client, unless the
    /// client accepts such responses itself. Dropping the future cancels the call.
    pub(crate) async fn call(&self, call: Call) -> Result<RawJson, CallError> {
        self.send(call).await?.result(self).await
    }

    /// Sends a call once and starts the server if necessary. Dropping the future cancels the call.
    pub(crate) async fn send(&self, call: Call) -> Result<CallEnd, CallError> {
        Ok(CallEnd::of(self.call_once(call).await?))
    }

    pub(crate) fn ticket(&self) -> CallTicket {
        CallTicket(self.about.tickets.fetch_add(1, Ordering::Relaxed))
    }

    /// Makes a call and starts the server if necessary. The task of the server calls `then` once with the outcome, as
    /// soon as it is known, so `then` must return quickly.
    pub(crate) fn call_then(
        &self,
        ticket: CallTicket,
        call: Call,
        then: impl FnOnce(CallEnd) + Send + 'static,
    ) {
        let queued = QueuedCall::new(
            ticket,
            call,
            AnswerReceiver::Callback(AnswerCallback::new(then)),
        );
        // The task has ended, but the callback must still be called.
        if let Err(mpsc::error::SendError(Command::Call(queued))) =
            self.commands.send(Command::Call(queued))
        {
            queued.answer(Err(NOT_SENT));
        }
    }

    /// Cancels a call. Its outcome is still reported.
    pub(crate) fn cancel(&self, ticket: CallTicket) {
        // Without a task the call has ended already.
        let _ = self.commands.send(Command::Cancel(ticket));
    }

    /// Sends a call once. Dropping the future cancels it.
    pub(crate) async fn call_once(&self, call: Call) -> Result<CompletedCall, CallError> {
        let (reply, answer) = oneshot::channel();
        let ticket = self.ticket();
        let queued = QueuedCall::new(ticket, call, AnswerReceiver::Waiting(reply));
        // Before the call is sent, so that a caller that goes away at any moment cancels it.
        let mut cancel = CancelOnDrop {
            server: self,
            ticket: Some(ticket),
        };
        if self.commands.send(Command::Call(queued)).is_err() {
            cancel.ticket = None;
            return Err(NOT_SENT);
        }
        let answer = answer.await;
        // The call is over, so a cancel would wake the task for nothing.
        cancel.ticket = None;
        answer.map_err(|_| CallError::Internal)
    }

    pub(crate) fn observed(&self) -> &Arc<Events> {
        &self.about.observed
    }

    /// Returns the entry that the configuration has for the server.
    pub(crate) fn entry(&self) -> Arc<Entry> {
        self.about.entry()
    }

    /// Updates the server to an entry by which it is reached as before.
    pub(crate) fn adapt(&self, entry: Entry) {
        let now = Arc::clone(&entry.server);
        // The entry before the command: a start that begins in between must use the new one.
        let mut known = lock(&self.about.entry);
        let before = std::mem::replace(&mut *known, Arc::new(entry));
        let before = Arc::clone(&before.server);
        // `renew` below takes other locks, and may make a whole list.
        drop(known);
        self.about.cached_list.renew(&now);
        let adaption = EntryChange::new(before, now);
        let _ = self.commands.send(Command::Adapt(adaption));
    }

    /// Returns the initial status of a server that replaces this one: it is expected to have the same tools, as far
    /// as its entry lets them through.
    pub(crate) fn outlook(&self, server: &Server) -> Status {
        let tools = self.status.borrow().tools.clone();
        Status {
            phase: Phase::Untried,
            stale: tools.is_some(),
            tools: tools.map(|tools| {
                self.about
                    .cached_list
                    .ruled(server, &tools.narrowed(server))
            }),
            from_cache: false,
        }
    }

    /// Stops the server until its next use. Calls that it has not answered fail.
    pub(crate) fn stop(&self) {
        // Without a task it has stopped already.
        let _ = self.commands.send(Command::Stop);
    }

    /// Returns the starts of the server.
    pub(crate) fn activity(&self) -> Activity {
        *lock(&self.about.activity)
    }

    /// Returns the number of calls so far.
    pub(crate) fn calls(&self) -> u64 {
        // Each call has taken one ticket.
        self.about.tickets.load(Ordering::Relaxed)
    }

    /// Compares the server's tools with the lock file again.
    pub(crate) fn recheck(&self) {
        self.about.cached_list.renew(&self.about.entry().server);
        let _ = self.commands.send(Command::Recheck);
    }

    /// Waits until a server that is up has ended.
    pub(crate) async fn rested(&self) {
        let is_over = |status: &Status| !matches!(status.phase, Phase::Up | Phase::Starting);
        // Without a task it has ended.
        let _ = self.status.clone().wait_for(is_over).await;
    }

    /// Passes the state of this server to the one that replaces it. If its tools are known only from the cache, the
    /// cached list of the new server is loaded too.
    pub(crate) fn hand_over_to(&self, successor: &Self) {
        if self.status().from_cache {
            // The only read of the cache on the event loop: a reload replaces all servers in one step and cannot wait.
            successor.about.cached_list.load(&successor.entry().server);
        }
        let successor = successor.commands.clone();
        let _ = self.commands.send(Command::HandOver(successor));
    }

    /// Returns since when opens wait for the server, starting now if none does; `None` if they have waited long
    /// enough.
    pub(crate) fn open_wait_since(&self, now: Instant) -> Option<Instant> {
        lock(&self.about.open_wait).since(now)
    }

    /// Records the outcome of an open, or resets it so that the next open waits again.
    pub(crate) fn set_open_wait(&self, open_wait: OpenWait) {
        *lock(&self.about.open_wait) = open_wait;
    }
}

/// The error of a call whose task has ended.
pub(crate) const NOT_SENT: CallError = CallError::ShuttingDown {
    outcome: Outcome::NotSent,
};

/// Keeps a server from becoming idle while one of its calls is between two requests.
pub(crate) struct FollowGuard<'a> {
    pub(crate) commands: &'a mpsc::UnboundedSender<Command>,
}

impl<'a> FollowGuard<'a> {
    pub(crate) fn begin(server: &'a ServerHandle) -> Self {
        let commands = &server.commands;
        let _ = commands.send(Command::Follow(FollowState::Began));
        Self { commands }
    }
}

impl Drop for FollowGuard<'_> {
    fn drop(&mut self) {
        let _ = self.commands.send(Command::Follow(FollowState::Ended));
    }
}

/// Cancels the call when its caller stops waiting.
pub(crate) struct CancelOnDrop<'a> {
    pub(crate) server: &'a ServerHandle,
    pub(crate) ticket: Option<CallTicket>,
}

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket {
            self.server.cancel(ticket);
        }
    }
}
