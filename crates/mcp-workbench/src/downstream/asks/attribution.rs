//! Whose call a server means by what it says without saying whose it is. What could belong to somebody else is
//! given to nobody.

use std::sync::Arc;

use tokio::time::Instant;

use crate::{call::ClientHandle, downstream::asks::taken_back::TakenBack, era::Era};

/// A call that a server works on.
pub(crate) struct AtWork<'a> {
    pub(crate) client: &'a Arc<dyn ClientHandle>,
    /// Whether the server waits for an answer of the client.
    pub(crate) waits: bool,
}

/// The client that is meant, if it can only be one: all calls are of that client, and so were those that were
/// taken back. Every call of a modern client counts as a client of its own; there, while all are of one
/// principal, it is the only one whose call does not wait for an answer. Without tokens everybody is one principal:
/// whoever serves so does not tell clients apart.
pub(crate) fn meant<'a>(
    at_work: &[AtWork<'a>],
    taken_back: &TakenBack,
    now: Instant,
) -> Option<&'a Arc<dyn ClientHandle>> {
    let first = at_work.first()?.client;
    let is_only_client = at_work.iter().all(|it| it.client.id() == first.id())
        && !taken_back.has_other_than(first.id(), now);
    if is_only_client {
        return Some(first);
    }
    let principal = first.principal();
    let is_only_principal = at_work
        .iter()
        .all(|it| it.client.era() == Era::Modern && it.client.principal() == principal)
        && !taken_back.has_other_principal_than(principal, now);
    let mut working = at_work.iter().filter(|it| !it.waits);
    match (working.next(), working.next()) {
        (Some(only), None) if is_only_principal => Some(only.client),
        _ => None,
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

    /// The id of the client that is meant, of calls as client and whether it waits.
    fn id_of(calls: &[(Arc<dyn ClientHandle>, bool)], taken_back: &TakenBack) -> Option<u64> {
        let at_work: Vec<_> = calls
            .iter()
            .map(|(client, waits)| AtWork {
                client,
                waits: *waits,
            })
            .collect();
        meant(&at_work, taken_back, Instant::now()).map(|client| client.id().0)
    }

    #[test]
    fn only_what_can_belong_to_nobody_else_is_given_to_somebody() {
        let [one, other] = [Principal::Holder(0), Principal::Holder(1)];
        let modern = |id, principal| client(id, Era::Modern, principal);
        let legacy = |id| client(id, Era::Legacy, one);
        let rows: [(&str, Vec<_>, Option<u64>); 8] = [
            ("no call", vec![], None),
            ("one call", vec![(modern(1, one), false)], Some(1)),
            ("one that waits", vec![(modern(1, one), true)], Some(1)),
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
                "one that waits and one that works",
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
            assert_eq!(id_of(&calls, &TakenBack::default()), expected, "{name}");
        }
    }

    #[test]
    fn a_call_that_was_taken_back_counts_unless_it_was_the_same_principals() {
        let [one, other] = [Principal::Holder(0), Principal::Holder(1)];
        for (principal, expected) in [(one, Some(2)), (other, None)] {
            let mut taken_back = TakenBack::default();
            taken_back.insert(7, ClientId(1), principal, Instant::now());
            let calls = [(client(2, Era::Modern, one), false)];
            assert_eq!(id_of(&calls, &taken_back), expected);
            let calls = [(client(2, Era::Legacy, one), false)];
            assert_eq!(id_of(&calls, &taken_back), None, "a legacy client");
        }
    }
}
