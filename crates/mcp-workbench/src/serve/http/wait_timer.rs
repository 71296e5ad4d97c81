//! Timeouts that share one timer. A new timer for each wait would be most of the cost of waiting.

use std::{future::poll_fn, pin::pin, sync::Mutex, task::Poll};

use tokio::time::Instant;

use crate::{alarm::Alarm, sync::lock};

/// A timer for repeated waits, one at a time.
#[derive(Default)]
pub(super) struct WaitTimer(Mutex<Alarm>);

impl WaitTimer {
    /// Waits for a future until `end`. Returns `None` on a timeout. Cancel-safe if the future is.
    pub(super) async fn until<F: Future>(&self, end: Instant, future: F) -> Option<F::Output> {
        let mut future = pin!(future);
        poll_fn(|context| {
            if let Poll::Ready(output) = future.as_mut().poll(context) {
                return Poll::Ready(Some(output));
            }
            let mut timer = lock(&self.0);
            timer.poll_wait(end, context).map(|()| None)
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use std::{future::pending, time::Duration};

    use tokio::time::sleep;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn each_wait_ends_at_its_own_deadline() {
        let timer = WaitTimer::default();
        let began = Instant::now();
        let at = |seconds| began + Duration::from_secs(seconds);
        assert_eq!(timer.until(at(10), async { 1 }).await, Some(1));
        let short = sleep(Duration::from_secs(1));
        assert_eq!(timer.until(at(5), short).await, Some(()));
        // The timer of the last wait rings at 5 s, in the middle of this one.
        assert_eq!(timer.until(at(9), pending::<()>()).await, None);
        assert_eq!(Instant::now(), at(9));
        let long = sleep(Duration::from_secs(10));
        assert_eq!(timer.until(at(60), long).await, Some(()));
        // And this one ends before the timer of the last.
        assert_eq!(timer.until(at(20), pending::<()>()).await, None);
        assert_eq!(Instant::now(), at(20));
    }
}
