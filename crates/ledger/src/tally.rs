//! The figures of a history: counted, not judged.

use std::{collections::HashSet, ops::AddAssign};

use crate::history::{Answer, Event, History, Outcome, Request};

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Tally {
    pub requests: u64,
    /// Calls of tools among them.
    pub calls: u64,
    pub answered: u64,
    /// Results of servers among them.
    pub results: u64,
    pub refused: u64,
    /// Failures after a server had died, or might have run the call.
    pub unknown: u64,
    /// Failures before anything was sent.
    pub not_sent: u64,
    pub cancelled: u64,
    pub progress: u64,
}

impl Tally {
    /// The figures of a history.
    pub fn of(history: &History) -> Self {
        let mut tally = Self::default();
        let mut cancelled = HashSet::new();
        for event in &history.events {
            match event {
                Event::Sent { request, .. } => {
                    tally.requests += 1;
                    tally.calls += u64::from(matches!(request, Request::Call(_)));
                }
                Event::Cancelled(id) => tally.cancelled += u64::from(cancelled.insert(*id)),
                Event::Answered { answer, .. } => tally.count(answer),
                Event::Progress { .. } => tally.progress += 1,
                Event::GarbageSent | Event::GarbageRefused | Event::Closing | Event::Stray(_) => {}
            }
        }
        tally
    }

    fn count(&mut self, answer: &Answer) {
        self.answered += 1;
        match answer {
            Answer::Echo { .. } => self.results += 1,
            Answer::Failed { outcome, .. } => match outcome {
                Outcome::NotSent | Outcome::Rejected => self.not_sent += 1,
                Outcome::Unknown => self.unknown += 1,
                Outcome::Answered => self.refused += 1,
            },
            Answer::Result | Answer::RpcError(_) => {}
        }
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, more: Self) {
        self.requests += more.requests;
        self.calls += more.calls;
        self.answered += more.answered;
        self.results += more.results;
        self.refused += more.refused;
        self.unknown += more.unknown;
        self.not_sent += more.not_sent;
        self.cancelled += more.cancelled;
        self.progress += more.progress;
    }
}
