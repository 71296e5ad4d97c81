//! The event stream: what the workbench observes, measured once and read by all who want it. The audit log, traces,
//! metrics and the page are readers.
//!
//! While nobody listens, an event costs one relaxed load of a flag, and nothing is measured, copied or allocated. A
//! reader gets every event in order, on the event loop, and must return quickly. It decides for itself how much it
//! keeps: the audit log queues every call, the page keeps the latest ones.

pub(crate) mod conventions;
mod hop;
mod operation;

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicU8, AtomicU64, Ordering},
    },
    time::Duration,
};

use ident::{ClientName, ServerIdentifier, ToolIdentifier};
use tokio::time::Instant;

pub(crate) use hop::{Hop, HopEnd, HopGuard, HopResult, HopStart, Peer, RemoteAddress};
pub(crate) use operation::{
    CallOutcome, Operation, OperationEnd, OperationGuard, OperationReply, OperationStart,
    TracedSpan,
};

use crate::{
    call::{Carrier, ClientHandle, ClientIdentity, Principal, Question},
    config::{Config, Secrets, Transport},
    era::Era,
    sync::lock,
    trace::TraceContext,
};

/// The detail that a reader wants. Each level includes the ones before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EventDetail {
    /// The requests of clients, and everything else but the requests to servers.
    Operations = 0b001,
    /// The requests to servers too.
    Hops = 0b011,
    /// The messages of both too.
    Messages = 0b111,
}

/// A reader of the event stream.
pub(crate) trait Reader: Send + Sync {
    fn detail(&self) -> EventDetail;

    /// Takes an event. Must not block, and must not subscribe or unsubscribe a reader.
    fn take(&self, event: &Event<'_>);
}

/// Gives spans their place in a trace.
pub(crate) trait Tracer: Send + Sync {
    /// Begins a span; its end comes as an event.
    fn begin(&self, span: &TracedSpan<'_>) -> TraceContext;
}

pub(crate) enum Event<'a> {
    /// A request of a client began.
    OperationBegan(&'a Arc<Operation>),
    OperationEnded(&'a OperationEnd<'a>),
    /// A request was sent to a server.
    HopBegan(&'a Arc<Hop>),
    HopEnded(&'a HopEnd<'a>),
    /// A server started, came up, ended or failed.
    Server(ServerChange),
    /// A server asked a client, or got its answer.
    Question(AskedQuestion),
    /// A call waits for a decision, or got one.
    Approval(ApprovalChange),
    /// The definitions of a server differ from the lock file.
    Trust(TrustChange),
    /// A result was over its budget.
    Budget(CutResult),
    /// A session with a client or a server ended.
    Session(EndedSession),
}

/// The phase that a server entered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ServerPhase {
    Starting,
    Up,
    Resting,
    Failed,
}

#[derive(Debug, Clone)]
pub(crate) struct ServerChange {
    pub server: ServerIdentifier,
    pub phase: ServerPhase,
    /// The reason of a failure or an end.
    pub reason: Option<String>,
}

/// The state of a question of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum QuestionState {
    Asked,
    Answered,
    /// The client went away, refused it or cannot be asked.
    Unanswered,
}

#[derive(Debug, Clone)]
pub(crate) struct AskedQuestion {
    pub server: ServerIdentifier,
    pub question: Question,
    pub state: QuestionState,
}

/// The state of a call that needs an approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ApprovalState {
    Waiting,
    Granted,
    Refused,
}

#[derive(Debug, Clone)]
pub(crate) struct ApprovalChange {
    pub tool: ToolIdentifier,
    pub state: ApprovalState,
}

#[derive(Debug, Clone)]
pub(crate) struct TrustChange {
    pub server: ServerIdentifier,
    /// The number of tools that are withheld until somebody approves them.
    pub withheld: usize,
    /// The differences, in words.
    pub notices: Vec<String>,
}

#[derive(Debug, Clone)]
pub(crate) struct CutResult {
    /// The operation whose result was cut.
    pub operation: u64,
    pub tool: ToolIdentifier,
    pub bytes: usize,
    pub kept_bytes: usize,
}

/// The side of the workbench that a session is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    /// A session with a client, in which the workbench is the server.
    Client,
    /// A session with a server, in which the workbench is the client.
    Server,
}

#[derive(Debug, Clone)]
pub(crate) struct EndedSession {
    pub side: Side,
    pub era: Era,
    pub carrier: Carrier,
    /// The protocol revision of the session, if it is known.
    pub revision: Option<String>,
    /// The server of a session on the servers' side.
    pub server: Option<ServerIdentifier>,
    /// The address of a remote server.
    pub address: Option<RemoteAddress>,
    pub duration: Duration,
    /// Set if the session did not end in order.
    pub error: Option<&'static str>,
}

/// A client as events name it.
#[derive(Debug, Clone)]
pub(crate) struct EventClient {
    pub identity: Arc<ClientIdentity>,
    pub principal: Principal,
    /// The name that the authorization server has for the user.
    pub user: Option<Arc<str>>,
    /// The name of the client in the configuration, if it has one.
    pub configured: Option<ClientName>,
    /// The run whose script makes the call.
    pub run: Option<Arc<str>>,
    pub era: Era,
    pub carrier: Carrier,
    /// The protocol revision that it speaks, if it is known.
    pub revision: Option<&'static str>,
    /// The session that the workbench gave it, over HTTP in the legacy era.
    pub session: Option<Arc<str>>,
}

impl EventClient {
    pub(crate) fn of(client: &dyn ClientHandle, configured: Option<ClientName>) -> Self {
        Self {
            identity: client.identity(),
            principal: client.principal(),
            user: client.user(),
            configured,
            run: client.script_run(),
            era: client.own_era(),
            carrier: client.carrier(),
            revision: client.revision(),
            session: client.session(),
        }
    }

    /// Returns a legacy client over a pipe, of which nothing else is known.
    #[cfg(test)]
    pub(crate) fn unknown() -> Self {
        Self {
            identity: Arc::default(),
            principal: Principal::Local,
            user: None,
            configured: None,
            run: None,
            era: Era::Legacy,
            carrier: Carrier::Pipe,
            revision: None,
            session: None,
        }
    }
}

/// The event stream of one workbench.
#[derive(Default)]
pub(crate) struct Events {
    /// The union of the details that the readers want.
    wanted: AtomicU8,
    readers: Mutex<Arc<Vec<Arc<dyn Reader>>>>,
    tracer: OnceLock<Arc<dyn Tracer>>,
    secrets: Mutex<KnownSecrets>,
    /// The number of operations and hops so far.
    begun: AtomicU64,
}

impl Events {
    /// Returns whether anybody listens. This is all that an event costs if nobody does.
    pub(crate) fn is_listened(&self) -> bool {
        self.wanted.load(Ordering::Relaxed) != 0
    }

    /// Returns whether a reader wants the requests to servers.
    pub(crate) fn wants_hops(&self) -> bool {
        self.is_wanted(EventDetail::Hops)
    }

    /// Returns whether a reader wants the messages of calls.
    pub(crate) fn wants_messages(&self) -> bool {
        self.is_wanted(EventDetail::Messages)
    }

    /// Adds a reader, which gets all later events.
    pub(crate) fn subscribe(&self, reader: Arc<dyn Reader>) {
        self.change(|readers| readers.push(reader));
    }

    pub(crate) fn unsubscribe(&self, reader: &Arc<dyn Reader>) {
        self.change(|readers| readers.retain(|it| !Arc::ptr_eq(it, reader)));
    }

    /// Sets the source of trace ids. Only the first one counts.
    pub(crate) fn trace_with(&self, tracer: Arc<dyn Tracer>) {
        let _ = self.tracer.set(tracer);
    }

    /// Adds the owner of a configuration.
    pub(crate) fn add_owner(&self) -> SecretsOwner {
        let mut secrets = lock(&self.secrets);
        secrets.owners += 1;
        SecretsOwner(secrets.owners)
    }

    /// Adopts the secrets of a configuration, which readers must not show, instead of the earlier ones of its owner.
    pub(crate) fn renew(&self, owner: SecretsOwner, config: &Config) {
        lock(&self.secrets).replace(owner, Some(secrets_of(config)));
    }

    /// Removes the secrets of an owner that has gone.
    pub(crate) fn forget(&self, owner: SecretsOwner) {
        lock(&self.secrets).replace(owner, None);
    }

    /// Returns the values that readers must not show.
    pub(crate) fn secrets(&self) -> Arc<Secrets> {
        Arc::clone(&lock(&self.secrets).all)
    }

    /// Gives an event to all readers.
    pub(crate) fn emit(&self, event: &Event<'_>) {
        // The lock is released first: a reader may take a moment.
        let readers = Arc::clone(&lock(&self.readers));
        for reader in readers.iter() {
            reader.take(event);
        }
    }

    /// Gives the event that `make` returns to all readers, if there are any.
    pub(crate) fn emit_with(&self, make: impl FnOnce() -> Event<'static>) {
        if self.is_listened() {
            self.emit(&make());
        }
    }

    /// Begins to measure a session. Whoever listens at its end gets its whole duration.
    pub(crate) fn begin_session(self: &Arc<Self>) -> SessionGuard {
        SessionGuard {
            events: Arc::clone(self),
            began: Instant::now(),
        }
    }

    #[cfg(test)]
    pub(crate) fn reader_count(&self) -> usize {
        lock(&self.readers).len()
    }

    fn is_wanted(&self, detail: EventDetail) -> bool {
        self.wanted.load(Ordering::Relaxed) & detail as u8 == detail as u8
    }

    fn next_id(&self) -> u64 {
        self.begun.fetch_add(1, Ordering::Relaxed) + 1
    }

    fn change(&self, change: impl FnOnce(&mut Vec<Arc<dyn Reader>>)) {
        // The list is copied and replaced, because `emit` goes through the one that it has taken, without the lock.
        let mut known = lock(&self.readers);
        let mut readers = Vec::clone(&known);
        change(&mut readers);
        let wanted = readers.iter().fold(0, |all, it| all | it.detail() as u8);
        self.wanted.store(wanted, Ordering::Relaxed);
        *known = Arc::new(readers);
    }
}

/// The owner of a configuration, whose secrets readers must not show. Clients of one process may have different ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct SecretsOwner(u64);

#[derive(Default)]
struct KnownSecrets {
    /// The number of owners so far.
    owners: u64,
    by_owner: HashMap<SecretsOwner, Secrets>,
    all: Arc<Secrets>,
}

impl KnownSecrets {
    fn replace(&mut self, owner: SecretsOwner, secrets: Option<Secrets>) {
        match secrets {
            Some(secrets) => self.by_owner.insert(owner, secrets),
            None => self.by_owner.remove(&owner),
        };
        let mut all = Secrets::default();
        // From all owners again: two may have the same value, which stays a secret until the last of them is gone.
        for secrets in self.by_owner.values() {
            all.merge(secrets);
        }
        self.all = Arc::new(all);
    }
}

/// A session that is being measured.
pub(crate) struct SessionGuard {
    events: Arc<Events>,
    began: Instant,
}

impl SessionGuard {
    /// Reports the end of the session, if anybody listens. `describe` gets its duration.
    pub(crate) fn end(self, describe: impl FnOnce(Duration) -> EndedSession) {
        let events = self.events;
        events.emit_with(|| Event::Session(describe(self.began.elapsed())));
    }
}

/// Returns the values that the servers of a configuration take from variables.
fn secrets_of(config: &Config) -> Secrets {
    let mut secrets = Secrets::default();
    let servers = config.all_toolboxes().flat_map(|it| it.servers.values());
    for server in servers {
        match &server.transport {
            Transport::Stdio(launch) => secrets.merge(&launch.secrets),
            Transport::Remote(endpoint) => secrets.merge(&endpoint.secrets),
            Transport::Unset(_) => {}
        }
    }
    secrets
}

#[cfg(test)]
mod tests;
