//! The unanswered requests of a server, by our own ids. An id is used only once per connection, so a late or
//! duplicate response finds nothing.

use std::{
    collections::HashMap,
    hash::{BuildHasherDefault, Hasher},
};

use tokio::time::Instant;

use crate::{
    config::ServerTimes,
    downstream::{
        asks::attribution::Asker,
        error::TimeLimit,
        server::{CallTicket, QueuedCall},
        session::progress::ProgressGate,
    },
    wire::FrameTicket,
};

pub(crate) enum PendingRequest {
    Call(PendingCall),
    /// A page of the tool list.
    List,
    Ping,
    /// A request whose response does not matter: a restored subscription or a cancellation.
    Again,
    /// The subscription to changes.
    Listen,
}

/// A call that was sent or is about to be sent.
pub(crate) struct PendingCall {
    pub(crate) queued: Box<QueuedCall>,
    /// The ticket of its frame, which shows if it was sent.
    pub(crate) frame: FrameTicket,
    pub(crate) progress: ProgressGate,
    pub(crate) silent_until: Instant,
    ends_at: Instant,
}

/// All unanswered requests of one connection.
pub(crate) struct PendingRequests {
    asked: HashMap<u64, PendingRequest, BuildHasherDefault<OwnIds>>,
    calls: usize,
    next_id: u64,
    times: ServerTimes,
    /// No call expires before this time; it may be early, never late.
    next_expiry: Option<Instant>,
    /// No progress that was held back is due before this time; it may be early, never late.
    next_report: Option<Instant>,
    /// The number of open questions by the calls that may have asked. While one is open, the server may be silent.
    questions: HashMap<Asker, usize>,
}

impl PendingRequests {
    pub(crate) fn new(next_id: u64, times: ServerTimes) -> Self {
        Self {
            asked: HashMap::default(),
            calls: 0,
            next_id,
            times,
            next_expiry: None,
            next_report: None,
            questions: HashMap::new(),
        }
    }

    /// Sets the limits of calls that are sent from now on.
    pub(crate) fn set_times(&mut self, times: ServerTimes) {
        self.times = times;
    }

    pub(crate) fn fresh_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id - 1
    }

    /// Returns true if `id` belongs to a call.
    pub(crate) fn is_call(&self, id: u64) -> bool {
        matches!(self.asked.get(&id), Some(PendingRequest::Call(_)))
    }

    pub(crate) fn call_count(&self) -> usize {
        self.calls
    }

    pub(crate) fn call(&self, id: u64) -> Option<&PendingCall> {
        match self.asked.get(&id)? {
            PendingRequest::Call(call) => Some(call),
            PendingRequest::List
            | PendingRequest::Ping
            | PendingRequest::Again
            | PendingRequest::Listen => None,
        }
    }

    /// Returns all calls, in no particular order.
    pub(crate) fn calls(&self) -> impl Iterator<Item = &PendingCall> {
        self.calls_by_id().map(|(_, call)| call)
    }

    /// Adds a call that is sent now.
    pub(crate) fn insert_call(
        &mut self,
        id: u64,
        mut queued: Box<QueuedCall>,
        frame: FrameTicket,
        now: Instant,
    ) {
        // The time of a call that was queued again began earlier.
        let ends_at = *queued.ends_at.get_or_insert(now + self.times.max_call);
        let call = PendingCall {
            queued,
            frame,
            progress: ProgressGate::new(now),
            silent_until: now + self.times.call,
            ends_at,
        };
        self.expect_expiry(self.expires_at(&call));
        self.calls += 1;
        self.asked.insert(id, PendingRequest::Call(call));
    }

    /// Adds a request that is not a call.
    pub(crate) fn insert(&mut self, id: u64, asked: PendingRequest) {
        self.asked.insert(id, asked);
    }

    pub(crate) fn remove(&mut self, id: u64) -> Option<PendingRequest> {
        let asked = self.asked.remove(&id);
        self.calls -= usize::from(matches!(asked, Some(PendingRequest::Call(_))));
        asked
    }

    /// Removes the call with an id; other requests stay.
    pub(crate) fn take_call(&mut self, id: u64) -> Option<PendingCall> {
        match self.is_call(id).then(|| self.remove(id))?? {
            PendingRequest::Call(call) => Some(call),
            PendingRequest::List
            | PendingRequest::Ping
            | PendingRequest::Again
            | PendingRequest::Listen => None,
        }
    }

    /// Removes the call of a caller.
    pub(crate) fn remove_call(&mut self, ticket: CallTicket) -> Option<(u64, PendingCall)> {
        // Cancels are rare and at most 64 calls are pending, so no second index by ticket is kept.
        let id = self
            .calls_by_id()
            .find(|(_, call)| call.queued.ticket == ticket)?
            .0;
        match self.remove(id) {
            Some(PendingRequest::Call(call)) => Some((id, call)),
            _ => None,
        }
    }

    /// Returns the call that reports progress under the token `id`, and restarts its silence timeout.
    pub(crate) fn progress(&mut self, id: u64) -> Option<&mut PendingCall> {
        let Some(PendingRequest::Call(call)) = self.asked.get_mut(&id) else {
            return None;
        };
        // `next_expiry` may now be too early, which costs one look for nothing. Correcting it would cost a scan of
        // all calls for each report.
        call.silent_until = Instant::now() + self.times.call;
        Some(call)
    }

    /// Records an open question. The silence timeout of the calls that may have asked is suspended until the client
    /// answers.
    pub(crate) fn question_opened(&mut self, asker: Asker) {
        *self.questions.entry(asker).or_default() += 1;
    }

    /// Records that a question was answered or withdrawn. After the last one the silence timeout restarts.
    pub(crate) fn question_closed(&mut self, asker: Asker) {
        match self.questions.get_mut(&asker) {
            Some(open) if *open > 1 => *open -= 1,
            Some(_) => {
                self.questions.remove(&asker);
                self.restart_silence(asker);
            }
            // The server asked while it started, when no call was pending whose time could be suspended.
            None => {}
        }
    }

    fn restart_silence(&mut self, asker: Asker) {
        let silent_until = Instant::now() + self.times.call;
        for call in self.calls_mut() {
            if call.askers().contains(&asker) {
                call.silent_until = silent_until;
            }
        }
        // While the question was open, the next check may have moved to the end of a call. That is too late now.
        self.next_expiry = self.earliest_expiry();
    }

    /// Returns the ids of all calls, oldest first.
    pub(crate) fn call_ids(&self) -> Vec<u64> {
        let mut ids: Vec<u64> = self.calls_by_id().map(|(id, _)| id).collect();
        ids.sort_unstable();
        ids
    }

    /// Returns when to check for expired calls next.
    pub(crate) fn next_expiry(&self) -> Option<Instant> {
        self.next_expiry
    }

    /// Removes the calls that timed out.
    pub(crate) fn expire(&mut self, now: Instant) -> Vec<(u64, PendingCall, TimeLimit)> {
        let times = self.times;
        let due = self
            .calls_by_id()
            .filter(|(_, call)| self.expires_at(call) <= now);
        let due: Vec<u64> = due.map(|(id, _)| id).collect();
        let expired = due.into_iter().filter_map(|id| match self.remove(id)? {
            // Of two limits that have passed, the total one says more.
            PendingRequest::Call(call) if call.ends_at <= now => {
                Some((id, call, TimeLimit::Total(times.max_call)))
            }
            PendingRequest::Call(call) => Some((id, call, TimeLimit::Silence(times.call))),
            PendingRequest::List
            | PendingRequest::Ping
            | PendingRequest::Again
            | PendingRequest::Listen => None,
        });
        let expired = expired.collect();
        self.next_expiry = self.earliest_expiry();
        expired
    }

    /// Returns when to check next for progress that was held back.
    pub(crate) fn next_report(&self) -> Option<Instant> {
        self.next_report
    }

    /// Records that progress was held back until `due`.
    pub(crate) fn expect_report(&mut self, due: Instant) {
        self.next_report = Some(self.next_report.map_or(due, |next| next.min(due)));
    }

    /// Recomputes the next check after the due progress was sent.
    pub(crate) fn reports_released(&mut self) {
        self.next_report = self.calls().filter_map(|call| call.progress.due()).min();
    }

    pub(crate) fn calls_mut(&mut self) -> impl Iterator<Item = &mut PendingCall> {
        self.asked.values_mut().filter_map(|asked| match asked {
            PendingRequest::Call(call) => Some(call),
            PendingRequest::List
            | PendingRequest::Ping
            | PendingRequest::Again
            | PendingRequest::Listen => None,
        })
    }

    fn expires_at(&self, call: &PendingCall) -> Instant {
        // Questions are rare.
        if !self.questions.is_empty()
            && (call.askers().iter()).any(|asker| self.questions.contains_key(asker))
        {
            return call.ends_at;
        }
        call.silent_until.min(call.ends_at)
    }

    fn earliest_expiry(&self) -> Option<Instant> {
        let calls = self.calls_by_id();
        calls.map(|(_, call)| self.expires_at(call)).min()
    }

    fn expect_expiry(&mut self, at: Instant) {
        self.next_expiry = Some(self.next_expiry.map_or(at, |next| next.min(at)));
    }

    fn calls_by_id(&self) -> impl Iterator<Item = (u64, &PendingCall)> {
        self.asked.iter().filter_map(|(id, asked)| match asked {
            PendingRequest::Call(call) => Some((*id, call)),
            PendingRequest::List
            | PendingRequest::Ping
            | PendingRequest::Again
            | PendingRequest::Listen => None,
        })
    }
}

/// A hasher for our own ids, which are consecutive and not chosen by others.
#[derive(Default)]
struct OwnIds(u64);

impl Hasher for OwnIds {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(self.0 ^ u64::from(*byte));
        }
    }

    fn write_u64(&mut self, id: u64) {
        // A hash table uses the lowest bits as the index and the highest as the tag, so both must differ.
        self.0 = id.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
}

impl PendingCall {
    /// Returns the askers that include this call.
    fn askers(&self) -> [Asker; 2] {
        let client = &self.queued.call.context.client;
        [
            Asker::Client(client.id()),
            Asker::Principal(client.principal()),
        ]
    }
}

#[cfg(test)]
mod tests;
