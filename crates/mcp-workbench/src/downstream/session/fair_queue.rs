//! The calls that wait for a server, by principal. Principals take turns, and within a principal the oldest call is
//! first, so that a principal with many calls delays another by one call at a time. A full queue refuses the newest call
//! of the principal with the most.

use std::collections::VecDeque;

use tokio::time::Instant;

use crate::{
    call::Principal,
    downstream::server::{CallTicket, QueuedCall},
};

/// Upper bound on the calls that wait for a server.
const MAX_WAITING: usize = 256;
/// Upper bound on the bytes of the calls that wait for a server.
const MAX_WAITING_BYTES: usize = 64 * 1024 * 1024;

/// A call in the queue.
pub(super) struct WaitingCall {
    pub(super) queued: Box<QueuedCall>,
    pub(super) until: Instant,
}

impl WaitingCall {
    fn principal(&self) -> Principal {
        self.queued.call.context.client.principal()
    }

    fn size(&self) -> usize {
        self.queued.call.request.size()
    }
}

/// The calls of one principal, oldest first. There is always one.
struct Lane {
    principal: Principal,
    calls: VecDeque<WaitingCall>,
    bytes: usize,
}

/// The queue of a server.
#[derive(Default)]
pub(super) struct FairQueue {
    /// The principals in the order of their turns.
    lanes: VecDeque<Lane>,
    calls: usize,
    bytes: usize,
}

impl FairQueue {
    pub(super) fn is_empty(&self) -> bool {
        self.lanes.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.calls
    }

    /// Adds a call. If the queue is full, returns the calls that have to make room, which may be the new one.
    pub(super) fn push(&mut self, call: WaitingCall) -> Vec<WaitingCall> {
        let lane = self.lane(call.principal());
        self.insert(lane, self.lanes[lane].calls.len(), call);
        let mut refused = Vec::new();
        // The principal with the most makes room, whoever came last: a flood must not push out others.
        while self.calls > MAX_WAITING || self.bytes > MAX_WAITING_BYTES {
            let too_many = self.calls > MAX_WAITING;
            let load = |lane: &Lane| {
                if too_many {
                    lane.calls.len()
                } else {
                    lane.bytes
                }
            };
            let largest = (0..self.lanes.len()).max_by_key(|&lane| load(&self.lanes[lane]));
            let Some(lane) = largest else { break };
            // Its newest call, because its older ones have waited already.
            refused.extend(self.remove(lane, self.lanes[lane].calls.len() - 1));
        }
        refused
    }

    /// Puts a call back that had left the queue, at its place within its principal.
    pub(super) fn put_back(&mut self, call: WaitingCall) {
        let ticket = call.queued.ticket;
        let lane = self.lane(call.principal());
        let calls = &self.lanes[lane].calls;
        // Tickets count up, so they give the order of arrival back.
        let at = calls.partition_point(|it| it.queued.ticket < ticket);
        self.insert(lane, at, call);
    }

    /// Takes the oldest call of the next principal that may send, and ends its turn.
    pub(super) fn pop(
        &mut self,
        may_send: impl Fn(&QueuedCall) -> bool,
    ) -> Option<Box<QueuedCall>> {
        // A principal that may not send now keeps its turn: its lane stays in front.
        let lane = self.lanes.iter().position(|lane| {
            let first = lane.calls.front();
            first.is_some_and(|call| may_send(&call.queued))
        })?;
        // Its oldest call goes, and it moves to the end. So a principal with 200 calls and one with a single call
        // take turns, and nobody waits for more than one call of each of the others.
        let call = self.remove(lane, 0)?;
        // `remove` drops an empty lane, so the index may already be that of another principal.
        let has_more = |it: &Lane| it.principal == call.principal();
        if self.lanes.get(lane).is_some_and(has_more)
            && let Some(lane) = self.lanes.remove(lane)
        {
            self.lanes.push_back(lane);
        }
        Some(call.queued)
    }

    /// Removes the call of a caller that stopped waiting.
    pub(super) fn cancel(&mut self, ticket: CallTicket) {
        if let Some((lane, at)) = self.find(|call| call.queued.ticket == ticket) {
            self.remove(lane, at);
        }
    }

    /// Takes a call that has waited for too long.
    pub(super) fn pop_expired(&mut self, now: Instant) -> Option<Box<QueuedCall>> {
        let (lane, at) = self.find(|call| call.until <= now)?;
        self.remove(lane, at).map(|call| call.queued)
    }

    /// Returns the time at which the first call has waited for too long.
    pub(super) fn next_expiry(&self) -> Option<Instant> {
        let calls = self.lanes.iter().flat_map(|lane| &lane.calls);
        calls.map(|call| call.until).min()
    }

    /// Takes a call that matches, without regard to turns.
    pub(super) fn pop_any(
        &mut self,
        matches: impl Fn(&QueuedCall) -> bool,
    ) -> Option<Box<QueuedCall>> {
        let (lane, at) = self.find(|call| matches(&call.queued))?;
        self.remove(lane, at).map(|call| call.queued)
    }

    /// Returns all calls in the order in which they arrived.
    pub(super) fn into_calls(self) -> VecDeque<Box<QueuedCall>> {
        let mut calls: VecDeque<_> = self
            .lanes
            .into_iter()
            .flat_map(|lane| lane.calls)
            .map(|call| call.queued)
            .collect();
        calls
            .make_contiguous()
            .sort_unstable_by_key(|call| call.ticket);
        calls
    }

    fn find(&self, matches: impl Fn(&WaitingCall) -> bool) -> Option<(usize, usize)> {
        // At most 256 calls, and only for cancels and timeouts: an index would cost every call that waits.
        let mut lanes = self.lanes.iter().enumerate();
        lanes.find_map(|(index, lane)| Some((index, lane.calls.iter().position(&matches)?)))
    }

    /// Returns the place of a principal's calls. A new principal gets the last turn.
    fn lane(&mut self, principal: Principal) -> usize {
        let known = self
            .lanes
            .iter()
            .position(|lane| lane.principal == principal);
        known.unwrap_or_else(|| {
            self.lanes.push_back(Lane {
                principal,
                calls: VecDeque::new(),
                bytes: 0,
            });
            self.lanes.len() - 1
        })
    }

    fn insert(&mut self, lane: usize, at: usize, call: WaitingCall) {
        let size = call.size();
        self.calls += 1;
        self.bytes += size;
        self.lanes[lane].bytes += size;
        self.lanes[lane].calls.insert(at, call);
    }

    /// Removes a call, and its lane if it was the last one there.
    fn remove(&mut self, lane: usize, at: usize) -> Option<WaitingCall> {
        let from = self.lanes.get_mut(lane)?;
        let call = from.calls.remove(at)?;
        from.bytes -= call.size();
        let is_last = from.calls.is_empty();
        self.calls -= 1;
        self.bytes -= call.size();
        if is_last {
            self.lanes.remove(lane);
        }
        Some(call)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use pretty_assertions::assert_eq;
    use tokio::sync::oneshot;

    use super::*;
    use crate::{
        downstream::{session::reply::AnswerReceiver, test_client::TestClient},
        era::Era,
    };

    fn waiting(ticket: u64, holder: u128) -> WaitingCall {
        let client = TestClient {
            principal: Principal::Holder(holder),
            ..TestClient::new(Era::Legacy, "{}")
        };
        let reply = AnswerReceiver::Waiting(oneshot::channel().0);
        WaitingCall {
            queued: QueuedCall::new(CallTicket(ticket), client.call(), reply),
            until: Instant::now() + Duration::from_secs(ticket),
        }
    }

    /// Returns a queue with calls of these principals, with tickets from 0.
    fn queue(holders: &[u128]) -> FairQueue {
        let mut queue = FairQueue::default();
        for (ticket, holder) in (0..).zip(holders) {
            assert!(queue.push(waiting(ticket, *holder)).is_empty());
        }
        queue
    }

    fn drain(queue: &mut FairQueue) -> Vec<u64> {
        let calls = std::iter::from_fn(|| queue.pop(|_| true));
        calls.map(|call| call.ticket.0).collect()
    }

    #[test]
    fn principals_take_turns_in_the_order_of_their_first_calls() {
        for (holders, expected) in [
            (&[0, 0, 0][..], &[0, 1, 2][..]),
            (&[0, 0, 0, 1], &[0, 3, 1, 2]),
            (&[0, 0, 0, 1, 1, 2], &[0, 3, 5, 1, 4, 2]),
            (&[0, 1, 0, 1], &[0, 1, 2, 3]),
        ] {
            let mut queue = queue(holders);
            assert_eq!(drain(&mut queue), expected, "{holders:?}");
            assert!(queue.is_empty());
            assert_eq!((queue.calls, queue.bytes), (0, 0));
        }
    }

    #[test]
    fn a_principal_that_comes_late_waits_for_one_call_of_each_other() {
        let mut queue = queue(&[0; 100]);
        assert_eq!(queue.pop(|_| true).map(|it| it.ticket.0), Some(0));
        queue.push(waiting(100, 1));
        assert_eq!(drain(&mut queue)[..3], [1, 100, 2]);
    }

    #[test]
    fn a_full_queue_refuses_the_newest_call_of_the_principal_with_the_most() {
        let mut queue = queue(&[0; MAX_WAITING]);
        let tickets = |refused: Vec<WaitingCall>| -> Vec<u64> {
            refused.iter().map(|it| it.queued.ticket.0).collect()
        };
        assert_eq!(tickets(queue.push(waiting(900, 0))), [900]);
        assert_eq!(tickets(queue.push(waiting(901, 1))), [255]);
        assert_eq!(tickets(queue.push(waiting(902, 1))), [254]);
        assert_eq!(queue.len(), MAX_WAITING);
        assert_eq!(drain(&mut queue)[..4], [0, 901, 1, 902]);
    }

    #[test]
    fn a_principal_that_may_not_send_is_passed_over_and_keeps_its_turn() {
        let mut queue = queue(&[0, 0, 1, 1]);
        let second = queue.pop(|call| call.call.context.client.principal() == Principal::Holder(1));
        assert_eq!(second.map(|it| it.ticket.0), Some(2));
        assert_eq!(drain(&mut queue), [0, 3, 1]);
    }

    #[test]
    fn calls_leave_by_cancel_timeout_and_put_back() {
        let mut queue = queue(&[0, 0, 1]);
        queue.cancel(CallTicket(0));
        queue.put_back(waiting(0, 0));
        queue.cancel(CallTicket(2));
        assert_eq!(queue.len(), 2);
        let first = queue.next_expiry().unwrap();
        let expired = queue.pop_expired(first).map(|it| it.ticket.0);
        assert_eq!(expired, Some(0));
        queue.put_back(waiting(7, 3));
        queue.put_back(waiting(5, 3));
        let seventh = |call: &QueuedCall| call.ticket.0 == 7;
        assert!(queue.pop_any(seventh).is_some());
        assert!(queue.pop_any(seventh).is_none());
        let left = queue.into_calls();
        assert_eq!(
            left.iter().map(|it| it.ticket.0).collect::<Vec<_>>(),
            [1, 5]
        );
    }
}
