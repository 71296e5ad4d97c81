//! Logging. Everything goes to stderr; stdout belongs to the protocol. Panics are logged like any other event.
//! Characters without a visible form never reach the terminal or the log file.

use std::{
    fmt::Debug,
    io::{self, IsTerminal},
};

use tracing::{Subscriber, field::Field, level_filters::LevelFilter};
use tracing_subscriber::{
    field::MakeExt,
    filter::filter_fn,
    fmt::{
        MakeWriter,
        format::{Writer, debug_fn},
    },
    layer::SubscriberExt,
    util::SubscriberInitExt,
};

use crate::visible::visible_lines;

/// The target of our own events. Events of libraries may contain anything that was passed to them, tokens included.
const OWN_TARGET: &str = env!("CARGO_CRATE_NAME");

/// Starts logging at a level, with colour on a terminal if it is wanted.
pub(crate) fn start_logging(level: LevelFilter, colour_wanted: bool) {
    let colour = colour_wanted && io::stderr().is_terminal();
    subscriber(level, colour, io::stderr).init();
    std::panic::set_hook(Box::new(|panic| {
        tracing::error!("internal error, please report it: {panic}");
    }));
}

/// Returns the subscriber that writes our own events up to a level, and none of libraries.
fn subscriber<W>(level: LevelFilter, colour: bool, writer: W) -> impl Subscriber + Send + Sync
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let is_ours = filter_fn(|event| event.target().split("::").next() == Some(OWN_TARGET));
    tracing_subscriber::fmt()
        .with_writer(writer)
        .fmt_fields(debug_fn(write_field).delimited(" "))
        .with_ansi(colour)
        .with_target(false)
        .without_time()
        .with_max_level(level)
        // Logging failures are dropped: reporting them on the same stderr would fail too.
        .log_internal_errors(false)
        .finish()
        .with(is_ours.with_max_level_hint(level))
}

/// Writes a field or the message.
fn write_field(writer: &mut Writer<'_>, field: &Field, value: &dyn Debug) -> std::fmt::Result {
    let text = format!("{value:?}");
    match field.name() {
        "message" => write!(writer, "{}", visible_lines(&text)),
        name => write!(writer, "{name}={}", visible_lines(&text)),
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::Write,
        sync::{Arc, Mutex},
    };

    use super::*;

    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn events_of_libraries_are_not_logged() {
        let written = Written::default();
        let writer = written.clone();
        let subscriber = subscriber(LevelFilter::TRACE, false, move || writer.clone());
        tracing::subscriber::with_default(subscriber, || {
            tracing::warn!(target: "rmcp::transport::auth", "token hunter2");
            tracing::error!(target: "mcp_workbench_other", "token hunter2");
            tracing::debug!("ours");
        });
        let written = written.0.lock().unwrap().clone();
        let written = String::from_utf8(written).unwrap();
        assert_eq!(written.trim(), "DEBUG ours");
    }
}
