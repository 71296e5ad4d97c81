//! Calls that wait for their client. A legacy server asks in the middle of a call; a modern client can only be
//! answered that input is required, and comes back with another request. Until then the call waits here, found
//! by a handle that only we can have made, that is its principal's, good once, for the same request, and for a
//! while.

use std::{
    collections::HashMap,
    future::pending,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use serde_json::Value;
use sha2::{Digest, Sha256};
use tokio::{
    sync::Notify,
    time::{Instant, sleep, sleep_until},
};
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

use super::{exchange::Exchange, methods::Reply};
use crate::{
    call::Principal,
    contain::{Panicked, contain},
    era::{INPUT_RESPONSES, InputRequired, REQUEST_STATE},
    seal::{SealPurpose, Sealer},
    wire::{RawJson, Request},
};

/// How long a call waits for its client.
const PATIENCE: Duration = Duration::from_mins(10);
/// How many calls of one principal wait at once; beyond that the oldest ends.
const MAX_PARKED: usize = 32;
/// How long is waited for more questions after one, so that those which belong together are told together.
const GATHERING: Duration = Duration::from_millis(5);

/// A call that runs for an exchange.
pub(super) struct RunningCall {
    exchange: Arc<Exchange>,
    answer: Pin<Box<dyn Future<Output = Reply> + Send>>,
    /// Whether it goes on without anybody who waits for it.
    by_itself: bool,
}

impl RunningCall {
    /// A call whose answer is the future's.
    pub(super) fn new(
        exchange: Arc<Exchange>,
        answer: impl Future<Output = Reply> + Send + 'static,
    ) -> Self {
        Self {
            exchange,
            answer: Box::pin(answer),
            by_itself: false,
        }
    }

    /// What the call is for.
    pub(super) fn exchange(&self) -> &Arc<Exchange> {
        &self.exchange
    }

    /// Goes on while nobody waits for it, until it is dropped: others may wait for what it holds.
    fn go_on_by_itself(&mut self, tasks: &TaskTracker) {
        if !self.by_itself {
            let answer = std::mem::replace(&mut self.answer, Box::pin(pending()));
            let task = AbortOnDropHandle::new(tasks.spawn(contain(answer)));
            self.answer = Box::pin(async move {
                let reply = task.await.ok().and_then(Result::ok);
                reply.unwrap_or_else(|| Reply::internal_error(Panicked.to_string()))
            });
            self.by_itself = true;
        }
    }

    /// Runs until there is an answer; nothing if the client is asked something first.
    async fn run(&mut self) -> Option<Reply> {
        let exchange = &self.exchange;
        let asked = async {
            exchange.is_asked().await;
            sleep(GATHERING).await;
            // It may have been taken back meanwhile.
            exchange.is_asked().await;
        };
        tokio::select! {
            biased;
            reply = &mut self.answer => Some(reply),
            () = asked => None,
        }
    }
}

impl Drop for RunningCall {
    fn drop(&mut self) {
        self.exchange.end();
    }
}

/// A call that waits for its client.
struct Parked {
    call: RunningCall,
    principal: Principal,
    /// What the request was, so that it goes on with the same one.
    digest: [u8; 32],
    until: Instant,
}

/// All calls that wait.
#[derive(Default)]
pub(super) struct ParkedCalls {
    sealer: Sealer,
    table: Mutex<Table>,
    changed: Notify,
    /// The calls that go on by themselves.
    tasks: TaskTracker,
}

#[derive(Default)]
struct Table {
    calls: HashMap<u64, Parked>,
    handles: u64,
}

impl Table {
    /// Adds a call under a handle of its own. Where a principal has too many, its oldest ends: clients forget what
    /// they were asked, and a call that was forgotten must not be in the way of one that was not.
    fn insert(&mut self, parked: Parked) -> (u64, Option<Parked>) {
        let same = self.calls.iter();
        let same = same.filter(|(_, it)| it.principal == parked.principal);
        let handles: Vec<u64> = same.map(|(handle, _)| *handle).collect();
        let oldest = handles.iter().min().filter(|_| handles.len() >= MAX_PARKED);
        let displaced = oldest.and_then(|oldest| self.calls.remove(oldest));
        self.handles += 1;
        self.calls.insert(self.handles, parked);
        (self.handles, displaced)
    }
}

/// What a client sends back to go on with a call.
pub(super) enum Handle {
    /// A handle of ours.
    Ours(u64),
    /// Something that a server has given out, if anything.
    NotOurs,
}

impl ParkedCalls {
    /// Runs a call until there is something to tell the client: the answer, or what it is asked.
    pub(super) async fn run(
        &self,
        mut call: RunningCall,
        request: &Request,
        principal: Principal,
    ) -> Reply {
        match call.run().await {
            Some(reply) => reply,
            None => self.park(call, request, principal),
        }
    }

    /// Lets a call wait for the answers to what it has asked.
    fn park(&self, mut call: RunningCall, request: &Request, principal: Principal) -> Reply {
        let requests = call.exchange.open_questions();
        call.exchange.detach();
        call.go_on_by_itself(&self.tasks);
        let parked = Parked {
            call,
            principal,
            digest: digest(request),
            until: Instant::now() + PATIENCE,
        };
        let (handle, displaced) = self.table().insert(parked);
        // Dropped outside of the lock: its server is told.
        drop(displaced);
        self.changed.notify_one();
        let sealed = self
            .sealer
            .seal(SealPurpose::ParkedCall, &handle.to_string());
        let asked = InputRequired {
            requests,
            state: Some(RawJson::of(&sealed)),
        };
        Reply::Result(asked.to_result())
    }

    /// Whose the state is that a client sends back.
    pub(super) fn handle(&self, state: Option<&RawJson>) -> Handle {
        let sealed = state.and_then(RawJson::as_text);
        let content = sealed.and_then(|sealed| self.sealer.open(SealPurpose::ParkedCall, &sealed));
        let handle = content.and_then(|content| content.parse().ok());
        handle.map_or(Handle::NotOurs, Handle::Ours)
    }

    /// The call that a client goes on with. It waits no longer: a handle is good once.
    pub(super) fn take(
        &self,
        handle: u64,
        request: &Request,
        principal: Principal,
    ) -> Result<RunningCall, Reply> {
        let mut table = self.table();
        let parked = table.calls.get(&handle);
        let Some(parked) = parked.filter(|it| it.principal == principal) else {
            return Err(Reply::invalid_params(
                "requestState: no call waits for it; it was used before, or came too late",
            ));
        };
        if parked.digest != digest(request) {
            return Err(Reply::invalid_params(
                "requestState: it belongs to another request",
            ));
        }
        let parked = table.calls.remove(&handle).map(|parked| parked.call);
        parked.ok_or_else(|| Reply::internal_error("the call that waited is gone"))
    }

    /// Ends the calls that have waited for too long, for ever.
    pub(super) async fn expire(&self) {
        loop {
            let next = self.table().calls.values().map(|it| it.until).min();
            tokio::select! {
                () = sleep_until(next.unwrap_or_else(Instant::now)), if next.is_some() => {
                    let now = Instant::now();
                    let expired: Vec<_> = {
                        let mut table = self.table();
                        table.calls.extract_if(|_, it| it.until <= now).collect()
                    };
                    // Dropped outside of the lock: the servers are told.
                    drop(expired);
                }
                () = self.changed.notified() => {}
            }
        }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a request is, apart from what may differ when it is made again.
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
    digest.update([0]);
    digest.update(params.unwrap_or_default());
    digest.finalize().into()
}

#[cfg(test)]
mod tests;
