//! What is pinned of a server that is being started, and when that is written. How a server is started is looked at while
//! it comes up, and where files have to be read for that, for all servers on one thread. Of one that is met for the first
//! time it is looked at when it is written.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::sync::watch;
use tokio_util::task::TaskTracker;

use crate::{
    config::{PinMode, Server},
    contain::contain_now,
    downstream::supervisor::{SupervisorContext, adapt::Entry},
    ident::ServerIdentifier,
    lock::{Launch, Pins, Recall, ServerPins},
    offload::run_blocking,
};

/// How long a first contact waits for others, so that they are written and told together: an open does not wait for a
/// server any longer.
const RECORD_AFTER: Duration = Duration::from_secs(50);

/// Looks at how servers are started, at one after the other. Many servers may be one program, and a thread for each would
/// wait for the first.
#[derive(Default)]
pub(crate) struct LaunchInspector {
    queue: Mutex<Queue>,
}

#[derive(Default)]
struct Queue {
    wanted: Vec<Wanted>,
    /// Whether a thread is at it.
    is_seen_to: bool,
}

/// A server whose launch somebody waits for.
struct Wanted {
    server: Arc<Server>,
    recall: Recall,
    found: watch::Sender<Option<Launch>>,
}

impl LaunchInspector {
    /// Begins to look at how a server is started.
    fn begin(
        self: &Arc<Self>,
        server: Arc<Server>,
        recall: Recall,
        pins: &Arc<Pins>,
        tasks: &TaskTracker,
    ) -> watch::Receiver<Option<Launch>> {
        let (found, launch) = watch::channel(pins.launch_at_once(&server, recall));
        // A thread for nothing would cost more than all the rest.
        if launch.borrow().is_some() {
            return launch;
        }
        let mut queue = self.queue();
        queue.wanted.push(Wanted {
            server,
            recall,
            found,
        });
        if !std::mem::replace(&mut queue.is_seen_to, true) {
            let (this, pins) = (Arc::clone(self), Arc::clone(pins));
            tasks.spawn(async move {
                let looks = Arc::clone(&this);
                if let Err(error) = run_blocking(move || looks.run(&pins)).await {
                    tracing::warn!("cannot read the programs of servers: {error}");
                    this.give_up();
                }
            });
        }
        launch
    }

    fn run(&self, pins: &Pins) {
        while let Some(next) = self.next() {
            // Without a word of it, whoever waits is told that it is not known.
            if let Ok(launch) = contain_now(|| pins.launch(&next.server, next.recall)) {
                next.found.send_replace(Some(launch));
            }
        }
        pins.keep_programs();
    }

    fn next(&self) -> Option<Wanted> {
        let mut queue = self.queue();
        let next = queue.wanted.pop();
        queue.is_seen_to = next.is_some();
        next
    }

    /// Drops what nobody can look at. Whoever waits learns that it is not known.
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
    /// How it is started, where that has to be compared before its tools are told.
    launch: Option<watch::Receiver<Option<Launch>>>,
}

impl Pinning {
    /// Begins to look at how a server is started, if somebody has to know that before it is up.
    pub(crate) fn begin(entry: &Entry, context: &SupervisorContext) -> Self {
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
        Self {
            launch: is_wanted.then(|| begin(&server, mode, context)),
            mode,
            pins: Arc::clone(&context.pins),
            place,
            server,
        }
    }

    /// The pins, when the launch is known, if it has to be. Cancel-safe.
    pub(crate) async fn pins(&self, context: &SupervisorContext) -> ServerPins {
        let (pins, place) = (Arc::clone(&self.pins), self.place.clone());
        let launch = self.launch.clone().or_else(|| {
            // Another workbench may have met it meanwhile.
            let is_wanted = self.mode == PinMode::Notice && pins.is_met(&place);
            is_wanted.then(|| begin(&self.server, self.mode, context))
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

/// Begins to look at how a server is started.
fn begin(
    server: &Arc<Server>,
    mode: PinMode,
    context: &SupervisorContext,
) -> watch::Receiver<Option<Launch>> {
    let (looks, tasks) = (&context.inspector, &context.links.tasks);
    looks.begin(Arc::clone(server), Recall::of(mode), &context.pins, tasks)
}

/// Has a first contact written, if no open does it before.
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
            // What is left then is written at the end.
            () = shutdown.begun() => {}
            () = tokio::time::sleep(RECORD_AFTER) => {
                if pins.has_news() {
                    later.add(move || pins.record());
                }
            }
        }
    });
}
