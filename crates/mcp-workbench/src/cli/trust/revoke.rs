//! `trust revoke`: removes servers and tools from the lock file. No server is started.

use std::{path::Path, process::ExitCode};

use clap::Args;
use ident::ServerIdentifier;
use thiserror::Error;

use super::selection::{TrustSelection, confirmed};
use crate::{
    cli::{CommandResult, configuration::load_configuration, output, terminal::count},
    config::Environment,
    lock::{Lock, Pins},
    visible::{revealed, visible},
};

#[derive(Args)]
pub(super) struct RevokeArguments {
    #[command(flatten)]
    chosen: TrustSelection,

    /// Revoke without asking
    #[arg(long)]
    yes: bool,
}

#[derive(Debug, Error)]
#[error(
    "the lock file has no such server or tool\n  hint: `mcp-workbench trust list` shows its content"
)]
struct NothingPinned;

/// Revokes the selected servers or tools.
pub(super) fn run(
    config: Option<&Path>,
    arguments: &RevokeArguments,
    environment: &Environment,
) -> CommandResult {
    let RevokeArguments { chosen, yes } = arguments;
    let pins = Pins::new(&load_configuration(config, environment)?.config);
    let lock = pins.lock()?.unwrap_or_default();
    let selected = selected(&lock, chosen);
    if selected.is_empty() {
        return Err(NothingPinned.into());
    }
    for (place, tools) in &selected {
        let name = format!("{}/{}", place.toolbox, place.server);
        let what = match &chosen.tool {
            Some(tool) => revealed(tool).into_owned(),
            None => format!("the server and {}", count(*tools, "tool")),
        };
        output::remark(&format!("{}: {what}", visible(&name)));
    }
    if !confirmed("Revoke this?", *yes)? {
        output::remark("nothing was revoked");
        return Ok(ExitCode::FAILURE);
    }
    let (lock, ()) = pins.change(|lock| {
        for (place, _) in &selected {
            match &chosen.tool {
                Some(tool) => drop(lock.server_mut(place).tools.remove(tool)),
                None => lock.remove(place),
            }
        }
    })?;
    for (place, _) in &selected {
        // Without a pin the stored definitions are of no use, and a later `diff` must not show them.
        pins.keep_texts(&lock, place, std::iter::empty());
    }
    output::remark("revoked");
    Ok(ExitCode::SUCCESS)
}

/// Returns the selected servers with the number of their tools.
fn selected(lock: &Lock, chosen: &TrustSelection) -> Vec<(ServerIdentifier, usize)> {
    let servers = lock.servers().filter(|(place, pinned)| {
        let tool = chosen.tool.as_ref();
        chosen.has(place) && tool.is_none_or(|tool| pinned.tools.contains_key(tool))
    });
    servers
        .map(|(place, pinned)| (place, pinned.tools.len()))
        .collect()
}
