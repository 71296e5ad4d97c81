//! Logging. Everything goes to stderr; stdout belongs to the protocol. A bug of ours is logged like
//! everything else.

use std::io::{self, IsTerminal};

use tracing::level_filters::LevelFilter;

/// Starts logging at a level. Colour is used on a terminal, unless it is not wanted.
pub fn start_logging(level: LevelFilter, colour_wanted: bool) {
    tracing_subscriber::fmt()
        .with_writer(io::stderr)
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
