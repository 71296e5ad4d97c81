//! Work that may block, such as reading files, on a thread of its own and off the event loop.

use std::{io, thread};

use tokio::sync::oneshot;

/// Runs `work` on a thread of its own. Fails if the system has no thread to give (`ulimit -u`), or if the work panics:
/// tokio's pool of threads would panic in the first case. Dropping the future leaves the work running.
pub(crate) async fn run<T: Send + 'static>(
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
    use super::*;

    #[tokio::test]
    async fn work_runs_on_another_thread() {
        let other = run(|| thread::current().id()).await.unwrap();
        assert_ne!(other, thread::current().id());
    }

    #[tokio::test]
    async fn work_that_panics_is_an_error() {
        assert!(run(|| panic!("on purpose")).await.is_err());
    }
}
