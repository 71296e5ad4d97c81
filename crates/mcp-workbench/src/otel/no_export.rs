//! Builds without the feature `otel`.

use std::{convert::Infallible, sync::Arc};

use super::Signals;
use crate::{config::Environment, events::Events};

/// An export that cannot be started.
pub(crate) struct Telemetry(Infallible);

impl Telemetry {
    /// Says that there is no export, if the environment asks for one.
    #[expect(
        clippy::unnecessary_wraps,
        reason = "builds with an export may fail to start it"
    )]
    pub(crate) fn start(
        environment: &Environment,
        _: &Arc<Events>,
    ) -> Result<Option<Self>, Infallible> {
        let signals = Signals::of(environment);
        if signals.traces || signals.metrics {
            tracing::warn!(
                "no telemetry is exported: this program was built without the feature `otel`\n  \
                 hint: use a released package, or build with `--features otel`"
            );
        }
        Ok(None)
    }

    #[expect(
        clippy::unused_async,
        reason = "builds with an export wait for its end"
    )]
    pub(crate) async fn close(self) {
        match self.0 {}
    }
}
