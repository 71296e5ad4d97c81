//! The running requests: those of the client, so that they can be cancelled and waited for, and those of the server, so
//! that their responses find them.

use std::{
    collections::{HashMap, HashSet},
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
};

/// The two tables, behind one lock.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    tables: Mutex<Tables>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Tables {
    running: usize,
    cancelled: HashSet<String>,
    asked: u64,
    replies: HashMap<String, String>,
}

impl Pending {
    /// Registers a running request of the client.
    pub(crate) fn begin(&self) {
        self.lock().running += 1;
    }

    /// Removes a finished request of the client.
    pub(crate) fn end(&self) {
        self.lock().running -= 1;
        self.changed.notify_all();
    }

    /// Records that the client has cancelled a request.
    pub(crate) fn cancel(&self, id: &str) {
        self.lock().cancelled.insert(id.to_owned());
        self.changed.notify_all();
    }

    /// A fresh id, raw, for a request of the server's own.
    pub(crate) fn next_id(&self) -> String {
        let mut tables = self.lock();
        tables.asked += 1;
        format!("\"fixture-{}\"", tables.asked)
    }

    /// Stores the client's response, the whole line of it.
    pub(crate) fn reply(&self, id: &str, line: String) {
        self.lock().replies.insert(id.to_owned(), line);
        self.changed.notify_all();
    }

    /// Waits until the client has cancelled this request.
    pub(crate) fn await_cancel(&self, id: &str) {
        let tables = self.lock();
        drop(
            self.changed
                .wait_while(tables, |tables| !tables.cancelled.contains(id)),
        );
    }

    /// Waits for the client's answer to a request of the server's own.
    pub(crate) fn await_reply(&self, id: &str) -> String {
        let mut tables = self
            .changed
            .wait_while(self.lock(), |tables| !tables.replies.contains_key(id))
            .unwrap_or_else(PoisonError::into_inner);
        tables.replies.remove(id).unwrap_or_default()
    }

    /// Waits until no request of the client is running.
    pub(crate) fn await_idle(&self) {
        drop(
            self.changed
                .wait_while(self.lock(), |tables| tables.running > 0),
        );
    }

    fn lock(&self) -> MutexGuard<'_, Tables> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
