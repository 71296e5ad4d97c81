//! The export itself. The official SDK samples, aggregates and batches on threads of its own; its requests are sent on the
//! event loop.

use std::{sync::Arc, time::Duration};

use opentelemetry::{
    KeyValue,
    metrics::{Histogram, MeterProvider},
    trace::TracerProvider,
};
use opentelemetry_otlp::{ExporterBuildError, MetricExporter, SpanExporter, WithHttpConfig};
use opentelemetry_sdk::{
    Resource, error::OTelSdkError, metrics::SdkMeterProvider, trace::SdkTracerProvider,
};
use thiserror::Error;

use super::{Signals, client::EventLoopClient, spans::Spans};
use crate::{
    config::Environment,
    events::{
        Event, EventDetail, Events, Reader,
        conventions::{Attribute, BOUNDS, Instrument, Measurement, PORT},
    },
    offload::run_blocking,
};

/// The name of the instrumentation scope, and the default of the service.
const NAME: &str = "mcp-workbench";
/// Upper bound on the last export at the shutdown.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// A reason why telemetry cannot be exported.
#[derive(Debug, Error)]
pub(crate) enum TelemetryError {
    #[error(
        "no telemetry is exported: {name} is `{protocol}`, and only `http/protobuf` is supported\n  \
         hint: set {name} to `http/protobuf`, and the endpoint to the HTTP port of the collector (usually 4318)"
    )]
    Protocol { name: String, protocol: String },
    #[error("cannot export telemetry: {0}\n  hint: check the OTEL_… variables")]
    Exporter(#[from] ExporterBuildError),
}

pub(crate) struct Telemetry {
    traces: Option<SdkTracerProvider>,
    metrics: Option<SdkMeterProvider>,
}

impl Telemetry {
    /// Starts the export that the environment asks for. Must be called on the event loop.
    pub(crate) fn start(
        environment: &Environment,
        events: &Arc<Events>,
    ) -> Result<Option<Self>, TelemetryError> {
        let signals = Signals::of(environment);
        if !signals.traces && !signals.metrics {
            return Ok(None);
        }
        // Other programs read the same variables, so a protocol of theirs must not keep this one from starting.
        if let Err(error) = check_protocol(environment) {
            tracing::warn!("{error}");
            return Ok(None);
        }
        let client = EventLoopClient::start();
        let resource = Resource::builder()
            .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")));
        // The builder has read this variable already, and `with_service_name` would override it.
        let resource = match environment.variable("OTEL_SERVICE_NAME") {
            Some(_) => resource.build(),
            None => resource.with_service_name(NAME).build(),
        };
        let traces = signals.traces.then(|| {
            let exporter = SpanExporter::builder()
                .with_http()
                .with_http_client(client.clone())
                .build()?;
            let traces = SdkTracerProvider::builder()
                .with_resource(resource.clone())
                .with_batch_exporter(exporter)
                .build();
            let spans = Arc::new(Spans::new(traces.tracer(NAME), events));
            events.trace_with(Arc::clone(&spans) as _);
            events.subscribe(spans);
            Ok::<_, ExporterBuildError>(traces)
        });
        let metrics = signals.metrics.then(|| {
            let exporter = MetricExporter::builder()
                .with_http()
                .with_http_client(client.clone())
                .build()?;
            let metrics = SdkMeterProvider::builder()
                .with_resource(resource.clone())
                .with_periodic_exporter(exporter)
                .build();
            events.subscribe(Arc::new(Measurements::new(&metrics)));
            Ok::<_, ExporterBuildError>(metrics)
        });
        tracing::info!("exporting telemetry by OTLP");
        Ok(Some(Self {
            traces: traces.transpose()?,
            metrics: metrics.transpose()?,
        }))
    }

    /// Exports what is left, for at most [`CLOSE_TIMEOUT`]. The threads of the SDK wait for the event loop, so this
    /// must not block it.
    pub(crate) async fn close(self) {
        let closing = run_blocking(move || {
            let traces = self
                .traces
                .map(|it| it.shutdown_with_timeout(CLOSE_TIMEOUT));
            let metrics = self
                .metrics
                .map(|it| it.shutdown_with_timeout(CLOSE_TIMEOUT));
            [traces, metrics]
        });
        let Ok(Ok(closed)) = tokio::time::timeout(CLOSE_TIMEOUT, closing).await else {
            tracing::warn!("timed out exporting the last telemetry");
            return;
        };
        for closed in closed.into_iter().flatten() {
            match closed {
                Ok(()) | Err(OTelSdkError::AlreadyShutdown) => {}
                Err(error) => tracing::warn!("failed to export the last telemetry: {error}"),
            }
        }
    }
}

/// Refuses protocols that this build does not have.
fn check_protocol(environment: &Environment) -> Result<(), TelemetryError> {
    let names = ["", "TRACES_", "METRICS_"].map(|it| format!("OTEL_EXPORTER_OTLP_{it}PROTOCOL"));
    for name in names {
        let protocol = environment.variable(&name).and_then(|it| it.to_str());
        match protocol {
            None | Some("" | "http/protobuf") => {}
            Some(other) => {
                let protocol = other.to_owned();
                return Err(TelemetryError::Protocol { name, protocol });
            }
        }
    }
    Ok(())
}

/// The histograms of the conventions.
struct Measurements(Vec<(Instrument, Histogram<f64>)>);

impl Measurements {
    fn new(provider: &SdkMeterProvider) -> Self {
        let meter = provider.meter(NAME);
        let histograms = Instrument::ALL.into_iter().map(|instrument| {
            let histogram = meter
                .f64_histogram(instrument.name())
                .with_description(instrument.description())
                .with_unit("s")
                .with_boundaries(BOUNDS.to_vec())
                .build();
            (instrument, histogram)
        });
        Self(histograms.collect())
    }
}

impl Reader for Measurements {
    fn detail(&self) -> EventDetail {
        EventDetail::Hops
    }

    fn take(&self, event: &Event<'_>) {
        let Some(measurement) = Measurement::of(event) else {
            return;
        };
        let attributes: Vec<KeyValue> = measurement.attributes.into_iter().map(value).collect();
        let mut histograms = self.0.iter();
        if let Some((_, histogram)) = histograms.find(|(it, _)| *it == measurement.instrument) {
            histogram.record(measurement.duration.as_secs_f64(), &attributes);
        }
    }
}

pub(super) fn value((name, value): Attribute) -> KeyValue {
    match value.parse::<i64>() {
        // The conventions define the port as a number.
        Ok(port) if name == PORT => KeyValue::new(name, port),
        _ => KeyValue::new(name, value.into_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::otel::tests::environment;

    #[test]
    fn other_protocols_are_refused() {
        for (protocol, is_valid) in [
            ("http/protobuf", true),
            ("", true),
            ("grpc", false),
            ("http/json", false),
        ] {
            let environment = environment(&[("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)]);
            assert_eq!(check_protocol(&environment).is_ok(), is_valid, "{protocol}");
        }
    }

    #[test]
    fn a_protocol_of_other_programs_does_not_keep_the_workbench_from_starting() {
        let environment = environment(&[
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://localhost:4317"),
            ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "grpc"),
        ]);
        let events = Arc::<Events>::default();
        let started = Telemetry::start(&environment, &events).unwrap();
        assert!(started.is_none() && !events.is_listened());
        let warning = check_protocol(&environment).unwrap_err().to_string();
        assert!(
            warning.contains("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL is `grpc`"),
            "{warning}"
        );
        assert!(warning.contains("only `http/protobuf`"), "{warning}");
    }
}
