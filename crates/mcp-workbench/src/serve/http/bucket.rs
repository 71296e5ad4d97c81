//! A rate limit in whole numbers: the generic cell rate algorithm, as a bucket that drains at the rate. One unit that is
//! used fills it by its period in nanoseconds, and every nanosecond drains it by the units per period. So the level does
//! not depend on the rate, nothing is rounded, and a changed rate counts from the moment of the change.

use std::time::Duration;

use tokio::time::Instant;

/// A number of units per period, and how many of them may be used at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rate {
    pub(super) units: u64,
    pub(super) period: Duration,
    pub(super) burst: u64,
}

/// The units that were used and have not drained yet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bucket {
    /// Units times nanoseconds of the period.
    level: u128,
    at: Instant,
}

impl Bucket {
    pub(super) fn new(now: Instant) -> Self {
        Self { level: 0, at: now }
    }

    /// Returns how long to wait until so many units fit below the burst; `None` if they do now. More units than the burst
    /// wait for an empty bucket.
    pub(super) fn wait(&mut self, units: u64, rate: Rate, now: Instant) -> Option<Duration> {
        self.drain(rate, now);
        // The level up to which these units still fit.
        let room = u128::from(rate.burst.saturating_sub(units)) * rate.period.as_nanos();
        let excess = self.level.checked_sub(room).filter(|it| *it > 0)?;
        let nanoseconds = excess.div_ceil(u128::from(rate.units));
        Some(Duration::from_nanos(
            u64::try_from(nanoseconds).unwrap_or(u64::MAX),
        ))
    }

    /// Fills the bucket, beyond the burst if need be.
    pub(super) fn fill(&mut self, units: u64, rate: Rate, now: Instant) {
        self.drain(rate, now);
        self.level += u128::from(units) * rate.period.as_nanos();
    }

    /// Returns the time at which it is empty.
    pub(super) fn empty_at(&self, rate: Rate) -> Instant {
        let nanoseconds = self.level.div_ceil(u128::from(rate.units));
        let left = Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX));
        self.at.checked_add(left).unwrap_or(self.at)
    }

    fn drain(&mut self, rate: Rate, now: Instant) {
        let elapsed = now.saturating_duration_since(self.at).as_nanos();
        let drained = elapsed.saturating_mul(u128::from(rate.units));
        self.level = self.level.saturating_sub(drained);
        self.at = self.at.max(now);
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn rate(units: u64, burst: u64) -> Rate {
        Rate {
            units,
            period: SECOND,
            burst,
        }
    }

    #[test]
    fn a_burst_passes_and_then_one_per_interval_to_the_nanosecond() {
        // Three per second: an interval that is not a whole number of nanoseconds.
        let (rate, start) = (rate(3, 5), Instant::now());
        let mut bucket = Bucket::new(start);
        for _ in 0..5 {
            assert_eq!(bucket.wait(1, rate, start), None);
            bucket.fill(1, rate, start);
        }
        let third = Duration::from_nanos(333_333_334);
        assert_eq!(bucket.wait(1, rate, start), Some(third));
        let early = start + third - Duration::from_nanos(1);
        assert_eq!(bucket.wait(1, rate, early), Some(Duration::from_nanos(1)));
        assert_eq!(bucket.wait(1, rate, start + third), None);
    }

    #[test]
    fn nothing_is_lost_or_gained_over_many_intervals() {
        // Twice the burst of one, so that the bucket is never empty and no part of a nanosecond is cut off.
        let (rate, start) = (rate(7, 2), Instant::now());
        let mut bucket = Bucket::new(start);
        let mut now = start;
        let mut admitted = 0;
        while now <= start + SECOND * 1000 {
            match bucket.wait(1, rate, now) {
                Some(wait) => now += wait,
                None => {
                    bucket.fill(1, rate, now);
                    admitted += 1;
                }
            }
        }
        assert_eq!(admitted, 7 * 1000 + 2);
    }

    #[test]
    fn more_than_the_burst_waits_for_an_empty_bucket() {
        let (rate, start) = (rate(10, 10), Instant::now());
        let mut bucket = Bucket::new(start);
        assert_eq!(bucket.wait(1000, rate, start), None);
        bucket.fill(1000, rate, start);
        assert_eq!(bucket.empty_at(rate), start + SECOND * 100);
        assert_eq!(bucket.wait(1000, rate, start), Some(SECOND * 100));
        assert_eq!(bucket.wait(1, rate, start), Some(SECOND * 99 + SECOND / 10));
    }

    #[test]
    fn a_changed_rate_counts_from_its_change() {
        let start = Instant::now();
        let mut bucket = Bucket::new(start);
        bucket.fill(100, rate(10, 100), start);
        let halfway = start + SECOND * 5;
        assert_eq!(bucket.wait(50, rate(10, 100), halfway), None);
        assert_eq!(bucket.wait(100, rate(50, 100), halfway), Some(SECOND));
    }
}
