//! The host that the clients of a configuration share: `serve` attaches to it, and the hidden command `host-process` is it.

use std::process::ExitCode;

#[cfg(unix)]
mod process;
#[cfg(unix)]
mod ps;
#[cfg(unix)]
mod session;
mod sharing;

pub(super) use self::sharing::Sharing;
#[cfg(unix)]
pub(super) use self::{
    process::{HostArguments, page, run},
    ps::{PsArguments, SelectionArguments, ps, restart, stop},
    session::{CommandHost, HostEnded, HostSession, command_host},
};
#[cfg(unix)]
use crate::serve::attached::UnfinishedSession;
use crate::{
    cli::part::ServedPart,
    config::{Environment, Loaded},
};

/// The result of attaching a client to the host.
pub(super) enum Attached {
    /// The client has ended, with the exit code of its process.
    #[cfg_attr(not(unix), expect(dead_code, reason = "no host"))]
    Ended(ExitCode),
    /// The client is to be served alone.
    Alone,
    /// The client was attached, and its hosts keep ending. It is to be served alone from where they left it.
    #[cfg(unix)]
    Continue(UnfinishedSession),
}

/// Attaches the client of this process to the host, and waits for its end.
#[cfg(unix)]
pub(super) fn attach(loaded: &Loaded, environment: &Environment, part: &ServedPart) -> Attached {
    process::attach(loaded, environment, part)
}

/// Systems without descriptor passing have no host.
#[cfg(not(unix))]
pub(super) fn attach(_loaded: &Loaded, _environment: &Environment, _part: &ServedPart) -> Attached {
    crate::cli::output::remark("serving alone: this system cannot share servers between clients");
    Attached::Alone
}
