//! `completions`: prints the script that registers completion with a shell, and answers the shell when it completes a
//! command line. The script calls this program again, so that toolboxes, servers and tools are completed too.

mod names;

use std::{ffi::OsString, io, process::ExitCode, sync::Arc};

use clap::{Args, Command, CommandFactory};
use clap_complete::{
    Shell,
    env::{EnvCompleter, Shells},
};

use self::names::CompletionNames;
use super::{Arguments, CommandResult, PROGRAM, output};
use crate::config::Environment;

/// The variable by which a completion script asks for candidates. Its value is the name of the shell.
const VARIABLE: &str = "MCP_WORKBENCH_COMPLETE";

/// The variable in which scripts of some shells pass the index of the word that is completed.
const INDEX: &str = "_CLAP_COMPLETE_INDEX";

#[derive(Args)]
pub(super) struct CompletionsArguments {
    /// The shell
    shell: Shell,
}

pub(super) fn run(arguments: &CompletionsArguments) -> CommandResult {
    let shells = Shells::builtins();
    let shell = completer(&shells, &arguments.shell.to_string())?;
    let mut script = Vec::new();
    shell.write_registration(VARIABLE, PROGRAM, PROGRAM, PROGRAM, &mut script)?;
    output::data(&String::from_utf8(script)?);
    Ok(ExitCode::SUCCESS)
}

/// Answers a script that asks for candidates; returns `None` if none does. The words of the command line are the
/// arguments after `--`.
pub(super) fn answer(arguments: &[OsString], environment: &Environment) -> Option<CommandResult> {
    let shell = environment.variable(VARIABLE)?.to_str()?;
    let start = arguments.iter().position(|it| it == "--")? + 1;
    Some(print_candidates(shell, &arguments[start..], environment))
}

fn print_candidates(shell: &str, words: &[OsString], environment: &Environment) -> CommandResult {
    let shells = Shells::builtins();
    let shell = completer(&shells, shell)?;
    let index = environment
        .variable(INDEX)
        .and_then(|it| it.to_str())
        .and_then(|it| it.parse().ok());
    // Only the words before the cursor decide which names fit.
    let before = &words[..index
        .unwrap_or(words.len().saturating_sub(1))
        .min(words.len())];
    let names = Arc::new(CompletionNames::new(before, environment));
    let mut candidates = Vec::new();
    if !words.is_empty() {
        let mut program = names::complete_names(shown(), &names);
        let directory = environment.start_directory();
        shell.write_complete(
            &mut program,
            words.to_vec(),
            Some(directory),
            &mut candidates,
        )?;
    }
    output::raw(&String::from_utf8_lossy(&candidates));
    Ok(ExitCode::SUCCESS)
}

fn completer<'a>(shells: &'a Shells<'_>, name: &str) -> io::Result<&'a dyn EnvCompleter> {
    let unknown = || io::Error::other(format!("completion does not support the shell `{name}`"));
    shells.completer(name).ok_or_else(unknown)
}

/// Returns the command line without hidden commands, which would be completed too.
fn shown() -> Command {
    let mut whole = Arguments::command();
    // Defines the arguments of all commands, and adds help, which the copy gets by itself.
    whole.build();
    let is_help = |name: &str| matches!(name, "help" | "version");
    let arguments = whole.get_arguments();
    let commands = whole.get_subcommands().filter(|it| !it.is_hide_set());
    Command::new(PROGRAM)
        .version(env!("CARGO_PKG_VERSION"))
        .args(arguments.filter(|it| !is_help(it.get_id().as_str())))
        .subcommands(commands.filter(|it| !is_help(it.get_name())))
}
