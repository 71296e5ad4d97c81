//! Errors of connections to servers.

use std::{error::Error as _, path::PathBuf, sync::Arc, time::Duration};

use thiserror::Error;

use super::{HttpFault, SignInNeeded, StopReason, seconds, stderr_part};
use crate::{
    config::{EnvFileError, Secrets, Unset},
    downstream::process::Exit,
    era::{LEGACY_REVISIONS, MODERN_REVISION},
    lock::Denial,
    visible::visible,
};

/// The reason why a server is not up.
#[derive(Debug, Error)]
pub(crate) enum ConnectError {
    /// The entry refers to variables that are not set.
    #[error("{}", unset(.0))]
    Unset(Vec<Unset>),
    #[error("command '{}' not found", visible(.command))]
    CommandNotFound {
        /// The program as the entry names it.
        command: String,
    },
    /// The program exists, but the system refused to start it.
    #[error("command '{}' could not be started: {}", visible(.command), .error)]
    NotStarted {
        /// The program as the entry names it.
        command: String,
        error: std::io::Error,
    },
    /// The working directory does not exist.
    #[error("working directory '{}' not found", visible(&.0.display().to_string()))]
    DirectoryNotFound(PathBuf),
    /// The `envFile` cannot be used.
    #[error("{reason}")]
    EnvFile {
        /// The reason with its cause.
        reason: String,
    },
    /// The server was not up in time.
    #[error("connection timeout after {}", seconds(*.0))]
    Timeout(Duration),
    /// The server is not up yet and continues to start.
    #[error("still starting")]
    StillStarting,
    /// The process exited before it was up.
    #[error("{exit} before answering {phase}{}", stderr_part(.stderr))]
    Exited {
        exit: Exit,
        /// The request that it had not answered.
        phase: StartPhase,
        /// The last lines of its stderr.
        stderr: Vec<String>,
    },
    /// The server answered a request of the start with an error.
    #[error("answered {phase} with error {code}: {}", visible(.message))]
    Refused {
        /// The request that it refused.
        phase: StartPhase,
        code: String,
        message: String,
    },
    /// The server answered a request of the start with an invalid result.
    #[error("answered {phase} with an invalid result")]
    InvalidAnswer {
        /// The request that it answered.
        phase: StartPhase,
    },
    /// The server supports no protocol version that the workbench supports.
    #[error("{}", no_common_version(.supported, .refusal))]
    NoCommonVersion {
        /// The versions that the server named.
        supported: Vec<String>,
        /// The server's answer to `server/discover`, if it named no versions.
        refusal: Box<Self>,
    },
    /// The entry says that the server is modern, but it is not.
    #[error("{}", not_modern(.reason))]
    NotModern { reason: String },
    /// The workbench stopped the process before it was up.
    #[error("{why} before answering {phase}{}", stderr_part(.stderr))]
    GivenUp {
        why: StopReason,
        /// The request that it had not answered.
        phase: StartPhase,
        /// The last lines of its stderr.
        stderr: Vec<String>,
    },
    /// The server failed so often that retries are paused.
    #[error(
        "failed {failures} times within a minute; retrying is paused for {} s; last failure: {last}",
        retry_after.as_secs() + 1
    )]
    Unavailable {
        failures: usize,
        last: Arc<Self>,
        /// The time until the next retry.
        retry_after: Duration,
    },
    #[error("internal error in the workbench")]
    Internal,
    /// The `url` of a remote server is not a valid address.
    #[error("\"url\" is not a valid address: {reason}")]
    UnusableUrl { reason: String },
    /// A header of the entry cannot be sent.
    #[error("header '{}' cannot be sent: its name or its value has characters that HTTP forbids", visible(.name))]
    UnusableHeader { name: String },
    /// The HTTP client could not be set up on this machine.
    #[error("failed to set up the HTTP client: {}", visible(.reason))]
    NoHttpClient { reason: String },
    /// A request to a remote server failed during the start.
    #[error("{fault}")]
    Http { fault: HttpFault },
    /// The server is not the one that was approved, so it was not started.
    #[error(transparent)]
    NotApproved(#[from] Denial),
    /// The user stopped the server before it was up.
    #[error("it was stopped while it was starting")]
    Stopped,
    /// The server was removed from the configuration before it was up.
    #[error("the server is no longer configured")]
    Retired,
    #[error("the workbench is shutting down")]
    ShuttingDown,
}

/// The requests of a server's start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(crate) enum StartPhase {
    #[error("initialize")]
    Initialize,
    /// Detects the protocol of the server and its features.
    #[error("server/discover")]
    Discover,
    #[error("tools/list")]
    ListTools,
    #[error("skills/list")]
    ListSkills,
}

impl ConnectError {
    /// Returns the stable code for programs.
    pub(crate) fn code(&self) -> &'static str {
        match self {
            Self::Timeout(_) | Self::StillStarting => "server_start_timeout",
            Self::Unavailable { .. } => "server_unavailable",
            Self::Internal => "internal_error",
            Self::NotApproved(_) => "server_not_approved",
            Self::Http { fault } => fault.start_code(),
            Self::ShuttingDown => "shutting_down",
            _ => "server_start_failed",
        }
    }

    /// Returns the last lines of the server's stderr, if they may explain the error.
    pub(crate) fn stderr(&self) -> &[String] {
        match self {
            Self::Exited { stderr, .. } | Self::GivenUp { stderr, .. } => stderr,
            Self::Unavailable { last, .. } => last.stderr(),
            _ => &[],
        }
    }

    /// Returns the time to wait before a retry, if known.
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Unavailable { retry_after, .. } => Some(*retry_after),
            Self::Http { fault } => fault.retry_after(),
            _ => None,
        }
    }

    /// Returns the sign-in that would fix the error.
    pub(crate) fn sign_in(&self) -> Option<&SignInNeeded> {
        match self {
            Self::Http { fault } => fault.sign_in(),
            _ => None,
        }
    }

    /// Returns true if the error counts as a failed start, which limits how soon the next one may follow.
    pub(crate) fn is_failed_start(&self) -> bool {
        // The pause between starts is for servers that fail. These errors are about the entry, the user or the
        // workbench, and what they lack may be there at any moment.
        let refused = matches!(self, Self::Http { fault } if fault.is_about_access());
        !refused
            && !matches!(
                self,
                Self::Unset(_)
                    | Self::UnusableUrl { .. }
                    | Self::UnusableHeader { .. }
                    | Self::Unavailable { .. }
                    | Self::NotApproved(_)
                    | Self::Stopped
                    | Self::Retired
                    | Self::ShuttingDown
            )
    }

    /// Returns true if the server answered with an error or an invalid result.
    pub(crate) fn is_refused(&self) -> bool {
        matches!(self, Self::Refused { .. } | Self::InvalidAnswer { .. })
    }

    /// Returns true if the cause may be that the server speaks a different protocol era than assumed.
    pub(crate) fn may_be_the_era(&self) -> bool {
        match self {
            Self::Http { fault } => {
                !matches!(fault, HttpFault::Unreachable { .. }) && !fault.is_about_access()
            }
            Self::Exited { .. }
            | Self::Refused { .. }
            | Self::InvalidAnswer { .. }
            | Self::GivenUp { .. } => true,
            _ => false,
        }
    }

    /// Returns true if the process exited at once with code 0 and without output. Launchers do that when two starts
    /// of the same package race.
    pub(crate) fn is_silent_exit(&self) -> bool {
        let silent = StartPhase::Initialize;
        matches!(self, Self::Exited { exit: Exit::Code(0), phase, stderr }
            if *phase == silent && stderr.is_empty())
    }

    /// Returns the error without the values of variables.
    pub(crate) fn redacted(self, secrets: &Secrets) -> Self {
        let clean = |text: String| secrets.redact(&text).into_owned();
        match self {
            Self::CommandNotFound { command } => Self::CommandNotFound {
                command: clean(command),
            },
            Self::NotStarted { command, error } => Self::NotStarted {
                command: clean(command),
                error,
            },
            Self::DirectoryNotFound(directory) => {
                Self::DirectoryNotFound(clean(directory.display().to_string()).into())
            }
            Self::EnvFile { reason } => Self::EnvFile {
                reason: clean(reason),
            },
            // Text of a server was redacted where it was read.
            other => other,
        }
    }
}

impl From<EnvFileError> for ConnectError {
    fn from(error: EnvFileError) -> Self {
        let cause = error
            .source()
            .map_or_else(String::new, |cause| format!(": {cause}"));
        Self::EnvFile {
            reason: format!("{error}{cause}"),
        }
    }
}

fn not_modern(reason: &str) -> String {
    format!(
        "{reason}; its entry says \"era\": \"modern\", but a server without protocol version \
         {MODERN_REVISION} needs \"legacy\" or \"auto\""
    )
}

fn no_common_version(supported: &[String], refusal: &ConnectError) -> String {
    let ours: Vec<_> = LEGACY_REVISIONS
        .into_iter()
        .chain([MODERN_REVISION])
        .collect();
    let ours = ours.join(", ");
    if supported.is_empty() {
        return format!("no common protocol version: it {refusal}; this workbench supports {ours}");
    }
    let theirs = visible(&supported.join(", ")).into_owned();
    format!("no common protocol version: it supports {theirs}; this workbench supports {ours}")
}

fn unset(variables: &[Unset]) -> String {
    let each = variables.iter().map(ToString::to_string);
    each.collect::<Vec<_>>().join("; ")
}
