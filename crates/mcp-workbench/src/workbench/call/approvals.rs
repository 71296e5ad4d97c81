//! Calls that wait for the decision of a user. The user is asked by the client of the call, and can decide on the page or
//! by a command instead: whichever answers first counts.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicUsize, Ordering},
    },
    time::SystemTime,
};

use ident::ToolIdentifier;
use rawjson::RawJson;
use tokio::sync::oneshot;

use crate::{call::ClientIdentity, sync::lock};

/// The most calls that can be decided here; beyond that only the client is asked.
const MAX_PENDING: usize = 1000;

/// The decision about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decision {
    Once,
    /// All calls of the tool in the session of the client.
    Session,
    Deny,
}

/// A call that waits for a decision.
#[derive(Debug, Clone)]
pub(crate) struct PendingApproval {
    pub tool: ToolIdentifier,
    /// All arguments, as the client sent them.
    pub arguments: RawJson,
    /// The rule that asks, in words.
    pub reason: String,
    pub client: Arc<ClientIdentity>,
    pub since: SystemTime,
    /// Set if the client has a session that a decision can hold for.
    pub has_session: bool,
    /// Set if only the absence of a rule asks, so that a rule under `allow` ends it.
    pub is_unlisted: bool,
}

/// There is no such call any more: it was decided, or its client has gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NotPending;

/// The calls that wait for a decision.
#[derive(Default)]
pub(crate) struct Approvals {
    pending: Mutex<PendingApprovals>,
    /// The number of pages that show them.
    watchers: AtomicUsize,
}

#[derive(Default)]
struct PendingApprovals {
    next: u64,
    calls: BTreeMap<u64, (PendingApproval, oneshot::Sender<Decision>)>,
}

impl Approvals {
    /// Returns the waiting calls with their numbers, oldest first.
    pub(crate) fn list(&self) -> Vec<(u64, PendingApproval)> {
        let pending = self.pending();
        let calls = pending.calls.iter();
        calls.map(|(id, (call, _))| (*id, call.clone())).collect()
    }

    pub(crate) fn decide(
        &self,
        id: u64,
        decision: Decision,
    ) -> Result<PendingApproval, NotPending> {
        let (call, reply) = self.pending().calls.remove(&id).ok_or(NotPending)?;
        // The client has answered or gone in the moment between.
        reply.send(decision).map_err(|_| NotPending)?;
        Ok(call)
    }

    /// Adds a call. Dropping it removes the call.
    pub(super) fn add(self: &Arc<Self>, call: PendingApproval) -> Option<OpenApproval> {
        let (reply, decision) = oneshot::channel();
        let mut pending = self.pending();
        if pending.calls.len() >= MAX_PENDING {
            return None;
        }
        pending.next += 1;
        let id = pending.next;
        pending.calls.insert(id, (call, reply));
        Some(OpenApproval {
            approvals: Arc::clone(self),
            id,
            decision,
        })
    }

    /// Returns whether somebody sees the waiting calls, so that a client that cannot be asked may wait too.
    pub(super) fn is_watched(&self) -> bool {
        self.watchers.load(Ordering::Relaxed) > 0
    }

    /// Records that a page shows the waiting calls, until the guard is dropped.
    pub(crate) fn watch(self: &Arc<Self>) -> Watching {
        self.watchers.fetch_add(1, Ordering::Relaxed);
        Watching(Arc::clone(self))
    }

    fn pending(&self) -> MutexGuard<'_, PendingApprovals> {
        lock(&self.pending)
    }
}

/// A page that shows the waiting calls.
pub(crate) struct Watching(Arc<Approvals>);

impl Drop for Watching {
    fn drop(&mut self) {
        self.0.watchers.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A call that waits for a decision. Dropping it withdraws the question.
pub(super) struct OpenApproval {
    approvals: Arc<Approvals>,
    id: u64,
    decision: oneshot::Receiver<Decision>,
}

impl OpenApproval {
    /// Waits for the decision. Cancel-safe.
    pub(super) async fn decided(&mut self) -> Decision {
        match (&mut self.decision).await {
            Ok(decision) => decision,
            // The sender is dropped only with a decision.
            Err(_) => std::future::pending().await,
        }
    }
}

impl Drop for OpenApproval {
    fn drop(&mut self) {
        self.approvals.pending().calls.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call() -> PendingApproval {
        PendingApproval {
            tool: ToolIdentifier {
                toolbox: "dev".into(),
                server: "files".into(),
                tool: "wipe".into(),
            },
            arguments: RawJson::of(&serde_json::json!({})),
            reason: "a rule".to_owned(),
            client: Arc::default(),
            since: SystemTime::now(),
            has_session: true,
            is_unlisted: false,
        }
    }

    #[tokio::test]
    async fn a_call_is_decided_once() {
        let approvals = Arc::<Approvals>::default();
        let mut open = approvals.add(call()).unwrap();
        let (id, _) = approvals.list().remove(0);
        assert!(approvals.decide(id, Decision::Session).is_ok());
        assert_eq!(open.decided().await, Decision::Session);
        assert_eq!(approvals.decide(id, Decision::Deny).err(), Some(NotPending));
    }

    #[test]
    fn a_call_that_ended_cannot_be_decided() {
        let approvals = Arc::<Approvals>::default();
        let open = approvals.add(call()).unwrap();
        let (id, _) = approvals.list().remove(0);
        drop(open);
        assert!(approvals.list().is_empty());
        assert_eq!(approvals.decide(id, Decision::Once).err(), Some(NotPending));
    }

    #[test]
    fn the_number_of_waiting_calls_is_bounded() {
        let approvals = Arc::<Approvals>::default();
        let open: Vec<_> = (0..MAX_PENDING).map(|_| approvals.add(call())).collect();
        assert!(open.iter().all(Option::is_some));
        assert!(approvals.add(call()).is_none());
    }
}
