//! Logging. Everything goes to stderr; stdout belongs to the protocol. A bug of ours is logged like
//! everything else. Whatever is logged, no character reaches the terminal or the file that is not seen there.

use std::{
    fmt::Debug,
    io::{self, IsTerminal},
};

use tracing::{field::Field, level_filters::LevelFilter};
use tracing_subscriber::{
    field::MakeExt,
    fmt::format::{Writer, debug_fn},
};

use crate::visible::visible_lines;

/// Starts logging at a level. Colour is used on a terminal, unless it is not wanted.
pub fn start_logging(level: LevelFilter, colour_wanted: bool) {
    tracing_subscriber::fmt()
        .with_writer(io::stderr)
        .fmt_fields(debug_fn(write_field).delimited(" "))
        .with_ansi(colour_wanted && io::stderr().is_terminal())
        .with_target(false)
        .without_time()
        .with_max_level(level)
        // What cannot be logged is lost: saying so on the same stderr would fail too.
        .log_internal_errors(false)
        .init();
    std::panic::set_hook(Box::new(|panic| {
        tracing::error!("internal error, please report it: {panic}");
    }));
}

/// Writes a field, the message among them.
fn write_field(writer: &mut Writer<'_>, field: &Field, value: &dyn Debug) -> std::fmt::Result {
    let text = format!("{value:?}");
    match field.name() {
        "message" => write!(writer, "{}", visible_lines(&text)),
        name => write!(writer, "{name}={}", visible_lines(&text)),
    }
}
