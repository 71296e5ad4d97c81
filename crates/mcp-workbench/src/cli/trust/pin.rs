//! `trust pin`: confirms that the configuration lowers `"pin"`; until then the lock file enforces the old value.
//! No server is started.

use std::{path::Path, process::ExitCode};

use clap::Args;

use super::selection::confirmed;
use crate::{
    cli::{
        CommandResult,
        configuration::{ServerSelection, load_configuration},
        output,
    },
    config::Environment,
    lock::{PinPolicy, Pins},
    visible::visible,
};

#[derive(Args)]
pub(super) struct PinArguments {
    #[command(flatten)]
    chosen: ServerSelection,

    /// Confirm without asking
    #[arg(long)]
    yes: bool,
}

/// Confirms the lowered pins of the selected servers.
pub(super) fn run(
    config: Option<&Path>,
    arguments: &PinArguments,
    environment: &Environment,
) -> CommandResult {
    let PinArguments { chosen, yes } = arguments;
    let mut config = load_configuration(config, environment)?.config;
    let pins = Pins::new(&config);
    // An unreadable lock file must be reported, not overwritten.
    pins.lock()?;
    // Of the whole file, before a part of it is chosen.
    let policy = PinPolicy::of(&config);
    chosen.choose(&mut config)?;
    let lowered = pins.lowered(&config);
    for it in &lowered {
        let name = format!("{}/{}", it.place.toolbox, it.place.server);
        let (name, mode) = (visible(&name), it.mode.word());
        output::remark(&format!("{name}: from \"enforce\" to \"{mode}\""));
    }
    // Without a selection, the policy for servers that are added later is confirmed too.
    let is_whole = chosen.toolbox.is_none();
    let is_lowered = is_whole && pins.is_lowered_by(&policy)?;
    if lowered.is_empty() && !is_lowered {
        output::remark("nothing to confirm");
        return Ok(ExitCode::SUCCESS);
    }
    if lowered.is_empty() {
        output::remark("servers that are added later: no longer \"enforce\"");
    }
    if !confirmed("Lower this?", *yes)? {
        output::remark("nothing was lowered");
        return Ok(ExitCode::FAILURE);
    }
    pins.change(|lock| {
        if is_whole {
            lock.policy = policy;
        } else {
            lock.policy.lower(&lowered);
        }
    })?;
    output::remark("lowered");
    Ok(ExitCode::SUCCESS)
}
