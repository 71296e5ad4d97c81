//! The requests of one client that run, so that a cancel finds them. Two requests with one id both run;
//! a cancel of that id means both.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use slab::Slab;
use tokio_util::sync::CancellationToken;

use crate::{
    downstream::{CallTicket, ServerHandle},
    wire::RequestId,
};

/// The running requests.
#[derive(Default)]
pub(super) struct InFlight {
    running: Mutex<Slab<Running>>,
}

/// A request that runs.
struct Running {
    id: RequestId,
    runs: Runs,
    is_cancelled: bool,
}

/// Where a request runs.
pub(super) enum Runs {
    /// In a task of its own, which watches this.
    InTask(CancellationToken),
    /// At a server, as a call.
    AtServer(Arc<ServerHandle>, CallTicket),
}

/// Names a request until its end.
#[derive(Debug)]
pub(super) struct RunningKey(usize);

impl InFlight {
    /// Notes a request.
    pub(super) fn begin(&self, id: RequestId, runs: Runs) -> RunningKey {
        RunningKey(self.running().insert(Running {
            id,
            runs,
            is_cancelled: false,
        }))
    }

    /// Forgets a request; returns its id, unless the client has cancelled it and wants no answer.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "a request that has ended cannot be ended again"
    )]
    pub(super) fn end(&self, key: RunningKey) -> Option<RequestId> {
        let ended = self.running().remove(key.0);
        (!ended.is_cancelled).then_some(ended.id)
    }

    /// A request goes on in a task; returns where it ran before. Nothing if it has been cancelled.
    pub(super) fn go_on_in_task(
        &self,
        key: &RunningKey,
        cancelled: CancellationToken,
    ) -> Option<Runs> {
        let mut running = self.running();
        let request = running.get_mut(key.0).filter(|it| !it.is_cancelled)?;
        Some(std::mem::replace(
            &mut request.runs,
            Runs::InTask(cancelled),
        ))
    }

    /// Cancels what runs under this id; an unknown id is nobody's fault.
    pub(super) fn cancel(&self, id: &RequestId) {
        for (_, request) in self.running().iter_mut() {
            if request.id == *id {
                request.cancel();
            }
        }
    }

    /// Cancels everything that runs.
    pub(super) fn cancel_all(&self) {
        for (_, request) in self.running().iter_mut() {
            request.cancel();
        }
    }

    fn running(&self) -> MutexGuard<'_, Slab<Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Running {
    fn cancel(&mut self) {
        self.is_cancelled = true;
        match &self.runs {
            Runs::InTask(cancelled) => cancelled.cancel(),
            Runs::AtServer(server, ticket) => server.cancel(*ticket),
        }
    }
}

#[cfg(test)]
mod tests;
