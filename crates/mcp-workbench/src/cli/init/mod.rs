//! `init`: creates a configuration file with comments that explain it.

mod questions;
mod template;

use std::{
    io::{self, IsTerminal},
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::Args;
use thiserror::Error;

pub(super) use self::template::without_toolboxes;
use self::{questions::ask, template::NewConfiguration};
use super::{
    CommandResult, PROGRAM,
    editing::{EditArguments, EditOutcome, write_new},
    output,
    shell::quoted,
};
use crate::config::{CONFIG_FILE, CONFIG_VARIABLE, Environment, locate, user_config_file};

#[derive(Args)]
pub(super) struct InitArguments {
    /// Write the file to your configuration directory, where it is used from every directory
    #[arg(long, conflicts_with = "config")]
    global: bool,

    /// The name of the first toolbox; skips all questions
    #[arg(long, value_name = "NAME")]
    toolbox: Option<String>,

    /// The description of that toolbox
    #[arg(long, value_name = "TEXT", requires = "toolbox")]
    description: Option<String>,

    /// The name of its first server; its command follows after `--`
    #[arg(long, value_name = "NAME", requires_all = ["toolbox", "command"])]
    server: Option<String>,

    #[command(flatten)]
    edit: EditArguments,

    /// The program of the first server and its arguments, after `--`
    #[arg(last = true, requires = "toolbox")]
    command: Vec<String>,
}

/// Reasons why no file was written.
#[derive(Debug, Error)]
enum InitError {
    #[error(
        "`{}` exists already and was not changed\n  \
         hint: change it with `{PROGRAM} add`, or name another file with --config",
        .0.display()
    )]
    Exists(PathBuf),
    /// The user's configuration directory is unknown.
    #[error("there is no configuration directory\n  hint: set HOME, or name a file with --config")]
    NoDirectory,
    /// The input ended before the last question.
    #[error("nothing was written: the questions were not all answered")]
    Unanswered,
}

pub(super) fn run(
    config: Option<&Path>,
    arguments: &InitArguments,
    environment: &Environment,
) -> CommandResult {
    let file = destination(config, arguments, environment)?;
    // Checked first, so that nobody answers questions for a file that cannot be written.
    if file.symlink_metadata().is_ok() {
        return Err(InitError::Exists(file).into());
    }
    let asks = io::stdin().is_terminal() && io::stderr().is_terminal();
    let first = match &arguments.toolbox {
        Some(toolbox) => arguments.first(toolbox),
        None if asks => {
            ask(&mut io::stdin().lock(), output::prompt)?.ok_or(InitError::Unanswered)?
        }
        None => NewConfiguration::default(),
    };
    let outcome = write_new(&file, &first.text(), &arguments.edit, environment)?;
    if outcome == EditOutcome::Written {
        output::remark(&next_steps(&file, &first.toolbox, environment));
    }
    Ok(ExitCode::SUCCESS)
}

fn destination(
    config: Option<&Path>,
    arguments: &InitArguments,
    environment: &Environment,
) -> Result<PathBuf, InitError> {
    if arguments.global {
        return user_config_file(environment).ok_or(InitError::NoDirectory);
    }
    Ok(environment.absolute(config.unwrap_or(Path::new(CONFIG_FILE))))
}

impl InitArguments {
    fn first(&self, toolbox: &str) -> NewConfiguration {
        let mut first = NewConfiguration::named(toolbox);
        if let Some(description) = &self.description {
            first.description.clone_from(description);
        }
        if !self.command.is_empty() {
            let name = self
                .server
                .clone()
                .unwrap_or_else(|| template::name_of(&self.command));
            first.server = Some((name, self.command.clone()));
        }
        first
    }
}

/// Returns the next steps for the user.
fn next_steps(file: &Path, toolbox: &str, environment: &Environment) -> String {
    let is_found = locate(None, environment).is_ok_and(|it| it.file == file);
    let shown = file.display().to_string();
    let with = if is_found {
        String::new()
    } else {
        format!(", each with --config {}", quoted(&shown))
    };
    let steps = [
        ("import".to_owned(), "import the servers of MCP clients"),
        (
            format!("add {} NAME -- COMMAND", quoted(toolbox)),
            "add a server",
        ),
        ("doctor".to_owned(), "start all servers and report problems"),
        (
            "install --client NAME".to_owned(),
            "add the workbench to a client",
        ),
    ];
    let mut text = format!("wrote {shown}\n\nnext{with}:");
    let width = steps
        .iter()
        .map(|(command, _)| command.chars().count())
        .max()
        .unwrap_or(0);
    for (command, what) in steps {
        text.push_str(&format!("\n  {PROGRAM} {command:<width$}  {what}"));
    }
    let variable = environment.variable(CONFIG_VARIABLE);
    if !is_found && variable.is_some_and(|value| !value.is_empty()) {
        text.push_str(&format!(
            "\n\n{CONFIG_VARIABLE} names a different file, which is used unless --config is given"
        ));
    }
    text
}
