//! `log`: reads the audit log, across the files that it was put aside to.

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
    Done,
    configuration::load_configuration,
    output,
    terminal::{Ink, Look, cut},
};
use crate::{
    audit::{Filter, Line, LogReader},
    config::Environment,
    visible::visible,
};

/// How often is looked for new lines.
const PAUSE: Duration = Duration::from_millis(250);
/// How much of a name is shown.
const SHOWN: usize = 100;

/// Which lines are shown, and how.
#[derive(Args)]
pub(super) struct LogArguments {
    /// Go on showing lines as they are written
    #[arg(long, short)]
    follow: bool,

    /// Only the last of them
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

    /// Only calls that ended so: ok, `tool_error`, error, denied, cancelled, `input_required`, or a code
    #[arg(long, value_name = "OUTCOME")]
    outcome: Option<String>,

    /// Print the lines as they are in the file
    #[arg(long)]
    json: bool,
}

/// Why nothing can be shown.
#[derive(Debug, Error)]
enum LogError {
    /// Calls are not noted.
    #[error(
        "the configuration does not note calls\n  hint: add `\"audit\": true` at its top, and call something"
    )]
    Off,
    /// Nothing was noted.
    #[error("there is no audit log at {} yet\n  hint: it begins with the first call of a tool", .0.display())]
    Missing(PathBuf),
    /// It cannot be read.
    #[error("the audit log {} cannot be read", .0.display())]
    Unreadable(PathBuf, #[source] io::Error),
}

/// The lines that are wanted, and how they are shown.
struct Shown<'a> {
    reader: LogReader,
    file: PathBuf,
    filter: Filter,
    look: Look,
    arguments: &'a LogArguments,
}

/// Shows the log.
pub(super) fn run(
    config: Option<&Path>,
    arguments: &LogArguments,
    environment: &Environment,
) -> Done {
    let config = load_configuration(config, environment)?.config;
    let audit = config.audit.ok_or(LogError::Off)?;
    let reader = LogReader::new(&audit);
    if reader.is_missing() && !arguments.follow {
        return Err(LogError::Missing(audit.file).into());
    }
    let mut shown = Shown {
        reader,
        file: audit.file,
        filter: Filter {
            toolbox: arguments.toolbox.clone(),
            server: arguments.server.clone(),
            tool: arguments.tool.clone(),
            outcome: arguments.outcome.clone(),
        },
        look: Look::of_stdout(environment),
        arguments,
    };
    let mut goes_on = shown.show_all()?;
    while arguments.follow && goes_on {
        match shown.next()? {
            Some(line) => goes_on = shown.show(&line),
            None => std::thread::park_timeout(PAUSE),
        }
    }
    if shown.reader.unreadable > 0 {
        output::remark(&match shown.reader.unreadable {
            1 => "1 line of the log is not readable".to_owned(),
            lines => format!("{lines} lines of the log are not readable"),
        });
    }
    Ok(ExitCode::SUCCESS)
}

impl Shown<'_> {
    /// The next line that is wanted; nothing if there is none yet.
    fn next(&mut self) -> Result<Option<Line>, LogError> {
        loop {
            let line = self.reader.next_line();
            match line.map_err(|error| LogError::Unreadable(self.file.clone(), error))? {
                Some(line) if !self.filter.wants(&line) => {}
                found => return Ok(found),
            }
        }
    }

    /// Shows what there is, or the last of it; false if nobody reads it any more.
    fn show_all(&mut self) -> Result<bool, LogError> {
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

    /// Shows a line; false if nobody reads it any more.
    fn show(&self, line: &Line) -> bool {
        let text = if self.arguments.json {
            line.text.clone()
        } else {
            rendered(line, self.look)
        };
        output::try_data(&format!("{text}\n"))
    }
}

/// A line for a person. Names are chosen by servers and callers.
fn rendered(line: &Line, look: Look) -> String {
    let text = |name: &str| {
        let text = line.text_of(name).unwrap_or("?");
        cut(&visible(text), SHOWN)
    };
    let time = text("time");
    if let Some(calls) = line.number("not_noted") {
        let words = format!("{calls} calls were not noted");
        return format!("{time}  {}", look.paint(Ink::Bad, &words));
    }
    let outcome = text("outcome");
    let code = line.text_of("code").map(|_| format!(" ({})", text("code")));
    let ink = match outcome.as_str() {
        "ok" => Ink::Good,
        "tool_error" | "input_required" | "cancelled" => Ink::Faint,
        _ => Ink::Bad,
    };
    let outcome = look.paint(ink, &format!("{outcome}{}", code.unwrap_or_default()));
    let bytes = |name: &str| {
        let bytes = line.number(name);
        bytes.map_or_else(|| "-".to_owned(), |bytes| bytes.to_string())
    };
    let client = line.said.pointer("/client/name").and_then(|it| it.as_str());
    format!(
        "{time}  {}/{}/{}  {outcome}  {} ms  {} B in, {} B out  {}",
        text("toolbox"),
        text("server"),
        text("tool"),
        line.number("duration_ms").unwrap_or_default(),
        bytes("arguments_bytes"),
        bytes("result_bytes"),
        cut(&visible(client.unwrap_or("?")), SHOWN),
    )
}
