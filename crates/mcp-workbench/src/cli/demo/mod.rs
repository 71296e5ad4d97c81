//! `demo`: a session with the built-in toolbox, its configuration, and its servers.
//!
//! ```text
//! mcp-workbench demo ──stdio──► mcp-workbench serve --demo
//!                                  └─stdio──► mcp-workbench demo-server NAME (× 3)
//! ```
//!
//! The client of the session is the workbench of this process, whose only server is `serve --demo`. The servers are
//! in `crates/demo`.

mod config;
mod page;
mod reading_cost;
mod session;

use std::{io, process::ExitCode};

use ::demo::DemoServer;

use super::{CommandResult, output};
use crate::config::Environment;

pub(super) use config::configuration;

pub(super) fn run(environment: &Environment) -> CommandResult {
    session::run(&program()?, environment)?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn print_config() -> CommandResult {
    output::data(&configuration(&program()?));
    Ok(ExitCode::SUCCESS)
}

/// Runs one of the demo servers until its stdin ends.
pub(super) fn be_server(server: DemoServer) -> CommandResult {
    ::demo::run(server, io::stdin().lock(), io::stdout().lock())?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the absolute path of this program.
pub(super) fn program() -> io::Result<String> {
    let program = std::env::current_exe()?;
    program.into_os_string().into_string().map_err(|_| {
        io::Error::new(
            io::ErrorKind::InvalidData,
            "the path of this program is not UTF-8",
        )
    })
}
