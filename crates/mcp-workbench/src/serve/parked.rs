//! Exchanges that wait for their clients. A legacy server asks in the middle of a call; the only way to ask a modern
//! client is an `input_required` response, after which it sends another request. Until then the exchange is parked
//! here. Its handle is sealed, belongs to one principal, works once, only for the same request, and expires. A run that
//! its client follows as a task is here too, until the client has not asked about it for a while.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use rawjson::RawJson;
use serde_json::Value;
use tokio::{sync::Notify, time::Instant};
use tokio_util::task::TaskTracker;

use super::{
    exchange::Exchange,
    methods::Reply,
    replica::{HandleOwner, Replica},
};
use crate::{
    alarm::Alarm,
    call::Principal,
    era::{INPUT_RESPONSES, REQUEST_STATE},
    seal::SealPurpose,
    sha256::Sha256,
    sync::lock,
    wire::Request,
};

/// How long an exchange waits for its client.
const PARKING_TIMEOUT: Duration = Duration::from_mins(10);
/// How many exchanges of one principal wait at once; beyond that the oldest ends.
const MAX_PARKED: usize = 32;

/// An exchange that waits for its client.
struct Parked {
    exchange: Arc<Exchange>,
    /// The digest of the request, so that it is continued by the same one; `None` for a task, which requests of other kinds
    /// are about.
    digest: Option<[u8; 32]>,
    until: Instant,
}

pub(super) struct ParkedCalls {
    replica: Arc<Replica>,
    table: Mutex<ParkedTable>,
    changed: Notify,
    /// The tasks of modern requests. They keep running while their client is away.
    pub(super) tasks: TaskTracker,
}

#[derive(Default)]
struct ParkedTable {
    exchanges: HashMap<u64, Parked>,
    handles: u64,
}

impl ParkedTable {
    /// Adds an exchange under a new handle. If a principal has too many, its oldest is removed: clients forget
    /// questions, and a forgotten call must not block a new one.
    fn insert(&mut self, parked: Parked) -> (u64, Option<Parked>) {
        let principal = parked.exchange.principal;
        let same = self
            .exchanges
            .iter()
            .filter(|(_, it)| it.exchange.principal == principal);
        let handles: Vec<u64> = same.map(|(handle, _)| *handle).collect();
        // Handles only grow, so the smallest is the oldest.
        let oldest = handles.iter().min().filter(|_| handles.len() >= MAX_PARKED);
        let displaced = oldest.and_then(|oldest| self.exchanges.remove(oldest));
        self.handles += 1;
        self.exchanges.insert(self.handles, parked);
        (self.handles, displaced)
    }
}

/// The state that a client sends back to continue a call.
pub(super) enum Handle {
    Ours(u64),
    /// Another replica has parked the call, or an earlier process.
    OfReplica,
    /// A state that a server has issued, if any.
    NotOurs,
}

impl ParkedCalls {
    /// Creates an empty table of this process.
    pub(super) fn new(replica: Arc<Replica>) -> Self {
        Self {
            replica,
            table: Mutex::default(),
            changed: Notify::new(),
            tasks: TaskTracker::new(),
        }
    }

    pub(super) fn replica(&self) -> &Arc<Replica> {
        &self.replica
    }

    /// Parks the exchange of a request. Returns the sealed handle by which its client finds it.
    pub(super) fn park(&self, exchange: &Arc<Exchange>, request: &Request) -> String {
        let parked = Parked {
            exchange: Arc::clone(exchange),
            digest: Some(digest(request)),
            until: Instant::now() + PARKING_TIMEOUT,
        };
        let handle = self.insert(parked);
        self.replica.handle(SealPurpose::ParkedCall, handle)
    }

    /// Keeps an exchange that its client follows as a task. Returns the sealed id of the task.
    pub(super) fn keep_task(&self, exchange: &Arc<Exchange>) -> String {
        let handle = self.insert(Parked {
            exchange: Arc::clone(exchange),
            digest: None,
            until: Instant::now() + PARKING_TIMEOUT,
        });
        self.replica.handle(SealPurpose::Run, handle)
    }

    /// Returns the exchange of a task, if this principal got its id from us. The time until it expires starts over.
    pub(super) fn task(&self, id: &str, principal: Principal) -> Option<Arc<Exchange>> {
        let HandleOwner::Here(handle) = self.replica.place(SealPurpose::Run, id)? else {
            return None;
        };
        let mut table = self.table();
        let parked = table
            .exchanges
            .get_mut(&handle)
            .filter(|it| it.exchange.principal == principal)?;
        parked.until = Instant::now() + PARKING_TIMEOUT;
        Some(Arc::clone(&parked.exchange))
    }

    fn insert(&self, parked: Parked) -> u64 {
        let (handle, displaced) = self.table().insert(parked);
        // Cancelled outside of the lock, because that sends to its server.
        if let Some(displaced) = displaced {
            displaced.exchange.cancel();
        }
        // The new deadline may be the next one.
        self.changed.notify_one();
        handle
    }

    /// Returns the parked call that the state names, if we have issued it.
    pub(super) fn handle(&self, state: Option<&RawJson>) -> Handle {
        let sealed = state.and_then(RawJson::as_text);
        let place = sealed.and_then(|it| self.replica.place(SealPurpose::ParkedCall, &it));
        match place {
            Some(HandleOwner::Here(handle)) => Handle::Ours(handle),
            Some(HandleOwner::Elsewhere(_)) => Handle::OfReplica,
            None => Handle::NotOurs,
        }
    }

    /// Takes the exchange that a client continues: a handle is good once.
    pub(super) fn take(
        &self,
        handle: u64,
        request: &Request,
        principal: Principal,
    ) -> Result<Arc<Exchange>, Reply> {
        let mut table = self.table();
        // Checked before it is removed: a request that does not fit must not use the handle up.
        let parked = table.exchanges.get(&handle);
        let Some(parked) = parked.filter(|it| it.exchange.principal == principal) else {
            return Err(Reply::invalid_params(
                "requestState: unknown, already used or expired",
            ));
        };
        // Otherwise a client could get the consent of one call for another.
        if parked.digest != Some(digest(request)) {
            return Err(Reply::invalid_params(
                "requestState: belongs to a different request",
            ));
        }
        let parked = table.exchanges.remove(&handle);
        let parked = parked.map(|parked| parked.exchange);
        parked.ok_or_else(|| Reply::internal_error("the parked call has ended"))
    }

    /// Cancels exchanges that have waited for too long. Never ends.
    pub(super) async fn expire(&self) {
        let mut alarm = Alarm::default();
        loop {
            let next = self.table().exchanges.values().map(|it| it.until).min();
            tokio::select! {
                () = alarm.wait(next) => {
                    let now = Instant::now();
                    let expired: Vec<_> = {
                        let mut table = self.table();
                        table.exchanges.extract_if(|_, it| it.until <= now).collect()
                    };
                    // Cancelled outside of the lock, because that sends to the servers.
                    for (_, parked) in expired {
                        parked.exchange.cancel();
                    }
                }
                () = self.changed.notified() => {}
            }
        }
    }

    fn table(&self) -> MutexGuard<'_, ParkedTable> {
        lock(&self.table)
    }
}

/// Returns the digest of a request without the members that may differ when it is repeated.
fn digest(request: &Request) -> [u8; 32] {
    let params = request.params.as_ref().map(|params| {
        let params = params.without_members(&["_meta", INPUT_RESPONSES, REQUEST_STATE]);
        // Read as a value, so that the order of members does not count.
        match serde_json::from_slice::<Value>(params.as_bytes()) {
            Ok(mut value) => {
                value.sort_all_objects();
                value.to_string()
            }
            Err(_) => params.as_str().to_owned(),
        }
    });
    let mut digest = Sha256::new();
    digest.update(request.method.as_bytes());
    // Keeps method and parameters apart.
    digest.update([0]);
    digest.update(params.unwrap_or_default());
    digest.finish()
}

#[cfg(test)]
mod tests;
