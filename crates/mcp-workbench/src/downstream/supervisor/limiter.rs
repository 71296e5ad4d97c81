//! How often a server is started that does not come up: after a growing pause, and after five failures
//! within a minute not at all for another minute. A failure is a start that does not complete; one that
//! does clears everything.

use std::{collections::VecDeque, time::Duration};

use tokio::time::Instant;

/// The pause after the first failure; each further one doubles it.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// The failures within this time open the breaker for as long again.
const WINDOW: Duration = Duration::from_mins(1);

/// Decides when a server may be started.
#[derive(Debug, Default)]
pub(crate) struct StartLimiter {
    /// When it last failed, the oldest first, at most [`Self::FAILURES`] of them.
    failures: VecDeque<Instant>,
    in_a_row: u32,
    /// Until when the breaker is open.
    open_until: Option<Instant>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Now,
    /// Not before this; somebody who asks for the server itself need not wait.
    NotBefore(Instant),
    /// The breaker is open until then.
    Refused(Instant),
}

impl StartLimiter {
    /// How many failures open the breaker.
    pub(crate) const FAILURES: usize = 5;

    /// Whether the server may be started.
    pub(crate) fn verdict(&self, now: Instant) -> Verdict {
        if let Some(until) = self.open_until.filter(|until| *until > now) {
            return Verdict::Refused(until);
        }
        match self.failures.back().map(|last| *last + self.pause()) {
            // After the breaker one start is tried at once.
            Some(next) if next > now && self.open_until.is_none() => Verdict::NotBefore(next),
            _ => Verdict::Now,
        }
    }

    /// Notes that a start has failed.
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
        self.open_until = (was_open || recent).then_some(now + WINDOW);
    }

    /// Notes that a start has completed.
    pub(crate) fn succeeded(&mut self) {
        *self = Self::default();
    }

    fn pause(&self) -> Duration {
        let doublings = self.in_a_row.saturating_sub(1).min(16);
        (FIRST_PAUSE * 2_u32.pow(doublings)).min(LONGEST_PAUSE)
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
    fn after_the_breaker_one_failure_opens_it_again() {
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
    fn slow_failures_never_open_the_breaker_and_the_pause_has_an_end() {
        let mut now = Instant::now();
        let mut limiter = StartLimiter::default();
        for _ in 0..50 {
            limiter.failed(now);
            now += after(20_000);
        }
        now -= after(20_000);
        assert_eq!(
            limiter.verdict(now),
            Verdict::NotBefore(now + LONGEST_PAUSE)
        );
    }

    #[test]
    fn a_start_that_completes_clears_everything() {
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
