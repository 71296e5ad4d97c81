//! The host that the clients of a configuration share: `serve` attaches to it, and the hidden command `host-process` is it.

#[cfg(unix)]
mod process;
#[cfg(unix)]
mod ps;

#[cfg(unix)]
pub(super) use self::{
    process::{HostArguments, run},
    ps::{PsArguments, SelectionArguments, ps, restart, stop},
};
use crate::{
    cli::CommandResult,
    config::{Config, Environment, Loaded},
};

/// Explains what the clients of a shared configuration share now; nothing if it is not shared.
#[cfg(unix)]
pub(super) fn sharing(config: &Config, environment: &Environment) -> String {
    if !config.shared {
        return String::new();
    }
    ps::sharing(&ps::statuses(&config.file, environment))
}

/// Systems without descriptor passing have no host.
#[cfg(not(unix))]
pub(super) fn sharing(_config: &Config, _environment: &Environment) -> String {
    String::new()
}

/// Attaches the client of this process to the host, and waits for its end. Returns `None` if the client is to be served alone.
#[cfg(unix)]
pub(super) fn attach(
    loaded: &Loaded,
    environment: &Environment,
    native: Option<String>,
) -> Option<CommandResult> {
    process::attach(loaded, environment, native)
}

/// Systems without descriptor passing have no host.
#[cfg(not(unix))]
pub(super) fn attach(
    _loaded: &Loaded,
    _environment: &Environment,
    _native: Option<String>,
) -> Option<CommandResult> {
    crate::cli::output::remark("serving alone: this system cannot share servers between clients");
    None
}
