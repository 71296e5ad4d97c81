//! Servers for a command that runs once: a workbench of its own, its servers started for a look or for a call, and
//! nothing left of them at the end.

mod client;
mod elicitation;
mod servers;

use std::{io, sync::Arc, time::Duration};

use thiserror::Error;
use tokio::time::{Instant, sleep};

use super::signals::Signals;
use crate::{config::Config, workbench::Workbench};

pub(super) use client::Shell;
pub(super) use servers::{Probed, look_at, look_at_until};

/// For how long a server can still be told that a call is given up.
const LAST_MOMENT: Duration = Duration::from_millis(100);

/// Why a command with servers of its own has not run to its end.
#[derive(Debug, Error)]
pub(super) enum ProbeError {
    /// There is no runtime, or no way to hear of signals.
    #[error("the servers cannot be started")]
    Runtime(#[from] io::Error),
    /// A person or the system has ended it.
    #[error("interrupted")]
    Interrupted,
}

/// Does some work with a workbench, and ends all of its servers. A signal ends the work, and a second one the wait
/// for the servers, which the guard ends then.
pub(super) fn with_workbench<T>(
    config: Config,
    work: impl AsyncFnOnce(Arc<Workbench>) -> T,
) -> Result<T, ProbeError> {
    with_signals(config, async |workbench, signals| {
        tokio::select! {
            done = work(workbench) => return Ok(done),
            () = signals.next() => {}
        }
        last_moment().await;
        Err(ProbeError::Interrupted)
    })?
}

/// Does some work with a workbench as [`with_workbench`] does, but the work itself waits for the first signal, so that
/// it can return the part of its result that it has.
pub(super) fn with_signals<T>(
    mut config: Config,
    work: impl AsyncFnOnce(Arc<Workbench>, &mut Signals) -> T,
) -> Result<T, ProbeError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let done = runtime.block_on(async {
        // The terminal says itself that the server asks which the command names.
        config.attribute_questions = Some(false);
        let workbench = Workbench::new(Arc::new(config));
        let mut signals = Signals::listen()?;
        let done = work(Arc::clone(&workbench), &mut signals).await;
        tokio::select! {
            () = workbench.shut_down(Instant::now()) => {}
            () = signals.next() => {}
        }
        Ok(done)
    });
    // A thread may still be reading a terminal; the end of the process ends it.
    runtime.shutdown_background();
    done
}

/// Lets servers hear that calls were given up, before their end begins.
pub(super) async fn last_moment() {
    sleep(LAST_MOMENT).await;
}
