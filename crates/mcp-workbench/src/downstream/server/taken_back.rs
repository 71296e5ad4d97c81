//! The calls that were taken back and that a server may still work, and ask, for. A question of the server may
//! belong to one of them as long as it has not answered it, and for a while if it never does.

use std::{collections::HashMap, time::Duration};

use tokio::time::Instant;

use crate::call::ClientId;

/// How long a call that was taken back is thought of.
const MEMORY: Duration = Duration::from_mins(1);

/// The calls of one connection that were taken back.
#[derive(Default)]
pub(super) struct TakenBack {
    /// Whose they were and when, by their ids.
    calls: HashMap<u64, (ClientId, Instant)>,
}

impl TakenBack {
    /// Notes a call that is taken back.
    pub(super) fn note(&mut self, id: u64, client: ClientId, now: Instant) {
        self.calls.retain(|_, (_, at)| now < *at + MEMORY);
        self.calls.insert(id, (client, now));
    }

    /// The server has answered it after all.
    pub(super) fn answered(&mut self, id: u64) {
        self.calls.remove(&id);
    }

    /// Whether the server may still work for somebody else.
    pub(super) fn has_other_than(&self, client: ClientId, now: Instant) -> bool {
        let recent = self.calls.values().filter(|(_, at)| now < *at + MEMORY);
        recent.into_iter().any(|(other, _)| *other != client)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_thought_of_until_its_answer_or_for_a_minute() {
        let now = Instant::now();
        let mut calls = TakenBack::default();
        calls.note(1, ClientId(1), now);
        calls.note(2, ClientId(2), now);
        assert!(calls.has_other_than(ClientId(1), now));
        calls.answered(2);
        assert!(!calls.has_other_than(ClientId(1), now));
        assert!(calls.has_other_than(ClientId(2), now));
        let later = now + MEMORY;
        assert!(!calls.has_other_than(ClientId(2), later));
        calls.note(3, ClientId(3), later);
        assert_eq!(calls.calls.len(), 1, "the old one is forgotten");
    }
}
