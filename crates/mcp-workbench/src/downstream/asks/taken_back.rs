//! The calls that were taken back and that a server may still work, and ask, for. A question of the server may
//! belong to one of them as long as it has not answered it, and for a while if it never does.

use std::{collections::HashMap, time::Duration};

use tokio::time::Instant;

use crate::{
    call::{ClientId, Principal},
    downstream::session::pending::PendingCall,
};

/// How long a call that was taken back is thought of.
const MEMORY: Duration = Duration::from_mins(1);

/// The calls of one connection that were taken back.
#[derive(Default)]
pub(crate) struct TakenBack {
    calls: HashMap<u64, TakenCall>,
}

/// A call that was taken back.
struct TakenCall {
    client: ClientId,
    principal: Principal,
    at: Instant,
}

impl TakenBack {
    /// Notes a call that is taken back.
    pub(crate) fn note(&mut self, id: u64, call: &PendingCall, now: Instant) {
        let client = &call.queued.call.context.client;
        self.insert(id, client.id(), client.principal(), now);
    }

    /// Notes a call of this client.
    pub(crate) fn insert(&mut self, id: u64, client: ClientId, principal: Principal, at: Instant) {
        self.calls.retain(|_, call| at < call.at + MEMORY);
        let call = TakenCall {
            client,
            principal,
            at,
        };
        self.calls.insert(id, call);
    }

    /// The server has answered it after all; false if there is no such call.
    pub(crate) fn answered(&mut self, id: u64) -> bool {
        self.calls.remove(&id).is_some()
    }

    /// Whether the server may still work for somebody else.
    pub(crate) fn has_other_than(&self, client: ClientId, now: Instant) -> bool {
        self.recent(now).any(|call| call.client != client)
    }

    /// Whether the server may still work for another principal.
    pub(crate) fn has_other_principal_than(&self, principal: Principal, now: Instant) -> bool {
        self.recent(now).any(|call| call.principal != principal)
    }

    fn recent(&self, now: Instant) -> impl Iterator<Item = &TakenCall> {
        self.calls
            .values()
            .filter(move |call| now < call.at + MEMORY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_thought_of_until_its_answer_or_for_a_minute() {
        let now = Instant::now();
        let mut calls = TakenBack::default();
        calls.insert(1, ClientId(1), Principal::Anybody, now);
        calls.insert(2, ClientId(2), Principal::Anybody, now);
        assert!(calls.has_other_than(ClientId(1), now));
        assert!(calls.answered(2) && !calls.answered(2));
        assert!(!calls.has_other_than(ClientId(1), now));
        assert!(calls.has_other_than(ClientId(2), now));
        let later = now + MEMORY;
        assert!(!calls.has_other_than(ClientId(2), later));
        calls.insert(3, ClientId(3), Principal::Anybody, later);
        assert_eq!(calls.calls.len(), 1, "the old one is forgotten");
    }
}
