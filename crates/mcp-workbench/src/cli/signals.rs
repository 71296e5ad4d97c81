//! Signals that shut a command down.

/// Signals that shut the workbench down.
#[cfg(unix)]
pub(super) struct Signals {
    all: [tokio::signal::unix::Signal; 3],
    /// Sent when a file would grow beyond `ulimit -f`. It would end the process; caught, the write fails instead, as on a
    /// full disk.
    _file_size: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    pub(super) fn listen() -> std::io::Result<Self> {
        use rustix::process::Signal;
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            all: [
                signal(SignalKind::interrupt())?,
                signal(SignalKind::terminate())?,
                signal(SignalKind::hangup())?,
            ],
            _file_size: signal(SignalKind::from_raw(Signal::XFSZ.as_raw()))?,
        })
    }

    /// Waits for the next signal. Cancel-safe.
    pub(super) async fn next(&mut self) {
        let [interrupt, terminate, hangup] = &mut self.all;
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
    }
}

/// The signal that shuts the workbench down.
#[cfg(not(unix))]
pub(super) struct Signals;

#[cfg(not(unix))]
impl Signals {
    #[expect(clippy::unnecessary_wraps, reason = "the same shape as on Unix")]
    pub(super) fn listen() -> std::io::Result<Self> {
        Ok(Self)
    }

    /// Waits for Ctrl-C. Cancel-safe.
    pub(super) async fn next(&mut self) {
        // If the handler cannot be installed, no signal ever arrives.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending().await
        }
    }
}
