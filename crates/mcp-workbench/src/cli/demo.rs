//! `demo`: a session with the built-in toolbox, its configuration, and its servers.

use std::{
    io::{self, IsTerminal},
    path::PathBuf,
    process::ExitCode,
};

use super::{CommandResult, output};
use crate::demo::{self, DemoError, DemoServer, Style};

pub(super) fn run(colour_wanted: bool) -> CommandResult {
    let style = Style {
        colour: colour_wanted && io::stdout().is_terminal(),
    };
    let program = PathBuf::from(program()?);
    match demo::session::run(&program, &mut io::stdout().lock(), style) {
        Err(DemoError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
            Ok(ExitCode::SUCCESS)
        }
        Err(error) => Err(error.into()),
        Ok(()) => Ok(ExitCode::SUCCESS),
    }
}

pub(super) fn print_config() -> CommandResult {
    output::data(&demo::configuration(&program()?));
    Ok(ExitCode::SUCCESS)
}

/// Runs one of the demo servers until its stdin ends.
pub(super) fn be_server(server: DemoServer) -> CommandResult {
    demo::servers::run(server, io::stdin().lock(), io::stdout().lock())?;
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
