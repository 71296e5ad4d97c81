//! The pins of a server that is being started, and when first contacts are written. How a server is launched is inspected
//! while it comes up; where program files have to be read for that, all servers share one thread. A server that is met for
//! the first time is inspected when its pins are written.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::sync::watch;

use crate::{
    config::{PinMode, Server},
    contain::contain_now,
    downstream::supervisor::{SupervisorContext, adapt::Entry},
    ident::ServerIdentifier,
    lock::{Launch, Pins, Recall, ServerPins},
    offload::run_blocking,
    server_cache::{CacheKey, CachedProtocol},
};

/// How long a first contact waits for others, so that they are written and told together: an open does not wait for a
/// server any longer.
const RECORD_AFTER: Duration = Duration::from_secs(50);

/// Inspects how servers are launched, one after the other. Many servers may be one program, and a thread for each would
/// wait for the first.
#[derive(Default)]
pub(crate) struct LaunchInspector {
    queue: Mutex<Queue>,
}

#[derive(Default)]
struct Queue {
    wanted: Vec<Wanted>,
    has_thread: bool,
}

/// A server whose launch somebody waits for.
struct Wanted {
    server: Arc<Server>,
    recall: Recall,
    found: watch::Sender<Option<Launch>>,
}

impl LaunchInspector {
    /// Begins to inspect how a server is launched.
    fn begin(
        self: &Arc<Self>,
        server: Arc<Server>,
        recall: Recall,
        context: &SupervisorContext,
    ) -> watch::Receiver<Option<Launch>> {
        let (found, launch) = watch::channel(None);
        let mut queue = self.queue();
        queue.wanted.push(Wanted {
            server,
            recall,
            found,
        });
        if !std::mem::replace(&mut queue.has_thread, true) {
            let (this, pins) = (Arc::clone(self), Arc::clone(&context.pins));
            let writes = Arc::clone(&context.deferred_writes);
            context.links.tasks.spawn(async move {
                let (inspector, inspected) = (Arc::clone(&this), Arc::clone(&pins));
                if let Err(error) = run_blocking(move || inspector.run(&inspected)).await {
                    tracing::warn!("cannot read the programs of servers: {error}");
                    this.give_up();
                }
                writes.add(move || pins.store_programs());
            });
        }
        launch
    }

    fn run(&self, pins: &Pins) {
        while let Some(next) = self.next() {
            // After a panic the sender is dropped, and whoever waits learns that the launch is not known.
            if let Ok(launch) = contain_now(|| pins.launch(&next.server, next.recall)) {
                next.found.send_replace(Some(launch));
            }
        }
    }

    fn next(&self) -> Option<Wanted> {
        let mut queue = self.queue();
        let next = queue.wanted.pop();
        queue.has_thread = next.is_some();
        next
    }

    /// Drops the queue. Whoever waits learns that the launch is not known.
    fn give_up(&self) {
        *self.queue() = Queue::default();
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

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
        let (cached, launch) = read_cache(&server, recall, context).await;
        let launch = recall.map(|recall| match launch {
            Some(launch) => watch::channel(Some(launch)).1,
            None => context
                .inspector
                .begin(Arc::clone(&server), recall, context),
        });
        let pinning = Self {
            launch,
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
            let recall = Recall::of(self.mode);
            is_wanted.then(|| {
                let server = Arc::clone(&self.server);
                context.inspector.begin(server, recall, context)
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

/// Reads the cache of a server, and inspects its launch if no program file has to be read for it.
async fn read_cache(
    server: &Arc<Server>,
    recall: Option<Recall>,
    context: &SupervisorContext,
) -> (Cached, Option<Launch>) {
    let cache = Arc::clone(&context.tool_cache);
    // A thread for nothing would cost more than all the rest.
    if recall.is_none() && (server.era.is_some() || cache.folder().is_none()) {
        return Default::default();
    }
    let (server, pins) = (Arc::clone(server), Arc::clone(&context.pins));
    let read = run_blocking(move || {
        let (key, record) = cache.read(&server);
        pins.add_cached_programs(&record);
        let cached = Cached {
            key,
            protocol: record.protocol().cloned(),
        };
        let launch = recall.and_then(|recall| pins.launch_at_once(&server, recall));
        (cached, launch)
    });
    read.await.unwrap_or_else(|error| {
        tracing::warn!("failed to read the server cache: {error}");
        Default::default()
    })
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
