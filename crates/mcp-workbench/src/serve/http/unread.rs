//! The unread responses of all clients together. If there are too many, the oldest are dropped: clients that do not
//! read must not take the memory of those that do.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use tokio::{sync::Notify, time::Instant};

use super::{
    connections::Connections,
    limits::{MAX_UNREAD_BYTES, UNREAD_BYTES_AFTER_DROPPING},
    streams::Streams,
};

/// The bytes that all streams and connections of a listener hold for clients.
#[derive(Default)]
pub(super) struct UnreadBudget {
    bytes: AtomicUsize,
    exceeded: Notify,
}

impl UnreadBudget {
    pub(super) fn add(&self, bytes: usize) {
        let before = self.bytes.fetch_add(bytes, Ordering::Relaxed);
        if before + bytes > MAX_UNREAD_BYTES {
            self.exceeded.notify_one();
        }
    }

    pub(super) fn subtract(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Waits until there are too many bytes. Cancel-safe.
    pub(super) async fn exceeded(&self) {
        self.exceeded.notified().await;
    }

    /// Returns how many bytes are to be dropped: more than needed at once, so that the next response does not have to
    /// search again.
    fn excess(&self) -> usize {
        let bytes = self.bytes.load(Ordering::Relaxed);
        if bytes > MAX_UNREAD_BYTES {
            bytes - UNREAD_BYTES_AFTER_DROPPING
        } else {
            0
        }
    }
}

/// The order in which stored bytes are dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rank {
    /// They were sent, and are stored to be resent.
    Delivered,
    /// They were not read, and the session has more than its share.
    Surplus,
    Unread,
    /// Their request is still running.
    Running,
}

/// Stored bytes of a client that can be dropped.
pub(super) struct StoredBytes<Place> {
    pub(super) rank: Rank,
    /// The time since which the client could have read them.
    pub(super) since: Instant,
    pub(super) bytes: usize,
    pub(super) place: Place,
}

impl<Place> StoredBytes<Place> {
    fn at<Other>(self, place: impl FnOnce(Place) -> Other) -> StoredBytes<Other> {
        StoredBytes {
            rank: self.rank,
            since: self.since,
            bytes: self.bytes,
            place: place(self.place),
        }
    }
}

/// The owner of stored bytes: a stream, or a connection whose client does not read.
enum Holder {
    Stream(Arc<Streams>, u64),
    Connection(u64),
}

/// Drops the oldest stored bytes until the budget is met again.
pub(super) fn drop_excess(
    budget: &UnreadBudget,
    streams: Vec<Arc<Streams>>,
    connections: &Connections,
) {
    let mut excess = budget.excess();
    if excess == 0 {
        return;
    }
    let mut droppable = all_droppable(streams, connections);
    // What was sent already goes first, since dropping it costs no client an answer.
    droppable.sort_by_key(|it| (it.rank, it.since));
    let (mut count, mut bytes) = (0, 0);
    for it in droppable {
        if excess == 0 {
            break;
        }
        match it.place {
            Holder::Stream(streams, id) => streams.drop_unread(id),
            Holder::Connection(number) => connections.close(number),
        }
        excess = excess.saturating_sub(it.bytes);
        (count, bytes) = (count + 1, bytes + it.bytes);
    }
    tracing::warn!("dropped {count} responses of {bytes} bytes that clients did not read");
}

fn all_droppable(
    streams: Vec<Arc<Streams>>,
    connections: &Connections,
) -> Vec<StoredBytes<Holder>> {
    let of_streams = streams.into_iter().flat_map(|streams| {
        let droppable = streams.droppable().into_iter();
        droppable.map(move |it| it.at(|id| Holder::Stream(Arc::clone(&streams), id)))
    });
    let of_connections = connections
        .stalled()
        .into_iter()
        .map(|it| it.at(Holder::Connection));
    of_streams.chain(of_connections).collect()
}

#[cfg(test)]
#[path = "unread_tests.rs"]
mod tests;
