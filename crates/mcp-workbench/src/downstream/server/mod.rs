//! One server: the handle that everybody holds, and the task that owns everything else.
//!
//! No lock and no shared table is needed here: the pending calls, the ids, the deadlines and the
//! process belong to the one task, so a call can be completed by an answer, a timeout, a cancel, an
//! exit or a shutdown, and exactly one of them finds it there.

mod adapt;
mod asks;
mod attribution;
mod calls;
mod conversation;
mod dialect;
mod health;
mod held;
mod lasting;
mod limiter;
mod local;
mod pending;
mod probe;
mod progress;
mod questions;
mod refresh;
mod replaced;
mod reports;
mod rounds;
mod session;
mod start;
mod subscription;
mod supervisor;
mod taken_back;
mod tasks;
#[cfg(test)]
mod test_client;
mod unreadable;
mod users;
mod waiting;

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use tokio::{
    sync::{mpsc, oneshot, watch},
    time::Instant,
};

use super::{
    error::{CallError, ConnectError},
    listing::ToolList,
};
use lasting::Lasting;

use crate::{
    call::{Call, ClientHandle, Outcome},
    era::Era,
    ident::ServerIdentifier,
    seal::Sealer,
    wire::RawJson,
};

use adapt::Adaption;
pub(super) use adapt::Entry;
pub(super) use supervisor::{Supervisor, SupervisorContext};
pub(super) use tasks::open_task;

/// The way to one server. Cheap to clone.
#[derive(Clone)]
pub struct ServerHandle {
    commands: mpsc::UnboundedSender<Command>,
    status: watch::Receiver<Status>,
    about: Arc<About>,
}

/// What the calls of one server have in common.
struct About {
    tickets: AtomicU64,
    identifier: ServerIdentifier,
    entry: Mutex<Arc<Entry>>,
    /// Whether somebody follows its list of tools.
    is_followed: AtomicBool,
    /// Seals the names of tasks.
    sealer: Arc<Sealer>,
}

impl About {
    /// What the configuration says now.
    fn entry(&self) -> Arc<Entry> {
        let entry = self.entry.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&entry)
    }
}

/// What is known of a server without asking it.
#[derive(Debug, Clone, Default)]
pub struct Status {
    /// Whether it runs.
    pub phase: Phase,
    /// The tools it offered when it was last asked.
    pub tools: Option<Arc<ToolList>>,
    /// Whether it has said that its tools have changed, and was not asked again yet.
    pub stale: bool,
}

/// Where a server stands.
#[derive(Debug, Clone, Default)]
pub enum Phase {
    /// Nobody has needed it yet.
    #[default]
    Untried,
    /// It is being started.
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
enum Command {
    /// Be up, with a list that is current.
    Connect {
        reply: ConnectReply,
        urgency: Urgency,
        client: Arc<dyn ClientHandle>,
    },
    /// Run a tool.
    Call(QueuedCall),
    /// The caller is no longer interested.
    Cancel(CallTicket),
    /// A call is between two of its requests, or not any more.
    Follow(Following),
    /// The entry of the server has changed, but not how it is reached.
    Adapt(Adaption),
    /// Another server takes this one's place: it is to be told what must hold for it too.
    HandOver(mpsc::UnboundedSender<Self>),
    /// What held for the server whose place this one has taken.
    Inherit(Lasting),
}

/// Where a call stands that takes several requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Following {
    /// It will be gone on with: the server is not idle.
    Began,
    /// It is over.
    Ended,
}

/// Who needs a server to be up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Urgency {
    /// Somebody asks for the server itself: a pause after a failed start does not hold for them.
    AskedFor,
    /// A call needs it.
    ForCall,
}

type ConnectReply = oneshot::Sender<Result<Arc<ToolList>, Arc<ConnectError>>>;

/// Tells the calls of one server apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct CallTicket(u64);

/// A call that has not been answered.
struct QueuedCall {
    ticket: CallTicket,
    call: Call,
    reply: oneshot::Sender<Answered>,
    /// How often the server has ended before a byte of the call could be sent.
    put_back: u32,
    /// The headers of its arguments.
    headers: Box<[(String, String)]>,
    /// How the server speaks that has answered it.
    answered_by: Option<Era>,
}

/// A call that is over.
struct Answered {
    /// The call, which may have to be made again.
    call: Call,
    answer: Result<RawJson, CallError>,
    /// How the server speaks that has answered; nothing if none has.
    by: Option<Era>,
}

impl QueuedCall {
    fn answer(self, answer: Result<RawJson, CallError>) {
        // A caller that has gone away has cancelled.
        let _ = self.reply.send(Answered {
            call: self.call,
            answer,
            by: self.answered_by,
        });
    }
}

impl ServerHandle {
    /// What is known of the server now.
    pub fn status(&self) -> Status {
        self.status.borrow().clone()
    }

    /// What is known of the server, to be followed. It does not keep the server.
    pub fn updates(&self) -> watch::Receiver<Status> {
        self.status.clone()
    }

    /// Whether nobody has said before that they follow the server's list of tools.
    pub fn is_first_to_follow(&self) -> bool {
        !self.about.is_followed.swap(true, Ordering::Relaxed)
    }

    /// Asks the server to be up with a current list, for a client. The request is made now; the future only waits,
    /// and dropping it does not stop the start.
    pub fn connect(
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
    pub async fn call(&self, call: Call) -> Result<RawJson, CallError> {
        let began = Instant::now();
        let answered = self.call_once(call).await?;
        match (answered.by, answered.call.context.client.era()) {
            (Some(Era::Modern), _) => Box::pin(rounds::follow(self, answered, began)).await,
            (Some(Era::Legacy), Era::Modern) => rounds::answer_for_modern(answered),
            _ => answered.answer,
        }
    }

    /// Sends a call once. Dropping the future cancels it.
    async fn call_once(&self, call: Call) -> Result<Answered, CallError> {
        let (queued, answer) = self.queued(call);
        let mut cancel = CancelOnDrop {
            commands: &self.commands,
            ticket: Some(queued.ticket),
        };
        if self.commands.send(Command::Call(queued)).is_err() {
            cancel.ticket = None;
            return Err(CallError::ShuttingDown {
                outcome: Outcome::NotSent,
            });
        }
        let answer = answer.await;
        cancel.ticket = None;
        answer.map_err(|_| CallError::Internal)
    }

    fn queued(&self, call: Call) -> (QueuedCall, oneshot::Receiver<Answered>) {
        let ticket = CallTicket(self.about.tickets.fetch_add(1, Ordering::Relaxed));
        let (reply, answer) = oneshot::channel();
        let queued = QueuedCall {
            ticket,
            call,
            reply,
            put_back: 0,
            headers: Box::default(),
            answered_by: None,
        };
        (queued, answer)
    }
}

/// Keeps a server from being idle while a call of it is between two of its requests.
struct Followed<'a> {
    commands: &'a mpsc::UnboundedSender<Command>,
}

impl<'a> Followed<'a> {
    fn begin(server: &'a ServerHandle) -> Self {
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
struct CancelOnDrop<'a> {
    commands: &'a mpsc::UnboundedSender<Command>,
    ticket: Option<CallTicket>,
}

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket {
            let _ = self.commands.send(Command::Cancel(ticket));
        }
    }
}
