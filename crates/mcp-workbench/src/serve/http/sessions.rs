//! The sessions of all clients. `initialize` creates a session for one principal. It ends by request of the client,
//! after a long idle time, or at shutdown. A session that another replica has begun is continued from its id.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use rawjson::RawJson;
use tokio::time::Instant;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    limits::{MAX_SESSIONS, MIN_IDLE},
    quotas::InFlight,
    refusal::Refusal,
    sealed_session::SealedSession,
    streams::{EventStream, Streams},
    unread::UnreadBudget,
};
use crate::{
    call::Principal,
    serve::{ServeContext, changes, connection::Connection, output::ClientOutput},
    sha256::hexadecimal,
    sync::lock,
};

pub(super) struct Session {
    /// The id that the client sends.
    pub(super) id: String,
    principal: Principal,
    /// The connection state of the client.
    pub(super) connection: Arc<Connection>,
    /// The output to the client.
    pub(super) streams: Arc<Streams>,
    /// When it was last used.
    used: Mutex<Instant>,
    ended: CancellationToken,
}

impl Session {
    /// Creates the session that a client begins with these parameters of `initialize`. It is not in the table yet.
    pub(super) fn new(
        context: ServeContext,
        principal: Principal,
        budget: &Arc<UnreadBudget>,
        params: Option<&RawJson>,
    ) -> Arc<Self> {
        let name = random_id();
        let replica = context.parked.replica();
        let sealed = params.filter(|_| replica.has_others()).and_then(|params| {
            SealedSession::new(name.clone(), params).id(replica.sealer(), principal)
        });
        let id = sealed.unwrap_or_else(|| name.clone());
        Self::named(context, principal, budget, SessionNames { id, name })
    }

    /// Continues the session that an id contains. Returns `None` if its parameters are invalid.
    pub(super) fn continued(
        context: ServeContext,
        principal: Principal,
        budget: &Arc<UnreadBudget>,
        id: &str,
        SealedSession { name, initialize }: SealedSession,
    ) -> Option<Arc<Self>> {
        let names = SessionNames {
            id: id.to_owned(),
            name,
        };
        let session = Self::named(context, principal, budget, names);
        session
            .connection
            .agree_again(&initialize)
            .then_some(session)
    }

    fn named(
        context: ServeContext,
        principal: Principal,
        budget: &Arc<UnreadBudget>,
        SessionNames { id, name }: SessionNames,
    ) -> Arc<Self> {
        let streams = Streams::new(budget);
        let output = ClientOutput::Stream(streams.standalone());
        let connection = Connection::new(context, output, principal);
        connection.name_session(&name);
        Arc::new(Self {
            id,
            principal,
            connection,
            streams,
            used: Mutex::new(Instant::now()),
            ended: CancellationToken::new(),
        })
    }

    /// Returns a stream for a new request, or a refusal if too many run or too much is unread.
    pub(super) fn begin_stream(&self, in_flight: Option<InFlight>) -> Result<EventStream, Refusal> {
        let busy = self.streams.running() >= super::limits::MAX_RUNNING;
        if busy || self.streams.is_full() {
            return Err(Refusal::TooBusy);
        }
        Ok(self.streams.begin(in_flight))
    }

    fn touch(&self) {
        *self.used() = Instant::now();
    }

    /// Returns the time since its last use.
    fn idle(&self, now: Instant) -> Duration {
        if self.streams.in_use() {
            // The time counts from when it is not in use any more.
            *self.used() = now;
            return Duration::ZERO;
        }
        now.saturating_duration_since(*self.used())
    }

    fn used(&self) -> MutexGuard<'_, Instant> {
        lock(&self.used)
    }

    /// Notifies the client of changes, until the session ends.
    async fn tell_changes(self: Arc<Self>) {
        let changes = changes::tell_changes(&self.connection);
        self.ended.run_until_cancelled(changes).await;
    }

    /// Stops messages that belong to no request, because the workbench shuts down.
    pub(super) fn stop_announcing(&self) {
        self.ended.cancel();
        self.connection.questions().give_up();
        self.streams.end_standalone();
    }

    /// Cancels the requests and ends the streams.
    fn end(&self) {
        self.ended.cancel();
        self.connection.abandon();
        self.streams.close();
    }
}

struct SessionNames {
    /// The id that the client sends.
    id: String,
    /// The name in events, which is short and the same in all processes.
    name: String,
}

/// The sessions by their ids, which clients cannot choose.
type SessionTable = HashMap<String, Arc<Session>, foldhash::fast::RandomState>;

pub(super) struct Sessions {
    table: Mutex<SessionTable>,
    /// The ids of sessions that clients have ended here, the oldest first. They are not continued.
    ended: Mutex<VecDeque<String>>,
    /// For how long a session may be idle.
    idle_limit: Duration,
    /// The tasks of sessions beside their requests.
    tasks: TaskTracker,
}

impl Sessions {
    pub(super) fn new(idle_limit: Duration) -> Self {
        Self {
            table: Mutex::default(),
            ended: Mutex::default(),
            idle_limit,
            tasks: TaskTracker::new(),
        }
    }

    /// Adds a session. If there are too many, the one with the longest idle time is removed.
    pub(super) fn add(&self, session: &Arc<Session>) -> Result<(), Refusal> {
        let mut table = self.table();
        if table.len() >= MAX_SESSIONS {
            let now = Instant::now();
            let idlest = table
                .values()
                .max_by_key(|session| session.idle(now))
                // A flood of new sessions must not end those that are in use.
                .filter(|session| session.idle(now) >= MIN_IDLE);
            let id = idlest.ok_or(Refusal::TooManySessions)?.id.clone();
            if let Some(ended) = table.remove(&id) {
                ended.end();
            }
        }
        table.insert(session.id.clone(), Arc::clone(session));
        self.tasks.spawn(Arc::clone(session).tell_changes());
        Ok(())
    }

    /// Returns the session with this id of a principal. The session of another principal is reported as unknown.
    pub(super) fn find(&self, id: &str, principal: Principal) -> Result<Arc<Session>, Refusal> {
        let mut table = self.table();
        let session = table.get(id).ok_or(Refusal::UnknownSession)?;
        // The same answer as for an unknown id, so that ids cannot be probed with another token.
        if session.principal != principal {
            return Err(Refusal::UnknownSession);
        }
        if session.idle(Instant::now()) >= self.idle_limit {
            session.end();
            table.remove(id);
            return Err(Refusal::UnknownSession);
        }
        session.touch();
        Ok(Arc::clone(session))
    }

    pub(super) fn end(&self, session: &Session) {
        self.table().remove(&session.id);
        session.end();
        let mut ended = lock(&self.ended);
        ended.push_back(session.id.clone());
        if ended.len() > MAX_SESSIONS {
            ended.pop_front();
        }
    }

    /// Returns whether a client has ended this session here.
    pub(super) fn has_ended(&self, id: &str) -> bool {
        // Only ids without a session here are looked up, so a scan is rare.
        lock(&self.ended).iter().any(|ended| ended == id)
    }

    /// Ends the sessions that were idle for too long, and removes expired streams.
    pub(super) fn sweep(&self) {
        let now = Instant::now();
        self.table().retain(|_, session| {
            session.streams.forget_old(now);
            let expired = session.idle(now) >= self.idle_limit;
            if expired {
                session.end();
            }
            !expired
        });
    }

    /// Returns the interval at which [`Self::sweep`] should run.
    pub(super) fn sweep_period(&self) -> Duration {
        (self.idle_limit / 4).clamp(Duration::from_millis(100), Duration::from_mins(1))
    }

    /// Returns whether a principal has a session.
    pub(super) fn has(&self, principal: Principal) -> bool {
        self.table().values().any(|it| it.principal == principal)
    }

    pub(super) fn all(&self) -> Vec<Arc<Session>> {
        self.table().values().cloned().collect()
    }

    fn table(&self) -> MutexGuard<'_, SessionTable> {
        lock(&self.table)
    }
}

/// Returns an unguessable id: 256 bits, as hexadecimal digits.
pub(crate) fn random_id() -> String {
    let mut bytes = [0_u8; 32];
    getrandom::fill(&mut bytes).expect("the system has random numbers");
    hexadecimal(&bytes)
}
