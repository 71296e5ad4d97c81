//! Runs a workbench for a single command: starts its servers to list tools or make a call, and stops them at the
//! end.

mod client;
mod elicitation;
mod servers;

use std::{io, sync::Arc, time::Duration};

use thiserror::Error;
use tokio::time::{Instant, sleep};

use super::signals::Signals;
use crate::{config::Config, oauth::CredentialOwner, workbench::Workbench};

pub(super) use client::ShellClient;
pub(super) use servers::{
    ProbeResult, known_servers, probe_others, probe_others_until, probe_servers,
};

/// Time for servers to receive the cancellation of a call before they are stopped.
const CANCEL_GRACE: Duration = Duration::from_millis(100);

/// Reasons why the command did not finish.
#[derive(Debug, Error)]
pub(super) enum ProbeError {
    /// The runtime or the signal handlers could not be set up.
    #[error("cannot start the servers")]
    Runtime(#[from] io::Error),
    /// A signal ended the command.
    #[error("interrupted")]
    Interrupted,
}

/// Runs `work` with a workbench, then stops all servers. A signal ends the work; a second one ends the wait for
/// the servers, which the guard process stops then.
pub(super) fn with_workbench<T>(
    config: Config,
    work: impl AsyncFnOnce(Arc<Workbench>) -> T,
) -> Result<T, ProbeError> {
    with_signals(config, async |workbench, signals| {
        tokio::select! {
            done = work(workbench) => return Ok(done),
            () = signals.next() => {}
        }
        wait_for_cancellation().await;
        Err(ProbeError::Interrupted)
    })?
}

/// Like [`with_workbench`], but `work` itself waits for the first signal, so that it can return a partial result.
pub(super) fn with_signals<T>(
    mut config: Config,
    work: impl AsyncFnOnce(Arc<Workbench>, &mut Signals) -> T,
) -> Result<T, ProbeError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let done = runtime.block_on(async {
        // The terminal already shows that a server asks.
        config.attribute_questions = Some(false);
        let workbench = Workbench::new(Arc::new(config), CredentialOwner::Machine);
        let mut signals = Signals::listen()?;
        let done = work(Arc::clone(&workbench), &mut signals).await;
        tokio::select! {
            () = workbench.shut_down(Instant::now()) => {}
            () = signals.next() => {}
        }
        Ok(done)
    });
    // A thread may still be blocked reading the terminal; it ends with the process.
    runtime.shutdown_background();
    done
}

/// Runs `work` until it is done or a signal comes, without a workbench.
#[cfg(unix)]
pub(super) fn interruptible<T>(work: impl Future<Output = T>) -> Result<T, ProbeError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let done = runtime.block_on(async {
        let mut signals = Signals::listen()?;
        tokio::select! {
            done = work => Ok(done),
            () = signals.next() => Err(ProbeError::Interrupted),
        }
    });
    // A thread may still be blocked reading the terminal; it ends with the process.
    runtime.shutdown_background();
    done
}

/// Waits until servers can have received the cancellation of calls.
pub(super) async fn wait_for_cancellation() {
    sleep(CANCEL_GRACE).await;
}
