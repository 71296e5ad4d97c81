//! Detects a running server that has become unusable.

use std::time::Duration;

use tokio::time::Instant;

use crate::{downstream::error::StopReason, wire::MAX_FRAME_BYTES};

/// The number of timeouts without any message of the server after which it gets a ping.
const TIMEOUTS_BEFORE_PING: usize = 3;
/// The timeout of that ping.
const PING_TIMEOUT: Duration = Duration::from_secs(5);
/// An oversized message counts as endless above this size, after a pause of this length, or after this time in total.
/// The size counts first, because a machine may be slow.
const MAX_OVERSIZED_BYTES: u64 = 8 * MAX_FRAME_BYTES as u64;
const MAX_PAUSE: Duration = Duration::from_secs(5);
const MAX_TIME: Duration = Duration::from_mins(1);
/// The interval between two measurements of such a message.
const MEASURE_INTERVAL: Duration = Duration::from_millis(100);

/// The health of a server.
#[derive(Debug, Default)]
pub(crate) struct Health {
    timeouts: usize,
    ping_until: Option<Instant>,
    oversized: Option<OversizedMessage>,
}

/// An oversized message that has not ended.
#[derive(Debug)]
struct OversizedMessage {
    /// Set if its call was identified and failed.
    has_owner: bool,
    since: Instant,
    /// Its length at the last measurement, and the time when it last grew.
    bytes: u64,
    grew_at: Instant,
    measure_at: Instant,
}

impl OversizedMessage {
    /// Measures the message; returns true if it is endless.
    fn is_endless(&mut self, bytes: u64, now: Instant) -> bool {
        if bytes > self.bytes {
            self.bytes = bytes;
            self.grew_at = now;
        }
        self.measure_at = now + MEASURE_INTERVAL;
        bytes >= MAX_OVERSIZED_BYTES
            || now >= self.grew_at + MAX_PAUSE
            || now >= self.since + MAX_TIME
    }
}

impl Health {
    /// Records a message of the server.
    pub(crate) fn heard(&mut self) {
        self.timeouts = 0;
        self.ping_until = None;
    }

    /// Records timeouts of calls. Returns true if the server must get a ping.
    pub(crate) fn timed_out(&mut self, calls: usize, now: Instant) -> bool {
        self.timeouts += calls;
        // One ping at a time: another one would move the deadline, and a server that is stuck would never be stopped.
        let ask = self.timeouts >= TIMEOUTS_BEFORE_PING && self.ping_until.is_none();
        if ask {
            self.ping_until = Some(now + PING_TIMEOUT);
        }
        ask
    }

    /// Records the start of an oversized message.
    pub(crate) fn oversized(&mut self, has_owner: bool, bytes: u64, now: Instant) {
        self.oversized = Some(OversizedMessage {
            has_owner,
            since: now,
            bytes,
            grew_at: now,
            measure_at: now + MEASURE_INTERVAL,
        });
    }

    /// Restarts all deadlines after a time in which nothing was read from the server.
    pub(crate) fn excuse(&mut self, now: Instant) {
        self.heard();
        if let Some(oversized) = &mut self.oversized {
            oversized.since = now;
            oversized.grew_at = now;
        }
    }

    /// Records the end of the oversized message. Returns true if its call was not identified yet.
    pub(crate) fn oversized_ended(&mut self) -> bool {
        self.oversized
            .take()
            .is_some_and(|oversized| !oversized.has_owner)
    }

    pub(crate) fn due(&self) -> Option<Instant> {
        let oversized = self.oversized.as_ref().map(|it| it.measure_at);
        self.ping_until.into_iter().chain(oversized).min()
    }

    /// Returns the reason to stop the server, if there is one; `oversized_bytes` is the length of an oversized
    /// message so far.
    pub(crate) fn verdict(&mut self, oversized_bytes: u64, now: Instant) -> Option<StopReason> {
        if self.ping_until.is_some_and(|until| until <= now) {
            return Some(StopReason::Unresponsive);
        }
        let oversized = self.oversized.as_mut();
        let endless = oversized.is_some_and(|it| it.is_endless(oversized_bytes, now));
        endless.then_some(StopReason::EndlessMessage)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1024 * 1024;

    /// The length of a message after a number of seconds.
    type Written = fn(u64) -> u64;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// Returns the second in which a message of this growth is given up.
    fn given_up_after(bytes: Written) -> Option<u64> {
        let start = Instant::now();
        let mut health = Health::default();
        health.oversized(true, bytes(0), start);
        (0..100).find(|second| {
            let now = start + seconds(*second);
            let verdict = health.verdict(bytes(*second), now);
            verdict == Some(StopReason::EndlessMessage)
        })
    }

    #[test]
    fn endless_messages_are_detected_by_size_pause_and_time() {
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
    fn time_without_reading_does_not_count_against_the_server() {
        let start = Instant::now();
        let mut health = Health::default();
        health.oversized(false, 17 * MIB, start);
        let now = start + MAX_TIME * 2;
        health.excuse(now);
        assert_eq!(health.verdict(17 * MIB, now), None);
        let now = now + MAX_PAUSE - MEASURE_INTERVAL;
        assert_eq!(health.verdict(18 * MIB, now), None);
        assert_eq!(health.due(), Some(now + MEASURE_INTERVAL));
        let now = now + MAX_PAUSE;
        assert_eq!(
            health.verdict(18 * MIB, now),
            Some(StopReason::EndlessMessage)
        );
    }
}
