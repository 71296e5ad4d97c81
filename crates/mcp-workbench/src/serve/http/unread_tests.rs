use std::{
    sync::Arc,
    task::{Context, Poll, Waker},
};

use rawjson::RawJson;
use tokio::time::{Duration, advance};

use super::{
    super::{
        connections::Connections,
        limits::{MAX_UNREAD_BYTES, MAX_UNSENT_BYTES},
        streams::{Attachment, Next, Streams},
    },
    Rank, UnreadBudget, drop_excess,
};
use crate::wire::{self, RequestId};

const LARGE: usize = 15 * 1024 * 1024;

/// Leaves large answers to the requests of these ids unread. Returns their streams.
fn leave_unread(streams: &Arc<Streams>, ids: std::ops::Range<u64>) -> Vec<u64> {
    // All of them share one buffer.
    let text = RawJson::of(&"x".repeat(LARGE));
    ids.map(|id| {
        let id = RequestId::from_json(RawJson::of(&id)).unwrap();
        let stream = streams.begin(None);
        stream.send(wire::result(&id, &text));
        stream.end();
        stream.id()
    })
    .collect()
}

/// Returns the next event of a stream as text. A large one is only named.
fn next(streams: &Arc<Streams>, stream: u64) -> String {
    let Attachment::Reader(mut reader) = streams.attach(stream, Some(0)) else {
        return "nothing".to_owned();
    };
    match reader.poll_next(&Context::from_waker(Waker::noop())) {
        Poll::Ready(Next::Event(_, frame)) if frame.len() > LARGE => "large".to_owned(),
        Poll::Ready(Next::Event(_, frame)) => String::from_utf8(frame.to_vec()).unwrap(),
        Poll::Ready(Next::Ended) => "ended".to_owned(),
        Poll::Pending => "pending".to_owned(),
    }
}

fn bytes(budget: &UnreadBudget) -> usize {
    budget.bytes.load(std::sync::atomic::Ordering::Relaxed)
}

#[tokio::test(start_paused = true)]
async fn the_oldest_unread_answers_become_errors_and_the_newest_stay() {
    let budget = Arc::<UnreadBudget>::default();
    let connections = Connections::new();
    let mut sessions = Vec::new();
    while budget.excess() == 0 {
        advance(Duration::from_secs(1)).await;
        let streams = Streams::new(&budget);
        let ids = leave_unread(&streams, 7..9);
        sessions.push((streams, ids));
    }
    let all = sessions.iter().map(|(streams, _)| Arc::clone(streams));
    drop_excess(&budget, all.collect(), &connections);
    assert!(bytes(&budget) <= MAX_UNREAD_BYTES / 4 * 3);
    let (oldest, newest) = (sessions.first().unwrap(), sessions.last().unwrap());
    let error = next(&oldest.0, oldest.1[0]);
    let expected = r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32000,"message":"the response was dropped because it was not read"#;
    assert!(error.starts_with(expected), "{error}");
    assert_eq!(next(&newest.0, newest.1[1]), "large");
    drop(sessions);
    assert_eq!(bytes(&budget), 0);
}

#[tokio::test(start_paused = true)]
async fn a_session_with_more_than_its_share_loses_first() {
    let budget = Arc::<UnreadBudget>::default();
    let modest = Streams::new(&budget);
    let kept = leave_unread(&modest, 0..2);
    advance(Duration::from_secs(1)).await;
    let greedy = Streams::new(&budget);
    let count = (MAX_UNREAD_BYTES / LARGE) as u64;
    let lost = leave_unread(&greedy, 0..count);
    let all = vec![Arc::clone(&modest), Arc::clone(&greedy)];
    drop_excess(&budget, all, &Connections::new());
    for stream in kept {
        assert_eq!(
            next(&modest, stream),
            "large",
            "older, but within the share"
        );
    }
    assert!(next(&greedy, lost[0]).contains("was dropped"));
    assert_eq!(next(&greedy, *lost.last().unwrap()), "large");
}

#[tokio::test(start_paused = true)]
async fn delivered_answers_are_dropped_before_unread_ones() {
    let streams = Streams::new(&Arc::default());
    let ids = leave_unread(&streams, 0..3);
    let (read, running) = (streams.begin(None), streams.begin(None));
    let params = RawJson::of(&"x".repeat(5000));
    for stream in [&read, &running] {
        stream.send(wire::request(1, "sampling/createMessage", &params));
    }
    read.end();
    assert!(next(&streams, read.id()).contains("sampling"));
    let mut droppable = streams.droppable();
    droppable.sort_by_key(|it| (it.rank, it.since));
    let droppable: Vec<_> = droppable.iter().map(|it| (it.rank, it.place)).collect();
    assert!((MAX_UNSENT_BYTES..MAX_UNSENT_BYTES + LARGE).contains(&(3 * LARGE)));
    let expected = [
        (Rank::Delivered, read.id()),
        (Rank::Surplus, ids[0]),
        (Rank::Unread, ids[1]),
        (Rank::Unread, ids[2]),
        (Rank::Running, running.id()),
    ];
    assert_eq!(droppable, expected);
    streams.drop_unread(read.id());
    assert_eq!(next(&streams, read.id()), "nothing", "it is forgotten");
    streams.drop_unread(running.id());
    assert_eq!(next(&streams, running.id()), "pending", "its answer comes");
}

#[tokio::test]
async fn the_end_of_a_session_frees_its_unread_answers() {
    let budget = Arc::<UnreadBudget>::default();
    let streams = Streams::new(&budget);
    leave_unread(&streams, 0..2);
    streams.close();
    assert_eq!(bytes(&budget), 0);
}
