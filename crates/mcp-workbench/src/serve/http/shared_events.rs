//! The events of a stream in the store of the replicas, so that a client whose replica is gone gets the answer that the replica
//! still had for it. An event is one value, and the end of the stream is an empty one.

use bytes::Bytes;
use tokio::sync::mpsc;

use super::limits::{ENDED_STREAM_TTL, MAX_RESEND_EVENTS, MAX_SHARED_EVENT_BYTES};
use crate::{
    store::{Store, StoredAt, StoredKind},
    wire::Frame,
};

/// The number of events that may wait for the store. A stream with more is no longer shared.
const MAX_WAITING: usize = 64;

/// The place of a stream in the store.
pub(super) struct SharedPlace {
    pub(super) store: Store,
    pub(super) owner: String,
    /// The handle of the stream, which nobody but its client knows.
    pub(super) handle: String,
}

impl SharedPlace {
    /// Returns the events after one, with their numbers; `None` if not all are there up to the end of the stream.
    pub(super) async fn read(&self, after: u64) -> Option<Vec<(u64, Bytes)>> {
        let mut events = Vec::new();
        for number in (after.saturating_add(1)..=u64::MAX).take(MAX_RESEND_EVENTS) {
            let name = self.name(number);
            let event = self.store.get(self.at(&name)).await;
            let event = event.unwrap_or_else(|error| {
                tracing::warn!("failed to read a stream of another replica: {error}");
                None
            })?;
            if event.is_empty() {
                return Some(events);
            }
            events.push((number, event.into()));
        }
        None
    }

    /// Stores events as they come, until the stream is removed.
    async fn write(self, mut events: mpsc::Receiver<(u64, Option<Frame>)>) {
        while let Some((number, frame)) = events.recv().await {
            if frame
                .as_ref()
                .is_some_and(|it| it.len() > MAX_SHARED_EVENT_BYTES)
            {
                return;
            }
            let event = frame.map(|frame| frame.to_vec()).unwrap_or_default();
            let name = self.name(number);
            let stored = self.store.set(self.at(&name), &event, ENDED_STREAM_TTL);
            // A client that resumes elsewhere gets the outcome `unknown`.
            if let Err(error) = stored.await {
                tracing::warn!("failed to share a stream with the other replicas: {error}");
                return;
            }
        }
    }

    fn name(&self, number: u64) -> String {
        format!("{} {number}", self.handle)
    }

    fn at<'a>(&'a self, name: &'a str) -> StoredAt<'a> {
        StoredAt {
            kind: StoredKind::Event,
            owner: &self.owner,
            name,
        }
    }
}

/// A stream whose events go to the store too.
pub(super) struct SharedStream {
    /// `None` once an event could not be shared: those after it are of no use.
    events: Option<mpsc::Sender<(u64, Option<Frame>)>>,
}

impl SharedStream {
    /// Creates it, and the task that writes.
    pub(super) fn new(place: SharedPlace) -> (Self, impl Future<Output = ()>) {
        let (sender, events) = mpsc::channel(MAX_WAITING);
        let shared = Self {
            events: Some(sender),
        };
        (shared, place.write(events))
    }

    /// Shares an event with its number; `None` for the end.
    pub(super) fn push(&mut self, number: u64, frame: Option<Frame>) {
        // Never waits, because a slow store must not slow down the client.
        let sent = self.events.as_ref().map(|it| it.try_send((number, frame)));
        if sent.is_some_and(|sent| sent.is_err()) {
            self.events = None;
        }
    }
}
