//! The unanswered requests. One timer serves all of them: it is set if there is none, and checked again when it
//! fires, so that a request that is answered in time costs no timer.

use std::{collections::HashMap, sync::Arc, time::Duration};

use tokio::{task::AbortHandle, time::Instant};

use super::body::SendState;
use crate::{
    alarm::Alarm,
    call::Outcome,
    downstream::{error::HttpFault, link::LinkEvent},
    wire::FrameTicket,
};

/// The unanswered requests of one link.
#[derive(Default)]
pub(super) struct RunningRequests {
    requests: HashMap<FrameTicket, RunningRequest, foldhash::fast::RandomState>,
    /// No request times out before this time. It may be early, never late.
    next: Option<Instant>,
    alarm: Alarm,
}

struct RunningRequest {
    id: u64,
    sending: Arc<SendState>,
    task: AbortHandle,
    /// The timeout and the deadline; `None` if the request may take forever.
    limit: Option<(Duration, Instant)>,
}

impl RunningRequests {
    pub(super) fn begin(
        &mut self,
        id: u64,
        sending: Arc<SendState>,
        task: AbortHandle,
        limit: Option<Duration>,
    ) -> FrameTicket {
        let limit = limit.map(|limit| (limit, Instant::now() + limit));
        if let Some((_, end)) = limit {
            self.ring_by(end);
        }
        let ticket = FrameTicket::from(id);
        let request = RunningRequest {
            id,
            sending,
            task,
            limit,
        };
        self.requests.insert(ticket, request);
        ticket
    }

    pub(super) fn end(&mut self, ticket: FrameTicket) {
        self.requests.remove(&ticket);
    }

    /// Ends a request that is no longer needed.
    pub(super) fn withdraw(&mut self, ticket: FrameTicket) -> Outcome {
        let Some(request) = self.requests.remove(&ticket) else {
            return Outcome::Unknown;
        };
        request.task.abort();
        request.sending.withdraw()
    }

    /// Returns the known effects of a request.
    pub(super) fn outcome(&self, ticket: FrameTicket) -> Outcome {
        let request = self.requests.get(&ticket);
        request.map_or(Outcome::Unknown, |request| request.sending.outcome())
    }

    pub(super) fn abort_all(&mut self) {
        for (_, request) in self.requests.drain() {
            request.task.abort();
        }
    }

    /// Returns the failure of the next request that times out. Cancel-safe.
    pub(super) async fn overdue(&mut self) -> LinkEvent {
        loop {
            self.alarm.wait(self.next).await;
            self.next = None;
            let now = Instant::now();
            let ends = |request: &RunningRequest| request.limit.map(|(_, end)| end);
            let first = self
                .requests
                .iter()
                .filter_map(|(ticket, request)| Some((ends(request)?, *ticket)));
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

impl RunningRequest {
    fn too_slow(self) -> LinkEvent {
        let limit = self.limit.map_or(Duration::ZERO, |(limit, _)| limit);
        LinkEvent::Failed {
            id: self.id,
            fault: HttpFault::Slow(limit),
            outcome: self.sending.outcome(),
        }
    }
}
