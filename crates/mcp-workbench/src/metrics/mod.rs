//! Metrics for Prometheus, in its text format and with the names of the OpenTelemetry conventions. They are counted from
//! the first request for them on, so a workbench that nobody asks counts nothing.

use std::{
    collections::BTreeMap,
    fmt::Write,
    sync::{Arc, Mutex},
    time::Duration,
};

use crate::{
    events::{
        Event, EventDetail, Events, Reader,
        conventions::{Attribute, BOUNDS, Instrument, Measurement, TOOL},
    },
    sync::lock,
};

/// The media type of the text.
pub(crate) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";
/// The most series. Beyond it all tools that have none yet share a name.
const MAX_SERIES: usize = 2000;
const OTHER_TOOLS: &str = "_other";

/// Metrics that are counted once somebody asks for them.
#[derive(Default)]
pub(crate) struct Metrics {
    counted: Mutex<Option<Arc<Counted>>>,
}

#[derive(Default)]
struct Counted {
    series: Mutex<BTreeMap<Series, Histogram>>,
    counters: Mutex<BTreeMap<(&'static str, String), u64>>,
}

type Series = (Instrument, Vec<Attribute>);

/// The durations of one series.
#[derive(Default)]
struct Histogram {
    /// The number of values up to each bound, and above them all.
    buckets: [u64; BOUNDS.len() + 1],
    sum: f64,
}

/// A value that is known at the moment of asking.
pub(crate) struct Gauge {
    pub name: &'static str,
    pub help: &'static str,
    pub labels: Vec<(&'static str, String)>,
    pub value: u64,
}

impl Metrics {
    /// Returns all metrics as text, and begins to count at the first time.
    pub(crate) fn text(&self, events: &Events, gauges: &[Gauge]) -> String {
        let mut counted = lock(&self.counted);
        let counted = counted.get_or_insert_with(|| {
            let counted = Arc::new(Counted::default());
            events.subscribe(Arc::clone(&counted) as Arc<dyn Reader>);
            counted
        });
        let mut text = String::new();
        write_gauges(&mut text, gauges);
        counted.write_to(&mut text);
        text
    }
}

impl Reader for Counted {
    fn detail(&self) -> EventDetail {
        EventDetail::Hops
    }

    fn take(&self, event: &Event<'_>) {
        if let Some(measurement) = Measurement::of(event) {
            self.measure(measurement);
        }
        let (name, labels) = match event {
            Event::Question(asked) => (
                "mcp_workbench_questions_total",
                labels(&[
                    ("question", asked.question.method()),
                    ("state", &format!("{:?}", asked.state).to_lowercase()),
                ]),
            ),
            Event::Approval(change) => (
                "mcp_workbench_approvals_total",
                labels(&[("state", &format!("{:?}", change.state).to_lowercase())]),
            ),
            Event::Server(change) => (
                "mcp_workbench_server_changes_total",
                labels(&[
                    ("toolbox", change.server.toolbox.as_str()),
                    ("server", change.server.server.as_str()),
                    ("phase", &format!("{:?}", change.phase).to_lowercase()),
                ]),
            ),
            Event::Trust(change) => (
                "mcp_workbench_trust_changes_total",
                labels(&[
                    ("toolbox", change.server.toolbox.as_str()),
                    ("server", change.server.server.as_str()),
                ]),
            ),
            Event::Budget(_) => ("mcp_workbench_cut_results_total", String::new()),
            _ => return,
        };
        *lock(&self.counters).entry((name, labels)).or_default() += 1;
    }
}

impl Counted {
    fn measure(&self, measurement: Measurement) {
        let Measurement {
            instrument,
            duration,
            mut attributes,
        } = measurement;
        // In one order, so that equal attributes are the same series.
        attributes.sort_unstable();
        let mut all = lock(&self.series);
        let mut series = (instrument, attributes);
        if all.len() >= MAX_SERIES && !all.contains_key(&series) {
            let tool = series.1.iter_mut().find(|(name, _)| *name == TOOL);
            if let Some((_, name)) = tool {
                *name = OTHER_TOOLS.into();
            }
            // The other attributes have few values.
            if all.len() >= 2 * MAX_SERIES && !all.contains_key(&series) {
                return;
            }
        }
        all.entry(series).or_default().add(duration);
    }

    fn write_to(&self, text: &mut String) {
        let all = lock(&self.series);
        for instrument in Instrument::ALL {
            let name = format!("{}_seconds", instrument.name().replace('.', "_"));
            head(text, &name, instrument.description(), "histogram");
            for ((_, attributes), histogram) in all.iter().filter(|((it, _), _)| *it == instrument)
            {
                let pairs: Vec<_> = attributes
                    .iter()
                    .map(|(key, value)| (*key, &**value))
                    .collect();
                histogram.write_to(text, &name, &labels(&pairs));
            }
        }
        drop(all);
        let counters = lock(&self.counters);
        let mut last = "";
        for ((name, labels), value) in counters.iter() {
            if *name != last {
                head(text, name, counter_help(name), "counter");
                last = name;
            }
            let labels = braces(labels);
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{name}{labels} {value}");
        }
    }
}

impl Histogram {
    fn add(&mut self, duration: Duration) {
        let seconds = duration.as_secs_f64();
        let bucket = BOUNDS.iter().position(|bound| seconds <= *bound);
        self.buckets[bucket.unwrap_or(BOUNDS.len())] += 1;
        self.sum += seconds;
    }

    fn write_to(&self, text: &mut String, name: &str, labels: &str) {
        let comma = if labels.is_empty() { "" } else { "," };
        let mut count = 0;
        for (bucket, bound) in self.buckets.iter().zip(BOUNDS) {
            // Each bucket of this format includes all smaller ones.
            count += bucket;
            let _ = writeln!(
                text,
                "{name}_bucket{{{labels}{comma}le=\"{bound}\"}} {count}"
            );
        }
        count += self.buckets[BOUNDS.len()];
        let _ = writeln!(text, "{name}_bucket{{{labels}{comma}le=\"+Inf\"}} {count}");
        let labels = braces(labels);
        let _ = writeln!(text, "{name}_sum{labels} {}", self.sum);
        let _ = writeln!(text, "{name}_count{labels} {count}");
    }
}

fn write_gauges(text: &mut String, gauges: &[Gauge]) {
    let mut last = "";
    for gauge in gauges {
        // The format wants one head per metric. Gauges of one name follow each other.
        if gauge.name != last {
            head(text, gauge.name, gauge.help, "gauge");
            last = gauge.name;
        }
        let pairs: Vec<_> = gauge
            .labels
            .iter()
            .map(|(key, value)| (*key, &**value))
            .collect();
        let labels = braces(&labels(&pairs));
        let _ = writeln!(text, "{}{labels} {}", gauge.name, gauge.value);
    }
}

fn head(text: &mut String, name: &str, help: &str, kind: &str) {
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

fn counter_help(name: &str) -> &'static str {
    match name {
        "mcp_workbench_questions_total" => "Questions of servers to clients.",
        "mcp_workbench_approvals_total" => "Calls that waited for an approval, by state.",
        "mcp_workbench_trust_changes_total" => {
            "Tool lists that differ from the lock file, and approvals of them."
        }
        "mcp_workbench_server_changes_total" => "Phases that servers entered.",
        _ => "Results that were cut to their budget.",
    }
}

fn braces(labels: &str) -> String {
    match labels {
        "" => String::new(),
        labels => format!("{{{labels}}}"),
    }
}

/// Returns labels without their braces. Names have no dots in this format.
fn labels(pairs: &[(&str, &str)]) -> String {
    let pairs = pairs.iter().map(|(key, value)| {
        let value = value
            .replace('\\', r"\\")
            .replace('"', r#"\""#)
            .replace('\n', r"\n");
        format!("{}=\"{value}\"", key.replace('.', "_"))
    });
    pairs.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(tool: &str, milliseconds: u64) -> Measurement {
        Measurement {
            instrument: Instrument::ServerOperation,
            duration: Duration::from_millis(milliseconds),
            attributes: vec![(TOOL, tool.to_owned().into())],
        }
    }

    fn text(counted: &Counted) -> String {
        let mut text = String::new();
        counted.write_to(&mut text);
        text
    }

    #[test]
    fn durations_are_cumulative_buckets() {
        let counted = Counted::default();
        for milliseconds in [5, 15, 400_000] {
            counted.measure(measured("a\"b\\c\nd", milliseconds));
        }
        let text = text(&counted);
        let label = r#"gen_ai_tool_name="a\"b\\c\nd""#;
        for (bound, count) in [("0.01", 1), ("0.02", 2), ("300", 2), ("+Inf", 3)] {
            let line = format!(
                "mcp_server_operation_duration_seconds_bucket{{{label},le=\"{bound}\"}} {count}\n"
            );
            assert!(text.contains(&line), "{line} in {text}");
        }
        let sum = format!("mcp_server_operation_duration_seconds_sum{{{label}}} 400.02\n");
        assert!(text.contains(&sum), "{text}");
    }

    #[test]
    fn the_number_of_series_is_bounded() {
        let counted = Counted::default();
        for number in 0..MAX_SERIES + 10 {
            counted.measure(measured(&number.to_string(), 1));
        }
        assert_eq!(lock(&counted.series).len(), MAX_SERIES + 1);
        let line = format!("_count{{gen_ai_tool_name=\"{OTHER_TOOLS}\"}} 10\n");
        assert!(text(&counted).contains(&line));
    }

    #[test]
    fn nothing_is_counted_before_somebody_asks() {
        let (metrics, events) = (Metrics::default(), Events::default());
        assert!(!events.is_listened());
        let gauges = [Gauge {
            name: "up",
            help: "Whether it is up.",
            labels: vec![("server", "a".to_owned())],
            value: 1,
        }];
        let text = metrics.text(&events, &gauges);
        assert!(
            text.starts_with("# HELP up Whether it is up.\n# TYPE up gauge\nup{server=\"a\"} 1\n")
        );
        assert!(events.is_listened());
        metrics.text(&events, &gauges);
        assert_eq!(events.reader_count(), 1);
    }
}
