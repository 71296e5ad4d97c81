//! The client side: the transports, and the state of each connection. A transport hands in messages and takes frames;
//! everything between is in [`connection`].

use std::{sync::Arc, time::Duration};

use tokio::sync::Semaphore;
use url::Url;

use self::{known_client::KnownClient, parked::ParkedCalls, replica::Replica};
use crate::workbench::Workbench;

#[cfg(unix)]
pub(crate) mod attached;
mod batch;
mod caller;
mod calls;
mod changes;
mod connection;
mod exchange;
pub(crate) mod http;
mod in_flight;
#[cfg(unix)]
pub(crate) mod journal;
mod known_client;
mod listen;
mod log_level;
mod methods;
mod modern;
mod native;
mod notices;
mod operations;
mod output;
mod parked;
mod questions;
mod replica;
mod results;
mod revision;
mod run_task;
pub(crate) mod standard_streams;
pub(crate) mod stdio;
mod tasks;
#[cfg(test)]
mod test_pipe;
mod unreadable;

/// The context that all connections share. Cheap to clone.
#[derive(Clone)]
struct ServeContext {
    workbench: Arc<Workbench>,
    /// The calls that wait for modern clients.
    parked: Arc<ParkedCalls>,
    /// The permits for subscriptions. They never end by themselves, and must leave room for other requests.
    listeners: Arc<Semaphore>,
    location: ClientLocation,
    /// The name that the authorization server has for the user of a connection.
    user: Option<Arc<str>>,
    known_client: Arc<KnownClient>,
}

/// The location of the clients of a transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ClientLocation {
    Local,
    Unknown,
}

impl ServeContext {
    fn new(workbench: Arc<Workbench>, location: ClientLocation) -> Self {
        Self::at(workbench, location, None)
    }

    /// Creates the context of a transport whose process other replicas reach at this address.
    fn at(workbench: Arc<Workbench>, location: ClientLocation, address: Option<Url>) -> Self {
        let replica = Replica::new(workbench.pool().sealer().clone(), address);
        Self {
            location,
            user: None,
            parked: Arc::new(ParkedCalls::new(Arc::new(replica))),
            workbench,
            listeners: Arc::new(Semaphore::new(MAX_LISTENERS)),
            known_client: Arc::default(),
        }
    }

    /// Creates the context of another workbench of the same transport. What is bounded for all clients is shared.
    fn beside(&self, workbench: Arc<Workbench>) -> Self {
        Self {
            workbench,
            known_client: Arc::default(),
            ..self.clone()
        }
    }
}

/// How many requests listen at once, of all clients.
const MAX_LISTENERS: usize = 256;

/// How long running requests may take to finish at shutdown.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);
/// How long the last responses may take to be written.
const FLUSH_TIMEOUT: Duration = Duration::from_millis(500);

/// The error code for an unknown resource, in the legacy era.
const RESOURCE_NOT_FOUND: i64 = -32002;
