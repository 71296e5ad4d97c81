//! The requests of one client that run, so that a cancel finds them. Two requests with one id both run;
//! a cancel of that id means both.

use std::{
    collections::HashMap,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use tokio_util::sync::CancellationToken;

use crate::wire::RequestId;

/// The running requests.
#[derive(Default)]
pub(super) struct InFlight {
    running: Mutex<HashMap<RequestId, Vec<Running>>>,
    begun: AtomicU64,
}

/// A request that runs.
#[derive(Clone)]
pub(super) struct Running {
    /// Tells requests with one id apart.
    serial: u64,
    /// Done when the client cancels it.
    pub(super) cancelled: CancellationToken,
}

impl InFlight {
    /// Notes a request.
    pub(super) fn begin(&self, id: &RequestId) -> Running {
        let running = Running {
            serial: self.begun.fetch_add(1, Ordering::Relaxed),
            cancelled: CancellationToken::new(),
        };
        self.running()
            .entry(id.clone())
            .or_default()
            .push(running.clone());
        running
    }

    /// Forgets a request.
    pub(super) fn end(&self, id: &RequestId, ended: &Running) {
        let mut running = self.running();
        if let Some(same_id) = running.get_mut(id) {
            same_id.retain(|request| request.serial != ended.serial);
            if same_id.is_empty() {
                running.remove(id);
            }
        }
    }

    /// Cancels what runs under this id; an unknown id is nobody's fault.
    pub(super) fn cancel(&self, id: &RequestId) {
        for request in self.running().get(id).into_iter().flatten() {
            request.cancelled.cancel();
        }
    }

    /// Cancels everything that runs.
    pub(super) fn cancel_all(&self) {
        for request in self.running().values().flatten() {
            request.cancelled.cancel();
        }
    }

    fn running(&self) -> MutexGuard<'_, HashMap<RequestId, Vec<Running>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
