//! The pins of a server during its start, and the writing of first contacts. The launch of a server is inspected
//! while it starts, on the thread that reads its cache. The launch of a new server is inspected when its pins are
//! written.

use std::{sync::Arc, time::Duration};

use ident::ServerIdentifier;
use rawjson::RawJson;
use tokio::sync::{oneshot, watch};

use crate::{
    config::{PinMode, Server},
    downstream::supervisor::{SupervisorContext, adapt::Entry},
    lock::{Launch, Pins, ReusableDigests, ServerPins},
    offload::run_blocking,
    server_cache::{CacheKey, CachedProtocol},
};

/// How long a first contact waits for others, so that they are written and reported together. No open waits longer
/// than this for a server.
const RECORD_DELAY: Duration = Duration::from_secs(50);

pub(crate) struct Pinning {
    pins: Arc<Pins>,
    place: ServerIdentifier,
    server: Arc<Server>,
    /// The handling of a server that differs from the lock file.
    pub(crate) mode: PinMode,
    /// The launch, if it has to be compared before the tools are listed.
    launch: Option<watch::Receiver<Option<Launch>>>,
}

impl Pinning {
    /// Reads the cache of a server that is about to start, and begins to inspect its launch if that has to be known
    /// before the server is up. Files are read off the event loop.
    pub(crate) async fn begin(entry: &Entry, context: &SupervisorContext) -> (Self, CacheLookup) {
        let server = Arc::clone(&entry.server);
        let place = ServerIdentifier {
            toolbox: entry.toolbox.clone(),
            server: server.name.clone(),
        };
        let mode = context.pins.mode(&place, server.pin);
        // A server that is not recorded yet has nothing that its launch could differ from. Reading its programs can wait
        // then until it is written down, and does not hold up the first start.
        let is_wanted = match mode {
            PinMode::Off => false,
            PinMode::Notice => context.pins.is_known(&place),
            PinMode::Enforce => true,
        };
        let reusable = is_wanted.then(|| ReusableDigests::of(mode));
        let inspection = Inspection::begin(&server, reusable, context);
        let cached = match inspection.cached {
            // A reader that failed has logged the reason. Without a record the start only takes longer.
            Some(cached) => cached.await.unwrap_or_default(),
            None => CacheLookup::default(),
        };
        let pinning = Self {
            launch: reusable.map(|_| inspection.launch),
            mode,
            pins: Arc::clone(&context.pins),
            place,
            server,
        };
        (pinning, cached)
    }

    /// Returns the pins; waits for the launch if it has to be known. Cancel-safe.
    pub(crate) async fn pins(&self, context: &SupervisorContext) -> ServerPins {
        let (pins, place) = (Arc::clone(&self.pins), self.place.clone());
        let launch = self.launch.clone().or_else(|| {
            // Another workbench may have recorded it meanwhile.
            let is_wanted = self.mode == PinMode::Notice && pins.is_known(&place);
            is_wanted.then(|| {
                let reusable = ReusableDigests::of(self.mode);
                Inspection::begin(&self.server, Some(reusable), context).launch
            })
        });
        let Some(mut launch) = launch else {
            return ServerPins::unobserved(pins, place, Arc::clone(&self.server));
        };
        let found = launch.wait_for(Option::is_some).await;
        // A launch that could not be inspected counts as not approved.
        let launch = found.ok().and_then(|it| it.clone()).unwrap_or_default();
        ServerPins::new(pins, place, launch)
    }
}

/// The cache record of a server that is about to start.
#[derive(Default)]
pub(crate) struct CacheLookup {
    /// The key of the launch; `None` if nothing can be cached for it.
    pub(crate) key: Option<CacheKey>,
    pub(crate) protocol: Option<CachedProtocol>,
    /// Set if the server has asked its client something in an earlier run.
    pub(crate) asks_back: bool,
    /// The shapes of its results in earlier runs.
    pub(crate) shapes: Option<RawJson>,
}

/// The inspection of a server on a thread: its cache record and its program files.
struct Inspection {
    /// `None` if there is nothing to read.
    cached: Option<oneshot::Receiver<CacheLookup>>,
    launch: watch::Receiver<Option<Launch>>,
}

impl Inspection {
    /// Starts to read the cache of a server, and then to inspect its launch if needed. Servers that run the same
    /// program share the first one's read.
    fn begin(
        server: &Arc<Server>,
        reusable: Option<ReusableDigests>,
        context: &SupervisorContext,
    ) -> Self {
        let (found, launch) = watch::channel(None);
        let cache = Arc::clone(&context.tool_cache);
        // Without anything to read, the thread would be the largest cost of the start.
        if reusable.is_none() && (server.era.is_some() || cache.folder().is_none()) {
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
            // The record comes first, because the start waits for it. To read a large program takes longer.
            let (key, record) = cache.read_head(&server);
            // The receiver is gone if the start was cancelled.
            let _ = sender.send(CacheLookup {
                key,
                protocol: record.protocol().cloned(),
                asks_back: record.asks_back(),
                shapes: record.shapes().cloned(),
            });
            inspector.add_cached_programs(&record);
            let launch = reusable.map(|reusable| inspector.launch(&server, reusable));
            found.send_replace(launch);
            reusable.is_some() && inspector.cacheable_programs(&server) != *record.programs()
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

/// Writes first contacts after a delay, unless an open does it before.
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
            // The shutdown writes the remaining ones.
            () = shutdown.begun() => {}
            () = tokio::time::sleep(RECORD_DELAY) => {
                if pins.has_news() {
                    later.add(move || pins.record());
                }
            }
        }
    });
}
