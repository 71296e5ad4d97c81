//! `completions`: what a shell needs to complete our command line.

use std::process::ExitCode;

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use super::{Arguments, Done, PROGRAM, output};

/// For which shell.
#[derive(Args)]
pub(super) struct CompletionsArguments {
    /// The shell
    shell: Shell,
}

/// Prints the script.
pub(super) fn run(arguments: &CompletionsArguments) -> Done {
    let mut script = Vec::new();
    clap_complete::generate(
        arguments.shell,
        &mut Arguments::command(),
        PROGRAM,
        &mut script,
    );
    output::data(&String::from_utf8(script)?);
    Ok(ExitCode::SUCCESS)
}
