//! All printing goes through this module. Data goes to stdout, everything else to stderr.

use std::{
    borrow::Cow,
    error::Error,
    io::{self, Write},
    process::ExitCode,
};

use crate::visible::{escaped, visible_lines};

/// The exit code for a wrong command line; clap uses the same one.
pub(super) const EXIT_USAGE: u8 = 2;

/// Prints data. A closed pipe is not an error.
pub(super) fn data(text: &str) {
    raw(&escape_controls(text));
}

/// Prints text of a server unchanged, for a program to read. Never used on a terminal.
pub(super) fn raw(text: &str) {
    let _ = io::stdout().lock().write_all(text.as_bytes());
}

/// Prints data; returns false if the reader has closed the pipe.
pub(super) fn try_data(text: &str) -> bool {
    io::stdout().lock().write_all(text.as_bytes()).is_ok()
}

/// Prints a message for the user to stderr.
pub(super) fn remark(text: &str) {
    // If stderr is closed, there is nowhere to report it.
    let _ = writeln!(io::stderr().lock(), "{}", escape_controls(text));
}

/// Writes progress lines to the terminal unchanged, control sequences included.
pub(super) fn live(text: &str) {
    if !text.is_empty() {
        let mut stderr = io::stderr().lock();
        let _ = stderr.write_all(text.as_bytes());
        let _ = stderr.flush();
    }
}

/// Prints one JSON document for a program to read.
pub(super) fn json(document: &impl serde::Serialize) {
    let text = serde_json::to_string_pretty(document).expect("our own documents have string keys");
    raw(&format!("{}\n", escaped(&text)));
}

/// Escapes control characters and escape sequences other than our own colours. Text of others is made visible
/// where it enters a message; this is the second line of defence.
fn escape_controls(text: &str) -> Cow<'_, str> {
    if !text.contains('\u{1b}') {
        return visible_lines(text);
    }
    let mut escaped_text = String::with_capacity(text.len());
    for (index, part) in text.split('\u{1b}').enumerate() {
        if index > 0 {
            // Our own output contains no escape sequence but colours, so everything else is text of others.
            let is_colour = { part.strip_prefix('[') }.is_some_and(|rest| {
                rest.trim_start_matches(|it: char| it.is_ascii_digit() || it == ';')
                    .starts_with('m')
            });
            escaped_text.push_str(if is_colour { "\u{1b}" } else { "⟦U+001B⟧" });
        }
        escaped_text.push_str(&visible_lines(part));
    }
    Cow::Owned(escaped_text)
}

/// Prints a prompt; the user types the answer on the same line.
pub(super) fn prompt(text: &str) {
    let mut stderr = io::stderr().lock();
    let _ = stderr
        .write_all(text.as_bytes())
        .and_then(|()| stderr.flush());
}

/// Reports an error with its causes.
pub(super) fn failure(error: &dyn Error) -> ExitCode {
    let mut text = format!("error: {error}\n");
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(&format!("  caused by: {error}\n"));
        cause = error.source();
    }
    remark(text.trim_end());
    ExitCode::FAILURE
}

/// Shows help, the version, or the error about the arguments.
pub(super) fn usage(error: &clap::Error) -> ExitCode {
    let words = error.render().to_string();
    match escape_controls(&words) {
        Cow::Borrowed(_) => drop(error.print()),
        // The arguments may have been pasted, so escaping them matters more than clap's colours.
        Cow::Owned(escaped_text) => remark(&escaped_text),
    }
    u8::try_from(error.exit_code()).map_or(ExitCode::FAILURE, ExitCode::from)
}

#[cfg(test)]
mod tests {
    use super::escape_controls;

    #[test]
    fn our_colours_pass_and_nothing_else_does() {
        let cases = [
            ("\u{1b}[1mdev\u{1b}[0m\n\tx", "\u{1b}[1mdev\u{1b}[0m\n\tx"),
            (
                "\u{1b}[2J\u{1b}]0;t\u{7}",
                "⟦U+001B⟧[2J⟦U+001B⟧]0;t⟦U+0007⟧",
            ),
            ("\u{1b}", "⟦U+001B⟧"),
            (
                "\u{1b}[31mred\u{202e}\u{1b}[0m",
                "\u{1b}[31mred⟦U+202E⟧\u{1b}[0m",
            ),
            ("plain\r\u{e0041}", "plain⟦U+000D⟧⟦U+E0041⟧"),
        ];
        for (text, escaped_text) in cases {
            assert_eq!(escape_controls(text), escaped_text);
        }
    }
}
