//! `install`: adds the workbench to the configuration of an MCP client, and removes it again.

mod backup;
mod change;
mod target;
mod undo;

use std::{
    io::{self, BufRead, IsTerminal},
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::Args;
use thiserror::Error;

pub(super) use self::target::stable_program;
use self::{backup::Backup, change::Change, target::TargetFile};
use super::{
    CommandResult, PROGRAM,
    configuration::{load_configuration, read_configuration},
    output,
};
use crate::{
    clients::{
        CLIENTS, Client, ClientEditError, ClientName, Interpolation, OwnEntry, ReadError, client,
        limits, needed_variables, own_servers,
    },
    config::{Environment, WriteError, create_new, replace_unchanged},
    meta::MetaTool,
    visible::visible,
};

#[derive(Args)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "flags of the command line, each by itself"
)]
pub(super) struct InstallArguments {
    /// A client; may be repeated
    #[arg(
        long = "client",
        value_name = "CLIENT",
        required_unless_present = "all"
    )]
    clients: Vec<ClientName>,

    /// Every client whose file exists
    #[arg(long, conflicts_with = "clients")]
    all: bool,

    /// Let the client share servers with the other clients of the configuration, whatever it says
    #[arg(long, conflicts_with = "undo")]
    shared: bool,

    /// Use the client's project file in this directory, not the user's file
    #[arg(long)]
    project: bool,

    /// Remove servers from the client that the workbench also has
    #[arg(long, conflicts_with_all = ["undo", "print"])]
    replace: bool,

    /// Restore the client's file
    #[arg(long, conflicts_with = "print")]
    undo: bool,

    /// Print the entry, and an install link if the client supports one, without changing anything
    #[arg(long)]
    print: bool,

    /// Show the changes without writing them
    #[arg(long)]
    dry_run: bool,

    /// Skip the confirmation
    #[arg(short, long)]
    yes: bool,

    /// The name of the workbench in the client's configuration
    #[arg(long, value_name = "NAME", default_value = "workbench", value_parser = super::import::filled)]
    name: String,
}

/// Reasons why the client's file was not changed.
#[derive(Debug, Error)]
pub(super) enum InstallError {
    /// No client was found for `--all`.
    #[error("no client with a configuration file was found\n  hint: name one with --client")]
    NoClients,
    /// The client has no such file.
    #[error("{client} has no file for {}\n  hint: {}", if *.project { "a project" } else { "a user here" },
        if *.project { "remove --project" } else { "set HOME" })]
    NoFile { client: &'static str, project: bool },
    /// The layout of the file does not allow an edit in place.
    #[error(
        "the configuration of {client} cannot be changed without reformatting other lines\n  \
         hint: add the lines above to {}, under `{key}`",
        file.display()
    )]
    ByHand {
        client: &'static str,
        file: PathBuf,
        key: String,
    },
    #[error(
        "{client} is discontinued; only import from it is supported\n  hint: {PROGRAM} import --from {word}"
    )]
    Discontinued { client: &'static str, word: String },
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error("{}:{error}", file.display())]
    Edit {
        file: PathBuf,
        error: Box<ClientEditError>,
    },
    /// The name belongs to a different server.
    #[error(
        "`{}` in {} is a different server\n  hint: choose another name with --name",
        visible(.name), file.display()
    )]
    NameTaken { name: String, file: PathBuf },
    /// The name is too long for the client.
    #[error(
        "{client} cannot use the tools of a server with the name `{}`\n  \
         hint: choose one of at most {longest} characters with --name",
        visible(.name)
    )]
    NameTooLong {
        client: &'static str,
        name: String,
        longest: usize,
    },
    /// A client's file cannot contain a path that is not UTF-8.
    #[error("the path `{}` is not UTF-8 text\n  hint: move the configuration", .0.display())]
    NotText(PathBuf),
    #[error(
        "nothing was written, because there is no terminal to confirm on\n  hint: add --yes, or --dry-run to see the change"
    )]
    NotConfirmed,
    #[error("nothing was written: declined by the user")]
    Declined,
    /// The file has no entry of the workbench.
    #[error("there is nothing to undo in {}", file.display())]
    NothingToUndo { file: PathBuf },
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The backup cannot be written or read.
    #[error("cannot use the backup `{}`\n  hint: check that its folder is writable", file.display())]
    Backup {
        file: PathBuf,
        #[source]
        source: io::Error,
    },
}

/// Adds the workbench to the files of clients, or removes it. A client that fails does not keep the others from being
/// changed.
pub(super) fn run(
    config: Option<&Path>,
    arguments: &InstallArguments,
    environment: &Environment,
) -> CommandResult {
    let clients: Vec<&'static Client> = if arguments.all {
        present_clients(arguments.project, environment)
    } else {
        arguments.clients.iter().map(|name| client(*name)).collect()
    };
    if clients.is_empty() {
        return Err(InstallError::NoClients.into());
    }
    let mut failed: Option<Box<dyn std::error::Error>> = None;
    for client in clients {
        let Err(error) = install(client, config, arguments, environment) else {
            continue;
        };
        let is_repeated = failed
            .as_ref()
            .is_some_and(|it| it.to_string() == error.to_string());
        // Earlier errors are printed here, and the last one by the caller. One that all have, for example because nobody
        // can confirm, is printed once.
        if let Some(earlier) = failed.replace(error)
            && !is_repeated
        {
            output::failure(&*earlier);
        }
    }
    match failed {
        Some(error) => Err(error),
        None => Ok(ExitCode::SUCCESS),
    }
}

/// Returns the clients that can be written and whose file exists.
fn present_clients(project: bool, environment: &Environment) -> Vec<&'static Client> {
    let is_present = |client: &&'static Client| {
        let path = TargetFile::path(client, project, environment);
        client.can_be_written() && path.is_ok_and(|path| path.exists())
    };
    CLIENTS.iter().filter(is_present).collect()
}

/// Adds the workbench to the file of one client, or removes it.
fn install(
    client: &'static Client,
    config: Option<&Path>,
    arguments: &InstallArguments,
    environment: &Environment,
) -> CommandResult {
    if arguments.undo {
        let target = TargetFile::find(client, arguments.project, environment)?;
        return undo::run(&target, arguments, environment);
    }
    // A client that starts an invalid configuration would only show a failed server.
    load_configuration(config, environment)?;
    let (file, text) = read_configuration(config, environment)?;
    let program = stable_program(environment)?;
    let config = file
        .to_str()
        .ok_or_else(|| InstallError::NotText(file.clone()))?;
    name_fits(client, &arguments.name)?;
    let own = OwnEntry {
        name: &arguments.name,
        program: &program,
        config,
        variables: &needed_variables(&text, &file, environment),
        shared: arguments.shared,
    };
    if arguments.print {
        output::data(&printed(&own, client));
        return Ok(ExitCode::SUCCESS);
    }
    let target = writable(client, arguments.project, environment)?;
    let change = Change::of(&target, &own, &own_servers(&text), arguments.replace)
        .map_err(|error| by_hand(error, &target, &own))?;
    apply(&target, &change, &own, arguments, environment)?;
    Ok(ExitCode::SUCCESS)
}

/// Shows the change, asks for confirmation, writes the file and reports.
fn apply(
    target: &TargetFile,
    change: &Change,
    own: &OwnEntry<'_>,
    arguments: &InstallArguments,
    environment: &Environment,
) -> Result<(), InstallError> {
    let (title, path) = (target.client.title, target.path.display());
    let mut remarks = change.remarks(target, arguments.replace);
    if change.is_nothing() {
        remarks.insert(0, format!("{title} already has the workbench: {path}"));
        output::remark(&remarks.join("\n"));
        return Ok(());
    }
    let preview = change.preview(target, own);
    if arguments.dry_run {
        output::data(&preview);
        return Ok(());
    }
    output::remark(&preview);
    confirm(arguments.yes)?;
    let backup = write(target, change)?;
    remarks.extend(variable_remark(target.client, own, environment));
    report(target, &backup, remarks, arguments.project);
    Ok(())
}

/// Checks that our tool names fit the client's limit together with the server name.
fn name_fits(client: &Client, name: &str) -> Result<(), InstallError> {
    let Some(limit) = limits(client.name).name else {
        return Ok(());
    };
    let tools = MetaTool::ALL.map(MetaTool::name).into_iter();
    let length = |server: &str| tools.clone().map(|tool| limit.length(server, tool)).max();
    if length(name) <= Some(limit.longest) {
        return Ok(());
    }
    Err(InstallError::NameTooLong {
        client: client.title,
        name: name.to_owned(),
        // The room that the longest of our tool names leaves for the server name.
        longest: limit.longest - length("").unwrap_or(0),
    })
}

/// Returns the file to be written.
fn writable(
    client: &'static Client,
    project: bool,
    environment: &Environment,
) -> Result<TargetFile, InstallError> {
    if client.can_be_written() {
        return TargetFile::find(client, project, environment);
    }
    Err(InstallError::Discontinued {
        client: client.title,
        word: client.word(),
    })
}

/// Prints the entry for the user to paste, if the file cannot be edited in place.
fn by_hand(error: InstallError, target: &TargetFile, own: &OwnEntry<'_>) -> InstallError {
    let InstallError::Edit { file, error } = error else {
        return error;
    };
    // Any other error needs a fix in the file, and pasting would not help.
    if !matches!(*error, ClientEditError::NotInPlace) {
        return InstallError::Edit { file, error };
    }
    output::data(&own.snippet(target.client));
    InstallError::ByHand {
        client: target.client.title,
        file,
        key: target.client.key.join("."),
    }
}

/// Returns the entry and the install link.
fn printed(own: &OwnEntry<'_>, client: &Client) -> String {
    let mut text = own.snippet(client);
    if let Some(link) = own.link(client) {
        text.push_str(&format!("\n{link}\n"));
    }
    text
}

/// Asks for confirmation, unless `--yes` is given.
fn confirm(yes: bool) -> Result<(), InstallError> {
    if yes {
        return Ok(());
    }
    if !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
        return Err(InstallError::NotConfirmed);
    }
    output::prompt("Write it? [y/N] ");
    let mut line = String::new();
    // Without an answer the line is empty, which means no.
    let _ = io::stdin().lock().read_line(&mut line);
    match line.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(InstallError::Declined),
    }
}

/// Backs the file up and writes it, unless it was changed meanwhile.
fn write(target: &TargetFile, change: &Change) -> Result<Backup, InstallError> {
    // The backup comes first, so that there is no moment without it.
    let backup = Backup::make(target, change)?;
    let written = match &target.text {
        Some(before) => replace_unchanged(&target.path, before, &change.text),
        None => create_new(&target.path, &change.text),
    };
    if let Err(error) = written {
        backup.discard();
        return Err(error.into());
    }
    Ok(backup)
}

/// Reports the result and the remaining steps.
fn report(target: &TargetFile, backup: &Backup, remarks: Vec<String>, project: bool) {
    let client = target.client;
    let mut lines = vec![format!("wrote {}", target.path.display())];
    if target.text.is_some() {
        lines.push(format!("backup: {}", backup.path.display()));
    }
    lines.extend(remarks);
    let project = if project { " --project" } else { "" };
    lines.push(format!(
        "restart {} to use it; `{PROGRAM} install --client {}{project} --undo` undoes this",
        client.title,
        client.word()
    ));
    output::remark(&lines.join("\n"));
}

/// Returns a remark about variables that the client does not pass on, or that are not set.
fn variable_remark(
    client: &Client,
    own: &OwnEntry<'_>,
    environment: &Environment,
) -> Option<String> {
    let listed = |names: &[&str]| names.join(", ");
    if client.interpolation == Interpolation::None {
        let names: Vec<&str> = own.variables.iter().map(String::as_str).collect();
        let key = client.spelling.env;
        return (!names.is_empty()).then(|| {
            format!(
                "the configuration needs {}, and the file of {} cannot refer to variables: \
                 write the values into `{key}` there, or set them where {} is started",
                listed(&names),
                client.title,
                client.title
            )
        });
    }
    let unset: Vec<&str> = own
        .variables
        .iter()
        .map(String::as_str)
        .filter(|name| environment.variable(name).is_none())
        .collect();
    (!unset.is_empty()).then(|| {
        format!(
            "not set here, and needed where {} is started: {}",
            client.title,
            listed(&unset)
        )
    })
}
