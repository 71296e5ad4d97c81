//! `trust`: shows the pins of the lock file, their differences from the current servers, and records the user's
//! approval. Nothing else approves anything.

mod approve;
mod diff;
mod examine;
mod list;
mod pin;
mod readable;
mod remarks;
mod revoke;
mod selection;

use std::path::Path;

use clap::{Args, Subcommand};

use super::CommandResult;
use crate::config::Environment;

#[derive(Args)]
pub(super) struct TrustArguments {
    #[command(subcommand)]
    command: TrustCommand,
}

#[derive(Subcommand)]
enum TrustCommand {
    /// List servers and tools: pinned, changed, new or gone
    List(list::ListArguments),
    /// Show how servers and tools differ from the pinned ones, hidden characters included
    Diff(diff::DiffArguments),
    /// Approve servers and tools as they are now
    Approve(approve::ApproveArguments),
    /// Remove servers and tools from the lock file
    Revoke(revoke::RevokeArguments),
    /// Confirm that the configuration lowers "pin"
    Pin(pin::PinArguments),
}

pub(super) fn run(
    config: Option<&Path>,
    arguments: &TrustArguments,
    environment: &Environment,
) -> CommandResult {
    match &arguments.command {
        TrustCommand::List(arguments) => list::run(config, arguments, environment),
        TrustCommand::Diff(arguments) => diff::run(config, arguments, environment),
        TrustCommand::Approve(arguments) => approve::run(config, arguments, environment),
        TrustCommand::Revoke(arguments) => revoke::run(config, arguments, environment),
        TrustCommand::Pin(arguments) => pin::run(config, arguments, environment),
    }
}
