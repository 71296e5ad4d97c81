//! How long opens have waited for a server, so that none waits for a bad one twice.

use std::sync::PoisonError;

use tokio::time::Instant;

use crate::downstream::server::ServerHandle;

/// How long opens have waited for a server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Awaited {
    /// Not at all since it was last up.
    #[default]
    Never,
    /// Since this moment. A caller that gave up and tries again does not start over.
    Since(Instant),
    /// Until they reported it as failed or still starting.
    InVain,
}

impl ServerHandle {
    /// Returns since when opens wait for the server, beginning now if none does; nothing if they have waited long enough.
    pub fn awaited_since(&self, now: Instant) -> Option<Instant> {
        let awaited = self.about.awaited.lock();
        let mut awaited = awaited.unwrap_or_else(PoisonError::into_inner);
        match *awaited {
            Awaited::Never => {
                *awaited = Awaited::Since(now);
                Some(now)
            }
            Awaited::Since(moment) => Some(moment),
            Awaited::InVain => None,
        }
    }

    /// Records whether an open found the server up, or gave it a reason to wait for it anew.
    pub fn set_awaited(&self, awaited: Awaited) {
        *self
            .about
            .awaited
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = awaited;
    }
}
