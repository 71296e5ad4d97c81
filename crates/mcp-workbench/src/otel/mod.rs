//! OpenTelemetry: traces and metrics by OTLP over HTTP, configured by the standard `OTEL_…` variables and off without
//! them. Builds without the feature `otel` only say that they cannot export.

#[cfg(feature = "otel")]
mod client;
#[cfg(feature = "otel")]
mod export;
#[cfg(not(feature = "otel"))]
mod no_export;
#[cfg(feature = "otel")]
mod spans;

#[cfg(feature = "otel")]
pub(crate) use export::Telemetry;
#[cfg(not(feature = "otel"))]
pub(crate) use no_export::Telemetry;

use crate::config::Environment;

/// The signals that the environment asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Signals {
    traces: bool,
    metrics: bool,
}

impl Signals {
    /// Reads the variables. A signal is on if an endpoint or the exporter `otlp` is set for it.
    fn of(environment: &Environment) -> Self {
        let get = |name: &str| {
            let value = environment.variable(name)?.to_str()?.trim().to_owned();
            (!value.is_empty()).then_some(value)
        };
        if get("OTEL_SDK_DISABLED").is_some_and(|it| it.eq_ignore_ascii_case("true")) {
            return Self {
                traces: false,
                metrics: false,
            };
        }
        let is_on = |signal: &str| match get(&format!("OTEL_{signal}_EXPORTER")).as_deref() {
            // An explicit exporter, such as `none`, counts more than an endpoint.
            Some(exporter) => exporter == "otlp",
            None => {
                get(&format!("OTEL_EXPORTER_OTLP_{signal}_ENDPOINT")).is_some()
                    || get("OTEL_EXPORTER_OTLP_ENDPOINT").is_some()
            }
        };
        Self {
            traces: is_on("TRACES"),
            metrics: is_on("METRICS"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn environment(variables: &[(&str, &str)]) -> Environment {
        let variables = variables
            .iter()
            .map(|(name, value)| ((*name).into(), (*value).into()));
        Environment::new(variables, ".".into(), None)
    }

    /// Variables, and whether traces and metrics are on.
    type Case<'a> = (&'a [(&'a str, &'a str)], (bool, bool));

    fn signals(variables: &[(&str, &str)]) -> (bool, bool) {
        let Signals { traces, metrics } = Signals::of(&environment(variables));
        (traces, metrics)
    }

    #[test]
    fn signals_are_on_where_the_variables_ask_for_them() {
        let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://localhost:4318");
        let cases: &[Case<'_>] = &[
            (&[], (false, false)),
            (&[("OTEL_SERVICE_NAME", "x")], (false, false)),
            (&[endpoint], (true, true)),
            (&[("OTEL_EXPORTER_OTLP_ENDPOINT", "")], (false, false)),
            (
                &[("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://x")],
                (true, false),
            ),
            (
                &[("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "http://x")],
                (false, true),
            ),
            (&[("OTEL_TRACES_EXPORTER", "otlp")], (true, false)),
            (
                &[endpoint, ("OTEL_METRICS_EXPORTER", "none")],
                (true, false),
            ),
            (&[endpoint, ("OTEL_SDK_DISABLED", "true")], (false, false)),
        ];
        for (variables, expected) in cases {
            assert_eq!(signals(variables), *expected, "{variables:?}");
        }
    }
}
