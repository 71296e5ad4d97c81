//! Log lines as JSON objects: time, level, message, the fields of the spans around the event, and its own.

use std::{fmt::Debug, io::Write, time::SystemTime};

use tracing::{
    Event, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id},
};
use tracing_subscriber::{
    fmt::MakeWriter,
    layer::{Context, Layer},
    registry::LookupSpan,
};

use crate::{moment::write_time, visible::escaped};

/// Writes every event as one line.
pub(super) struct JsonLines<W> {
    writer: W,
}

/// The fields of a span or an event, as JSON members, each after a comma.
#[derive(Default)]
struct Members {
    text: String,
    message: Option<String>,
}

impl<W> JsonLines<W> {
    pub(super) fn new(writer: W) -> Self {
        Self { writer }
    }
}

impl Visit for Members {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.add(field.name(), value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.add(field.name(), &format!("{value:?}"));
    }
}

impl Members {
    fn add(&mut self, name: &str, value: &str) {
        if name == "message" {
            self.message = Some(value.to_owned());
        } else {
            self.text += &format!(",{}:{}", quoted(name), quoted(value));
        }
    }
}

impl<S, W> Layer<S> for JsonLines<W>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    W: for<'a> MakeWriter<'a> + 'static,
{
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        if let Some(span) = context.span(id) {
            let mut members = Members::default();
            attributes.record(&mut members);
            span.extensions_mut().insert(members);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut members = Members::default();
        event.record(&mut members);
        let mut line = br#"{"time":""#.to_vec();
        write_time(&mut line, SystemTime::now());
        let level = event.metadata().level().as_str().to_lowercase();
        let message = quoted(members.message.as_deref().unwrap_or_default());
        line.extend_from_slice(format!(r#"","level":"{level}","message":{message}"#).as_bytes());
        for span in context.event_scope(event).into_iter().flatten() {
            if let Some(members) = span.extensions().get::<Members>() {
                line.extend_from_slice(members.text.as_bytes());
            }
        }
        line.extend_from_slice(members.text.as_bytes());
        line.extend_from_slice(b"}\n");
        // Logging failures are dropped: there is nowhere to report them.
        let _ = self.writer.make_writer().write_all(&line);
    }
}

/// Returns a JSON string whose hidden characters are escaped.
fn quoted(text: &str) -> String {
    let quoted = serde_json::to_string(text).expect("a string can be written");
    escaped(&quoted).into_owned()
}
