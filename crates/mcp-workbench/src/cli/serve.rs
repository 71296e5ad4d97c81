//! `serve`: the workbench itself, over stdin and stdout.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
};

use super::{Done, configuration::load_configuration, demo::program};
use crate::{
    config::{Environment, Loaded, parse},
    demo,
    serve::stdio,
    workbench::Workbench,
};

/// Serves the configuration that is found.
pub(super) fn run(config: Option<&Path>, environment: &Environment) -> Done {
    let loaded = load_configuration(config, environment)?;
    tracing::info!("using {}", loaded.config.file.display());
    serve(loaded)
}

/// Serves the built-in demo toolbox.
pub(super) fn run_demo(environment: &Environment) -> Done {
    let text = demo::configuration(&program()?);
    let file = PathBuf::from("(the built-in demo)");
    serve(parse(&text, &file, environment)?)
}

fn serve(loaded: Loaded) -> Done {
    for problem in loaded.warnings.iter().chain(&loaded.unset) {
        tracing::warn!("{problem}");
    }
    // One thread: hand-offs between threads cost more than the work.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let done = runtime.block_on(async {
        let workbench = Workbench::new(Arc::new(loaded.config));
        let mut first = Signals::listen()?;
        let mut again = Signals::listen()?;
        let in_haste = async {
            again.next().await;
            again.next().await;
        };
        tokio::select! {
            () = stdio::serve(workbench, first.next()) => Ok::<_, std::io::Error>(ExitCode::SUCCESS),
            // Whoever cannot wait is not made to; the guard ends what is left.
            () = in_haste => Ok(ExitCode::FAILURE),
        }
    });
    // A thread may still be reading a terminal; the end of the process ends it.
    runtime.shutdown_background();
    Ok(done?)
}

/// The signals that end the workbench in order.
#[cfg(unix)]
struct Signals {
    all: [tokio::signal::unix::Signal; 3],
}

#[cfg(unix)]
impl Signals {
    fn listen() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            all: [
                signal(SignalKind::interrupt())?,
                signal(SignalKind::terminate())?,
                signal(SignalKind::hangup())?,
            ],
        })
    }

    /// Waits for one of them.
    async fn next(&mut self) {
        let [interrupt, terminate, hangup] = &mut self.all;
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
    }
}

/// The signal that ends the workbench in order.
#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    #[expect(clippy::unnecessary_wraps, reason = "the same shape as on Unix")]
    fn listen() -> std::io::Result<Self> {
        Ok(Self)
    }

    /// Waits for it.
    async fn next(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending().await
        }
    }
}
