//! Deadlines. Every wait that fails when a client, a server or a user takes too long ends here, so that one rule
//! applies to all: a deadline that is noticed late counts only if it is still due a moment later. The process may
//! have been stopped (Ctrl-Z, a suspended machine), and the awaited message may be in a pipe that nobody has read.
//! Waits during our own shutdown do not use this: they must not take longer.

use std::{
    future::{pending, poll_fn},
    pin::Pin,
    task::{Context, Poll, Waker, ready},
    time::Duration,
};

use tokio::{
    task::coop::has_budget_remaining,
    time::{Instant, Sleep, sleep_until},
};

/// A deadline that is noticed after this delay is late. On a busy machine the event loop lags by some milliseconds.
const LATE_AFTER: Duration = Duration::from_millis(100);
/// The grace period after a late wake-up: everything that is ready is read and written before a deadline counts.
const GRACE_PERIOD: Duration = Duration::from_secs(1);

/// A timer for a loop that checks its next deadline in every iteration. It is reset only if it has to fire earlier,
/// or has fired too early. A new timer in every iteration would wake the event loop with a system call, and the
/// deadline almost never expires, because every message moves it.
#[derive(Default)]
pub(crate) struct Alarm {
    set: Option<Pin<Box<Sleep>>>,
    /// The task that the timer wakes.
    task: Option<Waker>,
    /// The last time at which a deadline was noticed late. Deadlines before it count after the grace period.
    late_at: Option<Instant>,
}

impl Alarm {
    /// Waits for a deadline, or forever if there is none. Cancel-safe.
    pub(crate) async fn wait(&mut self, deadline: Option<Instant>) {
        match deadline {
            Some(deadline) => poll_fn(|context| self.poll_wait(deadline, context)).await,
            None => pending().await,
        }
    }

    pub(crate) fn poll_wait(&mut self, deadline: Instant, context: &mut Context<'_>) -> Poll<()> {
        loop {
            let moment = self.counts_at(deadline);
            ready!(self.poll_ring(moment, context));
            let now = Instant::now();
            if now < moment + LATE_AFTER {
                return Poll::Ready(());
            }
            // Noticed late. The next turn waits for the grace period, in which the awaited message may be read.
            self.late_at = Some(now);
        }
    }

    /// Returns the moment at which a deadline counts.
    fn counts_at(&self, deadline: Instant) -> Instant {
        match self.late_at {
            Some(late_at) if deadline <= late_at => late_at + GRACE_PERIOD,
            _ => deadline,
        }
    }

    fn poll_ring(&mut self, moment: Instant, context: &mut Context<'_>) -> Poll<()> {
        let sleep = self
            .set
            .get_or_insert_with(|| Box::pin(sleep_until(moment)));
        let task = context.waker();
        if sleep.is_elapsed() || sleep.deadline() > moment {
            sleep.as_mut().reset(moment);
        } else if self.task.as_ref().is_some_and(|it| it.will_wake(task)) {
            // It still runs, and wakes this task in time.
            return Poll::Pending;
        }
        loop {
            let has_budget = has_budget_remaining();
            if sleep.as_mut().poll(context).is_pending() {
                // Without a budget the timer was not polled, and tokio has woken the task for the next turn.
                self.task = has_budget.then(|| task.clone());
                return Poll::Pending;
            }
            if sleep.deadline() >= moment {
                return Poll::Ready(());
            }
            // The timer was set for an earlier deadline, which has moved since.
            sleep.as_mut().reset(moment);
        }
    }
}

/// The error of a wait that took too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Elapsed;

/// Waits for a future, but not longer than `limit`. Cancel-safe if the future is.
pub(crate) fn timeout<F: Future>(
    limit: Duration,
    future: F,
) -> impl Future<Output = Result<F::Output, Elapsed>> {
    until(Instant::now().checked_add(limit), future)
}

/// Waits for a future until a deadline. Cancel-safe if the future is.
pub(crate) fn timeout_at<F: Future>(
    deadline: Instant,
    future: F,
) -> impl Future<Output = Result<F::Output, Elapsed>> {
    until(Some(deadline), future)
}

fn until<F: Future>(
    deadline: Option<Instant>,
    future: F,
) -> impl Future<Output = Result<F::Output, Elapsed>> {
    let mut alarm = Alarm::default();
    // Boxed, because an async function would store the future twice.
    let mut future = Box::pin(future);
    poll_fn(move |context| {
        if let Poll::Ready(output) = future.as_mut().poll(context) {
            return Poll::Ready(Ok(output));
        }
        match deadline {
            Some(deadline) => alarm.poll_wait(deadline, context).map(|()| Err(Elapsed)),
            None => Poll::Pending,
        }
    })
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use tokio::time::{advance, sleep};

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Returns whether the alarm fires on time if it is polled in turn for these moments, each but the last abandoned
    /// at once.
    async fn rings_at(moments: &[u32]) -> bool {
        let start = Instant::now();
        let mut alarm = Alarm::default();
        let (last, given_up) = moments.split_last().unwrap();
        for moment in given_up {
            let wait = alarm.wait(Some(start + *moment * SECOND));
            assert!(tokio::time::timeout(Duration::ZERO, wait).await.is_err());
        }
        alarm.wait(Some(start + *last * SECOND)).await;
        let due = start + *last * SECOND;
        (due..due + Duration::from_millis(10)).contains(&Instant::now())
    }

    #[tokio::test(start_paused = true)]
    async fn an_alarm_rings_at_its_latest_deadline() {
        for moments in [&[5][..], &[5, 9], &[9, 5], &[5, 9, 7, 8], &[9, 5, 7]] {
            assert!(rings_at(moments).await, "{moments:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_alarm_can_be_reused_and_never_rings_without_a_deadline() {
        let mut alarm = Alarm::default();
        for _ in 0..3 {
            let due = Instant::now() + SECOND;
            alarm.wait(Some(due)).await;
            assert!(Instant::now() >= due);
        }
        let wait = alarm.wait(None);
        assert!(tokio::time::timeout(60 * SECOND, wait).await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn a_deadline_that_is_noticed_late_counts_after_a_grace_period() {
        let start = Instant::now();
        let mut alarm = Alarm::default();
        advance(60 * SECOND).await;
        // Other deadlines that have passed meanwhile count at the same moment.
        for deadline in [start + SECOND, start + 2 * SECOND] {
            alarm.wait(Some(deadline)).await;
            assert_eq!(start.elapsed(), 60 * SECOND + GRACE_PERIOD);
        }
        let next = start + 100 * SECOND;
        alarm.wait(Some(next)).await;
        assert_eq!(Instant::now(), next, "this one was noticed in time");
    }

    #[tokio::test(start_paused = true)]
    async fn a_result_that_is_ready_after_a_late_wake_up_wins_over_a_timeout() {
        let waiting = timeout(SECOND, async {
            // A sleep that ends in the grace period represents a message that is still unread.
            sleep(60 * SECOND + GRACE_PERIOD / 2).await;
        });
        let mut waiting = pin!(waiting);
        let first = poll_fn(|context| Poll::Ready(waiting.as_mut().poll(context)));
        assert!(first.await.is_pending());
        advance(60 * SECOND).await;
        assert_eq!(waiting.await, Ok(()));
        assert_eq!(timeout(SECOND, pending::<()>()).await, Err(Elapsed));
    }
}
