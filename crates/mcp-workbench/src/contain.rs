//! Contains panics: a bug ends one future instead of the task around it, so it costs one request or one server, which
//! gets an error.

use std::{
    future::poll_fn,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    task::Poll,
};

use thiserror::Error;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("internal error")]
pub(crate) struct Panicked;

/// Runs a closure and catches its panic. The restriction on [`contain`] applies here too.
pub(crate) fn contain_now<T>(run: impl FnOnce() -> T) -> Result<T, Panicked> {
    // Callers keep the restriction of `contain`, which the compiler cannot check.
    catch_unwind(AssertUnwindSafe(run)).map_err(|_| Panicked)
}

/// Runs a future and catches its panic. Everything that it borrows mutably must be usable afterwards, as after an
/// early return.
pub(crate) async fn contain<F: Future>(future: F) -> Result<F::Output, Panicked> {
    let mut future = pin!(future);
    poll_fn(
        |context| match contain_now(|| future.as_mut().poll(context)) {
            Ok(Poll::Ready(output)) => Poll::Ready(Ok(output)),
            Ok(Poll::Pending) => Poll::Pending,
            Err(panicked) => Poll::Ready(Err(panicked)),
        },
    )
    .await
}

#[cfg(test)]
mod tests {
    use super::{Panicked, contain, contain_now};

    #[tokio::test]
    async fn a_panic_becomes_an_error_and_anything_else_passes() {
        assert_eq!(contain(async { 7 }).await, Ok(7));
        let yielding = async {
            tokio::task::yield_now().await;
            panic!("a bug");
        };
        assert_eq!(contain::<_>(yielding).await, Err::<(), _>(Panicked));
        assert_eq!(contain_now(|| 7), Ok(7));
        assert_eq!(contain_now(|| panic!("a bug")), Err::<(), _>(Panicked));
    }
}
