//! Attributes a message of a server that names no request to a call. A message that could belong to a different
//! principal is given to no client.

use std::sync::Arc;

use tokio::time::Instant;

use crate::{
    call::{ClientHandle, ClientId, Principal},
    downstream::asks::cancelled_calls::CancelledCalls,
    era::Era,
};

/// A pending call of a server.
pub(crate) struct ActiveCall<'a> {
    pub(crate) client: &'a Arc<dyn ClientHandle>,
    /// Set while the client of the call has an open question.
    pub(crate) is_asked: bool,
}

/// The calls that may have asked a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Asker {
    /// The calls of one client.
    Client(ClientId),
    /// The calls of one principal.
    Principal(Principal),
}

impl Asker {
    /// Returns the calls that may have asked, if they are all of one client, or all of modern clients of one
    /// principal. Cancelled calls count too. Every call of a modern client counts as a client of its own. Without
    /// tokens all clients are one principal, because such a server does not tell them apart.
    fn of(
        at_work: &[ActiveCall<'_>],
        cancelled_calls: &CancelledCalls,
        now: Instant,
    ) -> Option<Self> {
        let first = at_work.first()?.client;
        let (id, principal) = (first.id(), first.principal());
        // The server does not say which call asks. It can only be one that it works on, or that was cancelled without
        // an answer. If all of these are of one client, or of modern clients of one principal, a wrong choice between
        // them shows nothing to a stranger.
        let is_only_client = at_work.iter().all(|it| it.client.id() == id);
        if is_only_client && !cancelled_calls.has_other_than(id, now) {
            return Some(Self::Client(id));
        }
        let is_only_principal = at_work
            .iter()
            .all(|it| it.client.own_era() == Era::Modern && it.client.principal() == principal);
        (is_only_principal && !cancelled_calls.has_other_principal_than(principal, now))
            .then_some(Self::Principal(principal))
    }
}

/// The client that gets a question.
#[derive(Clone)]
pub(crate) struct Addressee {
    pub(crate) client: Arc<dyn ClientHandle>,
    /// The calls that may have asked.
    pub(crate) asker: Asker,
}

impl Addressee {
    /// Creates the addressee of a question that certainly belongs to this client.
    pub(crate) fn certain(client: &Arc<dyn ClientHandle>) -> Self {
        Self {
            client: Arc::clone(client),
            asker: Asker::Client(client.id()),
        }
    }
}

/// Returns the client that gets a question, with the oldest call first in `at_work`. Within a principal it need not
/// be the client of the call that asks, because the answer goes back under the id of the question. Calls whose
/// clients have an open question come last, because mostly they wait for that answer. Among the others it is the
/// oldest that can answer, because servers mostly handle calls in order.
pub(crate) fn addressee(
    at_work: &[ActiveCall<'_>],
    cancelled_calls: &CancelledCalls,
    now: Instant,
    can_answer: impl Fn(&Arc<dyn ClientHandle>) -> bool,
) -> Option<Addressee> {
    let asker = Asker::of(at_work, cancelled_calls, now)?;
    // If all clients have an open question, one of the calls asks a second one.
    let all_are_asked = at_work.iter().all(|it| it.is_asked);
    let mut likely = at_work.iter().filter(|it| all_are_asked || !it.is_asked);
    let first = likely.clone().next()?;
    let chosen = likely.find(|it| can_answer(it.client)).unwrap_or(first);
    Some(Addressee {
        client: Arc::clone(chosen.client),
        asker,
    })
}

/// Returns the client that a log message is for, if there can be only one. Dropping a log message is better than
/// showing it with the wrong call. Within a principal it is the only call whose client has no open question.
pub(crate) fn meant<'a>(
    at_work: &[ActiveCall<'a>],
    cancelled_calls: &CancelledCalls,
    now: Instant,
) -> Option<&'a Arc<dyn ClientHandle>> {
    let mut working = at_work.iter().filter(|it| !it.is_asked);
    match (Asker::of(at_work, cancelled_calls, now)?, working.next()) {
        (Asker::Client(_), _) => at_work.first().map(|it| it.client),
        (Asker::Principal(_), Some(only)) if working.next().is_none() => Some(only.client),
        (Asker::Principal(_), _) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        call::{ClientId, Principal},
        downstream::test_client::TestClient,
    };

    fn client(id: u64, era: Era, principal: Principal) -> Arc<dyn ClientHandle> {
        let mut client = TestClient::new(era, "{}");
        client.id = id;
        client.principal = principal;
        client.handle()
    }

    fn at_work(calls: &[(Arc<dyn ClientHandle>, bool)]) -> Vec<ActiveCall<'_>> {
        let calls = calls.iter();
        let calls = calls.map(|(client, is_asked)| ActiveCall {
            client,
            is_asked: *is_asked,
        });
        calls.collect()
    }

    /// Returns the id of the client that a message is for, given calls as client and open question.
    fn id_of(
        calls: &[(Arc<dyn ClientHandle>, bool)],
        cancelled_calls: &CancelledCalls,
    ) -> Option<u64> {
        meant(&at_work(calls), cancelled_calls, Instant::now()).map(|client| client.id().0)
    }

    /// Returns the id of the client that gets a question which all clients except `unable` can answer.
    fn asked(calls: &[(Arc<dyn ClientHandle>, bool)], unable: u64) -> Option<u64> {
        let addressee = addressee(
            &at_work(calls),
            &CancelledCalls::default(),
            Instant::now(),
            |client| client.id().0 != unable,
        );
        addressee.map(|it| it.client.id().0)
    }

    #[test]
    fn a_question_goes_to_the_oldest_call_of_the_principal_that_can_be_asked() {
        let [one, other] = [Principal::Holder(0), Principal::Holder(1)];
        let modern = |id, principal| client(id, Era::Modern, principal);
        let three = |asked: [bool; 3]| -> Vec<_> {
            let ids = [1, 2, 3].map(|id| modern(id, one));
            ids.into_iter().zip(asked).collect()
        };
        assert_eq!(asked(&[], 0), None);
        assert_eq!(asked(&three([false; 3]), 0), Some(1));
        assert_eq!(asked(&three([false; 3]), 1), Some(2));
        assert_eq!(asked(&three([true, false, false]), 0), Some(2));
        assert_eq!(asked(&three([true; 3]), 0), Some(1), "it is asked later");
        assert_eq!(asked(&[(modern(1, one), false)], 1), Some(1), "nobody can");
        let last = "the call that asks cannot be asked";
        assert_eq!(asked(&three([true, true, false]), 3), Some(3), "{last}");
        let principals = [(modern(1, one), false), (modern(2, other), false)];
        assert_eq!(asked(&principals, 0), None);
        let eras = [
            (modern(1, one), false),
            (client(2, Era::Legacy, one), false),
        ];
        assert_eq!(asked(&eras, 0), None);
    }

    #[test]
    fn ambiguous_messages_are_given_to_no_client() {
        let [one, other] = [Principal::Holder(0), Principal::Holder(1)];
        let modern = |id, principal| client(id, Era::Modern, principal);
        let legacy = |id| client(id, Era::Legacy, one);
        let rows: [(&str, Vec<_>, Option<u64>); 8] = [
            ("no call", vec![], None),
            ("one call", vec![(modern(1, one), false)], Some(1)),
            ("one that is asked", vec![(modern(1, one), true)], Some(1)),
            (
                "two calls of one legacy client",
                vec![(legacy(1), false), (legacy(1), true)],
                Some(1),
            ),
            (
                "two legacy clients",
                vec![(legacy(1), true), (legacy(2), false)],
                None,
            ),
            (
                "one that is asked and one that works",
                vec![(modern(1, one), true), (modern(2, one), false)],
                Some(2),
            ),
            (
                "two that work",
                vec![(modern(1, one), false), (modern(2, one), false)],
                None,
            ),
            (
                "two principals",
                vec![(modern(1, one), true), (modern(2, other), false)],
                None,
            ),
        ];
        for (name, calls, expected) in rows {
            assert_eq!(
                id_of(&calls, &CancelledCalls::default()),
                expected,
                "{name}"
            );
        }
    }

    #[test]
    fn cancelled_calls_of_other_principals_count() {
        let [one, other] = [Principal::Holder(0), Principal::Holder(1)];
        for (principal, expected) in [(one, Some(2)), (other, None)] {
            let mut cancelled_calls = CancelledCalls::default();
            cancelled_calls.insert(7, ClientId(1), principal, Instant::now());
            let calls = [(client(2, Era::Modern, one), false)];
            assert_eq!(id_of(&calls, &cancelled_calls), expected);
            let calls = [(client(2, Era::Legacy, one), false)];
            assert_eq!(id_of(&calls, &cancelled_calls), None, "a legacy client");
        }
    }
}
