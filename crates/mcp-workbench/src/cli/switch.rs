//! `enable` and `disable`: switch servers on and off without taking them out of the configuration.

use std::{path::Path, process::ExitCode};

use clap::Args;

use super::{
    CommandResult,
    editing::{EditArguments, EditOutcome, Editing},
    output,
};
use crate::{config::Environment, visible::visible};

/// Arguments of `enable` and `disable`.
#[derive(Args)]
pub(super) struct SwitchArguments {
    /// The toolbox
    toolbox: String,

    /// The server; without it, all servers of the toolbox
    name: Option<String>,

    #[command(flatten)]
    edit: EditArguments,
}

/// The direction of a switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Switch {
    On,
    /// The server is ignored, as if it were not configured.
    Off,
}

/// Enables or disables the servers that the arguments name.
pub(super) fn run(
    config: Option<&Path>,
    switch: Switch,
    arguments: &SwitchArguments,
    environment: &Environment,
) -> CommandResult {
    let SwitchArguments { toolbox, name, .. } = arguments;
    let mut editing = Editing::open(config, environment)?;
    let switched = editing
        .text
        .set_enabled(toolbox, name.as_deref(), switch == Switch::On);
    switched.map_err(|error| editing.refused(error))?;
    let state = match switch {
        Switch::On => "enabled",
        Switch::Off => "disabled",
    };
    let toolbox = visible(toolbox);
    let (what, are) = match name {
        Some(name) => {
            let what = format!("the server `{}` of the toolbox `{toolbox}`", visible(name));
            (what, "is")
        }
        None => (format!("all servers of the toolbox `{toolbox}`"), "are"),
    };
    let done = format!("{state} {what}");
    if editing.finish(&arguments.edit, environment, &done)? == EditOutcome::Same {
        output::remark(&format!("nothing to change: {what} {are} {state} already"));
    }
    Ok(ExitCode::SUCCESS)
}
