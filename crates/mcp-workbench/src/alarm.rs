//! A timer for a loop that looks at its next moment in every turn. A new timer in every turn would wake the
//! event loop by a system call, and the moment almost never comes: it moves on with every message.

use std::pin::Pin;

use tokio::time::{Instant, Sleep, sleep_until};

/// A timer that is set anew only where it has to ring earlier, or has rung too early.
#[derive(Default)]
pub(crate) struct Alarm {
    set: Option<Pin<Box<Sleep>>>,
}

impl Alarm {
    /// Waits for a moment; for ever if there is none. Cancel-safe.
    pub(crate) async fn wait(&mut self, moment: Option<Instant>) {
        let Some(moment) = moment else {
            return std::future::pending().await;
        };
        let sleep = self
            .set
            .get_or_insert_with(|| Box::pin(sleep_until(moment)));
        if sleep.is_elapsed() || sleep.deadline() > moment {
            sleep.as_mut().reset(moment);
        }
        loop {
            sleep.as_mut().await;
            if sleep.deadline() >= moment {
                return;
            }
            sleep.as_mut().reset(moment);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Whether the alarm rings when it should if it is asked in turns for these moments, each but the last
    /// given up at once.
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
    async fn it_rings_when_it_is_due_whatever_it_was_set_to_before() {
        for moments in [&[5][..], &[5, 9], &[9, 5], &[5, 9, 7, 8], &[9, 5, 7]] {
            assert!(rings_at(moments).await, "{moments:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn it_can_be_used_again_after_it_has_rung_and_never_rings_without_a_moment() {
        let mut alarm = Alarm::default();
        for _ in 0..3 {
            let due = Instant::now() + SECOND;
            alarm.wait(Some(due)).await;
            assert!(Instant::now() >= due);
        }
        let wait = alarm.wait(None);
        assert!(tokio::time::timeout(60 * SECOND, wait).await.is_err());
    }
}
