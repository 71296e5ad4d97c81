//! Signs that a server which still runs is of no use any more.

use std::time::Duration;

use tokio::time::Instant;

use crate::{downstream::error::GiveUp, wire::MAX_FRAME_BYTES};

/// After so many timeouts without a word from the server it is asked for a sign of life.
const TIMEOUTS: usize = 3;
/// How long it has for that.
const PING_PATIENCE: Duration = Duration::from_secs(5);
/// How long a message that is too large may go on in any case: until its caller is known, and after that.
const OWNER_PATIENCE: Duration = Duration::from_secs(2);
const END_PATIENCE: Duration = Duration::from_secs(10);
/// It may go on for longer where the machine is slow, or we are: until it has so many bytes, there was nothing more of
/// it for so long, or so much time has passed in all.
const PATIENCE_BYTES: u64 = 8 * MAX_FRAME_BYTES as u64;
const PAUSE: Duration = Duration::from_secs(2);
const LONGEST_PATIENCE: Duration = Duration::from_mins(1);

/// What is wrong with a server, if anything is.
#[derive(Debug, Default)]
pub(crate) struct Health {
    timeouts: usize,
    ping_until: Option<Instant>,
    oversized: Option<Oversized>,
}

/// A message that is too large and not over yet.
#[derive(Debug)]
struct Oversized {
    has_owner: bool,
    since: Instant,
    /// When to look at it, and how much of it there was at the last look.
    look_at: Instant,
    bytes: u64,
}

impl Oversized {
    /// How long it may go on before it is looked at.
    fn patience(&self) -> Duration {
        if self.has_owner {
            END_PATIENCE
        } else {
            OWNER_PATIENCE
        }
    }

    /// Whether it is not to be waited for any longer, now that there are so many bytes of it.
    fn is_endless(&mut self, bytes: u64, now: Instant) -> bool {
        if now < self.look_at {
            return false;
        }
        let goes_on = bytes > self.bytes;
        self.bytes = bytes;
        self.look_at = now + PAUSE;
        !goes_on || bytes >= PATIENCE_BYTES || now >= self.since + LONGEST_PATIENCE
    }
}

impl Health {
    /// The server has said something.
    pub(crate) fn heard(&mut self) {
        self.timeouts = 0;
        self.ping_until = None;
    }

    /// Calls have timed out. True if the server is to be asked for a sign of life.
    pub(crate) fn timed_out(&mut self, calls: usize, now: Instant) -> bool {
        self.timeouts += calls;
        let ask = self.timeouts >= TIMEOUTS && self.ping_until.is_none();
        if ask {
            self.ping_until = Some(now + PING_PATIENCE);
        }
        ask
    }

    /// A message that is too large has begun, with so many bytes.
    pub(crate) fn oversized(&mut self, has_owner: bool, bytes: u64, now: Instant) {
        let mut oversized = Oversized {
            has_owner,
            since: now,
            look_at: now,
            bytes,
        };
        oversized.look_at += oversized.patience();
        self.oversized = Some(oversized);
    }

    /// Nobody has listened to the server until now.
    pub(crate) fn excuse(&mut self, now: Instant) {
        self.heard();
        if let Some(oversized) = &mut self.oversized {
            oversized.since = now;
            oversized.look_at = now + oversized.patience();
        }
    }

    /// That message is over. True if nobody has been told of it yet.
    pub(crate) fn oversized_ended(&mut self) -> bool {
        self.oversized
            .take()
            .is_some_and(|oversized| !oversized.has_owner)
    }

    /// When to look again.
    pub(crate) fn due(&self) -> Option<Instant> {
        let oversized = self.oversized.as_ref().map(|oversized| oversized.look_at);
        self.ping_until.into_iter().chain(oversized).min()
    }

    /// Why the server is to be given up, if it is, when there are so many bytes of a message that is too large.
    pub(crate) fn verdict(&mut self, oversized_bytes: u64, now: Instant) -> Option<GiveUp> {
        if self.ping_until.is_some_and(|until| until <= now) {
            return Some(GiveUp::Unresponsive);
        }
        let oversized = self.oversized.as_mut();
        let endless = oversized.is_some_and(|it| it.is_endless(oversized_bytes, now));
        endless.then_some(GiveUp::EndlessMessage)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1024 * 1024;

    /// How many bytes of a message there are after so many seconds.
    type Written = fn(u64) -> u64;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// When a message is given up of which there are so many bytes after each second.
    fn given_up_after(has_owner: bool, bytes: Written) -> Option<u64> {
        let start = Instant::now();
        let mut health = Health::default();
        health.oversized(has_owner, bytes(0), start);
        (0..100).find(|second| {
            let now = start + seconds(*second);
            let verdict = health.verdict(bytes(*second), now);
            verdict == Some(GiveUp::EndlessMessage)
        })
    }

    #[test]
    fn a_message_without_end_has_an_end_by_its_bytes_by_a_pause_and_by_time() {
        let rows: [(&str, [u64; 2], Written); 4] = [
            ("fast", [2, 10], |second| (17 + 500 * second) * MIB),
            ("slow", [12, 12], |second| (17 + 10 * second) * MIB),
            ("stops after 5 s", [8, 12], |second| {
                17 * MIB + second.min(5)
            }),
            ("trickles", [60, 60], |second| 17 * MIB + second),
        ];
        for (what, expected, bytes) in rows {
            let found = [false, true].map(|has_owner| given_up_after(has_owner, bytes));
            assert_eq!(found, expected.map(Some), "{what}");
        }
    }

    #[test]
    fn a_server_is_not_blamed_for_the_time_in_which_nobody_listened() {
        let start = Instant::now();
        let mut health = Health::default();
        health.oversized(false, 17 * MIB, start);
        let now = start + LONGEST_PATIENCE * 2;
        health.excuse(now);
        assert_eq!(health.due(), Some(now + OWNER_PATIENCE));
        assert_eq!(health.verdict(17 * MIB, now), None);
        let now = now + OWNER_PATIENCE;
        assert_eq!(health.verdict(18 * MIB, now), None);
        let now = now + PAUSE;
        assert_eq!(health.verdict(18 * MIB, now), Some(GiveUp::EndlessMessage));
    }
}
