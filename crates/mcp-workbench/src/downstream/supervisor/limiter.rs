//! Limits the restarts of a server that does not come up: the pause between them grows, and after five failures
//! within a minute there is none for another minute. A failure is a start that does not complete; a successful start
//! resets the limiter.

use std::{collections::VecDeque, time::Duration};

use tokio::time::Instant;

/// The pause after the first failure. Each further failure doubles it.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const MAX_PAUSE: Duration = Duration::from_secs(30);
/// This many failures within this time open the breaker for the same time.
const WINDOW: Duration = Duration::from_mins(1);

/// Decides when a server may be started.
#[derive(Debug, Default)]
pub(crate) struct StartLimiter {
    /// The times of the last failures, oldest first, at most [`Self::FAILURES`].
    failures: VecDeque<Instant>,
    in_a_row: u32,
    /// The time until which the breaker is open.
    open_until: Option<Instant>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Now,
    /// Not before this time; a caller that asks for the server itself need not wait.
    NotBefore(Instant),
    /// The breaker is open until this time.
    Refused(Instant),
}

impl StartLimiter {
    /// The number of failures that open the breaker.
    pub(crate) const FAILURES: usize = 5;

    /// Returns the decision about a start now.
    pub(crate) fn verdict(&self, now: Instant) -> Verdict {
        if let Some(until) = self.open_until.filter(|until| *until > now) {
            return Verdict::Refused(until);
        }
        match self.failures.back().map(|last| *last + self.pause()) {
            // After the breaker closes, one start is tried at once.
            Some(next) if next > now && self.open_until.is_none() => Verdict::NotBefore(next),
            _ => Verdict::Now,
        }
    }

    pub(crate) fn failed(&mut self, now: Instant) {
        let was_open = self.open_until.is_some();
        self.in_a_row += 1;
        if self.failures.len() == Self::FAILURES {
            self.failures.pop_front();
        }
        self.failures.push_back(now);
        let recent = self.failures.len() == Self::FAILURES
            && self
                .failures
                .front()
                .is_some_and(|oldest| now - *oldest < WINDOW);
        // After an open breaker one start is tried. If that one fails, the breaker opens again at once.
        self.open_until = (was_open || recent).then_some(now + WINDOW);
    }

    pub(crate) fn succeeded(&mut self) {
        *self = Self::default();
    }

    fn pause(&self) -> Duration {
        // The maximum is reached after 7 doublings; more than 31 would overflow.
        let doublings = self.in_a_row.saturating_sub(1).min(16);
        (FIRST_PAUSE * 2_u32.pow(doublings)).min(MAX_PAUSE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    #[test]
    fn pauses_double_until_the_breaker_opens() {
        let start = Instant::now();
        let mut limiter = StartLimiter::default();
        assert_eq!(limiter.verdict(start), Verdict::Now);
        let mut now = start;
        for pause in [250, 500, 1000, 2000] {
            limiter.failed(now);
            assert_eq!(limiter.verdict(now), Verdict::NotBefore(now + after(pause)));
            now += after(pause);
            assert_eq!(limiter.verdict(now), Verdict::Now);
        }
        limiter.failed(now);
        assert_eq!(limiter.verdict(now), Verdict::Refused(now + WINDOW));
    }

    #[test]
    fn one_failure_after_the_breaker_reopens_it() {
        let mut now = Instant::now();
        let mut limiter = StartLimiter::default();
        for _ in 0..StartLimiter::FAILURES {
            limiter.failed(now);
        }
        now += WINDOW;
        assert_eq!(limiter.verdict(now), Verdict::Now);
        limiter.failed(now);
        assert_eq!(limiter.verdict(now), Verdict::Refused(now + WINDOW));
    }

    #[test]
    fn slow_failures_never_open_the_breaker_and_the_pause_is_bounded() {
        let mut now = Instant::now();
        let mut limiter = StartLimiter::default();
        for _ in 0..50 {
            limiter.failed(now);
            now += after(20_000);
        }
        now -= after(20_000);
        assert_eq!(limiter.verdict(now), Verdict::NotBefore(now + MAX_PAUSE));
    }

    #[test]
    fn a_successful_start_resets_the_limiter() {
        let now = Instant::now();
        let mut limiter = StartLimiter::default();
        for _ in 0..StartLimiter::FAILURES {
            limiter.failed(now);
        }
        limiter.succeeded();
        assert_eq!(limiter.verdict(now), Verdict::Now);
        limiter.failed(now);
        assert_eq!(limiter.verdict(now), Verdict::NotBefore(now + FIRST_PAUSE));
    }
}
