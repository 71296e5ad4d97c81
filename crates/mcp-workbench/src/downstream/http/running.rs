//! The requests that are not answered yet. One timer serves all of them: it is set when there is none, and looked at
//! again when it rings, so that a request that is answered in time costs no timer.

use std::{collections::HashMap, sync::Arc, time::Duration};

use tokio::{task::AbortHandle, time::Instant};

use super::body::Sending;
use crate::{
    alarm::Alarm,
    call::Outcome,
    downstream::{error::HttpFault, link::LinkEvent},
    wire::FrameTicket,
};

/// The requests of one link.
#[derive(Default)]
pub(super) struct Running {
    requests: HashMap<FrameTicket, Request>,
    /// No request is overdue before this. It may be early, never late.
    next: Option<Instant>,
    alarm: Alarm,
}

/// A request that is not answered.
struct Request {
    id: u64,
    sending: Arc<Sending>,
    task: AbortHandle,
    /// How long it may take, and when it has; nothing if it may take for ever.
    limit: Option<(Duration, Instant)>,
}

impl Running {
    /// Notes a request that was begun.
    pub(super) fn begin(
        &mut self,
        id: u64,
        (sending, task): (Arc<Sending>, AbortHandle),
        limit: Option<Duration>,
    ) -> FrameTicket {
        let limit = limit.map(|limit| (limit, Instant::now() + limit));
        if let Some((_, end)) = limit {
            self.ring_by(end);
        }
        let ticket = FrameTicket::from(id);
        let request = Request {
            id,
            sending,
            task,
            limit,
        };
        self.requests.insert(ticket, request);
        ticket
    }

    /// Forgets a request that was answered.
    pub(super) fn end(&mut self, ticket: FrameTicket) {
        self.requests.remove(&ticket);
    }

    /// Ends a request that is not wanted any more.
    pub(super) fn withdraw(&mut self, ticket: FrameTicket) -> Outcome {
        let Some(request) = self.requests.remove(&ticket) else {
            return Outcome::Unknown;
        };
        request.task.abort();
        request.sending.withdraw()
    }

    /// What is known of the effects of a request.
    pub(super) fn outcome(&self, ticket: FrameTicket) -> Outcome {
        let request = self.requests.get(&ticket);
        request.map_or(Outcome::Unknown, |request| request.sending.outcome())
    }

    pub(super) fn abort_all(&mut self) {
        for (_, request) in self.requests.drain() {
            request.task.abort();
        }
    }

    /// The failure of the next request that takes too long. Cancel-safe.
    pub(super) async fn overdue(&mut self) -> LinkEvent {
        loop {
            self.alarm.wait(self.next).await;
            self.next = None;
            let now = Instant::now();
            let ends = |request: &Request| request.limit.map(|(_, end)| end);
            let first = self.requests.iter();
            let first = first.filter_map(|(ticket, request)| Some((ends(request)?, *ticket)));
            let Some((end, ticket)) = first.min_by_key(|(end, _)| *end) else {
                continue;
            };
            self.ring_by(end);
            if end <= now
                && let Some(request) = self.requests.remove(&ticket)
            {
                request.task.abort();
                return request.too_slow();
            }
        }
    }

    fn ring_by(&mut self, end: Instant) {
        self.next = Some(self.next.map_or(end, |next| next.min(end)));
    }
}

impl Request {
    fn too_slow(self) -> LinkEvent {
        let limit = self.limit.map_or(Duration::ZERO, |(limit, _)| limit);
        LinkEvent::Failed {
            id: self.id,
            fault: HttpFault::Slow(limit),
            outcome: self.sending.outcome(),
        }
    }
}
