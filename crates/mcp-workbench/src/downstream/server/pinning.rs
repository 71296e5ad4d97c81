//! What is pinned of a server that is being started, and when that is written. The files that it is made of are read on
//! another thread, while it comes up.

use std::{sync::Arc, time::Duration};

use tokio::sync::watch;

use super::{Entry, SupervisorContext};
use crate::{
    config::PinMode,
    ident::ServerIdentifier,
    lock::{Launch, Pins, Scope, ServerPins},
};

/// How long a first contact waits for others, so that they are written and told together: an open does not wait for a
/// server any longer.
const RECORD_AFTER: Duration = Duration::from_secs(50);

/// The pins of a server whose launch is being looked at.
pub(super) struct Pinning {
    pins: Arc<Pins>,
    place: ServerIdentifier,
    launch: watch::Receiver<Option<Launch>>,
}

impl Pinning {
    /// Begins to look at how a server is started.
    pub(super) fn begin(entry: &Entry, context: &SupervisorContext) -> Self {
        let server = Arc::clone(&entry.server);
        let is_wanted = match server.pin {
            PinMode::Off => false,
            PinMode::Notice => context.pins.file().is_some(),
            PinMode::Enforce => true,
        };
        let (found, launch) = watch::channel(None);
        if is_wanted {
            let look = move || found.send_replace(Some(Launch::of(&server)));
            context.links.tasks.spawn_blocking(look);
        }
        Self {
            pins: Arc::clone(&context.pins),
            place: ServerIdentifier {
                toolbox: entry.toolbox.clone(),
                server: entry.server.name.clone(),
            },
            launch,
        }
    }

    /// The pins, when the launch is known. Cancel-safe.
    pub(super) async fn pins(&self) -> ServerPins {
        let mut launch = self.launch.clone();
        let found = launch.wait_for(Option::is_some).await;
        // What could not be looked at is not what was approved.
        let launch = found.ok().and_then(|it| it.clone()).unwrap_or_default();
        ServerPins::new(Arc::clone(&self.pins), self.place.clone(), launch)
    }
}

/// Has a first contact written, if no open does it before.
pub(super) fn record_later(context: &SupervisorContext) {
    let pins = Arc::clone(&context.pins);
    if !pins.has_news(Scope::First) {
        return;
    }
    let (tasks, shutdown) = (&context.links.tasks, Arc::clone(&context.shutdown));
    let writers = tasks.clone();
    tasks.spawn(async move {
        tokio::select! {
            // What is left then is written at the end.
            () = shutdown.begun() => {}
            () = tokio::time::sleep(RECORD_AFTER) => {
                if pins.has_news(Scope::First) {
                    writers.spawn_blocking(move || pins.record(Scope::First));
                }
            }
        }
    });
}
