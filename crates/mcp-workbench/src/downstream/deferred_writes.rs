//! Writes to disk in the background. They run on one thread when nothing was added for a moment, and at the latest
//! when the workbench ends.

use std::{
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use tokio::{
    sync::{Notify, oneshot},
    time::sleep,
};
use tokio_util::task::TaskTracker;

use super::pool::Shutdown;
use crate::{contain::contain_now, offload::run_blocking, sync::lock};

/// Writes begin when nothing was added for this long. An open that caused them has its answer by then.
const PAUSE: Duration = Duration::from_millis(100);
/// Bound on the waiting while writes keep being added.
const MAX_PAUSES: usize = 20;

/// The writes that wait, and the task that does them.
pub(crate) struct DeferredWrites {
    tasks: TaskTracker,
    shutdown: Arc<Shutdown>,
    pending: Mutex<PendingWrites>,
    /// Ends the pause before the writes.
    hurry: Notify,
}

type Write = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct PendingWrites {
    writes: Vec<Write>,
    /// Set while a task runs that will do the writes.
    has_task: bool,
}

impl DeferredWrites {
    pub(crate) fn new(tasks: TaskTracker, shutdown: Arc<Shutdown>) -> Self {
        Self {
            tasks,
            shutdown,
            pending: Mutex::default(),
            hurry: Notify::new(),
        }
    }

    /// Adds a write, which may also read files.
    pub(crate) fn add(self: &Arc<Self>, work: impl FnOnce() + Send + 'static) {
        let mut pending = self.pending();
        pending.writes.push(Box::new(work));
        if !std::mem::replace(&mut pending.has_task, true) {
            let this = Arc::clone(self);
            self.tasks.spawn(async move { this.run().await });
        }
    }

    /// Waits until everything that was added is written, without the pause.
    pub(crate) async fn flush(self: &Arc<Self>) {
        let (done, written) = oneshot::channel();
        // Writes run in their order.
        self.add(move || {
            let _ = done.send(());
        });
        self.hurry.notify_one();
        // The sender is dropped if the process ends.
        let _ = written.await;
    }

    async fn run(&self) {
        loop {
            self.quiet().await;
            let writes = {
                let mut pending = self.pending();
                // Decided under the lock, so that a write that is added after this starts a new task.
                pending.has_task = !pending.writes.is_empty();
                std::mem::take(&mut pending.writes)
            };
            if writes.is_empty() {
                return;
            }
            // A panic is logged by the panic hook and must not prevent the other writes.
            let run = move || {
                for write in writes {
                    let _ = contain_now(write);
                }
            };
            if let Err(error) = run_blocking(run).await {
                tracing::warn!("failed to write the server cache: {error}");
            }
        }
    }

    /// Waits until nothing was added for the pause, or the workbench ends.
    async fn quiet(&self) {
        let mut known = self.pending().writes.len();
        for _ in 0..MAX_PAUSES {
            tokio::select! {
                () = sleep(PAUSE) => {}
                () = self.shutdown.begun() => return,
                () = self.hurry.notified() => return,
            }
            let now = self.pending().writes.len();
            if now == known {
                return;
            }
            known = now;
        }
    }

    fn pending(&self) -> MutexGuard<'_, PendingWrites> {
        lock(&self.pending)
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use tokio::{sync::mpsc, time::Instant};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn writes_run_together_after_a_quiet_pause() {
        let deferred = Arc::new(DeferredWrites::new(TaskTracker::new(), Arc::default()));
        let (done, mut dones) = mpsc::unbounded_channel();
        let add = |number: usize| {
            let done = done.clone();
            deferred.add(move || {
                assert_ne!(number, 1, "one that panics");
                let _ = done.send((number, thread::current().id()));
            });
        };
        let began = Instant::now();
        add(0);
        add(1);
        sleep(PAUSE * 3 / 4).await;
        add(2);
        let (first, thread) = dones.recv().await.unwrap();
        assert!(began.elapsed() >= PAUSE * 2, "{:?}", began.elapsed());
        assert_eq!((first, dones.recv().await), (0, Some((2, thread))));
        assert_ne!(thread, thread::current().id());
        add(3);
        assert_eq!(dones.recv().await.unwrap().0, 3);
    }
}
