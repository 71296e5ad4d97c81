//! The open connections: their bound, and the choice of the one to close to make room. A connection is a guest until it
//! brings a request with a valid token. Guests have a separate bound, so they cannot keep clients out.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use tokio::{task::AbortHandle, time::Instant};

use super::{
    limits::{MAX_CONNECTIONS, MAX_GUESTS},
    timed_stream::Turns,
    unread::{Rank, StoredBytes},
};
use crate::sync::lock;

/// All open connections of a listener.
pub(super) struct Connections {
    table: Mutex<ConnectionTable>,
    /// The moment that the clocks of all connections count from.
    epoch: Instant,
}

#[derive(Default)]
struct ConnectionTable {
    /// Counts connections, so that older ones have smaller numbers.
    newest: u64,
    guests: BTreeMap<u64, ConnectionEntry>,
    admitted: BTreeMap<u64, ConnectionEntry>,
}

struct ConnectionEntry {
    turns: Turns,
    /// The task of the connection, once it is spawned.
    task: Option<AbortHandle>,
}

impl ConnectionEntry {
    /// Closes the connection. Its task is dropped at the point where it waits.
    fn close(self) {
        if let Some(task) = self.task {
            task.abort();
        }
    }
}

impl ConnectionTable {
    /// Closes the admitted connection that has waited longest for its client to send a request. Returns false if there
    /// is none.
    fn close_idlest(&mut self) -> bool {
        // A connection with a running request stays, however long that takes.
        let idle = self.admitted.iter().filter(|(_, it)| it.turns.is_clients());
        let idlest = idle
            .min_by_key(|(_, entry)| entry.turns.waiting_since())
            .map(|(number, _)| *number);
        let closed = idlest.and_then(|number| self.admitted.remove(&number));
        closed.map(ConnectionEntry::close).is_some()
    }
}

impl Connections {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            table: Mutex::default(),
            epoch: Instant::now(),
        })
    }

    /// Adds a connection as a guest. If there are too many guests, the oldest is closed: a client with a token would
    /// have sent it long before.
    pub(super) fn add(self: &Arc<Self>) -> ConnectionSlot {
        let mut table = self.table();
        if table.guests.len() >= MAX_GUESTS
            && let Some((_, oldest)) = table.guests.pop_first()
        {
            oldest.close();
        }
        table.newest += 1;
        let number = table.newest;
        let turns = Turns::new(self.epoch);
        let entry = ConnectionEntry {
            turns: turns.clone(),
            task: None,
        };
        table.guests.insert(number, entry);
        drop(table);
        ConnectionSlot {
            connections: Arc::clone(self),
            number,
            turns,
        }
    }

    /// Sets the task that serves a connection, unless it has ended already.
    pub(super) fn set_task(&self, number: u64, task: AbortHandle) {
        let mut table = self.table();
        // The task has not run yet, so the connection cannot have been admitted.
        if let Some(entry) = table.guests.get_mut(&number) {
            entry.task = Some(task);
        }
    }

    /// Returns the connections whose clients do not read.
    pub(super) fn stalled(&self) -> Vec<StoredBytes<u64>> {
        let table = self.table();
        let all = table.guests.iter().chain(&table.admitted);
        let stalled = all.filter(|(_, entry)| entry.turns.unread() > 0);
        let droppable = stalled.map(|(number, ConnectionEntry { turns, .. })| StoredBytes {
            rank: Rank::Unread,
            since: self.epoch + Duration::from_micros(turns.waiting_since()),
            bytes: turns.unread(),
            place: *number,
        });
        droppable.collect()
    }

    pub(super) fn close(&self, number: u64) {
        let mut table = self.table();
        let entry = table.guests.remove(&number);
        if let Some(entry) = entry.or_else(|| table.admitted.remove(&number)) {
            entry.close();
        }
    }

    fn table(&self) -> MutexGuard<'_, ConnectionTable> {
        lock(&self.table)
    }
}

/// The registration of one connection, until it is dropped.
pub(super) struct ConnectionSlot {
    connections: Arc<Connections>,
    number: u64,
    turns: Turns,
}

impl ConnectionSlot {
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    pub(super) fn turns(&self) -> &Turns {
        &self.turns
    }

    /// Moves the connection from the guests to the clients. Returns false if there are too many clients and all of them
    /// have a running request.
    pub(super) fn admit(&self) -> bool {
        if self.turns.is_admitted() {
            return true;
        }
        let mut table = self.connections.table();
        if table.admitted.len() >= MAX_CONNECTIONS && !table.close_idlest() {
            return false;
        }
        // One that was closed a moment ago is in no table, and ends before it is answered.
        if let Some(entry) = table.guests.remove(&self.number) {
            table.admitted.insert(self.number, entry);
        }
        self.turns.admit();
        true
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        let mut table = self.connections.table();
        table.guests.remove(&self.number);
        table.admitted.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use tokio::{task::JoinHandle, time::advance};
    use tokio_util::task::TaskTracker;

    use super::*;

    /// Returns an idle connection, and its task.
    fn connect(connections: &Arc<Connections>) -> (ConnectionSlot, JoinHandle<()>) {
        let place = connections.add();
        let task = TaskTracker::new().spawn(pending());
        connections.set_task(place.number(), task.abort_handle());
        (place, task)
    }

    async fn is_closed(task: JoinHandle<()>) -> bool {
        tokio::select! {
            biased;
            ended = task => ended.is_err(),
            () = tokio::task::yield_now() => false,
        }
    }

    #[tokio::test]
    async fn guests_make_room_for_guests_and_not_for_clients() {
        let connections = Connections::new();
        let (client, client_task) = connect(&connections);
        assert!(client.admit());
        let mut guests: Vec<_> = (0..MAX_GUESTS).map(|_| connect(&connections)).collect();
        let (_newest, newest_task) = connect(&connections);
        let (_, oldest_task) = guests.remove(0);
        let (_, second_task) = guests.remove(0);
        tokio::task::yield_now().await;
        assert!(is_closed(oldest_task).await, "the oldest guest");
        assert!(!is_closed(second_task).await, "the second");
        assert!(!is_closed(newest_task).await, "the newest");
        assert!(!is_closed(client_task).await, "a client");
    }

    #[tokio::test(start_paused = true)]
    async fn the_longest_idle_connection_makes_room_and_a_busy_one_does_not() {
        let connections = Connections::new();
        let (mut clients, mut busy) = (Vec::new(), Vec::new());
        for _ in 0..MAX_CONNECTIONS {
            let (place, task) = connect(&connections);
            assert!(place.admit());
            busy.push(place.turns().take());
            clients.push((place, task));
        }
        let (late, _late_task) = connect(&connections);
        assert!(!late.admit(), "all have a request under way");
        drop(busy);
        for index in [7, 3] {
            advance(Duration::from_secs(1)).await;
            clients[index].0.turns().wait_from_now();
        }
        for (index, (place, _)) in clients.iter().enumerate() {
            if index != 3 && index != 7 {
                advance(Duration::from_millis(1)).await;
                place.turns().wait_from_now();
            }
        }
        assert!(late.admit());
        let (_, closed) = clients.remove(7);
        let (_, stays) = clients.remove(3);
        tokio::task::yield_now().await;
        assert!(is_closed(closed).await, "the longest idle");
        assert!(!is_closed(stays).await, "the next one");
    }
}
