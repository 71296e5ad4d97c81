//! The layout of the demo: paragraphs, steps and tables in 80 columns.

use std::time::Duration;

use super::reading_cost::ReadingCost;
use crate::cli::terminal::{Column, Ink, OutputStyle, Table, cut, grouped};

const COLUMNS: usize = 80;
const INDENT: &str = "   ";
const LABEL_WIDTH: usize = 8;
/// The number of characters of a tool's description that are shown.
const DESCRIPTION_WIDTH: usize = 43;

/// One step of the session.
pub(super) struct DemoStep<'a> {
    pub(super) title: &'a str,
    /// An explanation for the user.
    pub(super) note: &'a str,
    pub(super) sent: &'a str,
    pub(super) received: Response<'a>,
    /// The duration, if the step has one of its own.
    pub(super) took: Option<Duration>,
}

/// A response, in its most readable form.
pub(super) enum Response<'a> {
    Text(&'a str),
    Error(&'a str),
    /// A summary and a text that is shown in full.
    Quote(&'a str, &'a str),
    /// A summary and a table of tools.
    Tools(&'a str, Table),
}

/// The text of the demo, piece by piece.
pub(super) struct Page {
    style: OutputStyle,
    steps: usize,
}

impl Page {
    pub(super) fn new(style: OutputStyle) -> Self {
        Self { style, steps: 0 }
    }

    /// Formats the title and the introduction.
    pub(super) fn opening(&self) -> String {
        let title = self
            .style
            .paint(Ink::Strong, "MCP Workbench: a short session");
        let introduction = paragraph(
            "This starts the real workbench (mcp-workbench serve --demo) and talks to it as an \
             MCP client does, over stdio. Its only toolbox has three servers that are built \
             into this program.",
        );
        format!("{title}\n{introduction}")
    }

    /// Formats the next step of the session.
    pub(super) fn step(&mut self, step: &DemoStep<'_>) -> String {
        self.steps += 1;
        let title = format!("{}. {}", self.steps, step.title);
        let took = step.took.map(duration).unwrap_or_default();
        let gap = " ".repeat(COLUMNS.saturating_sub(title.len() + took.len()).max(1));
        let title = self.style.paint(Ink::Strong, &title);
        let took = self.style.paint(Ink::Faint, &took);
        let heading = format!("{title}{gap}{took}");
        let note = paragraph(step.note);
        let sent = self.labelled(Ink::Faint, "sent", step.sent);
        let received = self.response(&step.received);
        format!("\n{}\n{note}\n{sent}{received}", heading.trim_end())
    }

    /// Formats the comparison of what a model reads with and without the workbench.
    pub(super) fn reading(&self, reading: &ReadingCost) -> String {
        let ReadingCost {
            direct,
            tools,
            at_start,
            meta_tools,
            opened,
        } = *reading;
        let title = self.style.paint(Ink::Strong, "What a model has to read");
        let introduction = paragraph(
            "In characters, counted from the messages above. Without the workbench, a client \
             shows its model all definitions of all servers from the start.",
        );
        let conclusion = paragraph(
            "A closed toolbox costs one entry in the list, whatever it contains; an open \
             one costs a little more than its servers alone would. So the workbench pays off \
             with many servers, if a task needs few of them. These three are small.",
        );
        let mut table = Table::new([Column::Text(""), Column::Number(""), Column::Text("")]);
        let mut row = |way: &str, characters, what| {
            table.row([way.to_owned(), grouped(characters), what]);
        };
        row(
            "without the workbench",
            direct,
            format!("{tools} definitions, servers' instructions"),
        );
        row(
            "with it, at the start",
            at_start,
            format!("its instructions, {meta_tools} definitions"),
        );
        row(
            "with it, toolbox opened",
            opened,
            "the same and the answer to open_toolbox".to_owned(),
        );
        let table = table.render(self.style, INDENT);
        format!("\n{title}\n{introduction}\n{table}\n{conclusion}")
    }

    /// Formats the next steps for the user.
    pub(super) fn next_steps(&self, client_snippet: &str) -> String {
        let title = self.style.paint(Ink::Strong, "Next steps");
        // The snippet is there to be copied, so it is not wrapped.
        let margin = INDENT.repeat(2);
        let snippet = client_snippet.replace('\n', &format!("\n{margin}"));
        format!(
            "\n{title}
{INDENT}To use this demo with an agent, give your MCP client this entry:

{margin}{snippet}

{INDENT}mcp-workbench demo --print-config   prints the configuration behind it
{INDENT}mcp-workbench import                imports the servers of your MCP clients
{INDENT}mcp-workbench init                  creates a configuration file
"
        )
    }

    fn response(&self, response: &Response<'_>) -> String {
        match response {
            Response::Text(text) => self.labelled(Ink::Good, "answer", text),
            Response::Error(text) => self.labelled(Ink::Bad, "error", text),
            Response::Quote(summary, text) => {
                self.labelled(Ink::Good, "answer", summary) + &behind(&format!("{INDENT}| "), text)
            }
            Response::Tools(summary, table) => {
                let indent = " ".repeat(INDENT.len() + LABEL_WIDTH);
                self.labelled(Ink::Good, "answer", summary) + &table.render(self.style, &indent)
            }
        }
    }

    fn labelled(&self, ink: Ink, label: &str, text: &str) -> String {
        let indent = " ".repeat(INDENT.len() + LABEL_WIDTH);
        let lines = behind(&indent, text);
        let label = self.style.paint(ink, &format!("{label:<LABEL_WIDTH$}"));
        format!("{INDENT}{label}{}", &lines[indent.len()..])
    }
}

/// Returns the start of a description, for a table.
pub(super) fn short_description(text: &str) -> String {
    cut(text.lines().next().unwrap_or_default(), DESCRIPTION_WIDTH)
}

fn paragraph(text: &str) -> String {
    behind(INDENT, text)
}

/// Formats the lines of a text, wrapped, each behind `indent`.
fn behind(indent: &str, text: &str) -> String {
    let lines = text
        .lines()
        .flat_map(|line| wrap(line, COLUMNS - indent.len()));
    let lines = lines.map(|line| format!("{}\n", format!("{indent}{line}").trim_end()));
    lines.collect()
}

/// Breaks a line at spaces and after commas. Only a piece without either is longer than `width` characters.
fn wrap(line: &str, width: usize) -> Vec<String> {
    let mut wrapped = Vec::new();
    let mut current = String::new();
    for piece in line.split_inclusive([' ', ',']) {
        let length = current.chars().count() + piece.trim_end().chars().count();
        if length > width && !current.trim().is_empty() {
            wrapped.push(std::mem::take(&mut current));
        }
        current.push_str(piece);
    }
    wrapped.push(current);
    wrapped
}

/// Formats a duration: `0.4 ms`, `12.0 ms`, `1.50 s`.
fn duration(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    if seconds < 1.0 {
        format!("{:.1} ms", seconds * 1000.0)
    } else {
        format!("{seconds:.2} s")
    }
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use pretty_assertions::assert_eq;

    use super::*;

    fn step(received: Response<'_>) -> DemoStep<'_> {
        DemoStep {
            title: "Calculate",
            note: "A note for a person.",
            sent: r#"use_tool {"tool":{"toolbox":"desk","server":"calculator","tool":"evaluate"},"arguments":{"expression":"6 * 7"}}"#,
            received,
            took: Some(Duration::from_micros(1_234)),
        }
    }

    #[test]
    fn a_step_shows_what_was_sent_and_received() {
        let mut page = Page::new(OutputStyle::PLAIN);
        let mut text = page.step(&step(Response::Text(r#"{"value":42}"#)));
        let error = "Error: Toolbox 'desk' is not open. Call open_toolbox first. And a tail.";
        text += &page.step(&step(Response::Error(error)));
        let quoted = "## Toolboxes\n\n- **desk** (3 servers): A clock, a calculator and a notes store that need nothing installed\n  - Use it";
        text += &page.step(&DemoStep {
            took: None,
            ..step(Response::Quote("hello:", quoted))
        });
        assert_snapshot!(text, @r#"

        1. Calculate                                                              1.2 ms
           A note for a person.

           sent    use_tool {"tool":{"toolbox":"desk","server":"calculator",
                   "tool":"evaluate"},"arguments":{"expression":"6 * 7"}}
           answer  {"value":42}

        2. Calculate                                                              1.2 ms
           A note for a person.

           sent    use_tool {"tool":{"toolbox":"desk","server":"calculator",
                   "tool":"evaluate"},"arguments":{"expression":"6 * 7"}}
           error   Error: Toolbox 'desk' is not open. Call open_toolbox first. And a
                   tail.

        3. Calculate
           A note for a person.

           sent    use_tool {"tool":{"toolbox":"desk","server":"calculator",
                   "tool":"evaluate"},"arguments":{"expression":"6 * 7"}}
           answer  hello:
           | ## Toolboxes
           |
           | - **desk** (3 servers): A clock, a calculator and a notes store that need
           | nothing installed
           |   - Use it
        "#);
    }

    #[test]
    fn colour_adds_nothing_but_colour() {
        let formatted = |style| {
            let mut page = Page::new(style);
            page.opening() + &page.step(&step(Response::Text("42")))
        };
        let coloured = formatted(OutputStyle::of_width(true, COLUMNS));
        assert!(coloured.contains("\x1b[1m1. Calculate\x1b[0m"));
        let mut plain = coloured;
        for code in ["\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[32m"] {
            plain = plain.replace(code, "");
        }
        assert_eq!(plain, formatted(OutputStyle::PLAIN));
    }

    #[test]
    fn lines_break_at_spaces_and_commas() {
        for (text, expected) in [
            ("", vec![""]),
            ("one two three", vec!["one two ", "three"]),
            ("12345678 next", vec!["12345678 ", "next"]),
            ("{\"a\":1,\"b\":2}", vec!["{\"a\":1,", "\"b\":2}"]),
            ("  abcdefghij k", vec!["  abcdefghij ", "k"]),
        ] {
            assert_eq!(wrap(text, 8), expected, "{text}");
        }
    }

    #[test]
    fn durations_have_a_unit() {
        for (microseconds, expected) in [
            (42, "0.0 ms"),
            (1_240, "1.2 ms"),
            (999_000, "999.0 ms"),
            (1_500_000, "1.50 s"),
        ] {
            assert_eq!(duration(Duration::from_micros(microseconds)), expected);
        }
    }
}
