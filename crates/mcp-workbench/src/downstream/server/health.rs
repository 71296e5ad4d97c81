//! Signs that a server which still runs is of no use any more.

use std::time::Duration;

use tokio::time::Instant;

use crate::downstream::error::GiveUp;

/// After so many timeouts without a word from the server it is asked for a sign of life.
const TIMEOUTS: usize = 3;
/// How long it has for that.
const PING_PATIENCE: Duration = Duration::from_secs(5);
/// How long a message that is too large may go on: until its caller is known, and after that.
const OWNER_PATIENCE: Duration = Duration::from_secs(2);
const END_PATIENCE: Duration = Duration::from_secs(10);

/// What is wrong with a server, if anything is.
#[derive(Debug, Default)]
pub(super) struct Health {
    timeouts: usize,
    ping_until: Option<Instant>,
    oversized: Option<Oversized>,
}

/// A message that is too large and not over yet.
#[derive(Debug)]
struct Oversized {
    has_owner: bool,
    until: Instant,
}

impl Health {
    /// The server has said something.
    pub(super) fn heard(&mut self) {
        self.timeouts = 0;
        self.ping_until = None;
    }

    /// Calls have timed out. True if the server is to be asked for a sign of life.
    pub(super) fn timed_out(&mut self, calls: usize, now: Instant) -> bool {
        self.timeouts += calls;
        let ask = self.timeouts >= TIMEOUTS && self.ping_until.is_none();
        if ask {
            self.ping_until = Some(now + PING_PATIENCE);
        }
        ask
    }

    /// A message that is too large has begun.
    pub(super) fn oversized(&mut self, has_owner: bool, now: Instant) {
        let patience = if has_owner {
            END_PATIENCE
        } else {
            OWNER_PATIENCE
        };
        self.oversized = Some(Oversized {
            has_owner,
            until: now + patience,
        });
    }

    /// That message is over. True if nobody has been told of it yet.
    pub(super) fn oversized_ended(&mut self) -> bool {
        self.oversized
            .take()
            .is_some_and(|oversized| !oversized.has_owner)
    }

    /// When to look again.
    pub(super) fn due(&self) -> Option<Instant> {
        let oversized = self.oversized.as_ref().map(|oversized| oversized.until);
        self.ping_until.into_iter().chain(oversized).min()
    }

    /// Why the server is to be given up, if it is.
    pub(super) fn verdict(&self, now: Instant) -> Option<GiveUp> {
        if self.ping_until.is_some_and(|until| until <= now) {
            return Some(GiveUp::Unresponsive);
        }
        let endless = self
            .oversized
            .as_ref()
            .is_some_and(|oversized| oversized.until <= now);
        endless.then_some(GiveUp::EndlessMessage)
    }
}
