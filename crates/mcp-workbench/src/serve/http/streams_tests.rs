use std::{
    sync::Arc,
    task::{Context, Poll, Waker},
};

use rawjson::ObjectText;
use tokio::time::{Duration, Instant};

use super::{Attachment, EventId, Next, STANDALONE, StreamReader, Streams};
use crate::{
    serve::{
        http::limits::{
            ENDED_STREAM_TTL, MAX_ENDED, MAX_RESEND_EVENTS, MAX_STANDALONE_EVENTS,
            MAX_UNSENT_BYTES, MAX_UNSENT_STATELESS,
        },
        notices::MAX_NOTICE_BYTES,
    },
    wire::{self, Frame},
};

fn frame(text: &str) -> Frame {
    let params = ObjectText::new().member("text", text).finish();
    wire::notification("n", Some(&params))
}

fn reader(streams: &Arc<Streams>, id: u64, after: Option<u64>) -> StreamReader {
    match streams.attach(id, after) {
        Attachment::Reader(reader) => reader,
        Attachment::Over => panic!("over"),
        Attachment::Unknown => panic!("unknown"),
    }
}

/// Returns the numbers of the events that can be read, and true if the stream has ended.
fn read(reader: &mut StreamReader) -> (Vec<u64>, bool) {
    let mut numbers = Vec::new();
    loop {
        match reader.poll_next(&Context::from_waker(Waker::noop())) {
            Poll::Ready(Next::Event(id, _)) => numbers.push(id.number),
            Poll::Ready(Next::Ended) => return (numbers, true),
            Poll::Pending => return (numbers, false),
        }
    }
}

/// Returns the bytes that wait, and those that are stored to be resent.
fn droppable(streams: &Streams) -> (usize, usize) {
    let state = streams.state();
    (state.unsent, state.resendable)
}

#[test]
fn event_ids_are_parsed_back() {
    let id = EventId {
        stream: 3,
        number: 17,
    };
    assert_eq!(EventId::parse(&id.to_string()), Some(id));
    for text in [
        "",
        "3",
        "-",
        "3-",
        "-3",
        "a-b",
        "3-17-1",
        "99999999999999999999-1",
    ] {
        assert_eq!(EventId::parse(text), None, "{text:?}");
    }
}

#[tokio::test]
async fn a_new_reader_continues_and_the_old_one_ends() {
    let streams = Streams::new(&Arc::default());
    let stream = streams.begin(None);
    for text in ["a", "b", "c"] {
        stream.send(frame(text));
    }
    let mut first = reader(&streams, stream.id(), None);
    assert_eq!(read(&mut first), (vec![1, 2, 3], false));
    let mut second = reader(&streams, stream.id(), Some(1));
    assert_eq!(read(&mut first), (vec![], true));
    assert_eq!(read(&mut second), (vec![2, 3], false));
    stream.send(frame("d"));
    stream.end();
    assert_eq!(read(&mut second), (vec![4], true));
    drop(second);
    assert_eq!(
        read(&mut reader(&streams, stream.id(), Some(3))),
        (vec![4], true)
    );
    assert!(matches!(
        streams.attach(stream.id(), Some(4)),
        Attachment::Over
    ));
    assert!(matches!(streams.attach(99, None), Attachment::Unknown));
}

#[tokio::test]
async fn stored_events_are_bounded() {
    let streams = Streams::new(&Arc::default());
    let stream = streams.begin(None);
    let mut one = reader(&streams, stream.id(), None);
    for _ in 0..MAX_RESEND_EVENTS + 10 {
        stream.send(frame("x"));
        read(&mut one);
    }
    let (kept, _) = read(&mut reader(&streams, stream.id(), Some(0)));
    assert_eq!(kept.len(), MAX_RESEND_EVENTS);
    for _ in 0..MAX_ENDED + 5 {
        let stream = streams.begin(None);
        stream.send(frame("x"));
        stream.end();
    }
    assert_eq!(streams.state().ended.len(), MAX_ENDED);
    streams.forget_old(Instant::now() + ENDED_STREAM_TTL + Duration::from_secs(1));
    assert_eq!(streams.state().ended.len(), 0);
}

#[tokio::test]
async fn a_large_answer_is_stored_until_the_next_one() {
    let streams = Streams::new(&Arc::default());
    let large = "x".repeat(6 * 1024 * 1024);
    let mut last = 0;
    for _ in 0..3 {
        let stream = streams.begin(None);
        stream.send(frame(&large));
        stream.end();
        read(&mut reader(&streams, stream.id(), None));
        last = stream.id();
    }
    assert_eq!(read(&mut reader(&streams, last, Some(0))), (vec![1], true));
    assert_eq!(streams.state().ended.len(), 1);
}

#[tokio::test]
async fn unread_events_are_bounded_and_the_oldest_are_dropped() {
    let streams = Streams::new(&Arc::default());
    let output = streams.standalone();
    for _ in 0..MAX_STANDALONE_EVENTS + 3 {
        output.send(frame("x"));
    }
    let (heard, _) = read(&mut reader(&streams, STANDALONE, None));
    let newest = (MAX_STANDALONE_EVENTS + 3) as u64;
    assert_eq!(heard, (4..=newest).collect::<Vec<_>>());
}

#[tokio::test]
async fn every_byte_is_counted() {
    let streams = Streams::new(&Arc::default());
    let stream = streams.begin(None);
    let chunk = "x".repeat(1024 * 1024);
    while !streams.is_full() {
        stream.send(frame(&chunk));
    }
    assert!(streams.state().unsent > MAX_UNSENT_BYTES);
    assert_eq!(streams.running(), 1);
    stream.end();
    let mut all = reader(&streams, stream.id(), None);
    read(&mut all);
    drop(all);
    assert!(!streams.is_full() && !streams.in_use());
    assert_eq!(streams.state().unsent, 0);
    streams.forget_old(Instant::now() + ENDED_STREAM_TTL);
    assert_eq!(streams.state().resendable, 0);
    streams.close();
    streams.standalone().send(frame("x"));
    assert_eq!(streams.state().unsent, 0);
}

#[tokio::test]
async fn nothing_of_a_request_without_a_session_is_stored() {
    let streams = Streams::for_one_request(&Arc::default());
    let stream = streams.begin(None);
    let mut one = reader(&streams, stream.id(), None);
    stream.send(frame("a"));
    stream.send(frame("b"));
    assert_eq!(read(&mut one), (vec![1, 2], false));
    assert_eq!(droppable(&streams), (0, 0));
    while !streams.is_full() {
        stream.send(frame(&"x".repeat(100_000)));
    }
    let unsent = streams.state().unsent;
    assert!(unsent < MAX_UNSENT_STATELESS + 200_000, "{unsent}");
    assert!(!stream.has_ended());
    stream.end();
    assert!(stream.has_ended());
    let (rest, ended) = read(&mut one);
    assert!(!rest.is_empty() && ended);
    assert_eq!(droppable(&streams), (0, 0));
}

/// Returns the frames that a reader finds on a stream.
fn frames(streams: &Arc<Streams>, id: u64) -> Vec<String> {
    let mut reader = reader(streams, id, None);
    let mut frames = Vec::new();
    while let Poll::Ready(Next::Event(_, frame)) =
        reader.poll_next(&Context::from_waker(Waker::noop()))
    {
        frames.push(String::from_utf8(frame.to_vec()).unwrap());
    }
    frames
}

#[tokio::test]
async fn waiting_notifications_are_bounded_and_do_not_delay_the_answer() {
    let streams = Streams::new(&Arc::default());
    let (stream, other) = (streams.begin(None), streams.begin(None));
    stream.send(frame("question"));
    for _ in 0..3 * MAX_NOTICE_BYTES / 1000 {
        stream.notify(frame(&"x".repeat(1000)));
    }
    let (unsent, _) = droppable(&streams);
    assert!(unsent <= MAX_NOTICE_BYTES + 100, "{unsent}");
    stream.answer(frame("answer"));
    let read = frames(&streams, stream.id());
    assert_eq!(read.len(), 2, "the question and the answer");
    assert!(read[1].contains("answer"));
    other.notify(frame("progress"));
    other.answer(frame("answer"));
    assert_eq!(frames(&streams, other.id()).len(), 2, "few are no delay");
    assert_eq!(streams.state().notices, 0);
    assert_eq!(streams.state().unsent, 0);
}
