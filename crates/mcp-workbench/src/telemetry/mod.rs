//! Logging, as text or as JSON. Everything goes to stderr or to a file; stdout belongs to the protocol. Panics are logged
//! like any other event.
//! Characters without a visible form never reach the terminal or the log file.

mod file;
mod json;

use std::{
    fmt::Debug,
    io::{self, IsTerminal},
    path::PathBuf,
};

use thiserror::Error;
use tracing::{Metadata, Subscriber, field::Field, level_filters::LevelFilter};
use tracing_subscriber::{
    field::MakeExt,
    filter::{FilterFn, filter_fn},
    fmt::{
        MakeWriter,
        format::{Writer, debug_fn},
    },
    layer::SubscriberExt,
    util::SubscriberInitExt,
};

use self::{file::LogFile, json::JsonLines};
use crate::visible::visible_lines;

/// The target of our own events. Events of libraries may contain anything that was passed to them, tokens included.
const OWN_TARGET: &str = env!("CARGO_CRATE_NAME");

/// The form of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LogFormat {
    Text,
    /// One JSON object per line.
    Json,
}

#[derive(Debug)]
pub(crate) struct LogSettings {
    pub(crate) level: LevelFilter,
    pub(crate) format: LogFormat,
    /// The file that is written instead of stderr.
    pub(crate) file: Option<PathBuf>,
    /// Set if colour is wanted on a terminal.
    pub(crate) colour: bool,
}

/// The log file cannot be opened.
#[derive(Debug, Error)]
#[error("cannot open the log file {}: {error}\n  hint: choose another file with --log-file", file.display())]
pub(crate) struct LogFileError {
    file: PathBuf,
    error: io::Error,
}

pub(crate) fn start_logging(settings: LogSettings) -> Result<(), LogFileError> {
    let LogSettings {
        level,
        format,
        file,
        colour,
    } = settings;
    match file {
        Some(file) => {
            let opened = LogFile::open(&file).map_err(|error| LogFileError { file, error })?;
            // Without colour: escape sequences do not belong in a file.
            start(level, format, false, opened);
        }
        None => start(
            level,
            format,
            colour && io::stderr().is_terminal(),
            io::stderr,
        ),
    }
    std::panic::set_hook(Box::new(|panic| {
        tracing::error!("internal error, please report it: {panic}");
    }));
    Ok(())
}

fn start<W>(level: LevelFilter, format: LogFormat, colour: bool, writer: W)
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    match format {
        LogFormat::Text => subscriber(level, colour, writer).init(),
        LogFormat::Json => json_subscriber(level, writer).init(),
    }
}

/// Returns the subscriber that writes our own events up to a level, and none of libraries.
fn subscriber<W>(level: LevelFilter, colour: bool, writer: W) -> impl Subscriber + Send + Sync
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
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
        .with(own_events(level))
}

/// Returns the subscriber that writes the same events as JSON.
fn json_subscriber<W>(level: LevelFilter, writer: W) -> impl Subscriber + Send + Sync
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    tracing_subscriber::registry()
        .with(JsonLines::new(writer))
        .with(own_events(level))
}

/// Returns the filter that lets our own events up to a level pass.
///
/// The filter itself checks the level. A hint alone is not enough: another subscriber of the process may want the event,
/// and then this filter is asked too.
fn own_events(level: LevelFilter) -> FilterFn<impl Fn(&Metadata<'_>) -> bool> {
    filter_fn(move |event| *event.level() <= level && is_ours(event)).with_max_level_hint(level)
}

fn is_ours(event: &Metadata<'_>) -> bool {
    event.target().split("::").next() == Some(OWN_TARGET)
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

    #[test]
    fn an_event_above_the_level_is_refused_by_the_filter_itself() {
        // A second subscriber that wants the event, as the tests of other modules have one.
        let _verbose = tracing::Dispatch::new(subscriber(LevelFilter::TRACE, false, io::sink));
        let written = Written::default();
        let writer = written.clone();
        let informed = json_subscriber(LevelFilter::INFO, move || writer.clone());
        tracing::subscriber::with_default(informed, || tracing::debug!("above the level"));
        assert!(written.0.lock().unwrap().is_empty());
    }

    #[test]
    fn a_json_line_has_the_message_and_the_fields_of_the_event_and_its_spans() {
        let written = Written::default();
        let writer = written.clone();
        let subscriber = json_subscriber(LevelFilter::INFO, move || writer.clone());
        tracing::subscriber::with_default(subscriber, || {
            let span = tracing::info_span!("server", toolbox = %"dev", server = %"fi\u{1b}les");
            let _entered = span.enter();
            tracing::warn!(count = 3, "exited with \"code\" 3\nand a line");
            tracing::debug!("below the level");
            tracing::error!(target: "rmcp", "token hunter2");
        });
        let written = written.0.lock().unwrap().clone();
        let written = String::from_utf8(written).unwrap();
        assert_eq!(written.lines().count(), 1, "{written}");
        assert!(!written.contains('\u{1b}'), "{written:?}");
        let mut line: serde_json::Value = serde_json::from_str(&written).unwrap();
        assert!(line["time"].take().as_str().unwrap().ends_with('Z'));
        let expected = serde_json::json!({
            "time": null,
            "level": "warn",
            "message": "exited with \"code\" 3\nand a line",
            "toolbox": "dev",
            "server": "fi\u{1b}les",
            "count": "3",
        });
        assert_eq!(line, expected);
    }
}
