//! The sessions of legacy clients.

use std::{
    collections::BTreeSet,
    sync::{Mutex, MutexGuard, PoisonError},
};

use super::incoming::Incoming;

/// The header that names a session.
pub(super) const SESSION: &str = "mcp-session-id";

/// All sessions, and how many there were.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    sessions: Mutex<(u64, BTreeSet<String>)>,
}

impl Sessions {
    pub(super) fn begin(&self) -> String {
        let mut sessions = self.lock();
        sessions.0 += 1;
        let name = format!("fixture-session-{}", sessions.0);
        sessions.1.insert(name.clone());
        name
    }

    /// Checks that a request belongs to a session. Returns the status if it does not.
    pub(super) fn check(&self, incoming: &Incoming) -> Result<(), &'static str> {
        let session = incoming.header(SESSION).ok_or("400 Bad Request")?;
        let known = self.lock().1.contains(session);
        known.then_some(()).ok_or("404 Not Found")
    }

    /// Ends the session of a request; the status if there is none.
    pub(super) fn end(&self, incoming: &Incoming) -> Result<(), &'static str> {
        let session = incoming.header(SESSION).ok_or("400 Bad Request")?;
        let known = self.lock().1.remove(session);
        known.then_some(()).ok_or("404 Not Found")
    }

    fn lock(&self) -> MutexGuard<'_, (u64, BTreeSet<String>)> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
