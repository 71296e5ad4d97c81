use pretty_assertions::assert_eq;
use tokio::time::advance;

use super::*;

const ALICE: Principal = Principal::User([1; 16]);
const BOB: Principal = Principal::User([2; 16]);

fn number(value: u64) -> NonZeroU64 {
    NonZeroU64::new(value).unwrap()
}

fn in_flight(most: u64) -> Limits {
    Limits {
        requests_in_flight: Some(number(most)),
        ..Limits::default()
    }
}

fn per_second(units: u64, burst: u64) -> Limits {
    Limits {
        requests: Some(RequestRate {
            per_second: number(units),
            burst: number(burst),
        }),
        ..Limits::default()
    }
}

fn per_minute(bytes: u64) -> Limits {
    Limits {
        bytes_per_minute: Some(number(bytes)),
        ..Limits::default()
    }
}

fn exceeded(limit: Limit, wait: Duration) -> Exceeded {
    Exceeded { limit, wait }
}

#[tokio::test(start_paused = true)]
async fn requests_in_flight_are_counted_until_they_end() {
    let quotas = Arc::<Quotas>::default();
    let admit = |principal| quotas.admit(principal, in_flight(2), 1, 10);
    let first = admit(ALICE).unwrap();
    let _second = admit(ALICE).unwrap();
    let refused = Some(exceeded(Limit::InFlight(number(2)), SECOND));
    assert_eq!(admit(ALICE).err(), refused);
    let _other = admit(BOB).unwrap().expect("another principal");
    drop(first);
    let third = admit(ALICE).unwrap();
    assert!(third.is_some());
    assert_eq!(admit(ALICE).err(), refused);
}

#[tokio::test(start_paused = true)]
async fn rates_are_per_principal_and_say_when_to_come_back() {
    let quotas = Arc::<Quotas>::default();
    let admit = |principal| quotas.admit(principal, per_second(2, 3), 1, 10).err();
    for _ in 0..3 {
        assert_eq!(admit(ALICE), None);
    }
    let refused = |wait| Some(exceeded(Limit::Requests(number(2)), wait));
    assert_eq!(admit(ALICE), refused(SECOND / 2));
    assert_eq!(admit(BOB), None);
    advance(SECOND / 4).await;
    assert_eq!(admit(ALICE), refused(SECOND / 4));
    advance(SECOND / 4).await;
    assert_eq!(admit(ALICE), None);
    assert_eq!(admit(ALICE), refused(SECOND / 2));
}

#[tokio::test(start_paused = true)]
async fn bytes_of_requests_and_responses_count_together() {
    let quotas = Arc::<Quotas>::default();
    let limits = per_minute(60);
    let admit = |bytes| quotas.admit(ALICE, limits, 1, bytes).err();
    assert_eq!(admit(20), None);
    quotas.meter(ALICE, limits).unwrap().count(40 + 60);
    // One byte per second: 120 are there, and one more must fit below 60.
    let refused = |seconds| Some(exceeded(Limit::Bytes(number(60)), SECOND * seconds));
    assert_eq!(admit(20), refused(61));
    advance(SECOND * 60).await;
    assert_eq!(admit(20), refused(1));
    advance(SECOND).await;
    assert_eq!(admit(20), None);
    assert!(quotas.meter(ALICE, in_flight(1)).is_none());
}

#[tokio::test(start_paused = true)]
async fn a_refused_request_costs_nothing() {
    let quotas = Arc::<Quotas>::default();
    let limits = Limits {
        bytes_per_minute: Some(number(60)),
        ..per_second(1, 1)
    };
    assert!(quotas.admit(ALICE, limits, 1, 0).is_ok());
    for _ in 0..100 {
        assert!(quotas.admit(ALICE, limits, 1, 1000).is_err());
    }
    advance(SECOND).await;
    assert!(quotas.admit(ALICE, limits, 1, 0).is_ok());
}

#[tokio::test(start_paused = true)]
async fn messages_without_an_answer_are_never_refused() {
    let quotas = Arc::<Quotas>::default();
    let limits = Limits {
        requests_in_flight: Some(number(1)),
        bytes_per_minute: Some(number(60)),
        ..per_second(1, 1)
    };
    let _running = quotas.admit(ALICE, limits, 1, 100).unwrap();
    for _ in 0..10 {
        assert!(quotas.admit(ALICE, limits, 0, 60).unwrap().is_none());
    }
    advance(SECOND * 600).await;
    let refused = Some(exceeded(Limit::InFlight(number(1)), SECOND));
    assert_eq!(quotas.admit(ALICE, limits, 1, 0).err(), refused);
}

#[tokio::test(start_paused = true)]
async fn a_batch_larger_than_a_limit_passes_alone() {
    let quotas = Arc::<Quotas>::default();
    let batch = quotas.admit(ALICE, in_flight(3), 10, 0).unwrap();
    assert!(batch.is_some());
    assert!(quotas.admit(ALICE, in_flight(3), 10, 0).is_err());
    drop(batch);
    assert!(quotas.admit(ALICE, in_flight(3), 10, 0).is_ok());
}

#[tokio::test(start_paused = true)]
async fn changed_limits_apply_to_the_next_request() {
    let quotas = Arc::<Quotas>::default();
    assert!(quotas.admit(ALICE, per_second(1, 1), 1, 0).is_ok());
    assert!(quotas.admit(ALICE, per_second(1, 1), 1, 0).is_err());
    assert!(quotas.admit(ALICE, per_second(1, 2), 1, 0).is_ok());
    assert!(quotas.admit(ALICE, Limits::default(), 1, 0).is_ok());
}

#[tokio::test(start_paused = true)]
async fn principals_that_use_nothing_are_forgotten_and_others_are_bounded() {
    let quotas = Arc::<Quotas>::default();
    let user = |number: usize| {
        let mut digest = [0; 16];
        digest[..8].copy_from_slice(&number.to_be_bytes());
        Principal::User(digest)
    };
    let admit = |number| quotas.admit(user(number), per_second(1, 1), 1, 0);
    for number in 0..MAX_PRINCIPALS {
        assert!(admit(number).is_ok(), "{number}");
    }
    let refused = Some(exceeded(Limit::Principals, SECOND));
    assert_eq!(admit(MAX_PRINCIPALS).err(), refused);
    assert!(admit(0).is_err_and(|it| it.limit == Limit::Requests(number(1))));
    advance(SECOND).await;
    assert!(admit(MAX_PRINCIPALS).is_ok());
    assert_eq!(quotas.table().principals.len(), 1);
}

#[test]
fn retry_after_is_in_whole_seconds_and_never_zero() {
    for (milliseconds, expected) in [(0, 1), (1, 1), (1000, 1), (1001, 2), (61_500, 62)] {
        let exceeded = Exceeded {
            limit: Limit::Principals,
            wait: Duration::from_millis(milliseconds),
        };
        assert_eq!(exceeded.retry_after(), expected, "{milliseconds}");
    }
}
