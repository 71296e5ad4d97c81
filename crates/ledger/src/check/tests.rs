use super::check;
use crate::{
    history::{
        Address, Answer, EchoState, Event, Execution, History, Outcome, ProgressWish, Request,
        SentCall,
    },
    identity::{Id, Nonce, ServerIndex},
    violation::Violation,
};

const ID: Id = Id(4);
const CALL: Nonce = Nonce(1);
const OTHER: Nonce = Nonce(2);

fn sent_to(nonce: Nonce, address: Address) -> Event {
    let request = Request::Call(SentCall {
        nonce,
        address,
        progress: ProgressWish::Wanted,
    });
    Event::Sent { id: ID, request }
}

fn sent(nonce: Nonce) -> Event {
    sent_to(nonce, Address::Server(ServerIndex(0)))
}

fn result(nonce: Nonce) -> Event {
    let state = EchoState::Intact;
    answered(Answer::Echo { nonce, state })
}

fn failed(code: &str, outcome: Outcome) -> Event {
    let code = code.into();
    answered(Answer::Failed { code, outcome })
}

fn answered(answer: Answer) -> Event {
    Event::Answered { id: ID, answer }
}

fn progress(value: u64) -> Event {
    Event::Progress { call: CALL, value }
}

fn ran_on(server: usize, nonce: Nonce) -> Execution {
    Execution {
        server: ServerIndex(server),
        pid: 10,
        nonce,
    }
}

fn ran(nonce: Nonce) -> Execution {
    ran_on(0, nonce)
}

fn unasked(nonce: Nonce) -> Violation {
    let server = ServerIndex(0);
    Violation::ExecutedUnasked {
        nonce,
        server,
        pid: 10,
    }
}

#[track_caller]
fn finds(events: &[Event], executions: &[Execution], violations: &[Violation]) {
    let history = History {
        events: events.to_vec(),
    };
    assert_eq!(check(&history, executions), violations);
}

#[test]
fn a_call_that_ran_and_was_answered_once_has_no_findings() {
    finds(&[sent(CALL), result(CALL)], &[ran(CALL)], &[]);
}

#[test]
fn a_call_without_an_answer_is_lost() {
    let lost = Violation::Lost {
        id: ID,
        sent: 1,
        answered: 0,
    };
    finds(&[sent(CALL)], &[ran(CALL)], &[lost]);
}

#[test]
fn a_cancelled_call_may_be_answered_once_or_not() {
    let cancelled = [sent(CALL), Event::Cancelled(ID)];
    finds(&cancelled, &[], &[]);
    finds(&cancelled, &[ran(CALL)], &[]);
    let [first, second] = cancelled;
    finds(&[first, second, result(CALL)], &[ran(CALL)], &[]);
}

#[test]
fn a_second_answer_is_reported() {
    let duplicated = Violation::Duplicated {
        id: ID,
        sent: 1,
        answered: 2,
    };
    let unknown = failed("server_exited", Outcome::Unknown);
    let events = [sent(CALL), result(CALL), unknown];
    finds(&events, &[ran(CALL)], std::slice::from_ref(&duplicated));
    let cancelled = [sent(CALL), Event::Cancelled(ID), result(CALL), result(CALL)];
    let foreign = Violation::ForeignResult {
        id: ID,
        nonce: CALL,
    };
    finds(&cancelled, &[ran(CALL)], &[duplicated, foreign]);
}

#[test]
fn an_answer_without_a_request_is_reported() {
    finds(&[result(CALL)], &[], &[Violation::Unasked(ID)]);
}

#[test]
fn requests_of_one_id_need_one_answer_each() {
    let both = [sent(CALL), sent(OTHER), result(OTHER), result(CALL)];
    finds(&both, &[ran(CALL), ran(OTHER)], &[]);
    let lost = Violation::Lost {
        id: ID,
        sent: 2,
        answered: 1,
    };
    finds(&both[..3], &[ran(CALL), ran(OTHER)], &[lost]);
}

#[test]
fn runs_of_requests_with_one_id_match_their_answers() {
    let refused = failed("server_start_failed", Outcome::NotSent);
    let events = [sent(CALL), sent(OTHER), result(OTHER), refused];
    finds(&events, &[ran(OTHER)], &[]);
    let too_many = Violation::ExecutedThoughNotSent {
        id: ID,
        ran: 1,
        allowed: 0,
    };
    finds(&events, &[ran(OTHER), ran(CALL)], &[too_many]);
}

#[test]
fn a_result_of_another_client_is_reported() {
    let foreign = Violation::ForeignResult {
        id: ID,
        nonce: OTHER,
    };
    let events = [sent(CALL), result(OTHER)];
    finds(&events, &[ran(OTHER)], &[unasked(OTHER), foreign]);
}

#[test]
fn a_damaged_result_is_reported() {
    let state = EchoState::Damaged;
    let damaged = answered(Answer::Echo { nonce: CALL, state });
    finds(
        &[sent(CALL), damaged],
        &[ran(CALL)],
        &[Violation::Damaged(CALL)],
    );
}

#[test]
fn a_call_on_another_server_is_misrouted() {
    let misrouted = Violation::Misrouted {
        nonce: CALL,
        ran_on: ServerIndex(1),
        pid: 10,
    };
    let events = [sent(CALL), result(CALL)];
    finds(
        &events,
        &[ran_on(1, CALL)],
        std::slice::from_ref(&misrouted),
    );
    let refused = failed("server_unknown", Outcome::NotSent);
    let to_nothing = [sent_to(CALL, Address::Nothing), refused];
    let ran_anyway = Violation::ExecutedThoughNotSent {
        id: ID,
        ran: 1,
        allowed: 0,
    };
    finds(&to_nothing, &[], &[]);
    finds(&to_nothing, &[ran_on(1, CALL)], &[misrouted, ran_anyway]);
}

#[test]
fn a_repeated_call_is_reported_whatever_its_answer() {
    let again = Violation::ExecutedTwice {
        nonce: CALL,
        times: 2,
    };
    let twice = [ran(CALL), ran(CALL)];
    let unknown = failed("server_exited", Outcome::Unknown);
    for end in [result(CALL), unknown, Event::Cancelled(ID)] {
        finds(&[sent(CALL), end], &twice, std::slice::from_ref(&again));
    }
}

#[test]
fn a_call_that_no_client_made_is_reported() {
    finds(&[], &[ran(CALL)], &[unasked(CALL)]);
}

#[test]
fn a_call_reported_as_not_sent_must_not_have_run() {
    for (code, outcome) in [
        ("overloaded", Outcome::NotSent),
        ("server_start_failed", Outcome::NotSent),
        ("header_mismatch", Outcome::Rejected),
    ] {
        let events = [sent(CALL), failed(code, outcome)];
        finds(&events, &[], &[]);
        let ran_anyway = Violation::ExecutedThoughNotSent {
            id: ID,
            ran: 1,
            allowed: 0,
        };
        finds(&events, &[ran(CALL)], &[ran_anyway]);
    }
}

#[test]
fn an_unknown_outcome_allows_one_run_or_none() {
    let events = [sent(CALL), failed("server_exited", Outcome::Unknown)];
    finds(&events, &[], &[]);
    finds(&events, &[ran(CALL)], &[]);
}

#[test]
fn an_answered_call_must_have_run() {
    let never = Violation::NeverExecuted {
        id: ID,
        answered: 1,
        ran: 0,
    };
    let error = failed("server_error", Outcome::Answered);
    finds(&[sent(CALL), error.clone()], &[ran(CALL)], &[]);
    finds(&[sent(CALL), error], &[], std::slice::from_ref(&never));
    finds(&[sent(CALL), result(CALL)], &[], &[never]);
}

#[test]
fn a_known_tool_must_not_be_reported_as_unknown() {
    let gone = Answer::Failed {
        code: "tool_unknown".into(),
        outcome: Outcome::NotSent,
    };
    let unfit = Violation::Unfit {
        id: ID,
        answer: format!("{gone:?}"),
    };
    finds(&[sent(CALL), answered(gone)], &[], &[unfit]);
}

#[test]
fn shutting_down_is_reported_only_at_the_end() {
    let ending = failed("shutting_down", Outcome::Unknown);
    let events = [sent(CALL), Event::Closing, ending.clone()];
    finds(&events, &[], &[]);
    let history = History {
        events: vec![sent(CALL), ending],
    };
    let found = check(&history, &[]);
    assert!(
        matches!(found[..], [Violation::Unfit { .. }]),
        "found {found:?}"
    );
}

#[test]
fn progress_comes_in_order_and_before_the_answer() {
    let events = [sent(CALL), progress(1), progress(3), result(CALL)];
    finds(&events, &[ran(CALL)], &[]);
    let late = [sent(CALL), result(CALL), progress(1)];
    finds(&late, &[ran(CALL)], &[Violation::ProgressAfterAnswer(CALL)]);
    for again in [2, 1] {
        let disorder = Violation::ProgressDisorder {
            nonce: CALL,
            before: 2,
            after: again,
        };
        let events = [sent(CALL), progress(2), progress(again), result(CALL)];
        finds(&events, &[ran(CALL)], &[disorder]);
    }
    finds(&[progress(1)], &[], &[Violation::ProgressUnasked(CALL)]);
}

#[test]
fn of_two_calls_with_one_id_the_other_may_still_progress() {
    let events = [
        sent(CALL),
        sent(OTHER),
        result(OTHER),
        progress(1),
        result(CALL),
    ];
    finds(&events, &[ran(CALL), ran(OTHER)], &[]);
    let events = [
        sent(CALL),
        sent(OTHER),
        result(CALL),
        progress(1),
        result(OTHER),
    ];
    let late = Violation::ProgressAfterAnswer(CALL);
    finds(&events, &[ran(CALL), ran(OTHER)], &[late]);
}

#[test]
fn unrefused_garbage_and_stray_lines_are_reported() {
    finds(&[Event::GarbageSent, Event::GarbageRefused], &[], &[]);
    let garbage = Violation::Garbage {
        sent: 1,
        refused: 0,
    };
    finds(&[Event::GarbageSent], &[], &[garbage]);
    let stray = Violation::Stray("{}".to_owned());
    finds(&[Event::Stray("{}".to_owned())], &[], &[stray]);
}
