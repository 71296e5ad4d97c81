//! The checker: compares what the client saw with what the servers ran, and names every broken promise.
//! It is a pure function, and knows nothing of how the history came about.
//!
//! Requests may share an id on purpose, and then an error does not say which of them it answers; the
//! rules are therefore counted by id. For an id with one request they are the plain rules:
//!
//! - exactly one answer, or at most one if it was cancelled;
//! - a result is the caller's own, and the call ran exactly once;
//! - `not_sent` and `rejected` mean that it did not run, `unknown` that it ran at most once;
//! - a call runs on the server that it names, and nowhere else;
//! - progress comes to those who asked, in order, and before the answer.

mod asked;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use crate::{
    history::{Address, Event, Execution, History, ProgressWish, Request, SentCall},
    identity::{Id, Nonce},
    violation::Violation,
};
use asked::{Asked, Era};

/// Returns all violations in a history, given the executions of the servers.
pub fn check(history: &History, executions: &[Execution]) -> Vec<Violation> {
    let mut checker = Checker::default();
    for event in &history.events {
        checker.take(event);
    }
    checker.finish(executions)
}

#[derive(Default)]
struct Checker {
    asked: HashMap<Id, Asked>,
    calls: HashMap<Nonce, MadeCall>,
    garbage_sent: usize,
    garbage_refused: usize,
    era: Era,
    violations: Vec<Violation>,
}

/// A call, and its last progress.
struct MadeCall {
    id: Id,
    call: SentCall,
    progress: Option<u64>,
}

impl Checker {
    fn take(&mut self, event: &Event) {
        match event {
            Event::Sent { id, request } => self.sent(*id, *request),
            Event::GarbageSent => self.garbage_sent += 1,
            Event::GarbageRefused => self.garbage_refused += 1,
            Event::Cancelled(id) => {
                if let Some(asked) = self.asked.get_mut(id) {
                    asked.cancelled = true;
                }
            }
            Event::Closing => self.era = Era::Closing,
            Event::Answered { id, answer } => match self.asked.get_mut(id) {
                Some(asked) => asked.answers.push((answer.clone(), self.era)),
                None => self.violations.push(Violation::Unasked(*id)),
            },
            Event::Progress { call, value } => self.progress(*call, *value),
            Event::Stray(line) => self.violations.push(Violation::Stray(line.clone())),
        }
    }

    fn sent(&mut self, id: Id, request: Request) {
        let asked = self.asked.entry(id).or_default();
        asked.sent += 1;
        if let Request::Call(call) = request {
            asked.calls.push(call);
            let made = MadeCall {
                id,
                call,
                progress: None,
            };
            self.calls.insert(call.nonce, made);
        }
    }

    fn progress(&mut self, nonce: Nonce, value: u64) {
        let made = self.calls.get_mut(&nonce);
        let Some(made) = made.filter(|made| made.call.progress == ProgressWish::Wanted) else {
            return self.violations.push(Violation::ProgressUnasked(nonce));
        };
        if self.asked[&made.id].is_over(nonce) {
            self.violations.push(Violation::ProgressAfterAnswer(nonce));
        }
        if let Some(before) = made.progress.replace(value)
            && before >= value
        {
            self.violations.push(Violation::ProgressDisorder {
                nonce,
                before,
                after: value,
            });
        }
    }

    fn finish(mut self, executions: &[Execution]) -> Vec<Violation> {
        if self.garbage_sent != self.garbage_refused {
            self.violations.push(Violation::Garbage {
                sent: self.garbage_sent,
                refused: self.garbage_refused,
            });
        }
        let ran = self.executed(executions);
        let mut asked: Vec<_> = self.asked.into_iter().collect();
        // The map has no order, and the report of a seed needs one.
        asked.sort_unstable_by_key(|(id, _)| *id);
        for (id, asked) in asked {
            asked.check(id, &ran, &mut self.violations);
        }
        self.violations
    }

    /// Returns the number of executions of each call, after checking the servers that ran them.
    fn executed(&mut self, executions: &[Execution]) -> HashMap<Nonce, usize> {
        let mut ran: HashMap<Nonce, usize> = HashMap::new();
        for &Execution { server, pid, nonce } in executions {
            *ran.entry(nonce).or_default() += 1;
            match self.calls.get(&nonce).map(|made| made.call.address) {
                Some(Address::Server(addressed)) if addressed == server => {}
                Some(_) => self.violations.push(Violation::Misrouted {
                    nonce,
                    ran_on: server,
                    pid,
                }),
                None => {
                    self.violations
                        .push(Violation::ExecutedUnasked { nonce, server, pid });
                }
            }
        }
        let mut again: Vec<_> = ran.iter().filter(|(_, times)| **times > 1).collect();
        again.sort_unstable();
        let again = again
            .into_iter()
            .map(|(&nonce, &times)| Violation::ExecutedTwice { nonce, times });
        self.violations.extend(again);
        ran
    }
}
