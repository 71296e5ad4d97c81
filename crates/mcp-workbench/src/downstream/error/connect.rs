//! Why a server could not be reached.

use std::{error::Error as _, path::PathBuf, sync::Arc, time::Duration};

use thiserror::Error;

use super::{GiveUp, HttpFault, SignInNeeded, seconds, stderr_part};
use crate::{
    config::{EnvFileError, Secrets, Unset},
    downstream::process::Exit,
    era::{LEGACY_REVISIONS, MODERN_REVISION},
    lock::Denial,
    visible::visible,
};

/// Why a server is not up.
#[derive(Debug, Error)]
pub(crate) enum ConnectError {
    /// The entry names variables that are not set.
    #[error("{}", unset(.0))]
    Unset(Vec<Unset>),
    /// There is no such program.
    #[error("command '{}' not found", visible(.command))]
    CommandNotFound {
        /// The program as it was looked for.
        command: String,
    },
    /// The program is there, but the system refused to start it.
    #[error("command '{}' could not be started: {}", visible(.command), .error)]
    NotStarted {
        /// The program as it was looked for.
        command: String,
        error: std::io::Error,
    },
    /// The directory to run in is not there.
    #[error("working directory '{}' not found", visible(&.0.display().to_string()))]
    DirectoryNotFound(PathBuf),
    /// The file with variables cannot be used.
    #[error("{reason}")]
    EnvFile {
        /// Why, with its cause.
        reason: String,
    },
    /// It was not up in time.
    #[error("connection timeout after {}", seconds(*.0))]
    Timeout(Duration),
    /// It is not up yet and goes on starting.
    #[error("still starting")]
    StillStarting,
    /// Its process ended before it was up.
    #[error("{exit} before answering {phase}{}", stderr_part(.stderr))]
    Exited {
        exit: Exit,
        /// What it had been asked.
        phase: StartPhase,
        /// The last lines that it wrote to stderr.
        stderr: Vec<String>,
    },
    /// It answered a step of the start with an error.
    #[error("answered {phase} with error {code}: {}", visible(.message))]
    Refused {
        /// What it had been asked.
        phase: StartPhase,
        code: String,
        message: String,
    },
    /// It answered a step of the start with something else than the protocol says.
    #[error("answered {phase} with an invalid result")]
    InvalidAnswer {
        /// What it had been asked.
        phase: StartPhase,
    },
    /// It speaks no revision of the protocol that we speak.
    #[error("{}", no_common_version(.supported, .refusal))]
    NoCommonVersion {
        /// The versions that it named.
        supported: Vec<String>,
        /// Its answer to `server/discover`, where it named none.
        refusal: Box<Self>,
    },
    /// Its entry says that it is modern, and it is not.
    #[error("{}", not_modern(.reason))]
    NotModern { reason: String },
    /// Its process was given up before it was up.
    #[error("{why} before answering {phase}{}", stderr_part(.stderr))]
    GivenUp {
        why: GiveUp,
        /// What it had been asked.
        phase: StartPhase,
        /// The last lines that it wrote to stderr.
        stderr: Vec<String>,
    },
    /// It has failed so often that it is left alone for a while.
    #[error(
        "failed {failures} times within a minute; retrying is paused for {} s; last failure: {last}",
        retry_after.as_secs() + 1
    )]
    Unavailable {
        failures: usize,
        last: Arc<Self>,
        /// When it may be tried again.
        retry_after: Duration,
    },
    #[error("internal error in the workbench")]
    Internal,
    /// The address of a remote server is none.
    #[error("\"url\" is not a valid address: {reason}")]
    UnusableUrl {
        /// What is wrong with it.
        reason: String,
    },
    /// A header of the entry cannot be sent.
    #[error("header '{}' cannot be sent: its name or its value has characters that HTTP forbids", visible(.name))]
    UnusableHeader { name: String },
    /// There is no way to speak HTTP on this machine.
    #[error("failed to set up the HTTP client: {}", visible(.reason))]
    NoHttpClient { reason: String },
    /// A request of the start to a remote server failed.
    #[error("{fault}")]
    Http { fault: HttpFault },
    /// It is not what was approved, and so was not started.
    #[error(transparent)]
    NotApproved(#[from] Denial),
    /// It was taken out of the configuration before it was up.
    #[error("the server is no longer configured")]
    Retired,
    #[error("the workbench is shutting down")]
    ShuttingDown,
}

/// The steps of a server's start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(crate) enum StartPhase {
    #[error("initialize")]
    Initialize,
    /// The question how it speaks, and what it has.
    #[error("server/discover")]
    Discover,
    /// The first list of tools.
    #[error("tools/list")]
    ListTools,
}

impl ConnectError {
    /// The stable code for programs.
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

    /// The last lines of the server's stderr, where they help.
    pub(crate) fn stderr(&self) -> &[String] {
        match self {
            Self::Exited { stderr, .. } | Self::GivenUp { stderr, .. } => stderr,
            Self::Unavailable { last, .. } => last.stderr(),
            _ => &[],
        }
    }

    /// When to try again, where that is known.
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Unavailable { retry_after, .. } => Some(*retry_after),
            Self::Http { fault } => fault.retry_after(),
            _ => None,
        }
    }

    /// The sign-in that would help.
    pub(crate) fn sign_in(&self) -> Option<&SignInNeeded> {
        match self {
            Self::Http { fault } => fault.sign_in(),
            _ => None,
        }
    }

    /// Whether trying again soon is worth limiting: something was started, or should have been.
    pub(crate) fn is_failed_start(&self) -> bool {
        let refused = matches!(self, Self::Http { fault } if fault.is_about_access());
        !refused
            && !matches!(
                self,
                Self::Unset(_)
                    | Self::UnusableUrl { .. }
                    | Self::UnusableHeader { .. }
                    | Self::Unavailable { .. }
                    | Self::NotApproved(_)
                    | Self::Retired
                    | Self::ShuttingDown
            )
    }

    /// Whether the server has answered, and not as it must.
    pub(crate) fn is_refused(&self) -> bool {
        matches!(self, Self::Refused { .. } | Self::InvalidAnswer { .. })
    }

    /// Whether it may have failed because the server speaks otherwise than was thought.
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

    /// Whether the process left at once and without a word, as launchers sometimes do that race with
    /// another start of the same package.
    pub(crate) fn is_silent_exit(&self) -> bool {
        let silent = StartPhase::Initialize;
        matches!(self, Self::Exited { exit: Exit::Code(0), phase, stderr }
            if *phase == silent && stderr.is_empty())
    }

    /// The error without the values that came from variables.
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
    let each = variables.iter();
    let each = each.map(ToString::to_string);
    each.collect::<Vec<_>>().join("; ")
}
