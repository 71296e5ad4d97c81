//! What is written when nobody waits for it: on one thread for all, when nothing was added for a moment, and at the
//! latest at the end.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::sleep;
use tokio_util::task::TaskTracker;

use super::pool::Shutdown;

/// For how long nothing may have been added. Whoever opens a toolbox has an answer by then.
const QUIET: Duration = Duration::from_millis(100);
/// How often that is waited for at most.
const PATIENCE: usize = 20;

/// What is to be done later.
pub(super) struct Later {
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
    /// Nothing yet.
    pub(super) fn new(tasks: TaskTracker, shutdown: Arc<Shutdown>) -> Self {
        Self {
            tasks,
            shutdown,
            waiting: Mutex::default(),
        }
    }

    /// Has something done later. It may read and write files.
    pub(super) fn add(self: &Arc<Self>, work: impl FnOnce() + Send + 'static) {
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
            let run = move || works.into_iter().for_each(|work| work());
            let _ = self.tasks.spawn_blocking(run).await;
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
