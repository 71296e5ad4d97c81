//! The client's side: how we are reached, and what a connection has said and asked so far. The
//! transport hands in messages and takes frames; everything between is in [`connection`].

use std::{sync::Arc, time::Duration};

use tokio::sync::Semaphore;

use self::parked::ParkedCalls;
use crate::workbench::Workbench;

mod batch;
mod caller;
mod calls;
mod changes;
mod connection;
mod exchange;
pub(crate) mod http;
mod in_flight;
mod listen;
mod log_level;
mod methods;
mod modern;
mod native;
mod notices;
mod output;
mod parked;
mod questions;
mod results;
mod revision;
mod standard_streams;
pub(crate) mod stdio;
mod tasks;
#[cfg(test)]
mod test_pipe;
mod unreadable;

/// What all connections share. Cheap to clone.
#[derive(Clone)]
struct ServeContext {
    workbench: Arc<Workbench>,
    /// The calls that wait for modern clients.
    parked: Arc<ParkedCalls>,
    /// A permit for every request that may listen: those never end by themselves, and must leave room for others.
    listeners: Arc<Semaphore>,
    whereabouts: Whereabouts,
}

/// Where the clients of a transport are, as far as that is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Whereabouts {
    Here,
    Anywhere,
}

impl ServeContext {
    fn new(workbench: Arc<Workbench>, whereabouts: Whereabouts) -> Self {
        Self {
            whereabouts,
            workbench,
            parked: Arc::default(),
            listeners: Arc::new(Semaphore::new(MAX_LISTENERS)),
        }
    }
}

/// How many requests listen at once, of all clients.
const MAX_LISTENERS: usize = 256;

/// How long requests that were read may still take when the end has come.
const GRACE: Duration = Duration::from_secs(1);
/// How long the last answers may take to be written.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// The code for a resource that nobody has, in the legacy era.
const RESOURCE_NOT_FOUND: i64 = -32002;
