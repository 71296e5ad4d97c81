//! The running requests of one client. They are registered so that a cancellation finds them, so that their number is
//! bounded, and so that a shutdown can wait for them. Two requests with the same id both run; a cancellation of that id
//! applies to both.

use std::sync::{
    Arc, Mutex, MutexGuard,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use slab::Slab;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::exchange::Exchange;
use crate::{
    downstream::{CallTicket, ServerHandle},
    sync::lock,
    wire::RequestId,
};

/// How many requests of one client run at once. Beyond that no more is read until one is answered. A
/// large request counts as several, so that their bytes are bounded too.
pub(super) const MAX_REQUESTS: usize = 4096;
const REQUEST_BYTES: usize = 64 * 1024;

#[derive(Default)]
pub(super) struct InFlight {
    running: Mutex<Slab<RunningRequest>>,
    /// For how many the running ones count. It changes only while they are locked.
    used: AtomicUsize,
    /// True while a task waits until all have ended.
    is_ending: AtomicBool,
    /// There is room again, or all have ended.
    fewer: Notify,
}

struct RunningRequest {
    id: RequestId,
    runs: Runs,
    /// For how many it counts.
    takes: usize,
    is_cancelled: bool,
}

pub(super) enum Runs {
    /// In its own task, which watches this token.
    InTask(CancellationToken),
    /// At a server, as a call.
    AtServer(Arc<ServerHandle>, CallTicket),
    /// As part of an exchange with a modern client, which tracks it.
    Exchange(Arc<Exchange>),
}

impl Runs {
    pub(super) fn cancel(&self) {
        match self {
            Self::InTask(cancelled) => cancelled.cancel(),
            Self::AtServer(server, ticket) => server.cancel(*ticket),
            Self::Exchange(exchange) => exchange.cancel(),
        }
    }
}

/// Names a request until its end.
#[derive(Debug)]
pub(super) struct RunningKey(usize);

impl InFlight {
    /// Registers a request of `size` bytes. Returns its id as the error if there is no room.
    pub(super) fn begin(
        &self,
        id: RequestId,
        runs: Runs,
        size: usize,
    ) -> Result<RunningKey, RequestId> {
        let mut running = self.running();
        let used = self.used.load(Ordering::Relaxed);
        // Counted in an atomic beside the table, so that `has_room` needs no lock for every line that is read.
        let free = MAX_REQUESTS.saturating_sub(used);
        if free == 0 {
            return Err(id);
        }
        // A large request takes all the room that is left.
        let takes = (1 + size / REQUEST_BYTES).min(free);
        self.used.store(used + takes, Ordering::Relaxed);
        let key = running.insert(RunningRequest {
            id,
            runs,
            takes,
            is_cancelled: false,
        });
        Ok(RunningKey(key))
    }

    /// Removes a request. Returns its id, unless the client has cancelled it and wants no response. A task that waits
    /// for the end continues after the response, which is sent in the same turn of the single thread.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "a request that has ended cannot be ended again"
    )]
    pub(super) fn end(&self, key: RunningKey) -> Option<RequestId> {
        let mut running = self.running();
        let ended = running.remove(key.0);
        let used = self.used.load(Ordering::Relaxed);
        self.used.store(used - ended.takes, Ordering::Relaxed);
        let is_last = running.is_empty() && self.is_ending.load(Ordering::Relaxed);
        drop(running);
        // Only these two changes can end a wait.
        if used == MAX_REQUESTS || is_last {
            self.fewer.notify_waiters();
        }
        (!ended.is_cancelled).then_some(ended.id)
    }

    /// Returns how many requests run.
    #[cfg(unix)]
    pub(super) fn count(&self) -> usize {
        self.running().len()
    }

    /// Returns true if there is room for another request.
    pub(super) fn has_room(&self) -> bool {
        self.used.load(Ordering::Relaxed) < MAX_REQUESTS
    }

    /// Waits until there is. Cancel-safe.
    pub(super) async fn room(&self) {
        self.until(|| self.has_room()).await;
    }

    /// Waits until all have ended. Cancel-safe.
    pub(super) async fn all_ended(&self) {
        self.is_ending.store(true, Ordering::Relaxed);
        self.until(|| self.running().is_empty()).await;
    }

    async fn until(&self, is_so: impl Fn() -> bool) {
        loop {
            // Created before the check, so that a notification between check and wait is not lost.
            let fewer = self.fewer.notified();
            if is_so() {
                return;
            }
            fewer.await;
        }
    }

    /// Moves a request from its server to a task. Returns false if it has been cancelled.
    pub(super) fn move_to_task(&self, key: &RunningKey, cancelled: CancellationToken) -> bool {
        let mut running = self.running();
        match running.get_mut(key.0).filter(|it| !it.is_cancelled) {
            Some(request) => {
                request.runs = Runs::InTask(cancelled);
                true
            }
            None => false,
        }
    }

    /// Cancels the requests with this id. Unknown ids are ignored, because the response may be on its way.
    pub(super) fn cancel(&self, id: &RequestId) {
        for (_, request) in self.running().iter_mut() {
            if request.id == *id {
                request.cancel();
            }
        }
    }

    pub(super) fn cancel_all(&self) {
        for (_, request) in self.running().iter_mut() {
            request.cancel();
        }
    }

    fn running(&self) -> MutexGuard<'_, Slab<RunningRequest>> {
        lock(&self.running)
    }
}

impl RunningRequest {
    fn cancel(&mut self) {
        self.is_cancelled = true;
        self.runs.cancel();
    }
}

#[cfg(test)]
mod tests;
