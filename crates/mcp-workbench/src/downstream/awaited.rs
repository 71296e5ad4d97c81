//! How long opens have waited for a server, so that none waits for a bad one twice.

use tokio::time::Instant;

/// How long opens have waited for a server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Awaited {
    /// Not at all since it was last up.
    #[default]
    Never,
    /// Since this moment. A caller that gave up and tries again does not start over.
    Since(Instant),
    /// Until they reported it as failed or still starting.
    InVain,
}

impl Awaited {
    /// Returns since when opens wait for the server, beginning now if none does; nothing if they have waited long enough.
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
