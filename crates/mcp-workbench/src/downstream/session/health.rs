//! Signs that a server which still runs is of no use any more.

use std::time::Duration;

use tokio::time::Instant;

use crate::{downstream::error::GiveUp, wire::MAX_FRAME_BYTES};

/// After so many timeouts without a word from the server it is asked for a sign of life.
const TIMEOUTS: usize = 3;
/// How long it has for that.
const PING_PATIENCE: Duration = Duration::from_secs(5);
/// A message that is too large is endless once it has so many bytes, nothing more of it came for so long, or it has taken
/// so much time in all. A machine may be slow, so bytes count first.
const ENDLESS_BYTES: u64 = 8 * MAX_FRAME_BYTES as u64;
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
const LONGEST_TIME: Duration = Duration::from_mins(1);
/// How often such a message is measured.
const MEASURE_EVERY: Duration = Duration::from_millis(100);

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
    /// Set if its call is known, and has failed.
    has_owner: bool,
    since: Instant,
    /// Its length when it was measured last, and when it had grown last.
    bytes: u64,
    grew_at: Instant,
    measure_at: Instant,
}

impl Oversized {
    /// Measures the message; returns whether it is endless.
    fn is_endless(&mut self, bytes: u64, now: Instant) -> bool {
        if bytes > self.bytes {
            self.bytes = bytes;
            self.grew_at = now;
        }
        self.measure_at = now + MEASURE_EVERY;
        bytes >= ENDLESS_BYTES
            || now >= self.grew_at + LONGEST_PAUSE
            || now >= self.since + LONGEST_TIME
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
        self.oversized = Some(Oversized {
            has_owner,
            since: now,
            bytes,
            grew_at: now,
            measure_at: now + MEASURE_EVERY,
        });
    }

    /// Nobody has listened to the server until now.
    pub(crate) fn excuse(&mut self, now: Instant) {
        self.heard();
        if let Some(oversized) = &mut self.oversized {
            oversized.since = now;
            oversized.grew_at = now;
        }
    }

    /// That message is over. True if nobody has been told of it yet.
    pub(crate) fn oversized_ended(&mut self) -> bool {
        self.oversized
            .take()
            .is_some_and(|oversized| !oversized.has_owner)
    }

    pub(crate) fn due(&self) -> Option<Instant> {
        let oversized = self.oversized.as_ref().map(|it| it.measure_at);
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
    fn given_up_after(bytes: Written) -> Option<u64> {
        let start = Instant::now();
        let mut health = Health::default();
        health.oversized(true, bytes(0), start);
        (0..100).find(|second| {
            let now = start + seconds(*second);
            let verdict = health.verdict(bytes(*second), now);
            verdict == Some(GiveUp::EndlessMessage)
        })
    }

    #[test]
    fn a_message_without_end_has_an_end_by_its_bytes_by_a_pause_and_by_time() {
        let rows: [(&str, u64, Written); 4] = [
            ("fast", 1, |second| (17 + 500 * second) * MIB),
            ("slow", 12, |second| (17 + 10 * second) * MIB),
            ("stops after 5 s", 10, |second| 17 * MIB + second.min(5)),
            ("trickles", 60, |second| 17 * MIB + second),
        ];
        for (what, expected, bytes) in rows {
            assert_eq!(given_up_after(bytes), Some(expected), "{what}");
        }
    }

    #[test]
    fn a_server_is_not_blamed_for_the_time_in_which_nobody_listened() {
        let start = Instant::now();
        let mut health = Health::default();
        health.oversized(false, 17 * MIB, start);
        let now = start + LONGEST_TIME * 2;
        health.excuse(now);
        assert_eq!(health.verdict(17 * MIB, now), None);
        let now = now + LONGEST_PAUSE - MEASURE_EVERY;
        assert_eq!(health.verdict(18 * MIB, now), None);
        assert_eq!(health.due(), Some(now + MEASURE_EVERY));
        let now = now + LONGEST_PAUSE;
        assert_eq!(health.verdict(18 * MIB, now), Some(GiveUp::EndlessMessage));
    }
}
