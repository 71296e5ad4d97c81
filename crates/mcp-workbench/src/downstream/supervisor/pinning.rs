//! The pins of a server that is being started, and when first contacts are written. How a server is launched is inspected
//! while it comes up, on the thread that reads its cache. A server that is met for the first time is inspected when its
//! pins are written.

use std::{sync::Arc, time::Duration};

use tokio::sync::{oneshot, watch};

use crate::{
    config::{PinMode, Server},
    downstream::supervisor::{SupervisorContext, adapt::Entry},
    ident::ServerIdentifier,
    lock::{Launch, Pins, Recall, ServerPins},
    offload::run_blocking,
    server_cache::{CacheKey, CachedProtocol},
};

/// How long a first contact waits for others, so that they are written and told together: an open does not wait for a
/// server any longer.
const RECORD_AFTER: Duration = Duration::from_secs(50);

/// The pins of a server that is being started.
pub(crate) struct Pinning {
    pins: Arc<Pins>,
    place: ServerIdentifier,
    server: Arc<Server>,
    /// What is done when it is not what the lock file has.
    pub(crate) mode: PinMode,
    /// How it is launched, where that has to be compared before its tools are listed.
    launch: Option<watch::Receiver<Option<Launch>>>,
}

impl Pinning {
    /// Reads the cache of a server that is about to be started, and begins to inspect its launch if that has to be known
    /// before it is up. The files are read off the event loop.
    pub(crate) async fn begin(entry: &Entry, context: &SupervisorContext) -> (Self, Cached) {
        let server = Arc::clone(&entry.server);
        let place = ServerIdentifier {
            toolbox: entry.toolbox.clone(),
            server: server.name.clone(),
        };
        let mode = context.pins.mode(&place, server.pin);
        let is_wanted = match mode {
            PinMode::Off => false,
            PinMode::Notice => context.pins.is_met(&place),
            PinMode::Enforce => true,
        };
        let recall = is_wanted.then(|| Recall::of(mode));
        let inspection = Inspection::begin(&server, recall, context);
        let cached = match inspection.cached {
            Some(cached) => cached.await.unwrap_or_default(),
            None => Cached::default(),
        };
        let pinning = Self {
            launch: recall.map(|_| inspection.launch),
            mode,
            pins: Arc::clone(&context.pins),
            place,
            server,
        };
        (pinning, cached)
    }

    /// Returns the pins when the launch is known, if it has to be. Cancel-safe.
    pub(crate) async fn pins(&self, context: &SupervisorContext) -> ServerPins {
        let (pins, place) = (Arc::clone(&self.pins), self.place.clone());
        let launch = self.launch.clone().or_else(|| {
            // Another workbench may have met it meanwhile.
            let is_wanted = self.mode == PinMode::Notice && pins.is_met(&place);
            is_wanted.then(|| {
                let recall = Recall::of(self.mode);
                Inspection::begin(&self.server, Some(recall), context).launch
            })
        });
        let Some(mut launch) = launch else {
            return ServerPins::unlooked(pins, place, Arc::clone(&self.server));
        };
        let found = launch.wait_for(Option::is_some).await;
        // What could not be looked at is not what was approved.
        let launch = found.ok().and_then(|it| it.clone()).unwrap_or_default();
        ServerPins::new(pins, place, launch)
    }
}

/// What the cache has about a server that is about to be started.
#[derive(Default)]
pub(crate) struct Cached {
    /// The key of the launch; none if nothing can be cached about it.
    pub(crate) key: Option<CacheKey>,
    pub(crate) protocol: Option<CachedProtocol>,
}

/// The reading of a server's cache and of its program files, on a thread.
struct Inspection {
    /// None if there is nothing to read.
    cached: Option<oneshot::Receiver<Cached>>,
    launch: watch::Receiver<Option<Launch>>,
}

impl Inspection {
    /// Begins to read the cache of a server, and then to inspect its launch if somebody has to know it. Servers that run the
    /// same program wait for the first of them to read it.
    fn begin(server: &Arc<Server>, recall: Option<Recall>, context: &SupervisorContext) -> Self {
        let (found, launch) = watch::channel(None);
        let cache = Arc::clone(&context.tool_cache);
        // A thread for nothing would cost more than all the rest.
        if recall.is_none() && (server.era.is_some() || cache.folder().is_none()) {
            return Self {
                cached: None,
                launch,
            };
        }
        let (sender, cached) = oneshot::channel();
        let (server, pins) = (Arc::clone(server), Arc::clone(&context.pins));
        let inspected = Arc::clone(&server);
        let inspector = Arc::clone(&pins);
        let inspect = move || {
            let (key, record) = cache.read(&server);
            // Nobody waits if the start was given up.
            let _ = sender.send(Cached {
                key,
                protocol: record.protocol().cloned(),
            });
            inspector.add_cached_programs(&record);
            let launch = recall.map(|recall| inspector.launch(&server, recall));
            found.send_replace(launch);
            recall.is_some() && inspector.cacheable_programs(&server) != *record.programs()
        };
        let deferred_writes = Arc::clone(&context.deferred_writes);
        context.links.tasks.spawn(async move {
            match run_blocking(inspect).await {
                Ok(true) => deferred_writes.add(move || pins.store_programs(&inspected)),
                Ok(false) => {}
                Err(error) => tracing::warn!("failed to read the cache of a server: {error}"),
            }
        });
        Self {
            cached: Some(cached),
            launch,
        }
    }
}

/// Has a first contact written after a while, if no open does it before.
pub(crate) fn record_later(context: &SupervisorContext) {
    if !context.pins.has_news() {
        return;
    }
    let (pins, later) = (
        Arc::clone(&context.pins),
        Arc::clone(&context.deferred_writes),
    );
    let shutdown = Arc::clone(&context.shutdown);
    context.links.tasks.spawn(async move {
        tokio::select! {
            // The shutdown writes the rest.
            () = shutdown.begun() => {}
            () = tokio::time::sleep(RECORD_AFTER) => {
                if pins.has_news() {
                    later.add(move || pins.record());
                }
            }
        }
    });
}
