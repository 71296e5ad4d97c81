//! The streams of one session and their events. A stream outlives the connection that reads it: events wait while no
//! client reads, and sent events are stored for a while, so that a client that lost its connection can resume. All of
//! this is bounded.

use std::{
    future::poll_fn,
    sync::{Arc, Mutex, MutexGuard},
    task::{Context, Poll},
};

use tokio::time::Instant;

use super::{
    limits::ENDED_STREAM_TTL,
    quotas::InFlight,
    shared_events::SharedStream,
    stream_state::{Event, ReaderRegistration, Retention, Stream, StreamsState},
    unread::{StoredBytes, UnreadBudget},
};
use crate::{sync::lock, wire::Frame};

/// The stream of a session for messages that belong to no request.
pub(super) const STANDALONE: u64 = 0;

/// The id of an event: unique in its session, with the number of its stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EventId {
    pub(super) stream: u64,
    /// The number of the event in its stream. The first message is 1.
    pub(super) number: u64,
}

impl EventId {
    /// Parses an id that we have issued.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (stream, number) = text.split_once('-')?;
        Some(Self {
            stream: stream.parse().ok()?,
            number: number.parse().ok()?,
        })
    }
}

impl std::fmt::Display for EventId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{}", self.stream, self.number)
    }
}

/// All streams of one session.
pub(super) struct Streams {
    state: Mutex<StreamsState>,
}

/// The serial of the task that waits for the first message of a response; readers have others.
const FIRST_MESSAGE_READER: u64 = 0;

/// The next item of a reader.
pub(super) enum Next {
    Event(EventId, Frame),
    /// The stream has ended, or a different reader has replaced this one.
    Ended,
}

/// The first message of a response.
pub(super) enum FirstMessage {
    Answer(Frame),
    /// Events before the response.
    Events,
    /// None: the request ended without a response.
    Nothing,
}

/// The result of attaching a reader to a stream.
pub(super) enum Attachment {
    /// The place of its reader.
    Reader(StreamReader),
    /// It has ended, and all events were read.
    Over,
    /// It is unknown, or no longer stored.
    Unknown,
}

/// The sending side of one stream.
#[derive(Clone)]
pub(in crate::serve) struct EventStream {
    streams: Arc<Streams>,
    id: u64,
}

impl EventStream {
    /// Sends a message that must arrive.
    pub(in crate::serve) fn send(&self, frame: Frame) {
        self.streams.state().push(self.id, Event::message(frame));
    }

    /// Sends a notification that a slow client may miss.
    pub(in crate::serve) fn notify(&self, frame: Frame) {
        self.streams.state().notify(self.id, frame);
    }

    /// Sends the response and ends the stream. For a slow client, waiting notifications are dropped first.
    pub(in crate::serve) fn answer(&self, frame: Frame) {
        let mut state = self.streams.state();
        state.drop_notices(self.id);
        state.push(self.id, Event::message(frame));
        state.end(self.id);
    }

    /// Returns true if the client is slow.
    pub(in crate::serve) fn is_full(&self) -> bool {
        self.streams.is_full()
    }

    pub(in crate::serve) fn end(&self) {
        self.streams.state().end(self.id);
    }

    /// Returns true if no more events will follow.
    pub(super) fn has_ended(&self) -> bool {
        let state = self.streams.state();
        let stream = state.streams.get(&self.id);
        stream.is_none_or(|stream| stream.ended)
    }

    /// Puts its events into the store of the replicas too, those that it has and those to come.
    pub(super) fn share(&self, shared: SharedStream) {
        self.streams.state().share(self.id, shared);
    }

    pub(super) fn id(&self) -> u64 {
        self.id
    }

    /// Returns the streams that it belongs to.
    pub(super) fn streams(&self) -> &Arc<Streams> {
        &self.streams
    }
}

impl Streams {
    /// Creates the streams of a session.
    pub(super) fn new(budget: &Arc<UnreadBudget>) -> Arc<Self> {
        let mut state = StreamsState::new(Retention::Some, Arc::clone(budget));
        state.streams.insert(STANDALONE, Stream::new());
        let state = Mutex::new(state);
        Arc::new(Self { state })
    }

    /// Creates the streams of a request without a session. They are empty until the request starts.
    pub(super) fn for_one_request(budget: &Arc<UnreadBudget>) -> Arc<Self> {
        let state = Mutex::new(StreamsState::new(Retention::Nothing, Arc::clone(budget)));
        Arc::new(Self { state })
    }

    /// Returns the stream for messages that belong to no request.
    pub(super) fn standalone(self: &Arc<Self>) -> EventStream {
        EventStream {
            streams: Arc::clone(self),
            id: STANDALONE,
        }
    }

    /// Starts a stream for a new request.
    pub(super) fn begin(self: &Arc<Self>, in_flight: Option<InFlight>) -> EventStream {
        EventStream {
            streams: Arc::clone(self),
            id: self.state().begin(in_flight),
        }
    }

    pub(super) fn running(&self) -> usize {
        self.state().running
    }

    /// Returns true if requests run or a client listens.
    pub(super) fn in_use(&self) -> bool {
        let state = self.state();
        state.running > 0 || state.streams.values().any(|it| it.reader.is_some())
    }

    /// Returns true if the client is slow.
    pub(super) fn is_full(&self) -> bool {
        self.state().is_full()
    }

    /// Ends the stream for messages that belong to no request.
    pub(super) fn end_standalone(&self) {
        self.state().end(STANDALONE);
    }

    /// Ends all streams with the session. Events that no client reads now are removed, because no client can come back
    /// for them.
    pub(super) fn close(&self) {
        let mut state = self.state();
        let ids: Vec<u64> = state.streams.keys().copied().collect();
        for id in ids {
            state.end(id);
            let is_read = state.streams.get(&id).is_some_and(|it| it.reader.is_some());
            if !is_read {
                state.remove(id);
            }
        }
        state.closed = true;
    }

    /// Returns the streams with droppable bytes.
    pub(super) fn droppable(&self) -> Vec<StoredBytes<u64>> {
        self.state().droppable()
    }

    /// Drops the stored bytes of a stream.
    pub(super) fn drop_unread(&self, id: u64) {
        self.state().drop_unread(id);
    }

    /// Forgets streams that ended long ago.
    pub(super) fn forget_old(&self, now: Instant) {
        let mut state = self.state();
        while let Some((id, at)) = state.ended.front().copied() {
            if now.duration_since(at) < ENDED_STREAM_TTL {
                return;
            }
            state.ended.pop_front();
            state.remove(id);
        }
    }

    /// Waits for the first message of a response. Cancel-safe.
    pub(super) async fn first_message(self: &Arc<Self>, id: u64) -> FirstMessage {
        // The waiting task counts as a reader while it waits.
        let _waiting = AttachedReader {
            streams: Arc::clone(self),
            id,
            serial: FIRST_MESSAGE_READER,
        };
        poll_fn(|context| self.poll_first_message(id, context)).await
    }

    fn poll_first_message(&self, id: u64, context: &Context<'_>) -> Poll<FirstMessage> {
        let mut state = self.state();
        let Some(stream) = state.streams.get_mut(&id) else {
            return Poll::Ready(FirstMessage::Nothing);
        };
        match (stream.events.len(), stream.ended) {
            // A single response needs no stream: it is sent as JSON.
            (1, true) => {
                let answer = state.drop_oldest(id);
                state.remove(id);
                Poll::Ready(
                    answer.map_or(FirstMessage::Nothing, |it| FirstMessage::Answer(it.frame)),
                )
            }
            (0, true) => Poll::Ready(FirstMessage::Nothing),
            (0, false) => {
                stream.wait(FIRST_MESSAGE_READER, context);
                Poll::Pending
            }
            _ => Poll::Ready(FirstMessage::Events),
        }
    }

    /// Attaches a reader to a stream, in place of its current one. It reads on from `after`, or from the first event
    /// that was not sent.
    pub(super) fn attach(self: &Arc<Self>, id: u64, after: Option<u64>) -> Attachment {
        let mut state = self.state();
        state.readers += 1;
        let serial = state.readers;
        let Some(stream) = state.streams.get_mut(&id) else {
            return Attachment::Unknown;
        };
        // Without a position, the reader continues where the one before it stopped.
        let next = after.map_or(stream.unsent_from, |after| after.saturating_add(1));
        if stream.ended && next >= stream.first + stream.events.len() as u64 {
            return Attachment::Over;
        }
        // The reader before sees that it was replaced, and ends.
        stream.wake();
        stream.reader = Some(ReaderRegistration {
            serial,
            waker: None,
        });
        Attachment::Reader(StreamReader {
            next,
            attached: AttachedReader {
                streams: Arc::clone(self),
                id,
                serial,
            },
        })
    }

    fn state(&self) -> MutexGuard<'_, StreamsState> {
        lock(&self.state)
    }
}

/// The registration of a reader of a stream, until it is dropped.
struct AttachedReader {
    streams: Arc<Streams>,
    id: u64,
    serial: u64,
}

impl Drop for AttachedReader {
    fn drop(&mut self) {
        let mut state = self.streams.state();
        if let Some(stream) = state.streams.get_mut(&self.id)
            && stream.is_read_by(self.serial)
        {
            stream.reader = None;
            // The session has ended, and this was the last reader of the stream.
            if state.closed {
                state.remove(self.id);
            }
            state.trim();
        }
    }
}

pub(super) struct StreamReader {
    attached: AttachedReader,
    /// The number of the event that is read next.
    next: u64,
}

impl StreamReader {
    /// Returns the id of the event before the next one.
    pub(super) fn position(&self) -> EventId {
        EventId {
            stream: self.attached.id,
            number: self.next.saturating_sub(1),
        }
    }

    pub(super) fn poll_next(&mut self, context: &Context<'_>) -> Poll<Next> {
        let AttachedReader {
            streams,
            id,
            serial,
        } = &self.attached;
        let mut state = streams.state();
        let stream = state.streams.get_mut(id);
        let Some(stream) = stream.filter(|stream| stream.is_read_by(*serial)) else {
            return Poll::Ready(Next::Ended);
        };
        // Events before `first` are no longer stored. The client sees the gap in the ids.
        let number = self.next.max(stream.first);
        let Some(event) = stream.event(number) else {
            if stream.ended {
                return Poll::Ready(Next::Ended);
            }
            stream.wait(*serial, context);
            return Poll::Pending;
        };
        let frame = event.frame.clone();
        // A resumed reader reads some events a second time, which are counted already.
        if number >= stream.unsent_from {
            let notice = event.notice_bytes();
            stream.unsent_from = number + 1;
            state.unsent -= frame.len();
            state.notices -= notice;
            state.resendable += frame.len();
            state.trim_stream(*id);
            state.trim();
        }
        self.next = number + 1;
        let stream = *id;
        Poll::Ready(Next::Event(EventId { stream, number }, frame))
    }
}

#[cfg(test)]
#[path = "streams_tests.rs"]
mod tests;
