//! Work that must not run on the event loop, on a thread of its own: [`offload`] and [`Offloaded`] for computations on
//! large JSON, such as checking or indexing a list of tools, and [`run_blocking`] for reading and writing files.

use std::{
    io,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    pin::Pin,
    sync::mpsc,
    task::{Context, Poll},
    thread,
};

use tokio::sync::oneshot;
use tracing::Span;

/// The size of the JSON, in bytes, up to which work is done on the event loop. The slowest work takes 70 ns per byte, so
/// nobody waits for longer than 5 ms; and a thread costs about 50 µs, which is little beside what it saves.
const SMALL_BYTES: usize = 64 * 1024;

/// Runs work on JSON of a size, on the event loop if it is small. Dropping the future leaves the work to end by itself.
pub(crate) async fn offload<T: Send + 'static>(
    bytes: usize,
    work: impl FnOnce() -> T + Send + 'static,
) -> T {
    match Offloaded::start(bytes, work) {
        Offloaded::Done(output) => output,
        Offloaded::Running(running) => running.await,
    }
}

pub(crate) enum Offloaded<T> {
    Done(T),
    Running(ThreadOutput<T>),
}

impl<T: Send + 'static> Offloaded<T> {
    /// Starts work on JSON of a size.
    pub(crate) fn start(bytes: usize, work: impl FnOnce() -> T + Send + 'static) -> Self {
        if bytes <= SMALL_BYTES {
            return Self::Done(work());
        }
        let span = Span::current();
        let (give, given) = mpsc::channel();
        let (sender, receiver) = oneshot::channel();
        let thread = thread::Builder::new().name("offload".into());
        let started = thread.spawn(move || {
            if let Ok(work) = given.recv() {
                let output = catch_unwind(AssertUnwindSafe(|| span.in_scope(work)));
                // Nobody waits if the future was dropped.
                let _ = sender.send(output);
            }
        });
        // The work is given to a thread that is there. Without one (`ulimit -u`) it is done here.
        if started.is_err() {
            return Self::Done(work());
        }
        match give.send(work) {
            Ok(()) => Self::Running(ThreadOutput(receiver)),
            Err(mpsc::SendError(work)) => Self::Done(work()),
        }
    }
}

/// The output of a thread. A panic of the work resumes in the task that waits for it.
pub(crate) struct ThreadOutput<T>(oneshot::Receiver<thread::Result<T>>);

impl<T> Future for ThreadOutput<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        match Pin::new(&mut self.0).poll(context) {
            Poll::Ready(Ok(Ok(output))) => Poll::Ready(output),
            Poll::Ready(Ok(Err(panic))) => resume_unwind(panic),
            Poll::Ready(Err(_)) => unreachable!("the thread always sends what it has"),
            Poll::Pending => Poll::Pending,
        }
    }
}

/// Runs work that may block, such as reading files. Fails if the system has no thread to give (`ulimit -u`), or if the work
/// panics: tokio's pool of threads would panic in the first case. Dropping the future leaves the work running.
pub(crate) async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<T> {
    let (sender, receiver) = oneshot::channel();
    let thread = thread::Builder::new().name("blocking".into());
    thread.spawn(move || {
        // Nobody waits if the future was dropped.
        let _ = sender.send(work());
    })?;
    let panicked = |_| io::Error::other("the work on another thread panicked");
    receiver.await.map_err(panicked)
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;
    use crate::contain::{Panicked, contain};

    #[tokio::test]
    async fn only_large_work_gets_a_thread() {
        let here = thread::current().id();
        let thread_of = |bytes| offload(bytes, || thread::current().id());
        assert_eq!(thread_of(SMALL_BYTES).await, here);
        assert_ne!(thread_of(SMALL_BYTES + 1).await, here);
    }

    #[tokio::test]
    async fn a_panic_of_the_work_resumes_in_the_waiting_task() {
        for bytes in [0, SMALL_BYTES + 1] {
            let panics = offload(bytes, || panic!("a bug"));
            assert_eq!(contain(panics).await, Err::<(), _>(Panicked));
        }
    }

    #[tokio::test]
    async fn blocking_work_runs_on_another_thread() {
        let other = run_blocking(|| thread::current().id()).await.unwrap();
        assert_ne!(other, thread::current().id());
    }

    #[tokio::test]
    async fn blocking_work_that_panics_is_an_error() {
        assert!(run_blocking(|| panic!("on purpose")).await.is_err());
    }
}
