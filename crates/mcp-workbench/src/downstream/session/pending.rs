//! The requests that a server has not answered yet, by our own ids. An id is never used twice on one
//! connection, so a late or doubled answer finds nothing.

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

/// What was asked and not answered.
pub(crate) enum Asked {
    /// A call of a tool.
    Call(PendingCall),
    /// A page of the list of tools.
    List,
    Ping,
    /// Something whose answer is of no concern: what held before the server came back, or a cancel.
    Again,
    /// To be told of changes.
    Listen,
}

/// A call that a server has, or is about to have.
pub(crate) struct PendingCall {
    pub(crate) queued: Box<QueuedCall>,
    /// Its frame, by which can be told whether it was sent.
    pub(crate) frame: FrameTicket,
    pub(crate) progress: ProgressGate,
    pub(crate) silent_until: Instant,
    ends_at: Instant,
}

/// All unanswered requests of one connection.
pub(crate) struct Pending {
    asked: HashMap<u64, Asked, BuildHasherDefault<OwnIds>>,
    calls: usize,
    next_id: u64,
    times: ServerTimes,
    /// No call expires before this; it may be early, never late.
    next_expiry: Option<Instant>,
    /// No report of progress that was held back is due before this; it may be early, never late.
    next_report: Option<Instant>,
    /// How many questions are open, by the calls that may have asked: meanwhile the server is rightly silent.
    questions: HashMap<Asker, usize>,
}

impl Pending {
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

    /// Takes other limits for what is sent from now on.
    pub(crate) fn set_times(&mut self, times: ServerTimes) {
        self.times = times;
    }

    /// An id that has never been used.
    pub(crate) fn fresh_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id - 1
    }

    /// Whether a call was asked under `id`.
    pub(crate) fn is_call(&self, id: u64) -> bool {
        matches!(self.asked.get(&id), Some(Asked::Call(_)))
    }

    pub(crate) fn call_count(&self) -> usize {
        self.calls
    }

    /// The call with this id.
    pub(crate) fn call(&self, id: u64) -> Option<&PendingCall> {
        match self.asked.get(&id)? {
            Asked::Call(call) => Some(call),
            Asked::List | Asked::Ping | Asked::Again | Asked::Listen => None,
        }
    }

    /// All calls, in no order.
    pub(crate) fn calls(&self) -> impl Iterator<Item = &PendingCall> {
        self.calls_by_id().map(|(_, call)| call)
    }

    /// Notes a call that is sent now.
    pub(crate) fn insert_call(
        &mut self,
        id: u64,
        mut queued: Box<QueuedCall>,
        frame: FrameTicket,
        now: Instant,
    ) {
        // The time of a call that was put back has begun before.
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
        self.asked.insert(id, Asked::Call(call));
    }

    /// Notes a request that is no call.
    pub(crate) fn insert(&mut self, id: u64, asked: Asked) {
        self.asked.insert(id, asked);
    }

    /// Takes out what was asked under `id`.
    pub(crate) fn remove(&mut self, id: u64) -> Option<Asked> {
        let asked = self.asked.remove(&id);
        self.calls -= usize::from(matches!(asked, Some(Asked::Call(_))));
        asked
    }

    /// Takes out the call under `id`; anything else stays.
    pub(crate) fn take_call(&mut self, id: u64) -> Option<PendingCall> {
        match self.is_call(id).then(|| self.remove(id))?? {
            Asked::Call(call) => Some(call),
            Asked::List | Asked::Ping | Asked::Again | Asked::Listen => None,
        }
    }

    /// Takes out the call of a caller.
    pub(crate) fn remove_call(&mut self, ticket: CallTicket) -> Option<(u64, PendingCall)> {
        let id = self
            .calls_by_id()
            .find(|(_, call)| call.queued.ticket == ticket)?
            .0;
        match self.remove(id) {
            Some(Asked::Call(call)) => Some((id, call)),
            _ => None,
        }
    }

    /// The call that reports progress under the token `id`; its silence starts anew.
    pub(crate) fn progress(&mut self, id: u64) -> Option<&mut PendingCall> {
        let Some(Asked::Call(call)) = self.asked.get_mut(&id) else {
            return None;
        };
        call.silent_until = Instant::now() + self.times.call;
        Some(call)
    }

    /// Notes that a client is asked something. The silence of the calls that may have asked does not count until the
    /// client has answered.
    pub(crate) fn question_opened(&mut self, asker: Asker) {
        *self.questions.entry(asker).or_default() += 1;
    }

    /// Notes that a question is answered or withdrawn. With the last one the silence is counted from now.
    pub(crate) fn question_closed(&mut self, asker: Asker) {
        match self.questions.get_mut(&asker) {
            Some(open) if *open > 1 => *open -= 1,
            Some(_) => {
                self.questions.remove(&asker);
                self.restart_silence(asker);
            }
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
        self.next_expiry = self.earliest_expiry();
    }

    /// The ids of all calls, oldest first.
    pub(crate) fn call_ids(&self) -> Vec<u64> {
        let mut ids: Vec<u64> = self.calls_by_id().map(|(id, _)| id).collect();
        ids.sort_unstable();
        ids
    }

    /// When to look for expired calls next.
    pub(crate) fn next_expiry(&self) -> Option<Instant> {
        self.next_expiry
    }

    /// Takes out the calls whose time is over.
    pub(crate) fn expire(&mut self, now: Instant) -> Vec<(u64, PendingCall, TimeLimit)> {
        let times = self.times;
        let due = self
            .calls_by_id()
            .filter(|(_, call)| self.expires_at(call) <= now);
        let due: Vec<u64> = due.map(|(id, _)| id).collect();
        let expired = due.into_iter().filter_map(|id| match self.remove(id)? {
            Asked::Call(call) if call.ends_at <= now => {
                Some((id, call, TimeLimit::Total(times.max_call)))
            }
            Asked::Call(call) => Some((id, call, TimeLimit::Silence(times.call))),
            Asked::List | Asked::Ping | Asked::Again | Asked::Listen => None,
        });
        let expired = expired.collect();
        self.next_expiry = self.earliest_expiry();
        expired
    }

    /// When to look next for reports of progress that were held back.
    pub(crate) fn next_report(&self) -> Option<Instant> {
        self.next_report
    }

    /// A report of progress was held back until `due`.
    pub(crate) fn expect_report(&mut self, due: Instant) {
        self.next_report = Some(self.next_report.map_or(due, |next| next.min(due)));
    }

    /// The reports that were due have gone out.
    pub(crate) fn reports_released(&mut self) {
        self.next_report = self.calls().filter_map(|call| call.progress.due()).min();
    }

    pub(crate) fn calls_mut(&mut self) -> impl Iterator<Item = &mut PendingCall> {
        self.asked.values_mut().filter_map(|asked| match asked {
            Asked::Call(call) => Some(call),
            Asked::List | Asked::Ping | Asked::Again | Asked::Listen => None,
        })
    }

    fn expires_at(&self, call: &PendingCall) -> Instant {
        // Almost never is anything asked.
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
            Asked::Call(call) => Some((*id, call)),
            Asked::List | Asked::Ping | Asked::Again | Asked::Listen => None,
        })
    }
}

/// Spreads ids of our own, which follow each other and which nobody else can choose.
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
        // A table takes its place from the lowest bits and its mark from the highest, so both have to differ.
        self.0 = id.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
}

impl PendingCall {
    /// The askers that include this call.
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
