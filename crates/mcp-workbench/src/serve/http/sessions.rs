//! The sessions of all clients. `initialize` creates a session for one principal. It ends by request of the client,
//! after a long idle time, or at shutdown.

use std::{
    collections::HashMap,
    fmt::Write,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use tokio::time::Instant;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    limits::{MAX_SESSIONS, MIN_IDLE},
    refusal::Refusal,
    streams::{EventStream, Streams},
    unread::UnreadBudget,
};
use crate::{
    call::Principal,
    serve::{ServeContext, changes, connection::Connection, output::ClientOutput},
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
    /// Creates a session, which is not in the table yet.
    pub(super) fn new(
        context: ServeContext,
        principal: Principal,
        budget: &Arc<UnreadBudget>,
    ) -> Arc<Self> {
        let streams = Streams::new(budget);
        let output = ClientOutput::Stream(streams.standalone());
        Arc::new(Self {
            id: random_id(),
            principal,
            connection: Connection::new(context, output, principal),
            streams,
            used: Mutex::new(Instant::now()),
            ended: CancellationToken::new(),
        })
    }

    /// Returns a stream for a new request, or a refusal if too many run or too much is unread.
    pub(super) fn begin_stream(&self) -> Result<EventStream, Refusal> {
        let busy = self.streams.running() >= super::limits::MAX_RUNNING;
        if busy || self.streams.is_full() {
            return Err(Refusal::TooBusy);
        }
        Ok(self.streams.begin())
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

pub(super) struct Sessions {
    table: Mutex<HashMap<String, Arc<Session>>>,
    /// For how long a session may be idle.
    idle_limit: Duration,
    /// The tasks of sessions beside their requests.
    tasks: TaskTracker,
}

impl Sessions {
    pub(super) fn new(idle_limit: Duration) -> Self {
        Self {
            table: Mutex::default(),
            idle_limit,
            tasks: TaskTracker::new(),
        }
    }

    /// Adds a session. If there are too many, the one with the longest idle time is removed.
    pub(super) fn add(&self, session: &Arc<Session>) -> Result<(), Refusal> {
        let mut table = self.table();
        if table.len() >= MAX_SESSIONS {
            let now = Instant::now();
            let idlest = table.values().max_by_key(|session| session.idle(now));
            let idlest = idlest.filter(|session| session.idle(now) >= MIN_IDLE);
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

    pub(super) fn all(&self) -> Vec<Arc<Session>> {
        self.table().values().cloned().collect()
    }

    fn table(&self) -> MutexGuard<'_, HashMap<String, Arc<Session>>> {
        lock(&self.table)
    }
}

/// Returns an unguessable id: 256 bits, as hexadecimal digits.
pub(crate) fn random_id() -> String {
    let mut bytes = [0_u8; 32];
    getrandom::fill(&mut bytes).expect("the system has random numbers");
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
