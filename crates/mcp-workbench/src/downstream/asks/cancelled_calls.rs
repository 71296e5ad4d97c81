//! Cancelled calls that a server may still work on and ask questions for. A question may belong to one of them until
//! the server answers it, and for a limited time if the server never does.

use std::{collections::HashMap, time::Duration};

use tokio::time::Instant;

use crate::{
    call::{ClientId, Principal},
    downstream::session::pending::PendingCall,
};

/// Upper bound on how long a cancelled call without an answer counts.
const MAX_AGE: Duration = Duration::from_mins(1);

/// The cancelled calls of one connection.
#[derive(Default)]
pub(crate) struct CancelledCalls {
    calls: HashMap<u64, CancelledCall>,
}

struct CancelledCall {
    client: ClientId,
    principal: Principal,
    at: Instant,
}

impl CancelledCalls {
    pub(crate) fn record(&mut self, id: u64, call: &PendingCall, now: Instant) {
        let client = &call.queued.call.context.client;
        self.insert(id, client.id(), client.principal(), now);
    }

    /// Records a cancelled call of this client.
    pub(crate) fn insert(&mut self, id: u64, client: ClientId, principal: Principal, at: Instant) {
        self.calls.retain(|_, call| at < call.at + MAX_AGE);
        let call = CancelledCall {
            client,
            principal,
            at,
        };
        self.calls.insert(id, call);
    }

    /// Removes a call that the server answered after all; returns false if there is none.
    pub(crate) fn answered(&mut self, id: u64) -> bool {
        self.calls.remove(&id).is_some()
    }

    /// Returns true if the server may still work for a different client.
    pub(crate) fn has_other_than(&self, client: ClientId, now: Instant) -> bool {
        self.recent(now).any(|call| call.client != client)
    }

    /// Returns true if the server may still work for a different principal.
    pub(crate) fn has_other_principal_than(&self, principal: Principal, now: Instant) -> bool {
        self.recent(now).any(|call| call.principal != principal)
    }

    fn recent(&self, now: Instant) -> impl Iterator<Item = &CancelledCall> {
        self.calls
            .values()
            // Old calls are removed only when another one is recorded, so their age counts here too.
            .filter(move |call| now < call.at + MAX_AGE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cancelled_calls_count_until_answered_or_for_a_minute() {
        let now = Instant::now();
        let mut calls = CancelledCalls::default();
        calls.insert(1, ClientId(1), Principal::Anybody, now);
        calls.insert(2, ClientId(2), Principal::Anybody, now);
        assert!(calls.has_other_than(ClientId(1), now));
        assert!(calls.answered(2) && !calls.answered(2));
        assert!(!calls.has_other_than(ClientId(1), now));
        assert!(calls.has_other_than(ClientId(2), now));
        let later = now + MAX_AGE;
        assert!(!calls.has_other_than(ClientId(2), later));
        calls.insert(3, ClientId(3), Principal::Anybody, later);
        assert_eq!(calls.calls.len(), 1, "the old one is forgotten");
    }
}
