//! The errors of the sign-in commands, with hints.

use std::{io, path::Path};

use thiserror::Error;

use super::target::{LoginKind, SignInTarget};
use crate::{
    oauth::{Account, FetchFault, OAuthCode, SignInError},
    visible::visible,
};

/// An error of a sign-in command.
#[derive(Debug, Error)]
pub(super) enum LoginError {
    #[error(
        "{0} has no sign-in: it is a program on this machine\n  \
         hint: set its credentials in `env` of its entry"
    )]
    Program(String),
    /// Its entry is not complete.
    #[error("{server} cannot be reached: {missing}\n  hint: set what is missing")]
    Unset { server: String, missing: String },
    #[error(
        "{0} has no sign-in: its entry has an `Authorization` header, or a user in its address\n  \
         hint: remove that from the entry to sign in instead"
    )]
    Own(String),
    #[error(
        "{0} has no sign-in: its entry has `\"oauth\": false`\n  hint: remove that from the entry"
    )]
    Off(String),
    #[error(
        "no sign-in is needed for {server}: it gets its tokens with the credentials of its entry\n  \
         hint: `{doctor}` tries them"
    )]
    Credentials {
        server: String,
        /// The command that tries it.
        doctor: String,
    },
    #[error(
        "`--scope` is one word of visible ASCII characters\n  hint: give it once for each scope"
    )]
    Scope,
    #[error("failed to listen for the browser's redirect: {error}\n  hint: {}", port_hint(*.port))]
    Port {
        /// The port, if the entry sets one.
        port: Option<u16>,
        error: io::Error,
    },
    #[error("{what} {server}: {error}{}", hint(.error))]
    Failed {
        /// The beginning of the message, up to the name of the server.
        what: &'static str,
        server: String,
        error: SignInError,
    },
    #[error("timed out after ten minutes waiting for the sign-in to {0}\n  hint: start again")]
    TooLate(String),
    #[error("failed to start the runtime")]
    Runtime(#[source] io::Error),
    /// A person or the system has ended it.
    #[error("interrupted; nothing was changed")]
    Interrupted,
}

impl LoginError {
    /// Returns the account for a sign-in, or the error if there is none.
    pub(super) fn unless_person(
        target: &SignInTarget,
        kind: LoginKind<'_>,
        config: Option<&Path>,
    ) -> Result<Account, Self> {
        let server = target.shown();
        Err(match kind {
            LoginKind::Person(account) => return Ok(account),
            LoginKind::Credentials(_) => Self::Credentials {
                server,
                doctor: target.doctor(config),
            },
            LoginKind::Own => Self::Own(server),
            LoginKind::Off => Self::Off(server),
            LoginKind::Program => Self::Program(server),
            LoginKind::Unset(unset) => {
                let missing = unset
                    .iter()
                    .map(ToString::to_string)
                    .collect::<Vec<_>>()
                    .join("; ");
                Self::Unset {
                    server,
                    missing: visible(&missing).into_owned(),
                }
            }
        })
    }
}

fn port_hint(port: Option<u16>) -> String {
    match port {
        Some(port) => format!(
            "`callbackPort` of the entry says {port}; stop the program that listens there, or set a different port"
        ),
        None => "check which programs listen on this machine".to_owned(),
    }
}

/// Returns a hint for errors whose text contains none.
fn hint(error: &SignInError) -> String {
    let hint = match error {
        SignInError::Denied {
            code: OAuthCode::AccessDenied,
        } => "start again, and agree in the browser",
        SignInError::Denied {
            code: OAuthCode::InvalidScope,
        } => "leave out `--scope`, or correct `scopes` of the entry",
        SignInError::Fetch(
            FetchFault::Unreachable { .. } | FetchFault::TooSlow { .. } | FetchFault::Broken { .. },
        ) => "check the address of the entry, the network and the proxy",
        SignInError::Fetch(FetchFault::Insecure { .. } | FetchFault::Internal { .. })
        | SignInError::WrongIssuer
        | SignInError::UntrustedIssuer
        | SignInError::HostileAddress
        | SignInError::NoPkce => {
            "nothing was sent there; report it to the operator of the server, or use a different server"
        }
        SignInError::Metadata
        | SignInError::NotDescribed
        | SignInError::Fetch(FetchFault::Status { .. }) => {
            "the server may have no OAuth; if it needs a key, set it in `headers` of the entry"
        }
        SignInError::NoAssertions => "remove `exchange` from the entry, so that users sign in",
        _ => return String::new(),
    };
    format!("\n  hint: {hint}")
}
