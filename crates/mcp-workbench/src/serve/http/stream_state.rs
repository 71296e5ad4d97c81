//! The state of the streams of one session, and the order in which stored events are removed.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    task::{Context, Waker},
};

use tokio::time::Instant;

use super::{
    limits::{
        MAX_ENDED, MAX_RESEND_BYTES, MAX_RESEND_EVENTS, MAX_STANDALONE_EVENTS, MAX_UNREAD_BYTES,
        MAX_UNSENT_BYTES, MAX_UNSENT_STATELESS, MIN_DROPPED_BYTES,
    },
    quotas::InFlight,
    refusal::REFUSED,
    shared_events::SharedStream,
    streams::STANDALONE,
    unread::{Rank, StoredBytes, UnreadBudget},
};
use crate::{
    serve::notices::{MAX_NOTICE_BYTES, MAX_PROMPT_BYTES},
    wire::{self, Frame},
};

/// The state of all streams of a session.
pub(super) struct StreamsState {
    pub(super) streams: BTreeMap<u64, Stream>,
    /// The number of the newest stream.
    newest: u64,
    /// How many streams of requests have not ended.
    pub(super) running: usize,
    /// The ended streams, oldest first.
    pub(super) ended: VecDeque<(u64, Instant)>,
    /// The bytes that are not sent yet.
    pub(super) unsent: usize,
    /// The part of them that the client may miss.
    pub(super) notices: usize,
    /// The bytes that were sent and are stored to be resent.
    pub(super) resendable: usize,
    pub(super) readers: u64,
    /// True if the session has ended. No more events are added.
    pub(super) closed: bool,
    pub(super) retention: Retention,
    /// The budget that counts all stored events, shared by all clients.
    budget: Arc<UnreadBudget>,
}

/// The number of sent events that are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Retention {
    /// Some, so that a stream can be resumed.
    Some,
    /// None: there is one stream, which cannot be resumed.
    Nothing,
}

impl Retention {
    /// Returns the number of sent events of a stream that are stored.
    fn events(self) -> u64 {
        match self {
            Self::Some => MAX_RESEND_EVENTS as u64,
            Self::Nothing => 0,
        }
    }

    /// Returns the number of bytes that may wait to be read.
    pub(super) fn unsent_bytes(self) -> usize {
        match self {
            Self::Some => MAX_UNSENT_BYTES,
            Self::Nothing => MAX_UNSENT_STATELESS,
        }
    }
}

/// The state of one stream.
pub(super) struct Stream {
    /// The events, oldest first.
    pub(super) events: VecDeque<Event>,
    /// The number of the first of them.
    pub(super) first: u64,
    /// The number of the first that was not sent.
    pub(super) unsent_from: u64,
    /// True if no more events will be added.
    pub(super) ended: bool,
    pub(super) reader: Option<ReaderRegistration>,
    /// The requests that it answers, as long as it has not ended.
    in_flight: Option<InFlight>,
    /// The copy in the store of the replicas, if there is one.
    shared: Option<SharedStream>,
}

/// An event of a stream.
pub(super) struct Event {
    pub(super) frame: Frame,
    /// True if a slow client may miss it.
    is_notice: bool,
}

impl Event {
    pub(super) fn message(frame: Frame) -> Self {
        Self {
            frame,
            is_notice: false,
        }
    }

    fn notice(frame: Frame) -> Self {
        Self {
            frame,
            is_notice: true,
        }
    }

    /// Returns how many bytes it has, if it may be missed.
    pub(super) fn notice_bytes(&self) -> usize {
        if self.is_notice { self.frame.len() } else { 0 }
    }
}

pub(super) struct ReaderRegistration {
    pub(super) serial: u64,
    pub(super) waker: Option<Waker>,
}

impl Stream {
    pub(super) fn new() -> Self {
        Self {
            events: VecDeque::new(),
            first: 1,
            unsent_from: 1,
            ended: false,
            reader: None,
            in_flight: None,
            shared: None,
        }
    }

    pub(super) fn is_read_by(&self, serial: u64) -> bool {
        self.reader.as_ref().is_some_and(|it| it.serial == serial)
    }

    pub(super) fn event(&self, number: u64) -> Option<&Event> {
        let index = number.checked_sub(self.first)?;
        self.events.get(usize::try_from(index).ok()?)
    }

    pub(super) fn wait(&mut self, serial: u64, context: &Context<'_>) {
        self.reader = Some(ReaderRegistration {
            serial,
            waker: Some(context.waker().clone()),
        });
    }

    pub(super) fn wake(&mut self) {
        let waker = self.reader.as_mut().and_then(|it| it.waker.take());
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Returns the number that the next event gets.
    fn next(&self) -> u64 {
        self.first + self.events.len() as u64
    }

    /// Returns the number of stored events that were sent.
    fn sent(&self) -> u64 {
        self.unsent_from.saturating_sub(self.first)
    }

    /// Marks the end in the store of the replicas.
    fn end_shared(&mut self) {
        let number = self.next();
        if let Some(mut shared) = self.shared.take() {
            shared.push(number, None);
        }
    }

    fn is_delivered(&self) -> bool {
        self.sent() == self.events.len() as u64
    }

    fn bytes(&self) -> usize {
        self.events.iter().map(|it| it.frame.len()).sum()
    }
}

impl Drop for StreamsState {
    fn drop(&mut self) {
        self.budget.subtract(self.unsent + self.resendable);
    }
}

impl StreamsState {
    pub(super) fn new(retention: Retention, budget: Arc<UnreadBudget>) -> Self {
        Self {
            streams: BTreeMap::new(),
            newest: 0,
            running: 0,
            ended: VecDeque::new(),
            unsent: 0,
            notices: 0,
            resendable: 0,
            readers: 0,
            closed: false,
            retention,
            budget,
        }
    }

    /// Starts the stream of a request. Returns its number.
    pub(super) fn begin(&mut self, in_flight: Option<InFlight>) -> u64 {
        self.newest += 1;
        self.running += 1;
        let stream = Stream {
            in_flight,
            ..Stream::new()
        };
        self.streams.insert(self.newest, stream);
        self.newest
    }

    /// Adds a message that the client may miss, unless enough of them wait already.
    pub(super) fn notify(&mut self, id: u64, frame: Frame) {
        if self.notices + frame.len() <= MAX_NOTICE_BYTES && !self.is_full() {
            self.push(id, Event::notice(frame));
        }
    }

    /// Returns true if the client is slow.
    pub(super) fn is_full(&self) -> bool {
        !self.closed && self.unsent > self.retention.unsent_bytes()
    }

    /// Drops waiting notifications of a stream, if there are more than are written at once.
    pub(super) fn drop_notices(&mut self, id: u64) {
        // No stream has more than all of them together.
        if self.notices < MAX_PROMPT_BYTES {
            return;
        }
        let Some(stream) = self.streams.get_mut(&id) else {
            return;
        };
        let unsent = usize::try_from(stream.sent()).unwrap_or(usize::MAX);
        let waiting = stream.events.iter().skip(unsent);
        let bytes: usize = waiting.map(Event::notice_bytes).sum();
        if bytes < MAX_PROMPT_BYTES {
            return;
        }
        let mut index = 0;
        stream.events.retain(|event| {
            index += 1;
            // Those that were sent stay, because they may have to be sent again.
            index <= unsent || !event.is_notice
        });
        self.unsent -= bytes;
        self.notices -= bytes;
        self.budget.subtract(bytes);
    }

    pub(super) fn push(&mut self, id: u64, event: Event) {
        if self.closed {
            return;
        }
        let Some(stream) = self.streams.get_mut(&id).filter(|it| !it.ended) else {
            return;
        };
        self.unsent += event.frame.len();
        self.notices += event.notice_bytes();
        self.budget.add(event.frame.len());
        let number = stream.next();
        if let Some(shared) = &mut stream.shared {
            shared.push(number, Some(event.frame.clone()));
        }
        stream.events.push_back(event);
        stream.wake();
        let waiting = stream.events.len() as u64 - stream.sent();
        let unheard = id == STANDALONE && stream.reader.is_none();
        let too_many = waiting > MAX_STANDALONE_EVENTS as u64 || self.unsent > MAX_UNSENT_BYTES;
        // A client need not open this stream at all.
        if unheard && too_many {
            self.drop_oldest(id);
        }
    }

    pub(super) fn end(&mut self, id: u64) {
        let Some(stream) = self.streams.get_mut(&id) else {
            return;
        };
        if stream.ended {
            return;
        }
        stream.ended = true;
        // From here on the request no longer counts against the limit of its principal.
        stream.in_flight = None;
        stream.end_shared();
        stream.wake();
        if id != STANDALONE {
            self.running -= 1;
            self.ended.push_back((id, Instant::now()));
            self.trim();
        }
    }

    /// Puts the events of a stream into the store of the replicas too.
    pub(super) fn share(&mut self, id: u64, mut shared: SharedStream) {
        let Some(stream) = self.streams.get_mut(&id) else {
            return;
        };
        for (number, event) in (stream.first..).zip(&stream.events) {
            shared.push(number, Some(event.frame.clone()));
        }
        stream.shared = Some(shared);
        if stream.ended {
            stream.end_shared();
        }
    }

    /// Takes the oldest event out of a stream.
    pub(super) fn drop_oldest(&mut self, id: u64) -> Option<Event> {
        let stream = self.streams.get_mut(&id)?;
        let event = stream.events.pop_front()?;
        let bytes = event.frame.len();
        self.budget.subtract(bytes);
        // An event before `unsent_from` was sent and is only stored to be sent again. An event from there on is lost to
        // its client.
        if stream.first < stream.unsent_from {
            self.resendable -= bytes;
        } else {
            self.unsent -= bytes;
            self.notices -= event.notice_bytes();
            stream.unsent_from += 1;
        }
        stream.first += 1;
        Some(event)
    }

    pub(super) fn remove(&mut self, id: u64) {
        while self
            .streams
            .get(&id)
            .is_some_and(|stream| !stream.events.is_empty())
        {
            self.drop_oldest(id);
        }
        let removed = self.streams.remove(&id);
        if removed.is_some_and(|stream| !stream.ended && id != STANDALONE) {
            self.running -= 1;
        }
        // Most that are removed have just ended.
        if let Some(at) = self.ended.iter().rposition(|(ended, _)| *ended == id) {
            self.ended.remove(at);
        }
    }

    /// Removes the oldest sent events of a stream beyond the bound.
    pub(super) fn trim_stream(&mut self, id: u64) {
        while self.streams.get(&id).is_some_and(|stream| {
            let too_many = stream.sent() > self.retention.events();
            // The newest stays: it may be the answer.
            too_many || (stream.sent() > 1 && self.resendable > MAX_RESEND_BYTES)
        }) {
            self.drop_oldest(id);
        }
    }

    /// Removes ended streams, oldest first, down to the bound. The last one stays, whatever its size, and so does one
    /// that is being read. One with an undelivered response is removed only if there are too many such streams:
    /// resending is worth less than a first delivery.
    pub(super) fn trim(&mut self) {
        while self.ended.len() > MAX_ENDED
            || (self.ended.len() > 1 && self.resendable > MAX_RESEND_BYTES)
        {
            let idle = |id: &u64| {
                let stream = self.streams.get(id);
                stream.is_none_or(|stream| stream.reader.is_none())
            };
            let delivered = |id: &u64| {
                let stream = self.streams.get(id);
                stream.is_none_or(Stream::is_delivered)
            };
            let ids = || self.ended.iter().map(|(id, _)| *id);
            let oldest = ids().find(|id| idle(id) && delivered(id));
            let too_many = self.ended.len() > MAX_ENDED;
            let Some(id) = oldest.or_else(|| ids().find(|id| too_many && idle(id))) else {
                return;
            };
            self.remove(id);
        }
    }
    /// Returns the streams with droppable bytes. Small responses stay, because the error that would replace them is as
    /// large.
    pub(super) fn droppable(&self) -> Vec<StoredBytes<u64>> {
        // The oldest responses go first, until the session is within its share again.
        let mut surplus = self.unsent.saturating_sub(MAX_UNSENT_BYTES);
        let ended = self.ended.iter().filter_map(|(id, since)| {
            let stream = self.streams.get(id)?;
            let bytes = stream.bytes();
            let rank = if stream.is_delivered() {
                Rank::Delivered
            } else if surplus > 0 {
                surplus = surplus.saturating_sub(bytes);
                Rank::Surplus
            } else {
                Rank::Unread
            };
            let (since, place) = (*since, *id);
            Some(StoredBytes {
                rank,
                since,
                bytes,
                place,
            })
        });
        let mut droppable: Vec<_> = ended.collect();
        let now = Instant::now();
        let running = self.streams.iter().filter(|(_, stream)| !stream.ended);
        droppable.extend(running.map(|(id, stream)| StoredBytes {
            rank: Rank::Running,
            since: now,
            bytes: stream.bytes(),
            place: *id,
        }));
        droppable.retain(|it| it.bytes > MIN_DROPPED_BYTES);
        droppable
    }

    /// Drops the stored bytes of a stream. An unread response becomes an error, so that a client that comes back does
    /// not wait for it.
    pub(super) fn drop_unread(&mut self, id: u64) {
        let Some(stream) = self.streams.get(&id) else {
            return;
        };
        if stream.ended && stream.is_delivered() {
            self.remove(id);
            return;
        }
        let answer = stream.events.back().filter(|_| stream.ended);
        let answered = answer.map(|it| it.frame.answered_id());
        while self
            .streams
            .get(&id)
            .is_some_and(|it| !it.events.is_empty())
        {
            self.drop_oldest(id);
        }
        match answered {
            Some(Some(request)) => {
                let error = wire::error(Some(&request), REFUSED, &dropped_message());
                self.unsent += error.len();
                self.budget.add(error.len());
                if let Some(stream) = self.streams.get_mut(&id) {
                    stream.events.push_back(Event::message(error));
                }
            }
            // The answer to a batch, or none.
            Some(None) => self.remove(id),
            None => {}
        }
    }
}

fn dropped_message() -> String {
    let limit = MAX_UNREAD_BYTES / (1024 * 1024);
    format!(
        "the response was dropped because it was not read and clients left more than {limit} MiB unread; \
         the request may have been carried out"
    )
}
