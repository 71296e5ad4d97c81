//! The commands for signing in to remote servers: `login`, `logout` and `auth status`. Secrets are never printed.

mod browser;
mod error;
mod login;
mod logout;
mod paste;
mod status;
mod target;

use std::path::Path;

use clap::{Args, Subcommand};

use self::error::LoginError;
use super::{CommandResult, signals::Signals};
use crate::config::Environment;

pub(super) use browser::open as open_in_browser;
pub(super) use login::{LoginArguments, run as login};
pub(super) use logout::{LogoutArguments, run as logout};

#[derive(Args)]
pub(super) struct AuthArguments {
    #[command(subcommand)]
    command: AuthCommand,
}

#[derive(Subcommand)]
enum AuthCommand {
    /// Show sign-in status of remote servers
    Status(status::StatusArguments),
}

pub(super) fn run(
    config: Option<&Path>,
    arguments: &AuthArguments,
    environment: &Environment,
) -> CommandResult {
    match &arguments.command {
        AuthCommand::Status(arguments) => status::run(config, arguments, environment),
    }
}

/// Does some work that a signal ends.
fn until_a_signal<T>(work: impl Future<Output = Result<T, LoginError>>) -> Result<T, LoginError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(LoginError::Runtime)?;
    let done = runtime.block_on(async {
        let mut signals = Signals::listen().map_err(LoginError::Runtime)?;
        tokio::select! {
            done = work => done,
            () = signals.next() => Err(LoginError::Interrupted),
        }
    });
    // A thread may still be reading a terminal; the end of the process ends it.
    runtime.shutdown_background();
    done
}
