use bytes::Bytes;

use super::*;
use crate::wire::RawJson;

fn id(text: &str) -> RequestId {
    let json = RawJson::parse(&Bytes::copy_from_slice(text.as_bytes())).unwrap();
    RequestId::from_json(json).unwrap()
}

#[test]
fn a_cancel_finds_its_request_and_no_other() {
    let in_flight = InFlight::default();
    let ids = ["1", "1.0", r#""1""#, r#""\u0031""#, "2"];
    let running = ids.map(|text| in_flight.begin(&id(text)));
    for (index, text) in ids.iter().enumerate() {
        in_flight.cancel(&id(text));
        for (other, request) in running.iter().enumerate() {
            assert_eq!(request.cancelled.is_cancelled(), other <= index, "{text}");
        }
    }
}

#[test]
fn a_cancel_means_every_request_of_that_id() {
    let in_flight = InFlight::default();
    let (one, two) = (in_flight.begin(&id("1")), in_flight.begin(&id("1")));
    in_flight.cancel(&id("1"));
    assert!(one.cancelled.is_cancelled() && two.cancelled.is_cancelled());
}

#[test]
fn the_end_of_one_request_leaves_the_other_of_that_id() {
    for first_ends in [true, false] {
        let in_flight = InFlight::default();
        let (one, two) = (in_flight.begin(&id("1")), in_flight.begin(&id("1")));
        let (ended, goes_on) = if first_ends { (one, two) } else { (two, one) };
        in_flight.end(&id("1"), &ended);
        in_flight.end(&id("1"), &ended);
        in_flight.cancel(&id("1"));
        assert!(goes_on.cancelled.is_cancelled());
        assert!(!ended.cancelled.is_cancelled());
        in_flight.end(&id("1"), &goes_on);
        assert!(
            in_flight.running().is_empty(),
            "nothing is kept of what has ended"
        );
    }
}

#[test]
fn what_is_unknown_is_ignored() {
    let in_flight = InFlight::default();
    let running = in_flight.begin(&id("1"));
    in_flight.cancel(&id("2"));
    in_flight.end(&id("2"), &running);
    assert!(!running.cancelled.is_cancelled());
    in_flight.cancel(&id("1"));
    assert!(running.cancelled.is_cancelled());
}
