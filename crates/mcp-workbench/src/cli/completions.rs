//! `completions`: what a shell needs to complete our command line.

use std::process::ExitCode;

use clap::{Args, Command, CommandFactory};
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
    clap_complete::generate(arguments.shell, &mut shown(), PROGRAM, &mut script);
    output::data(&String::from_utf8(script)?);
    Ok(ExitCode::SUCCESS)
}

/// The command line without what is hidden, which would be completed too.
fn shown() -> Command {
    let whole = Arguments::command();
    let commands = whole.get_subcommands().filter(|it| !it.is_hide_set());
    Command::new(PROGRAM)
        .version(env!("CARGO_PKG_VERSION"))
        .args(whole.get_arguments())
        .subcommands(commands)
}
