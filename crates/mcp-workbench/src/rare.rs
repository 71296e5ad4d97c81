//! A wrapper for a future that is rarely ready inside a busy task. A task that waits for several futures polls all of
//! them whenever one is ready. A wrapped one costs next to nothing until it is woken itself.

use std::{
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

use crate::sync::lock;

/// A future that is polled only after it was woken.
pub(crate) struct Rare<F> {
    /// The task that polled last. It is compared without a lock, since it almost never changes.
    task: Option<Waker>,
    wakes: Arc<Wakes>,
    /// The waker that sets the flag in `wakes`.
    waker: Waker,
    future: F,
}

/// The wake-ups of one future.
struct Wakes {
    /// Set while the future needs to be polled.
    is_woken: AtomicBool,
    task: Mutex<Option<Waker>>,
}

impl Wakes {
    fn set_task(&self, task: Waker) {
        let mut held = lock(&self.task);
        *held = Some(task);
    }
}

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.is_woken.store(true, Ordering::Release);
        let task = lock(&self.task);
        if let Some(task) = &*task {
            task.wake_by_ref();
        }
    }
}

impl<F> Rare<F> {
    /// Wraps a future. It is polled at least once.
    pub(crate) fn new(future: F) -> Self {
        let wakes = Arc::new(Wakes {
            is_woken: AtomicBool::new(true),
            task: Mutex::new(None),
        });
        Self {
            task: None,
            waker: Waker::from(Arc::clone(&wakes)),
            wakes,
            future,
        }
    }
}

impl<F: Future + Unpin> Future for Rare<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = &mut *self;
        let task = context.waker();
        // Set before the flag is read, so that a wake-up in between reaches this task.
        if !this.task.as_ref().is_some_and(|held| held.will_wake(task)) {
            this.wakes.set_task(task.clone());
            this.task = Some(task.clone());
        }
        // The task was woken for something else.
        if !this.wakes.is_woken.load(Ordering::Acquire) {
            return Poll::Pending;
        }
        // Cleared before the poll, so that a wake-up during it is not lost.
        this.wakes.is_woken.store(false, Ordering::Release);
        let mut context = Context::from_waker(&this.waker);
        Pin::new(&mut this.future).poll(&mut context)
    }
}

#[cfg(test)]
mod tests {
    use std::{
        cell::Cell,
        future::{pending, poll_fn},
    };

    use tokio::{sync::oneshot, task::yield_now};
    use tokio_util::task::TaskTracker;

    use super::*;

    /// Polls `future` in the same task as something busy, and returns how many times it was polled itself.
    async fn polls_of<F: Future>(future: F, turns: usize) -> usize {
        let polls = Cell::new(0);
        tokio::pin!(future);
        let mut rare = Rare::new(poll_fn(|context| {
            polls.set(polls.get() + 1);
            future.as_mut().poll(context)
        }));
        let busy = async {
            for _ in 0..turns {
                yield_now().await;
            }
        };
        tokio::select! {
            biased;
            _ = &mut rare => {}
            () = busy => {}
        }
        drop(rare);
        polls.get()
    }

    #[tokio::test]
    async fn a_future_is_polled_only_after_it_was_woken() {
        assert_eq!(polls_of(pending::<()>(), 100).await, 1);
        let thrice = async {
            yield_now().await;
            yield_now().await;
        };
        assert_eq!(polls_of(thrice, 100).await, 3);
    }

    #[tokio::test]
    async fn the_task_that_polled_last_is_woken() {
        let (sender, receiver) = oneshot::channel();
        let mut rare = Rare::new(receiver);
        let first = tokio::time::timeout(std::time::Duration::ZERO, &mut rare).await;
        assert!(first.is_err());
        let waiting = TaskTracker::new().spawn(rare);
        yield_now().await;
        sender.send(7).unwrap();
        assert_eq!(waiting.await.unwrap(), Ok(7));
    }
}
