//! All requests of one id, their responses, and the check against the executions.

use std::collections::HashMap;

use crate::{
    history::{Address, Answer, EchoState, Outcome, SentCall},
    identity::{Id, Nonce},
    violation::Violation,
};

/// The codes of calls whose toolbox, server or tool was not found.
const NOT_FOUND: [&str; 4] = [
    "toolbox_unknown",
    "toolbox_not_open",
    "server_unknown",
    "tool_unknown",
];

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum Era {
    #[default]
    Open,
    Closing,
}

/// The requests of one id.
#[derive(Default)]
pub(super) struct Asked {
    pub(super) sent: usize,
    pub(super) calls: Vec<SentCall>,
    pub(super) cancelled: bool,
    pub(super) answers: Vec<(Answer, Era)>,
}

impl Asked {
    /// Returns true if this call has certainly been answered.
    pub(super) fn is_over(&self, nonce: Nonce) -> bool {
        let has_result = |(answer, _): &(Answer, Era)| matches!(answer, Answer::Echo { nonce: own, .. } if *own == nonce);
        self.answers.len() >= self.sent || self.answers.iter().any(has_result)
    }

    /// Checks all requests and responses under `id`.
    pub(super) fn check(
        &self,
        id: Id,
        ran: &HashMap<Nonce, usize>,
        violations: &mut Vec<Violation>,
    ) {
        let (sent, answered) = (self.sent, self.answers.len());
        if answered > sent {
            violations.push(Violation::Duplicated { id, sent, answered });
        }
        if answered < sent && !self.cancelled {
            violations.push(Violation::Lost { id, sent, answered });
        }
        for (answer, era) in &self.answers {
            if !self.fits(answer, *era) {
                let answer = format!("{answer:?}");
                violations.push(Violation::Unfit { id, answer });
            }
        }
        let without_result = self.check_results(id, ran, violations);
        self.check_failures(id, ran, &without_result, violations);
    }

    fn fits(&self, answer: &Answer, era: Era) -> bool {
        // Requests that share an id are all calls of servers, so the first one stands for them.
        let Some(call) = self.calls.first() else {
            return matches!(answer, Answer::Result | Answer::Failed { .. });
        };
        match answer {
            Answer::Echo { .. } => true,
            Answer::Failed { code, outcome } => match &**code {
                "invalid_parameters" => false,
                "shutting_down" => era == Era::Closing,
                "server_error" => *outcome == Outcome::Answered,
                code if NOT_FOUND.contains(&code) => call.address == Address::Nothing,
                // A server may have to be started to learn that it has no such tool.
                _ if call.address == Address::Nothing => *outcome == Outcome::NotSent,
                _ => *outcome != Outcome::Answered,
            },
            Answer::Result | Answer::RpcError(_) => false,
        }
    }

    /// Looks at the results; returns the calls that have none.
    fn check_results(
        &self,
        id: Id,
        ran: &HashMap<Nonce, usize>,
        violations: &mut Vec<Violation>,
    ) -> Vec<Nonce> {
        let mut without: Vec<Nonce> = self.calls.iter().map(|call| call.nonce).collect();
        for (answer, _) in &self.answers {
            let Answer::Echo { nonce, state } = *answer else {
                continue;
            };
            match without.iter().position(|own| *own == nonce) {
                Some(index) => drop(without.swap_remove(index)),
                None => violations.push(Violation::ForeignResult { id, nonce }),
            }
            if state == EchoState::Damaged {
                violations.push(Violation::Damaged(nonce));
            }
            if !ran.contains_key(&nonce) {
                violations.push(Violation::NeverExecuted {
                    id,
                    answered: 1,
                    ran: 0,
                });
            }
        }
        without
    }

    /// Checks that the number of executed calls without a result matches their failures.
    fn check_failures(
        &self,
        id: Id,
        ran: &HashMap<Nonce, usize>,
        without_result: &[Nonce],
        violations: &mut Vec<Violation>,
    ) {
        let failed = |wanted: Outcome| {
            let is = |(answer, _): &&(Answer, Era)| matches!(answer, Answer::Failed { outcome, .. } if *outcome == wanted);
            self.answers.iter().filter(is).count()
        };
        let answered = failed(Outcome::Answered);
        let unanswered = self.sent.saturating_sub(self.answers.len());
        // A call without a result may have run if its server reported a failure, if its outcome is unknown, or if
        // nothing came back.
        let allowed = answered + failed(Outcome::Unknown) + unanswered;
        let ran = without_result
            .iter()
            .filter(|it| ran.contains_key(it))
            .count();
        if ran > allowed {
            violations.push(Violation::ExecutedThoughNotSent { id, ran, allowed });
        }
        // A failure that a server reported needs a call that ran.
        if ran < answered {
            violations.push(Violation::NeverExecuted { id, answered, ran });
        }
    }
}
