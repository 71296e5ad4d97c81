use std::{
    pin::pin,
    task::{Context, Waker},
};

use bytes::Bytes;
use rawjson::RawJson;

use super::*;

fn id(text: &str) -> RequestId {
    let json = RawJson::parse(&Bytes::copy_from_slice(text.as_bytes())).unwrap();
    RequestId::from_json(json).unwrap()
}

/// Notes a request that runs in a task.
fn begin(in_flight: &InFlight, text: &str) -> (RunningKey, CancellationToken) {
    let cancelled = CancellationToken::new();
    let key = in_flight.begin(id(text), Runs::InTask(cancelled.clone()), 100);
    (key.unwrap(), cancelled)
}

#[test]
fn a_cancel_finds_its_request_and_no_other() {
    let in_flight = InFlight::default();
    let ids = ["1", "1.0", r#""1""#, r#""\u0031""#, "2"];
    let running = ids.map(|text| begin(&in_flight, text));
    for (index, text) in ids.iter().enumerate() {
        in_flight.cancel(&id(text));
        for (other, (_, cancelled)) in running.iter().enumerate() {
            assert_eq!(cancelled.is_cancelled(), other <= index, "{text}");
        }
    }
    for (key, _) in running {
        assert!(in_flight.end(key).is_none());
    }
}

#[test]
fn a_cancel_means_every_request_of_that_id() {
    let in_flight = InFlight::default();
    let (one, two) = (begin(&in_flight, "1"), begin(&in_flight, "1"));
    in_flight.cancel(&id("1"));
    assert!(one.1.is_cancelled() && two.1.is_cancelled());
}

#[test]
fn the_end_of_one_request_leaves_the_other_of_that_id() {
    for first_ends in [true, false] {
        let in_flight = InFlight::default();
        let (one, two) = (begin(&in_flight, "1"), begin(&in_flight, "1"));
        let (ended, goes_on) = if first_ends { (one, two) } else { (two, one) };
        assert!(in_flight.end(ended.0).is_some());
        in_flight.cancel(&id("1"));
        assert!(goes_on.1.is_cancelled());
        assert!(!ended.1.is_cancelled());
        assert!(in_flight.end(goes_on.0).is_none());
        assert!(
            in_flight.running().is_empty(),
            "nothing is kept of what has ended"
        );
    }
}

#[test]
fn unknown_ids_are_ignored() {
    let in_flight = InFlight::default();
    let (key, cancelled) = begin(&in_flight, "1");
    in_flight.cancel(&id("2"));
    assert!(!cancelled.is_cancelled());
    in_flight.cancel_all();
    assert!(cancelled.is_cancelled() && in_flight.end(key).is_none());
}

#[test]
fn a_request_that_continues_in_a_task_is_cancelled_there() {
    let in_flight = InFlight::default();
    let (key, before) = begin(&in_flight, "1");
    let now = CancellationToken::new();
    assert!(in_flight.move_to_task(&key, now.clone()));
    in_flight.cancel(&id("1"));
    assert!(now.is_cancelled() && !before.is_cancelled());
    let later = CancellationToken::new();
    assert!(!in_flight.move_to_task(&key, later));
    assert!(in_flight.end(key).is_none());
}

#[tokio::test]
async fn the_number_of_requests_is_bounded() {
    let in_flight = InFlight::default();
    let begin = |size| in_flight.begin(id("1"), Runs::InTask(CancellationToken::new()), size);
    let large = begin(10 * REQUEST_BYTES).unwrap();
    let mut others: Vec<_> = std::iter::from_fn(|| begin(0).ok()).collect();
    assert_eq!(others.len(), MAX_REQUESTS - 11);
    let mut waits = pin!(in_flight.room());
    assert!(!in_flight.has_room() && is_pending(waits.as_mut()));
    in_flight.end(others.pop().unwrap());
    waits.await;
    let largest = begin(100 * REQUEST_BYTES);
    assert!(largest.is_ok(), "it takes what there is");
    assert!(!in_flight.has_room());
    in_flight.end(large);
    in_flight.room().await;
}

#[tokio::test]
async fn waiting_ends_when_all_requests_have_ended() {
    let in_flight = InFlight::default();
    in_flight.all_ended().await;
    let (one, two) = (begin(&in_flight, "1").0, begin(&in_flight, "2").0);
    let mut waits = pin!(in_flight.all_ended());
    for key in [one, two] {
        assert!(is_pending(waits.as_mut()));
        in_flight.end(key);
    }
    waits.await;
}

fn is_pending(future: std::pin::Pin<&mut impl Future<Output = ()>>) -> bool {
    future
        .poll(&mut Context::from_waker(Waker::noop()))
        .is_pending()
}
