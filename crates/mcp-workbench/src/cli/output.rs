//! The only place that prints. Data goes to stdout, everything else to stderr.

use std::{
    error::Error,
    io::{self, Write},
    process::ExitCode,
};

/// Prints data. A reader that has gone away is no error.
pub(super) fn data(text: &str) {
    let _ = io::stdout().lock().write_all(text.as_bytes());
}

/// Prints data; false if nobody reads it any more.
pub(super) fn try_data(text: &str) -> bool {
    io::stdout().lock().write_all(text.as_bytes()).is_ok()
}

/// Says something to the person at the terminal.
pub(super) fn remark(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Writes what moves on a terminal, as it is.
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
    data(&text);
    data("\n");
}

/// Asks the person at the terminal; the answer is typed behind it.
pub(super) fn prompt(text: &str) {
    let mut stderr = io::stderr().lock();
    let _ = stderr
        .write_all(text.as_bytes())
        .and_then(|()| stderr.flush());
}

/// Reports why a command failed, with its causes.
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

/// Shows help, the version, or what is wrong with the arguments.
pub(super) fn usage(error: &clap::Error) -> ExitCode {
    let _ = error.print();
    u8::try_from(error.exit_code()).map_or(ExitCode::FAILURE, ExitCode::from)
}
