//! What is written when nobody waits for it: on one thread for all, when nothing was added for a moment, and at the
//! latest at the end.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::sleep;
use tokio_util::task::TaskTracker;

use super::pool::Shutdown;
use crate::{contain::contain_now, offload::run_blocking};

/// For how long nothing may have been added. Whoever opens a toolbox has an answer by then.
const QUIET: Duration = Duration::from_millis(100);
/// How often that is waited for at most.
const PATIENCE: usize = 20;

/// What is to be done later.
pub(crate) struct Later {
    tasks: TaskTracker,
    shutdown: Arc<Shutdown>,
    waiting: Mutex<Waiting>,
}

type Work = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct Waiting {
    works: Vec<Work>,
    /// Whether there is a task that will do it.
    is_seen_to: bool,
}

impl Later {
    pub(crate) fn new(tasks: TaskTracker, shutdown: Arc<Shutdown>) -> Self {
        Self {
            tasks,
            shutdown,
            waiting: Mutex::default(),
        }
    }

    /// Has something done later. It may read and write files.
    pub(crate) fn add(self: &Arc<Self>, work: impl FnOnce() + Send + 'static) {
        let mut waiting = self.waiting();
        waiting.works.push(Box::new(work));
        if !std::mem::replace(&mut waiting.is_seen_to, true) {
            let this = Arc::clone(self);
            self.tasks.spawn(async move { this.run().await });
        }
    }

    async fn run(&self) {
        loop {
            self.quiet().await;
            let works = {
                let mut waiting = self.waiting();
                waiting.is_seen_to = !waiting.works.is_empty();
                std::mem::take(&mut waiting.works)
            };
            if works.is_empty() {
                return;
            }
            // One that panics has been told of, and leaves the others alone.
            let run = move || {
                for work in works {
                    let _ = contain_now(work);
                }
            };
            if let Err(error) = run_blocking(run).await {
                tracing::warn!("tools and pins of servers are not written to disk: {error}");
            }
        }
    }

    /// Waits until nothing was added for a while, or the end has begun.
    async fn quiet(&self) {
        let mut known = self.waiting().works.len();
        for _ in 0..PATIENCE {
            tokio::select! {
                () = sleep(QUIET) => {}
                () = self.shutdown.begun() => return,
            }
            let now = self.waiting().works.len();
            if now == known {
                return;
            }
            known = now;
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use tokio::{sync::mpsc, time::Instant};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn everything_is_done_at_once_when_nothing_was_added_for_a_while() {
        let later = Arc::new(Later::new(TaskTracker::new(), Arc::default()));
        let (done, mut dones) = mpsc::unbounded_channel();
        let add = |number: usize| {
            let done = done.clone();
            later.add(move || {
                assert_ne!(number, 1, "one that panics");
                let _ = done.send((number, thread::current().id()));
            });
        };
        let began = Instant::now();
        add(0);
        add(1);
        sleep(QUIET * 3 / 4).await;
        add(2);
        let (first, thread) = dones.recv().await.unwrap();
        assert!(began.elapsed() >= QUIET * 2, "{:?}", began.elapsed());
        assert_eq!((first, dones.recv().await), (0, Some((2, thread))));
        assert_ne!(thread, thread::current().id());
        add(3);
        assert_eq!(dones.recv().await.unwrap().0, 3);
    }
}
