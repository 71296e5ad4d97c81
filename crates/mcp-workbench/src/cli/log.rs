//! `log`: shows the audit log, including rotated files.

use std::{
    collections::VecDeque,
    io,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use clap::Args;
use thiserror::Error;

use super::{
    CommandResult,
    configuration::load_configuration,
    output,
    terminal::{Ink, OutputStyle, cut},
};
use crate::{
    audit::{AuditLine, Filter, LogReader},
    config::Environment,
    visible::visible,
};

/// The interval between checks for new lines.
const POLL_INTERVAL: Duration = Duration::from_millis(250);
/// The number of characters of a name that are shown.
const NAME_WIDTH: usize = 100;

#[derive(Args)]
pub(super) struct LogArguments {
    /// Keep printing new lines as they are written
    #[arg(long, short)]
    follow: bool,

    /// Only the last N calls
    #[arg(long, value_name = "N")]
    tail: Option<usize>,

    /// Only calls in this toolbox
    #[arg(long, value_name = "TOOLBOX")]
    toolbox: Option<String>,

    /// Only calls of this server
    #[arg(long, value_name = "SERVER")]
    server: Option<String>,

    /// Only calls of this tool
    #[arg(long, value_name = "TOOL")]
    tool: Option<String>,

    /// Only calls with this outcome: ok, `tool_error`, error, denied, cancelled, `input_required`, or a code
    #[arg(long, value_name = "OUTCOME")]
    outcome: Option<String>,

    /// Print the JSON lines of the file
    #[arg(long)]
    json: bool,
}

/// Reasons why the log cannot be shown.
#[derive(Debug, Error)]
enum LogError {
    #[error(
        "the audit log is off\n  hint: add `\"audit\": true` at the top of the configuration, then call a tool"
    )]
    Off,
    /// No call was recorded yet.
    #[error("there is no audit log at {} yet\n  hint: the first tool call creates it", .0.display())]
    Missing(PathBuf),
    #[error("cannot read the audit log {}", .0.display())]
    Unreadable(PathBuf, #[source] io::Error),
}

/// A log with the filter and the format to show it in.
struct LogView<'a> {
    reader: LogReader,
    file: PathBuf,
    filter: Filter,
    style: OutputStyle,
    arguments: &'a LogArguments,
}

pub(super) fn run(
    config: Option<&Path>,
    arguments: &LogArguments,
    environment: &Environment,
) -> CommandResult {
    let config = load_configuration(config, environment)?.config;
    let audit = config.audit.ok_or(LogError::Off)?;
    let reader = LogReader::new(&audit);
    if reader.is_missing() && !arguments.follow {
        return Err(LogError::Missing(audit.file).into());
    }
    let mut shown = LogView {
        reader,
        file: audit.file,
        filter: Filter {
            toolbox: arguments.toolbox.clone(),
            server: arguments.server.clone(),
            tool: arguments.tool.clone(),
            outcome: arguments.outcome.clone(),
        },
        style: OutputStyle::of_stdout(environment),
        arguments,
    };
    let mut is_read = shown.show_all()?;
    while arguments.follow && is_read {
        match shown.next()? {
            Some(line) => is_read = shown.show(&line),
            // There is no portable way to wait for a file to grow, so the log is polled.
            None => std::thread::park_timeout(POLL_INTERVAL),
        }
    }
    if shown.reader.unreadable > 0 {
        output::remark(&match shown.reader.unreadable {
            1 => "1 line of the log is invalid".to_owned(),
            lines => format!("{lines} lines of the log are invalid"),
        });
    }
    Ok(ExitCode::SUCCESS)
}

impl LogView<'_> {
    /// Returns the next line that passes the filter, or `None` if there is none yet.
    fn next(&mut self) -> Result<Option<AuditLine>, LogError> {
        loop {
            let line = self.reader.next_line();
            match line.map_err(|error| LogError::Unreadable(self.file.clone(), error))? {
                Some(line) if !self.filter.wants(&line) => {}
                found => return Ok(found),
            }
        }
    }

    /// Prints all lines, or the last ones; returns false if the reader has closed the pipe.
    fn show_all(&mut self) -> Result<bool, LogError> {
        // With `--tail`, only the last lines are held, however long the log is.
        let mut last = VecDeque::new();
        while let Some(line) = self.next()? {
            match self.arguments.tail {
                None => {
                    if !self.show(&line) {
                        return Ok(false);
                    }
                }
                Some(most) => {
                    last.push_back(line);
                    if last.len() > most {
                        last.pop_front();
                    }
                }
            }
        }
        Ok(last.iter().all(|line| self.show(line)))
    }

    /// Prints a line; returns false if the reader has closed the pipe.
    fn show(&self, line: &AuditLine) -> bool {
        let text = if self.arguments.json {
            line.text.clone()
        } else {
            rendered(line, self.style)
        };
        output::try_data(&format!("{text}\n"))
    }
}

/// Formats a line for a terminal. Servers and callers choose the names in it, so they are made visible.
fn rendered(line: &AuditLine, style: OutputStyle) -> String {
    let text = |name: &str| {
        let text = line.text_of(name).unwrap_or("?");
        cut(&visible(text), NAME_WIDTH)
    };
    let time = text("time");
    // This line is not a call: it reports calls that could not be recorded.
    if let Some(calls) = line.number("not_noted") {
        let words = format!("{calls} calls were not recorded");
        return format!("{time}  {}", style.paint(Ink::Bad, &words));
    }
    let outcome = text("outcome");
    let code = line.text_of("code").map(|_| format!(" ({})", text("code")));
    let ink = match outcome.as_str() {
        "ok" => Ink::Good,
        "tool_error" | "input_required" | "cancelled" => Ink::Faint,
        _ => Ink::Bad,
    };
    let outcome = style.paint(ink, &format!("{outcome}{}", code.unwrap_or_default()));
    let bytes = |name: &str| {
        let bytes = line.number(name);
        bytes.map_or_else(|| "-".to_owned(), |bytes| bytes.to_string())
    };
    let client = line
        .value
        .pointer("/client/name")
        .and_then(|it| it.as_str());
    format!(
        "{time}  {}/{}/{}  {outcome}  {} ms  {} B in, {} B out  {}",
        text("toolbox"),
        text("server"),
        text("tool"),
        line.number("duration_ms").unwrap_or_default(),
        bytes("arguments_bytes"),
        bytes("result_bytes"),
        cut(&visible(client.unwrap_or("?")), NAME_WIDTH),
    )
}
