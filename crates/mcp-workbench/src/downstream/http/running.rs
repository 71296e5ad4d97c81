//! The requests that are not answered yet. One timer serves all of them: it is set when there is none, and looked at
//! again when it rings, so that a request that is answered in time costs no timer.

use std::{collections::HashMap, future::pending, pin::Pin, sync::Arc, time::Duration};

use tokio::{
    task::AbortHandle,
    time::{Instant, Sleep, sleep_until},
};

use super::body::Sending;
use crate::{
    call::Outcome,
    downstream::{error::HttpFault, link::LinkEvent},
    wire::FrameTicket,
};

/// The requests of one link.
#[derive(Default)]
pub(super) struct Running {
    requests: HashMap<FrameTicket, Request>,
    /// Rings no later than the first request is overdue.
    timer: Option<Pin<Box<Sleep>>>,
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

    /// Ends all of them.
    pub(super) fn abort_all(&mut self) {
        for (_, request) in self.requests.drain() {
            request.task.abort();
        }
    }

    /// The failure of the next request that takes too long. Cancel-safe.
    pub(super) async fn overdue(&mut self) -> LinkEvent {
        loop {
            match &mut self.timer {
                Some(timer) => timer.as_mut().await,
                None => pending().await,
            }
            self.timer = None;
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
        match &mut self.timer {
            Some(timer) if timer.deadline() > end => timer.as_mut().reset(end),
            Some(_) => {}
            None => self.timer = Some(Box::pin(sleep_until(end))),
        }
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
