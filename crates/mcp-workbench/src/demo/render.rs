//! The layout of the demo: pure formatting, 80 columns, readable without colour.

use std::io::{self, Write};
use std::time::Duration;

use super::reading_cost::ReadingCost;
use super::text::{duration, first_words, shorten, thousands, wrap};

const COLUMNS: usize = 80;
const INDENT: &str = "   ";
const LABEL_WIDTH: usize = 8;
/// The longest response that is shown in full, in characters.
const MAX_ANSWER: usize = 600;

/// The style of the output. The caller decides, because it knows the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Style {
    pub colour: bool,
}

/// One step of the session.
#[derive(Debug)]
pub(super) struct Step<'a> {
    pub(super) title: &'a str,
    /// An explanation for the user.
    pub(super) note: &'a str,
    pub(super) sent: &'a str,
    pub(super) received: Response<'a>,
    pub(super) took: Duration,
}

/// A response, in its most readable form.
#[derive(Debug)]
pub(super) enum Response<'a> {
    Text(&'a str),
    Error(&'a str),
    /// A summary and a text that is shown in full.
    Quote(String, &'a str),
    /// A summary and a table; the last column is shortened to fit.
    Table(String, Vec<Vec<String>>),
}

#[derive(Clone, Copy)]
enum Paint {
    Bold,
    Dim,
    Green,
    Red,
}

/// The output with its style.
pub(super) struct Page<'a, W> {
    out: &'a mut W,
    style: Style,
    n_steps: usize,
}

impl<'a, W: Write> Page<'a, W> {
    pub(super) fn new(out: &'a mut W, style: Style) -> Self {
        Self {
            out,
            style,
            n_steps: 0,
        }
    }

    /// Writes the title and the introduction.
    pub(super) fn opening(&mut self) -> io::Result<()> {
        self.heading("MCP Workbench: a short session")?;
        self.paragraph(
            "This starts the real workbench (mcp-workbench serve --demo) and talks to it as an \
             MCP client does, over stdio. Its only toolbox has three servers that are built \
             into this program. Long messages are shortened.",
        )
    }

    /// Writes the next step of the session.
    pub(super) fn step(&mut self, step: &Step<'_>) -> io::Result<()> {
        self.n_steps += 1;
        let number = format!("{}. ", self.n_steps);
        let took = duration(step.took);
        let used = number.len() + step.title.chars().count() + took.len();
        let gap = " ".repeat(COLUMNS.saturating_sub(used).max(1));
        let title = self.paint(Paint::Bold, &format!("{number}{}", step.title));
        let took = self.paint(Paint::Dim, &took);
        writeln!(self.out, "\n{title}{gap}{took}")?;
        self.paragraph(step.note)?;
        writeln!(self.out)?;
        self.labelled(Paint::Dim, "sent", step.sent)?;
        match &step.received {
            Response::Text(text) => {
                self.labelled(Paint::Green, "answer", &shorten(text, MAX_ANSWER))
            }
            Response::Error(text) => self.labelled(Paint::Red, "error", &shorten(text, MAX_ANSWER)),
            Response::Quote(summary, text) => {
                self.labelled(Paint::Green, "answer", summary)?;
                self.quote(text)
            }
            Response::Table(summary, rows) => {
                self.labelled(Paint::Green, "answer", summary)?;
                self.table(rows)
            }
        }
    }

    /// Writes the comparison of what a model reads with and without the workbench.
    pub(super) fn reading(&mut self, toolbox: &str, reading: &ReadingCost) -> io::Result<()> {
        self.heading("What a model has to read")?;
        self.paragraph(
            "In characters, counted from the messages above. Without the workbench, a client \
             shows its model all definitions of all servers from the start.",
        )?;
        writeln!(self.out)?;
        for (way, characters, what) in [
            (
                "without the workbench".to_owned(),
                reading.direct,
                format!("{} definitions, servers' instructions", reading.tools),
            ),
            (
                "with it, at the start".to_owned(),
                reading.at_start,
                format!("its instructions, {} definitions", reading.meta_tools),
            ),
            (
                format!("with it, {toolbox} opened"),
                reading.opened,
                "the same and the answer to open_toolbox".to_owned(),
            ),
        ] {
            writeln!(
                self.out,
                "{INDENT}{way:<24}{:>8}   {what}",
                thousands(characters)
            )?;
        }
        writeln!(self.out)?;
        self.paragraph(
            "A closed toolbox costs one entry in the list, whatever it contains; an open \
             one costs a little more than its servers alone would. So the workbench pays off \
             with many servers, if a task needs few of them. These three are small.",
        )
    }

    /// Writes the next steps for the user.
    pub(super) fn next_steps(&mut self, client_snippet: &str) -> io::Result<()> {
        self.heading("Next steps")?;
        self.paragraph("To use this demo with an agent, give your MCP client this entry:")?;
        writeln!(self.out)?;
        // The snippet is there to be copied, so it is not wrapped.
        for line in client_snippet.lines() {
            writeln!(self.out, "{INDENT}{INDENT}{line}")?;
        }
        writeln!(self.out)?;
        writeln!(
            self.out,
            "{INDENT}mcp-workbench demo --print-config   prints the configuration behind it"
        )?;
        writeln!(
            self.out,
            "{INDENT}mcp-workbench import                imports the servers of your MCP clients"
        )?;
        writeln!(
            self.out,
            "{INDENT}mcp-workbench init                  creates a configuration file"
        )
    }

    /// Writes the error that stopped the demo, and the last log lines of the workbench.
    pub(super) fn failure(&mut self, message: &str, log: &[String]) -> io::Result<()> {
        let title = self.paint(Paint::Red, "The demo stopped");
        writeln!(self.out, "\n{title}")?;
        self.paragraph(message)?;
        if !log.is_empty() {
            self.paragraph("The last log lines of the workbench:")?;
            self.quote(&log.join("\n"))?;
        }
        Ok(())
    }

    fn heading(&mut self, text: &str) -> io::Result<()> {
        // The first heading is at the top and needs no gap.
        if self.n_steps > 0 {
            writeln!(self.out)?;
        }
        let text = self.paint(Paint::Bold, text);
        writeln!(self.out, "{text}")
    }

    fn paragraph(&mut self, text: &str) -> io::Result<()> {
        for line in wrap(text, COLUMNS - INDENT.len()) {
            writeln!(self.out, "{INDENT}{line}")?;
        }
        Ok(())
    }

    fn labelled(&mut self, paint: Paint, label: &str, text: &str) -> io::Result<()> {
        let mut label = self.paint(paint, &format!("{label:<LABEL_WIDTH$}"));
        for line in wrap(text, COLUMNS - INDENT.len() - LABEL_WIDTH) {
            writeln!(self.out, "{INDENT}{label}{line}")?;
            label = " ".repeat(LABEL_WIDTH);
        }
        Ok(())
    }

    fn quote(&mut self, text: &str) -> io::Result<()> {
        for line in wrap(text, COLUMNS - INDENT.len() - 2) {
            let line = format!("{INDENT}| {line}");
            writeln!(self.out, "{}", line.trim_end())?;
        }
        Ok(())
    }

    fn table(&mut self, rows: &[Vec<String>]) -> io::Result<()> {
        for row in rows {
            let mut line = " ".repeat(INDENT.len() + LABEL_WIDTH);
            for (column, cell) in row.iter().enumerate() {
                if column + 1 == row.len() {
                    line += &first_words(cell, COLUMNS.saturating_sub(line.chars().count()));
                } else {
                    let width = column_width(rows, column);
                    line.extend([format!("{cell:<width$}").as_str(), "  "]);
                }
            }
            writeln!(self.out, "{}", line.trim_end())?;
        }
        Ok(())
    }

    fn paint(&self, paint: Paint, text: &str) -> String {
        let code = match paint {
            Paint::Bold => 1,
            Paint::Dim => 2,
            Paint::Green => 32,
            Paint::Red => 31,
        };
        if self.style.colour {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }
}

fn column_width(rows: &[Vec<String>], column: usize) -> usize {
    let cells = rows.iter().filter_map(|row| row.get(column));
    cells
        .map(|cell| cell.chars().count())
        .max()
        .unwrap_or_default()
}

#[cfg(test)]
#[path = "render_tests.rs"]
mod tests;
