use std::time::Duration;

use tokio::sync::oneshot;

use super::*;
use crate::{
    call::{ClientId, Principal},
    downstream::{server::CallTicket, session::reply::AnswerReceiver, test_client::TestClient},
    era::Era,
    wire::Outbox,
};

const CALL: Duration = Duration::from_secs(10);
const MAX_CALL: Duration = Duration::from_mins(1);
const MOMENT: Duration = Duration::from_millis(1);

fn queued(ticket: u64) -> Box<QueuedCall> {
    let call = TestClient::new(Era::Legacy, "{}").call();
    let reply = AnswerReceiver::Waiting(oneshot::channel().0);
    QueuedCall::new(CallTicket(ticket), call, reply)
}

fn pending() -> PendingRequests {
    let times = ServerTimes {
        connect: CALL,
        call: CALL,
        max_call: MAX_CALL,
        idle: None,
    };
    PendingRequests::new(5, times)
}

/// Adds a call with the ticket 100 above its id.
fn add(pending: &mut PendingRequests) -> u64 {
    let id = pending.fresh_id();
    let frame = Outbox::default().push(crate::wire::notification("m", None));
    pending.insert_call(id, queued(100 + id), frame, Instant::now());
    id
}

fn is_call(asked: Option<&PendingRequest>) -> bool {
    matches!(asked, Some(PendingRequest::Call(_)))
}

#[test]
fn an_id_is_never_used_twice() {
    let mut pending = pending();
    let ids: Vec<u64> = (0..5).map(|_| add(&mut pending)).collect();
    assert_eq!(ids, [5, 6, 7, 8, 9]);
    for id in ids {
        assert!(pending.remove(id).is_some());
    }
    assert_eq!(pending.fresh_id(), 10);
}

#[test]
fn an_answer_finds_its_request_once() {
    let mut pending = pending();
    let call = add(&mut pending);
    let list = pending.fresh_id();
    pending.insert(list, PendingRequest::List);
    assert_eq!((pending.call_count(), pending.call_ids()), (1, vec![call]));
    assert!(pending.remove(999).is_none());
    assert!(matches!(pending.remove(list), Some(PendingRequest::List)));
    assert!(is_call(pending.remove(call).as_ref()));
    assert!(pending.remove(call).is_none() && pending.remove(list).is_none());
    assert_eq!(pending.call_count(), 0);
}

#[test]
fn a_caller_finds_its_call_by_the_ticket() {
    let mut pending = pending();
    let (one, two) = (add(&mut pending), add(&mut pending));
    assert!(pending.remove_call(CallTicket(one)).is_none());
    let (id, call) = pending.remove_call(CallTicket(100 + two)).unwrap();
    assert_eq!((id, call.queued.ticket), (two, CallTicket(100 + two)));
    assert!(pending.remove_call(CallTicket(100 + two)).is_none());
    assert_eq!((pending.call_count(), pending.call_ids()), (1, vec![one]));
}

#[test]
fn calls_are_listed_oldest_first() {
    let mut pending = pending();
    let ids: Vec<u64> = (0..50).map(|_| add(&mut pending)).collect();
    assert_eq!(pending.call_ids(), ids);
}

#[test]
fn a_silent_call_expires_at_its_time() {
    let mut pending = pending();
    assert_eq!(pending.next_expiry(), None);
    let id = add(&mut pending);
    let at = pending.next_expiry().expect("a call expires");
    assert!(pending.expire(at - MOMENT).is_empty());
    assert_eq!(pending.next_expiry(), Some(at));
    let expired = pending.expire(at);
    assert_eq!(expired.len(), 1);
    assert_eq!((expired[0].0, expired[0].2), (id, TimeLimit::Silence(CALL)));
    assert_eq!((pending.call_count(), pending.next_expiry()), (0, None));
}

#[test]
fn progress_restarts_the_silence_timeout_but_not_the_total() {
    let mut pending = pending();
    let id = add(&mut pending);
    let silent = pending.next_expiry().unwrap();
    let whole = silent - CALL + MAX_CALL;
    pending.times.call = CALL * 3;
    assert!(pending.progress(id).is_some());
    assert!(pending.expire(silent).is_empty(), "it is not silent");
    assert!(pending.next_expiry() >= Some(silent + CALL));
    pending.times.call = MAX_CALL * 2;
    assert!(pending.progress(id).is_some());
    assert!(pending.expire(whole - MOMENT).is_empty());
    assert_eq!(pending.next_expiry(), Some(whole));
    let expired = pending.expire(whole);
    assert_eq!(expired[0].2, TimeLimit::Total(MAX_CALL));
}

#[test]
fn progress_without_a_call_is_ignored() {
    let mut pending = pending();
    let list = pending.fresh_id();
    pending.insert(list, PendingRequest::List);
    assert!(pending.progress(list).is_none() && pending.progress(99).is_none());
}

#[test]
fn only_due_calls_expire_and_lists_never_do() {
    let mut pending = pending();
    let early = add(&mut pending);
    pending.times.call = CALL * 2;
    let late = add(&mut pending);
    let list = pending.fresh_id();
    pending.insert(list, PendingRequest::List);
    let at = pending.next_expiry().unwrap();
    let expired = pending.expire(at);
    assert_eq!(expired.iter().map(|it| it.0).collect::<Vec<_>>(), [early]);
    assert_eq!(pending.call_ids(), [late]);
    assert!(pending.next_expiry() > Some(at));
    assert_eq!(pending.expire(at + MAX_CALL * 2).len(), 1);
    assert!(matches!(pending.remove(list), Some(PendingRequest::List)));
}

/// A later call may have a shorter time.
#[test]
fn the_next_expiry_is_never_late() {
    let mut pending = pending();
    add(&mut pending);
    let first = pending.next_expiry().unwrap();
    pending.times.call = CALL / 2;
    let short = add(&mut pending);
    assert!(pending.next_expiry() < Some(first));
    pending.remove(short);
    assert!(pending.next_expiry() <= Some(first));
    assert!(pending.expire(first - MOMENT).is_empty());
    assert_eq!(pending.next_expiry(), Some(first));
}

#[test]
fn open_questions_suspend_the_silence_timeout_but_not_the_total() {
    let mut pending = pending();
    let id = add(&mut pending);
    let at = pending.next_expiry().expect("a call expires");
    let client = Asker::Client(ClientId(0));
    pending.question_opened(client);
    pending.question_opened(client);
    pending.question_opened(Asker::Client(ClientId(9)));
    assert!(pending.expire(at).is_empty());
    assert!(pending.next_expiry() > Some(at));
    pending.question_closed(client);
    assert!(pending.expire(at).is_empty(), "another question is open");
    pending.question_closed(client);
    let later = pending.next_expiry().expect("a call expires");
    assert!(later >= at && pending.expire(later - MOMENT).is_empty());
    pending.question_opened(client);
    let total = pending.next_expiry().expect("it looks again") + MAX_CALL;
    let expired = pending.expire(total);
    assert_eq!(
        (expired[0].0, expired[0].2),
        (id, TimeLimit::Total(MAX_CALL))
    );
    pending.question_closed(client);
    pending.question_closed(client);
}

#[test]
fn a_question_suspends_the_timeouts_of_all_calls_that_may_have_asked() {
    let mut pending = pending();
    add(&mut pending);
    add(&mut pending);
    let at = pending.next_expiry().expect("a call expires") + CALL / 2;
    let principal = Asker::Principal(Principal::Anybody);
    pending.question_opened(Asker::Principal(Principal::Local));
    pending.question_opened(principal);
    assert!(pending.expire(at).is_empty());
    pending.question_closed(principal);
    assert_eq!(pending.expire(at + CALL).len(), 2);
}
