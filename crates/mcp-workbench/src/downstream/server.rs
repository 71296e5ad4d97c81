//! One server: the handle that everybody holds, and the task that owns everything else.
//!
//! No lock and no shared table is needed here: the pending calls, the ids, the deadlines and the
//! process belong to the one task, so a call can be completed by an answer, a timeout, a cancel, an
//! exit or a shutdown, and exactly one of them finds it there.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use rawjson::RawJson;
use tokio::{
    sync::{mpsc, oneshot, watch},
    time::Instant,
};

use crate::{
    call::{Call, ClientHandle, Outcome},
    config::{ListBounds, Server},
    downstream::{
        awaited::Awaited,
        error::{CallError, ConnectError},
        listing::ToolList,
        oauth::ServerOAuth,
        session::{
            reply::{AnswerReceiver, Answered, CallEnd, Then},
            resubscriptions::Resubscriptions,
        },
        stray::StrayText,
        supervisor::{
            adapt::{Adaption, Entry},
            cached_list::CachedList,
        },
    },
    era::Era,
    ident::ServerIdentifier,
    seal::Sealer,
    server_cache::NotCached,
    wire::ResultMarks,
};

/// The way to one server. Cheap to clone.
#[derive(Clone)]
pub(crate) struct ServerHandle {
    pub(crate) commands: mpsc::UnboundedSender<Command>,
    pub(crate) status: watch::Receiver<Status>,
    pub(crate) about: Arc<About>,
}

/// What the calls of one server have in common.
pub(crate) struct About {
    pub(crate) tickets: AtomicU64,
    pub(crate) identifier: ServerIdentifier,
    pub(crate) entry: Mutex<Arc<Entry>>,
    /// Whether somebody follows its list of tools.
    pub(crate) is_followed: AtomicBool,
    /// Its tools from earlier runs.
    pub(crate) cached_list: CachedList,
    /// Seals the names of tasks.
    pub(crate) sealer: Arc<Sealer>,
    /// How it is signed in to.
    pub(crate) oauth: ServerOAuth,
    /// How long opens have waited for it.
    pub(crate) awaited: Mutex<Awaited>,
    /// Text on its stdout that is not a message.
    pub(crate) stray: StrayText,
    /// Tells it from every other server of this process, one that had the same names before included.
    pub(crate) number: u64,
}

impl About {
    /// What the configuration says now.
    pub(crate) fn entry(&self) -> Arc<Entry> {
        let entry = self.entry.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&entry)
    }
}

/// What is known of a server without asking it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Status {
    pub phase: Phase,
    /// The tools it offered when it was last asked.
    pub tools: Option<Arc<ToolList>>,
    /// Whether it has said that its tools have changed, and was not asked again yet.
    pub stale: bool,
    /// Whether the tools are those of an earlier run, and the server was not up since.
    pub from_cache: bool,
}

#[derive(Debug, Clone, Default)]
pub(crate) enum Phase {
    /// Nobody has needed it yet.
    #[default]
    Untried,
    Starting,
    /// It runs and has told its tools.
    Up,
    /// It ran, has ended, and is started again when somebody needs it.
    Resting,
    /// It could not be started.
    Failed(Arc<ConnectError>),
}

/// What the task is asked for. The channel has no bound of its own: the requests of all clients
/// together are bounded where they are read, and each has at most a few of these here at once.
pub(crate) enum Command {
    /// Be up, with a list that is current.
    Connect {
        reply: ConnectReply,
        urgency: Urgency,
        client: Arc<dyn ClientHandle>,
    },
    Call(Box<QueuedCall>),
    /// The caller is no longer interested.
    Cancel(CallTicket),
    /// A call is between two of its requests, or not any more.
    Follow(Following),
    /// The entry of the server has changed, but not how it is reached.
    Adapt(Adaption),
    /// The lock file has changed: tools are compared with it again.
    Recheck,
    /// Another server takes this one's place: it is to be told what must hold for it too.
    HandOver(mpsc::UnboundedSender<Self>),
    /// What held for the server whose place this one has taken.
    Inherit(Resubscriptions),
}

/// Where a call stands that takes several requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Following {
    /// It will be gone on with: the server is not idle.
    Began,
    Ended,
}

/// Who needs a server to be up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Urgency {
    /// Somebody asks for the server itself: a pause after a failed start does not hold for them.
    AskedFor,
    /// A call needs it, or an open that retries it: the pause holds.
    ForCall,
}

pub(crate) type ConnectReply = oneshot::Sender<Result<Arc<ToolList>, Arc<ConnectError>>>;

/// Tells the calls of one server apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CallTicket(pub(crate) u64);

/// A call that has not been answered. It is moved often, and so on the heap.
pub(crate) struct QueuedCall {
    pub(crate) ticket: CallTicket,
    pub(crate) call: Call,
    pub(crate) reply: AnswerReceiver,
    /// How often the server has ended before a byte of the call could be sent.
    pub(crate) put_back: u32,
    /// The headers of its arguments.
    pub(crate) headers: Box<[(String, String)]>,
    /// How the server speaks that has answered it.
    pub(crate) answered_by: Option<Era>,
    /// The marks of its result.
    pub(crate) marks: ResultMarks,
    /// When it was last given to a connection.
    pub(crate) sent_at: Option<Instant>,
    /// When it ends at the latest, from its first sending on.
    pub(crate) ends_at: Option<Instant>,
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
        })
    }

    pub(crate) fn answer(self: Box<Self>, answer: Result<RawJson, CallError>) {
        self.reply.give(Answered {
            call: self.call,
            answer,
            by: self.answered_by,
            marks: self.marks,
            sent_at: self.sent_at,
        });
    }
}

impl ServerHandle {
    pub(crate) fn identifier(&self) -> &ServerIdentifier {
        &self.about.identifier
    }

    /// What is known of the server now.
    pub(crate) fn status(&self) -> Status {
        let mut status = self.status.borrow().clone();
        if status.tools.is_none() {
            status.tools = self.about.cached_list.get();
            status.from_cache = status.tools.is_some();
        }
        status
    }

    /// Returns why the last snapshot of the server is not in the cache, if it is not.
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

    /// Returns the number that tells this server from every other one of this process.
    pub(crate) fn number(&self) -> u64 {
        self.about.number
    }

    /// Returns how the server is signed in to.
    pub(crate) fn oauth(&self) -> &ServerOAuth {
        &self.about.oauth
    }

    /// Looks at what is known of the server, without copying it. No other status of the server may be read meanwhile.
    pub(crate) fn inspect<T>(&self, look: impl FnOnce(&Status) -> T) -> T {
        look(&self.status.borrow())
    }

    /// What is known of the server, to be followed. It does not keep the server.
    pub(crate) fn updates(&self) -> watch::Receiver<Status> {
        self.status.clone()
    }

    /// Whether nobody has said before that they follow the server's list of tools.
    pub(crate) fn is_first_to_follow(&self) -> bool {
        !self.about.is_followed.swap(true, Ordering::Relaxed)
    }

    /// Asks the server to be up with a current list, for a client. The request is made now; the future only waits,
    /// and dropping it does not stop the start.
    pub(crate) fn connect(
        &self,
        urgency: Urgency,
        client: Arc<dyn ClientHandle>,
    ) -> impl Future<Output = Result<Arc<ToolList>, Arc<ConnectError>>> + use<> {
        let (reply, answer) = oneshot::channel();
        // Without a task the reply is dropped, and the answer is the one below.
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

    /// Makes a call, starting the server for it if need be. What the server asks in place of an answer is asked
    /// of the client, where the client does not take such questions as answers. Dropping the future cancels the
    /// call.
    pub(crate) async fn call(&self, call: Call) -> Result<RawJson, CallError> {
        self.send(call).await?.result(self).await
    }

    /// Sends a call once, starting the server for it if need be. Dropping the future cancels the call.
    pub(crate) async fn send(&self, call: Call) -> Result<CallEnd, CallError> {
        Ok(CallEnd::of(self.call_once(call).await?))
    }

    /// A ticket for a call.
    pub(crate) fn ticket(&self) -> CallTicket {
        CallTicket(self.about.tickets.fetch_add(1, Ordering::Relaxed))
    }

    /// Makes a call, starting the server for it if need be. What comes of it is given to `then`, once and as soon
    /// as it is known, by the task of the server: that must not take long.
    pub(crate) fn call_then(
        &self,
        ticket: CallTicket,
        call: Call,
        then: impl FnOnce(CallEnd) + Send + 'static,
    ) {
        let queued = QueuedCall::new(ticket, call, AnswerReceiver::Then(Then::new(then)));
        if let Err(mpsc::error::SendError(Command::Call(queued))) =
            self.commands.send(Command::Call(queued))
        {
            queued.answer(Err(NOT_SENT));
        }
    }

    /// Takes a call back. What comes of it is still told.
    pub(crate) fn cancel(&self, ticket: CallTicket) {
        // Without a task the call is over anyway.
        let _ = self.commands.send(Command::Cancel(ticket));
    }

    /// Sends a call once. Dropping the future cancels it.
    pub(crate) async fn call_once(&self, call: Call) -> Result<Answered, CallError> {
        let (reply, answer) = oneshot::channel();
        let ticket = self.ticket();
        let queued = QueuedCall::new(ticket, call, AnswerReceiver::Waiting(reply));
        let mut cancel = CancelOnDrop {
            server: self,
            ticket: Some(ticket),
        };
        if self.commands.send(Command::Call(queued)).is_err() {
            cancel.ticket = None;
            return Err(NOT_SENT);
        }
        let answer = answer.await;
        cancel.ticket = None;
        answer.map_err(|_| CallError::Internal)
    }

    /// Returns the entry that the configuration has for the server.
    pub(crate) fn entry(&self) -> Arc<Entry> {
        self.about.entry()
    }

    /// Has the server take up an entry by which it is reached as before.
    pub(crate) fn adapt(&self, entry: Entry) {
        let now = Arc::clone(&entry.server);
        let mut known = self
            .about
            .entry
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *known, Arc::new(entry));
        let before = Arc::clone(&before.server);
        drop(known);
        self.about.cached_list.renew(&now);
        let adaption = Adaption::new(before, now);
        let _ = self.commands.send(Command::Adapt(adaption));
    }

    /// Returns the status of a server that takes this one's place, before it has been started: it is expected to have
    /// the same tools, as far as its entry lets them through.
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

    /// Has the server's tools compared with the lock file again.
    pub(crate) fn recheck(&self) {
        self.about.cached_list.renew(&self.about.entry().server);
        let _ = self.commands.send(Command::Recheck);
    }

    /// Has the server tell another one, which takes its place, what must hold for it too. If its tools are known from
    /// an earlier run only, the heir's are read from there too.
    pub(crate) fn hand_over_to(&self, heir: &Self) {
        if self.status().from_cache {
            // The only read of the cache on the event loop: a reload replaces all servers in one step and cannot wait.
            heir.about.cached_list.load(&heir.entry().server);
        }
        let heir = heir.commands.clone();
        let _ = self.commands.send(Command::HandOver(heir));
    }

    /// Returns since when opens wait for the server, beginning now if none does; nothing if they have waited long enough.
    pub(crate) fn awaited_since(&self, now: Instant) -> Option<Instant> {
        let awaited = self.about.awaited.lock();
        awaited.unwrap_or_else(PoisonError::into_inner).since(now)
    }

    /// Records whether an open found the server up, or gave it a reason to wait for it again.
    pub(crate) fn set_awaited(&self, awaited: Awaited) {
        *self
            .about
            .awaited
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = awaited;
    }
}

/// Why a call fails for which there is no task any more.
pub(crate) const NOT_SENT: CallError = CallError::ShuttingDown {
    outcome: Outcome::NotSent,
};

/// Keeps a server from being idle while a call of it is between two of its requests.
pub(crate) struct Followed<'a> {
    pub(crate) commands: &'a mpsc::UnboundedSender<Command>,
}

impl<'a> Followed<'a> {
    pub(crate) fn begin(server: &'a ServerHandle) -> Self {
        let commands = &server.commands;
        let _ = commands.send(Command::Follow(Following::Began));
        Self { commands }
    }
}

impl Drop for Followed<'_> {
    fn drop(&mut self) {
        let _ = self.commands.send(Command::Follow(Following::Ended));
    }
}

/// Tells the task that a caller has stopped waiting.
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
