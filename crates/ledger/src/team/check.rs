//! The checker: compares what the users saw with what the servers ran. It is a pure function.
//!
//! - no call runs twice; one with a result ran once, and one that was not sent did not run;
//! - a result is the caller's own, and so is the answer to a question and a further page of a large result;
//! - every call has an outcome: by two seconds after it should have ended, or after the last kill meanwhile;
//! - no session is lost;
//! - while replicas are restarted in turn, every call has its result, with the further pages of a large one.

use std::{collections::HashMap, fmt};

use super::history::{Done, TeamCall, TroubleEvents};

/// How long the outcome of a call may take, in milliseconds.
const OUTCOME_WITHIN: f64 = 2000.0;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TeamViolation {
    RanTwice {
        nonce: u64,
        times: usize,
    },
    NeverRan {
        nonce: u64,
    },
    RanAlthoughNotSent {
        nonce: u64,
    },
    Foreign {
        nonce: u64,
        what: String,
    },
    NoOutcome {
        nonce: u64,
        tool: String,
    },
    LateOutcome {
        nonce: u64,
        late_ms: u64,
        done: String,
    },
    LostSession {
        nonce: u64,
        error: String,
    },
    FailedInRollingRestart {
        nonce: u64,
        done: String,
    },
}

impl fmt::Display for TeamViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RanTwice { nonce, times } => write!(f, "call {nonce} ran {times} times"),
            Self::NeverRan { nonce } => write!(f, "call {nonce} has a result and never ran"),
            Self::RanAlthoughNotSent { nonce } => {
                write!(f, "call {nonce} was reported as not sent, and ran")
            }
            Self::Foreign { nonce, what } => write!(f, "call {nonce} got somebody else's {what}"),
            Self::NoOutcome { nonce, tool } => write!(f, "call {nonce} ({tool}) has no outcome"),
            Self::LateOutcome {
                nonce,
                late_ms,
                done,
            } => write!(f, "call {nonce} got its outcome {late_ms} ms late: {done}"),
            Self::LostSession { nonce, error } => {
                write!(f, "the session of call {nonce} is lost: {error}")
            }
            Self::FailedInRollingRestart { nonce, done } => {
                write!(f, "call {nonce} failed in a rolling restart: {done}")
            }
        }
    }
}

pub fn check(
    calls: &[TeamCall],
    executions: &[u64],
    trouble: &TroubleEvents,
) -> Vec<TeamViolation> {
    let mut ran: HashMap<u64, usize> = HashMap::new();
    for nonce in executions {
        *ran.entry(*nonce).or_default() += 1;
    }
    let mut violations = Vec::new();
    for call in calls {
        let times = ran.get(&call.nonce).copied().unwrap_or_default();
        check_call(call, times, trouble, &mut violations);
    }
    violations
}

/// Returns the longest wait for an outcome beyond the time of the tool, in milliseconds after the last kill meanwhile.
pub fn slowest(calls: &[TeamCall], trouble: &TroubleEvents) -> f64 {
    let waits = calls.iter().filter_map(|call| {
        let done = call.done.as_ref()?;
        Some(done.at - due(call, done, trouble))
    });
    waits.fold(0.0, f64::max)
}

fn check_call(
    call: &TeamCall,
    times: usize,
    trouble: &TroubleEvents,
    violations: &mut Vec<TeamViolation>,
) {
    let nonce = call.nonce;
    if times > 1 {
        violations.push(TeamViolation::RanTwice { nonce, times });
    }
    let Some(done) = &call.done else {
        let tool = call.tool.clone();
        violations.push(TeamViolation::NoOutcome { nonce, tool });
        return;
    };
    if done.is_result() && times == 0 {
        violations.push(TeamViolation::NeverRan { nonce });
    }
    if done.outcome.as_deref() == Some("not_sent") && times > 0 {
        violations.push(TeamViolation::RanAlthoughNotSent { nonce });
    }
    if let Some(what) = foreign(call, done) {
        violations.push(TeamViolation::Foreign { nonce, what });
    }
    let late = done.at - due(call, done, trouble);
    if late > OUTCOME_WITHIN {
        violations.push(TeamViolation::LateOutcome {
            nonce,
            late_ms: whole(late),
            done: shown(done),
        });
    }
    if let Some(error) = done.error.as_ref().filter(|it| is_lost_session(it)) {
        let error = error.clone();
        violations.push(TeamViolation::LostSession { nonce, error });
    }
    let rolling = |(from, to): &(f64, f64)| call.sent_at >= *from && done.at <= *to;
    let is_whole = done.is_result() && done.page.as_ref().is_none_or(|page| page == "own");
    if !is_whole && trouble.rolling.iter().any(rolling) {
        let done = shown(done);
        violations.push(TeamViolation::FailedInRollingRestart { nonce, done });
    }
}

/// Returns the moment at which an outcome was due: the end of the tool, or the last kill before the outcome.
fn due(call: &TeamCall, done: &Done, trouble: &TroubleEvents) -> f64 {
    let kills = trouble.kills.iter().copied();
    let meanwhile = kills.filter(|at| (call.sent_at..done.at).contains(at));
    meanwhile.fold(call.sent_at + call.ms, f64::max)
}

/// Returns the part of an outcome that is not the caller's own.
fn foreign(call: &TeamCall, done: &Done) -> Option<String> {
    if let Some(nonce) = done.nonce.filter(|it| *it != call.nonce) {
        return Some(format!("result ({nonce})"));
    }
    if done.cut == Some(false) {
        return Some("large result".to_owned());
    }
    let page = done.page.as_ref().filter(|it| it.starts_with("foreign"));
    if let Some(page) = page {
        return Some(format!("page ({page})"));
    }
    let own = format!("user{}", call.user);
    let answered = done.answered.as_ref().filter(|it| **it != own)?;
    Some(format!("answer ({answered})"))
}

fn is_lost_session(error: &str) -> bool {
    error.contains("404") || error.to_lowercase().contains("session")
}

fn shown(done: &Done) -> String {
    let parts = [&done.code, &done.outcome, &done.error, &done.page];
    let parts: Vec<&str> = parts.into_iter().flatten().map(String::as_str).collect();
    if parts.is_empty() {
        "a result".to_owned()
    } else {
        parts.join(" ")
    }
}

fn whole(ms: f64) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a positive number of milliseconds"
    )]
    let whole = ms as u64;
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(done: Option<Done>) -> TeamCall {
        TeamCall {
            user: 1,
            nonce: 7,
            sent_at: 1000.0,
            ms: 100.0,
            tool: "echo".to_owned(),
            done,
        }
    }

    fn result(at: f64) -> Done {
        Done {
            at,
            nonce: Some(7),
            ..Done::default()
        }
    }

    fn failed(at: f64, error: &str) -> Done {
        Done {
            at,
            error: Some(error.to_owned()),
            ..Done::default()
        }
    }

    fn found(done: Option<Done>, executions: &[u64], trouble: &TroubleEvents) -> Vec<String> {
        let violations = check(&[call(done)], executions, trouble);
        violations.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_result_is_the_callers_own_and_ran_once() {
        let quiet = TroubleEvents::default();
        let check = |done: Done, executions: &[u64]| found(Some(done), executions, &quiet);
        assert_eq!(check(result(1200.0), &[7, 8]), [""; 0]);
        assert_eq!(
            check(result(1200.0), &[]),
            ["call 7 has a result and never ran"]
        );
        assert_eq!(check(result(1200.0), &[7, 7]), ["call 7 ran 2 times"]);
        let other = Done {
            nonce: Some(8),
            ..result(1200.0)
        };
        assert_eq!(
            check(other, &[7]),
            ["call 7 got somebody else's result (8)"]
        );
        let answered = Done {
            answered: Some("user2".to_owned()),
            ..result(1200.0)
        };
        assert_eq!(
            check(answered, &[7]),
            ["call 7 got somebody else's answer (user2)"]
        );
        let not_sent = Done {
            at: 1200.0,
            outcome: Some("not_sent".to_owned()),
            ..Done::default()
        };
        assert_eq!(check(not_sent.clone(), &[]), [""; 0]);
        assert_eq!(
            check(not_sent, &[7]),
            ["call 7 was reported as not sent, and ran"]
        );
    }

    #[test]
    fn an_outcome_comes_in_time_after_the_last_kill() {
        let quiet = TroubleEvents::default();
        assert_eq!(found(None, &[7], &quiet), ["call 7 (echo) has no outcome"]);
        let gone = || Some(failed(3600.0, "502 Bad Gateway"));
        assert_eq!(
            found(gone(), &[7], &quiet),
            ["call 7 got its outcome 2500 ms late: 502 Bad Gateway"]
        );
        let killed = TroubleEvents {
            kills: vec![900.0, 1700.0, 4000.0],
            ..TroubleEvents::default()
        };
        assert_eq!(found(gone(), &[7], &killed), [""; 0]);
        let lost = failed(1200.0, "Error POSTing to endpoint (HTTP 404)");
        assert_eq!(found(Some(lost), &[], &quiet).len(), 1);
    }

    #[test]
    fn a_rolling_restart_is_not_noticed() {
        let trouble = TroubleEvents {
            rolling: vec![(500.0, 2000.0)],
            ..TroubleEvents::default()
        };
        assert_eq!(found(Some(result(1200.0)), &[7], &trouble), [""; 0]);
        let failure = failed(1200.0, "502 Bad Gateway");
        assert_eq!(
            found(Some(failure), &[], &trouble),
            ["call 7 failed in a rolling restart: 502 Bad Gateway"]
        );
    }
}
