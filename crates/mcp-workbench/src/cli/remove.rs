//! `remove`: removes a server or a whole toolbox from the configuration.

use std::{path::Path, process::ExitCode};

use clap::Args;
use thiserror::Error;

use super::{
    CommandResult,
    editing::{EditArguments, EditOutcome, Editing},
    output,
};
use crate::{config::Environment, visible::visible};

#[derive(Args)]
pub(super) struct RemoveArguments {
    /// The toolbox
    toolbox: String,

    /// The server that is removed; without it, the whole toolbox
    name: Option<String>,

    /// Remove a toolbox that has servers
    #[arg(long, conflicts_with = "name")]
    with_servers: bool,

    #[command(flatten)]
    edit: EditArguments,
}

/// Refuses to remove a toolbox that still has servers.
#[derive(Debug, Error)]
#[error(
    "the toolbox `{}` has servers: {}\n  hint: name one of them, or remove all with --with-servers",
    visible(.toolbox), listed(.servers)
)]
struct HasServers {
    toolbox: String,
    servers: Vec<String>,
}

/// Removes the server or toolbox that the arguments name.
pub(super) fn run(
    config: Option<&Path>,
    arguments: &RemoveArguments,
    environment: &Environment,
) -> CommandResult {
    let RemoveArguments { toolbox, name, .. } = arguments;
    let mut editing = Editing::open(config, environment)?;
    // Read before the removal, while the entry still has a position.
    let comment = editing
        .text
        .comment_above(toolbox, name.as_deref())
        .map_err(|error| editing.refused(error))?;
    let removed = match name {
        Some(name) => editing.text.remove_server(toolbox, name),
        None => {
            let servers = editing
                .text
                .server_names(toolbox)
                .map_err(|error| editing.refused(error))?;
            if !servers.is_empty() && !arguments.with_servers {
                let toolbox = toolbox.clone();
                return Err(HasServers { toolbox, servers }.into());
            }
            editing.text.remove_toolbox(toolbox)
        }
    };
    removed.map_err(|error| editing.refused(error))?;
    let toolbox = visible(toolbox);
    let done = match name {
        Some(name) => format!(
            "removed the server `{}` of the toolbox `{toolbox}`",
            visible(name)
        ),
        None => format!("removed the toolbox `{toolbox}`"),
    };
    let outcome = editing.finish(&arguments.edit, environment, &done)?;
    if let (EditOutcome::Written, Some(line)) = (outcome, comment) {
        output::remark(&format!(
            "the comment above it, in line {line}, is still there"
        ));
    }
    Ok(ExitCode::SUCCESS)
}

fn listed(names: &[String]) -> String {
    let names: Vec<_> = names.iter().map(|name| visible(name)).collect();
    names.join(", ")
}
