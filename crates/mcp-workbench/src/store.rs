//! Values that all replicas share, in Redis: encrypted, each for one owner, and with an end.
//!
//! One task owns the connection and restores it. Operations take the connection as it is: while the store is away they fail at
//! once with the reason, so that only what needs the store fails.

mod connection;

use std::{sync::Arc, time::Duration};

use redis::{Cmd, FromRedisValue, cmd};
use tokio::{
    sync::{Notify, watch},
    time::{sleep, timeout},
};
use tokio_util::task::TaskTracker;

use self::connection::{QueryError, StoreConnection};
use crate::{
    config::{RequestRate, StoreAddress},
    private_files::random,
    seal::{SealPurpose, Sealer},
    sha256::{Sha256, hexadecimal},
};

/// How long a connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// How long an operation may take.
const OPERATION_TIMEOUT: Duration = Duration::from_secs(1);
/// The pause after a failed connection, doubled up to the maximum.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const MAX_PAUSE: Duration = Duration::from_secs(2);
/// The number of random bytes that name the holder of a lock.
const LOCK_BYTES: usize = 16;

/// Removes a lock, if it is still its holder's.
const UNLOCK: &str =
    "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0";
/// The generic cell rate algorithm: the key holds the moment at which all that was taken is paid for. Times are in
/// microseconds of the store's clock, so that the clocks of replicas do not count. More units than the burst wait until
/// all is paid for.
const TAKE_RATE: &str = "
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
local interval, burst, units = 1000000 / tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local room = interval * math.max(burst - units, 0)
local paid = math.max(tonumber(redis.call('GET', KEYS[1]) or '0'), now)
if paid - now > room then return math.ceil(paid - now - room) end
paid = paid + interval * units
redis.call('SET', KEYS[1], string.format('%.0f', paid), 'PX', math.max(math.ceil((paid - now) / 1000), 1))
return 0";

/// The kind of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StoredKind {
    /// A result of which its client got a part.
    Result,
    /// The credentials of a user for a server, or the client that its users share.
    Credentials,
    /// The permission of a user for a tool, or for a call that is repeated.
    Consent,
    /// An event of a stream that its client may resume.
    Event,
}

impl StoredKind {
    fn name(self) -> &'static str {
        match self {
            Self::Result => "result",
            Self::Credentials => "credentials",
            Self::Consent => "consent",
            Self::Event => "event",
        }
    }
}

/// The place of a value.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StoredAt<'a> {
    pub(crate) kind: StoredKind,
    /// The principal that the value belongs to.
    pub(crate) owner: &'a str,
    pub(crate) name: &'a str,
}

impl StoredAt<'_> {
    /// Returns the text that the value is bound to. The parts cannot run into each other.
    fn place(&self) -> String {
        let Self { kind, owner, name } = self;
        format!("{}\0{owner}\0{name}", kind.name())
    }

    /// Returns the key in the store, which reveals neither owner nor name.
    fn key(&self) -> String {
        key(self.kind.name(), &self.place())
    }
}

/// The reason why the store cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the store cannot be reached: {0}")]
pub(crate) struct StoreError(Arc<str>);

/// The state of the connection.
#[derive(Clone)]
enum StoreState {
    /// The first attempt is under way, or the first one after a connection was lost.
    Connecting,
    Up(Connected),
    Down(Arc<str>),
}

#[derive(Clone)]
struct Connected {
    connection: StoreConnection,
    /// Tells it from those before.
    number: u64,
}

/// The store. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Store {
    state: watch::Receiver<StoreState>,
    /// Wakes the task when an operation has found the connection lost.
    lost: Arc<Notify>,
    sealer: Sealer,
}

impl Store {
    /// Starts to connect to a store. The task ends with the last handle.
    pub(crate) fn connect(address: &StoreAddress, sealer: Sealer) -> Self {
        let (sender, state) = watch::channel(StoreState::Connecting);
        let lost = Arc::new(Notify::new());
        let task = keep_connected(address.clone(), sender, Arc::clone(&lost));
        TaskTracker::new().spawn(task);
        Self {
            state,
            lost,
            sealer,
        }
    }

    /// Returns a value; `None` if there is none, or if it was not sealed for this place.
    pub(crate) async fn get(&self, at: StoredAt<'_>) -> Result<Option<Vec<u8>>, StoreError> {
        let sealed: Option<Vec<u8>> = self.run(cmd("GET").arg(at.key())).await?;
        let place = at.place();
        Ok(sealed.and_then(|it| self.sealer.decrypt(SealPurpose::Stored, &place, &it)))
    }

    /// Stores a value for as long as `ttl`.
    pub(crate) async fn set(
        &self,
        at: StoredAt<'_>,
        value: &[u8],
        ttl: Duration,
    ) -> Result<(), StoreError> {
        let sealed = self.sealer.encrypt(SealPurpose::Stored, &at.place(), value);
        let mut command = cmd("SET");
        command.arg(at.key()).arg(sealed).arg("PX").arg(millis(ttl));
        self.run(&command).await
    }

    /// Removes a value. Returns false if there was none.
    pub(crate) async fn remove(&self, at: StoredAt<'_>) -> Result<bool, StoreError> {
        self.run(cmd("DEL").arg(at.key())).await
    }

    /// Takes a lock that ends by itself after `ttl`; `None` if another replica has it.
    pub(crate) async fn lock(
        &self,
        name: &str,
        ttl: Duration,
    ) -> Result<Option<StoreLock>, StoreError> {
        let lock = StoreLock {
            store: self.clone(),
            key: key("lock", name),
            // Random, so that a replica whose lock has expired cannot release the lock of another.
            holder: hexadecimal(&random::<LOCK_BYTES>()),
        };
        let mut command = cmd("SET");
        command.arg(&lock.key).arg(&lock.holder);
        command.arg("NX").arg("PX").arg(millis(ttl));
        let taken: Option<String> = self.run(&command).await?;
        Ok(taken.map(|_| lock))
    }

    /// Takes requests from a rate that all replicas share under a name. Returns how long to wait if it does not allow them now.
    pub(crate) async fn take_rate(
        &self,
        name: &str,
        rate: RequestRate,
        requests: u64,
    ) -> Result<Option<Duration>, StoreError> {
        let mut command = cmd("EVAL");
        command.arg(TAKE_RATE).arg(1).arg(key("rate", name));
        command.arg(rate.per_second.get());
        command.arg(rate.burst.get()).arg(requests);
        let wait: u64 = self.run(&command).await?;
        Ok((wait > 0).then(|| Duration::from_micros(wait)))
    }

    /// Runs a command. If the connection turns out to be lost, runs it once more on the next one: every command has the
    /// same effect if it runs twice, or takes more than it had to.
    async fn run<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, StoreError> {
        let connected = self.connected().await?;
        match connected.connection.query(command).await {
            Err(QueryError::Lost(_)) => {}
            Err(QueryError::Failed(reason)) => return Err(StoreError(reason)),
            Ok(value) => return Ok(value),
        }
        // Redis may have closed an idle connection, so the first failure often means nothing.
        self.reconnect(connected.number).await;
        let connected = self.connected().await?;
        let number = connected.number;
        connected.connection.query(command).await.map_err(|error| {
            let (QueryError::Lost(reason) | QueryError::Failed(reason)) = error;
            // The next operation then finds a new connection.
            if self.is_current(number) {
                self.lost.notify_one();
            }
            StoreError(reason)
        })
    }

    /// Waits for the connection, at first and after one was lost.
    async fn connected(&self) -> Result<Connected, StoreError> {
        let mut state = self.state.clone();
        let known = state.wait_for(|state| !matches!(state, StoreState::Connecting));
        let known = timeout(CONNECT_TIMEOUT, known).await;
        match known.ok().and_then(Result::ok).as_deref() {
            Some(StoreState::Up(connected)) => Ok(connected.clone()),
            Some(StoreState::Down(reason)) => Err(StoreError(Arc::clone(reason))),
            Some(StoreState::Connecting) | None => Err(StoreError("timed out".into())),
        }
    }

    /// Has the task replace a lost connection, and waits until it begins to.
    async fn reconnect(&self, number: u64) {
        // Another operation may have reported the same loss.
        if self.is_current(number) {
            self.lost.notify_one();
        }
        let mut state = self.state.clone();
        let is_replaced = |state: &StoreState| !matches!(state, StoreState::Up(connected) if connected.number == number);
        // After the time limit the operation is tried once more on the lost connection, and fails with its reason.
        let _ = timeout(CONNECT_TIMEOUT, state.wait_for(is_replaced)).await;
    }

    fn is_current(&self, number: u64) -> bool {
        matches!(&*self.state.borrow(), StoreState::Up(connected) if connected.number == number)
    }
}

/// A lock of this replica. It ends by itself if it is not released.
pub(crate) struct StoreLock {
    store: Store,
    key: String,
    holder: String,
}

impl StoreLock {
    pub(crate) async fn release(self) -> Result<(), StoreError> {
        let mut command = cmd("EVAL");
        command.arg(UNLOCK).arg(1).arg(&self.key).arg(&self.holder);
        self.store.run(&command).await
    }
}

/// Connects, and connects again whenever the connection is lost, until nobody has a handle.
async fn keep_connected(
    address: StoreAddress,
    state: watch::Sender<StoreState>,
    lost: Arc<Notify>,
) {
    let mut pause = FIRST_PAUSE;
    let mut number = 0;
    loop {
        match StoreConnection::open(&address).await {
            Ok(connection) => {
                tracing::info!("connected to the store");
                pause = FIRST_PAUSE;
                number += 1;
                state.send_replace(StoreState::Up(Connected { connection, number }));
                tokio::select! {
                    () = lost.notified() => {}
                    () = state.closed() => return,
                }
                // Operations wait for the next connection, instead of failing for the moment between.
                state.send_replace(StoreState::Connecting);
            }
            Err(reason) => {
                tracing::warn!("failed to connect to the store: {reason}");
                state.send_replace(StoreState::Down(reason));
                tokio::select! {
                    () = sleep(pause) => {}
                    () = state.closed() => return,
                }
                pause = (pause * 2).min(MAX_PAUSE);
            }
        }
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn key(kind: &str, name: &str) -> String {
    // A digest, because names contain principals and ids that work as secrets.
    let digest = hexadecimal(&Sha256::digest(name));
    format!("mcp-workbench:{kind}:{digest}")
}

#[cfg(unix)]
#[cfg(test)]
mod tests;
