//! How long opens have waited for a server, so that no two opens wait for the same failing server.

use tokio::time::Instant;

/// The state of waiting for a server at an open.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum OpenWait {
    /// No open has waited since the server was last up.
    #[default]
    Never,
    /// Opens have waited since this moment. A caller that gave up and retries does not start over.
    Since(Instant),
    /// Opens have waited long enough and reported the server as failed or still starting.
    InVain,
}

impl OpenWait {
    /// Returns since when opens wait for the server, starting now if none does; `None` if they have waited long
    /// enough.
    pub(crate) fn since(&mut self, now: Instant) -> Option<Instant> {
        match *self {
            Self::Never => {
                *self = Self::Since(now);
                Some(now)
            }
            Self::Since(moment) => Some(moment),
            Self::InVain => None,
        }
    }
}
