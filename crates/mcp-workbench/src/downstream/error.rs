//! Why a server could not be reached, and why a call to it failed: data first, and the words for it
//! in this one place.

use std::{path::PathBuf, sync::Arc, time::Duration};

use thiserror::Error;

use super::process::Exit;
use crate::{
    call::Outcome,
    config::{EnvFileError, UnsetVariable},
    visible::visible,
};

/// How much of a server's stderr an error message shows.
const STDERR_CHARACTERS: usize = 500;

/// Why a server is not up.
#[derive(Debug, Error)]
pub enum ConnectError {
    /// The entry names variables that are not set.
    #[error("{}", unset(.0))]
    Unset(Vec<UnsetVariable>),
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
        /// What the system said.
        error: std::io::Error,
    },
    /// The directory to run in is not there.
    #[error("working directory '{}' not found", visible(&.0.display().to_string()))]
    DirectoryNotFound(PathBuf),
    /// The file with variables cannot be used.
    #[error(transparent)]
    EnvFile(#[from] EnvFileError),
    /// It was not up in time.
    #[error("connection timeout after {}", seconds(*.0))]
    Timeout(Duration),
    /// It is not up yet and goes on starting.
    #[error("still starting")]
    StillStarting,
    /// Its process ended before it was up.
    #[error("{exit} before answering {phase}{}", stderr_part(.stderr))]
    Exited {
        /// How it ended.
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
        /// Its error code.
        code: String,
        /// Its words.
        message: String,
    },
    /// It answered a step of the start with something else than the protocol says.
    #[error("answered {phase} with an invalid result")]
    InvalidAnswer {
        /// What it had been asked.
        phase: StartPhase,
    },
    /// A kind of server that this version cannot reach.
    #[error(
        "servers with a \"url\" cannot be reached yet by this version; use one with a \"command\""
    )]
    RemoteUnavailable,
    /// The workbench is ending.
    #[error("the workbench is shutting down")]
    ShuttingDown,
}

/// The steps of a server's start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum StartPhase {
    /// The handshake.
    #[error("initialize")]
    Initialize,
    /// The first list of tools.
    #[error("tools/list")]
    ListTools,
}

impl ConnectError {
    /// The stable code for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Timeout(_) | Self::StillStarting => "server_start_timeout",
            Self::ShuttingDown => "shutting_down",
            _ => "server_start_failed",
        }
    }
}

/// Why a call failed after its tool was found.
#[derive(Debug, Error)]
pub enum CallError {
    /// The server could not be started for it.
    #[error(transparent)]
    Connect(#[from] Arc<ConnectError>),
    /// The server came back without this tool.
    #[error("the server no longer has this tool")]
    ToolGone,
    /// The server answered with a JSON-RPC error.
    #[error("{}", refusal(.code, .message))]
    Refused {
        /// Its error code.
        code: String,
        /// Its words.
        message: String,
    },
    /// The server's process ended during the call.
    #[error("the server {exit} during the call{}", stderr_part(.stderr))]
    Exited {
        /// How it ended.
        exit: Exit,
        /// The last lines that it wrote to stderr.
        stderr: Vec<String>,
    },
    /// The call took too long.
    #[error("{limit}")]
    Timeout {
        /// The limit that was passed.
        limit: TimeLimit,
        /// Whether the call had reached the server.
        outcome: Outcome,
    },
    /// The answer breaks the protocol.
    #[error("the server's answer has not exactly one of a result and an error")]
    InvalidAnswer,
    /// The answer is larger than a message may be.
    #[error("the server's answer is larger than {} MiB", .limit / (1024 * 1024))]
    TooLarge {
        /// The limit in bytes.
        limit: usize,
    },
    /// Too many calls wait for this server.
    #[error("the server already has {waiting} calls waiting; try again later")]
    Overloaded {
        /// How many wait.
        waiting: usize,
    },
    /// The workbench is ending.
    #[error("the workbench is shutting down")]
    ShuttingDown {
        /// Whether the call had reached the server.
        outcome: Outcome,
    },
}

/// A limit on the time of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum TimeLimit {
    /// `callTimeoutMs`: neither an answer nor progress came.
    #[error("no answer within {}", seconds(*.0))]
    Silence(Duration),
    /// `maxCallMs`: the call was not finished.
    #[error("not finished within {}", seconds(*.0))]
    Total(Duration),
}

impl CallError {
    /// The stable code for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Connect(error) => error.code(),
            Self::ToolGone => "tool_unknown",
            Self::Refused { .. } => "server_error",
            Self::Exited { .. } => "server_exited",
            Self::Timeout { .. } => "call_timeout",
            Self::InvalidAnswer => "invalid_response",
            Self::TooLarge { .. } => "frame_too_large",
            Self::Overloaded { .. } => "overloaded",
            Self::ShuttingDown { .. } => "shutting_down",
        }
    }

    /// What is known of the call's effects; nothing where the server answered.
    pub fn outcome(&self) -> Option<Outcome> {
        match self {
            Self::Connect(_) | Self::ToolGone | Self::Overloaded { .. } => Some(Outcome::NotSent),
            Self::Refused { .. } => None,
            Self::Exited { .. } | Self::InvalidAnswer | Self::TooLarge { .. } => {
                Some(Outcome::Unknown)
            }
            Self::Timeout { outcome, .. } | Self::ShuttingDown { outcome } => Some(*outcome),
        }
    }
}

fn unset(variables: &[UnsetVariable]) -> String {
    let each = variables.iter();
    let each = each.map(|it| format!("variable {} is not set ({})", it.variable, it.path));
    each.collect::<Vec<_>>().join("; ")
}

fn refusal(code: &str, message: &str) -> String {
    if message.is_empty() {
        format!("the server answered with error {code}")
    } else {
        visible(message).into_owned()
    }
}

/// Seconds without needless decimals.
fn seconds(duration: Duration) -> String {
    format!("{} s", duration.as_secs_f64())
}

/// The last lines of stderr, the newest last, cut from the front.
fn stderr_part(lines: &[String]) -> String {
    if lines.is_empty() {
        return String::new();
    }
    let shown = lines
        .iter()
        .map(|line| visible(line))
        .collect::<Vec<_>>()
        .join(" | ");
    let surplus = shown.chars().count().saturating_sub(STDERR_CHARACTERS);
    let shown: String = shown.chars().skip(surplus).collect();
    format!("; stderr: {shown}")
}
