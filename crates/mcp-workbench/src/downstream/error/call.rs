//! Errors of calls.

use std::{sync::Arc, time::Duration};

use rawjson::{MAX_DEPTH, ObjectText, RawJson};
use thiserror::Error;

use super::{ConnectError, HttpFault, SignInNeeded, StopReason, TimeLimit, stderr_part};
use crate::{
    call::Outcome, downstream::process::Exit, policy::permissions::NotPermitted,
    visible::visible_lines,
};

/// The reason why a call failed after its tool was found.
#[derive(Debug, Error)]
pub(crate) enum CallError {
    /// The server could not be started for the call.
    #[error("failed to connect: {0}")]
    Connect(#[from] Arc<ConnectError>),
    /// The restarted server no longer has this tool.
    #[error("the server no longer has this tool")]
    ToolGone,
    /// The configuration or the user does not permit the call.
    #[error(transparent)]
    NotPermitted(#[from] NotPermitted),
    /// The restarted server has a tool that is not approved.
    #[error("{reason}")]
    NotApproved { reason: String },
    /// The arguments of a script do not match the schema of the tool.
    #[error("invalid arguments: {problem}")]
    InvalidArguments { problem: String },
    /// The user has not permitted the tool as the server defines it now. The pipeline asks and sends the call again.
    #[error("the tool changed after the user permitted it")]
    ConsentNeeded,
    /// The restarted server has a tool that is withheld.
    #[error("{reason}")]
    Withheld { reason: String },
    /// The server announced that its tools changed, but listing them failed.
    #[error("the server announced that its tools changed, but listing them failed")]
    Unlisted,
    /// The server answered with a JSON-RPC error.
    #[error("{}", refusal(.code, .message))]
    Refused {
        code: String,
        message: String,
        /// The complete error, as the server sent it.
        error: RawJson,
    },
    /// The server's process ended during the call.
    #[error("the server {exit} during the call{}", stderr_part(.stderr))]
    Exited {
        exit: Exit,
        /// The last lines of its stderr.
        stderr: Vec<String>,
        /// Says if the call reached the server.
        outcome: Outcome,
    },
    /// The server was stopped during the call.
    #[error("the server {why} and was stopped{}", stderr_part(.stderr))]
    GivenUp {
        why: StopReason,
        /// The last lines of its stderr.
        stderr: Vec<String>,
        /// Says if the call reached the server.
        outcome: Outcome,
    },
    /// The request to a remote server failed.
    #[error("{fault}")]
    Http {
        fault: Box<HttpFault>,
        /// Says if the call reached the server.
        outcome: Outcome,
    },
    /// A command stopped the server during the call.
    #[error("the server was stopped by a command during the call")]
    Stopped {
        /// Says if the call reached the server.
        outcome: Outcome,
    },
    #[error("internal error in the workbench")]
    Internal,
    #[error("{limit}")]
    Timeout {
        /// The limit that was exceeded.
        limit: TimeLimit,
        /// Says if the call reached the server.
        outcome: Outcome,
    },
    #[error("the server's response must have either a result or an error, not both or neither")]
    InvalidAnswer,
    /// The `resultType` of the response is unknown, or required members are missing.
    #[error("the server's response has an unknown or incomplete resultType")]
    UnknownAnswer,
    /// The server asks for input again and again.
    #[error("the server asked for input {rounds} times without returning a result")]
    EndlessQuestions { rounds: usize },
    /// The client did not answer a question of the server.
    #[error("the client did not answer the server's question {question}")]
    Unanswered {
        /// The method of the question.
        question: &'static str,
    },
    /// The server received the call, but a later request of it failed.
    #[error("the server started the call but did not finish it: {cause}")]
    BrokenOff {
        /// The error of the request that failed.
        cause: Box<Self>,
    },
    #[error("the task of this call was cancelled")]
    TaskCancelled,
    /// The response is not valid JSON or too deeply nested.
    #[error("the server's response is not valid JSON, or nested deeper than {MAX_DEPTH} levels")]
    UnreadableAnswer,
    #[error("the server's response is larger than {} MiB", .limit / (1024 * 1024))]
    TooLarge {
        /// The limit in bytes.
        limit: usize,
    },
    #[error("the server already has {waiting} calls waiting; try again later")]
    Overloaded { waiting: usize },
    #[error("the workbench is shutting down")]
    ShuttingDown {
        /// Says if the call reached the server.
        outcome: Outcome,
    },
}

impl CallError {
    /// Creates an error of the workbench in the form in which errors of servers are passed on.
    pub(crate) fn refusal(code: i64, message: &str, data: Option<&RawJson>) -> Self {
        let error = ObjectText::new()
            .member("code", &code)
            .member("message", message);
        let error = match data {
            Some(data) => error.raw("data", data),
            None => error,
        };
        Self::Refused {
            code: code.to_string(),
            message: message.to_owned(),
            error: error.finish(),
        }
    }

    /// Converts the error of a later request of a call that the server already received. Even if the later request
    /// was not sent, the first one was, so the outcome is unknown. An error response of the server stays as it is.
    pub(crate) fn after_it_began(self) -> Self {
        match self.outcome() {
            None | Some(Outcome::Unknown) => self,
            Some(Outcome::NotSent | Outcome::Rejected) => Self::BrokenOff {
                cause: Box::new(self),
            },
        }
    }

    /// Returns the stable code for programs.
    pub(crate) fn code(&self) -> &'static str {
        match self {
            Self::Connect(error) => error.code(),
            Self::ToolGone => "tool_unknown",
            Self::NotPermitted(refusal) => refusal.code(),
            Self::NotApproved { .. } => "tool_not_approved",
            Self::InvalidArguments { .. } => "invalid_arguments",
            Self::ConsentNeeded => "permission_outdated",
            Self::Unlisted => "tools_unlisted",
            Self::Withheld { .. } => "tool_withheld",
            Self::Refused { .. } => "server_error",
            Self::Exited { .. } => "server_exited",
            Self::Stopped { .. } => "server_stopped",
            Self::GivenUp { why, .. } => why.code(),
            Self::Http { fault, .. } => fault.code(),
            Self::Internal => "internal_error",
            Self::Timeout { .. } => "call_timeout",
            Self::InvalidAnswer
            | Self::UnknownAnswer
            | Self::EndlessQuestions { .. }
            | Self::UnreadableAnswer => "invalid_response",
            Self::Unanswered { .. } => "input_missing",
            Self::BrokenOff { cause } => cause.code(),
            Self::TaskCancelled => "task_cancelled",
            Self::TooLarge { .. } => "frame_too_large",
            Self::Overloaded { .. } => "overloaded",
            Self::ShuttingDown { .. } => "shutting_down",
        }
    }

    /// Returns the known effects of the call; `None` if the server answered.
    pub(crate) fn outcome(&self) -> Option<Outcome> {
        match self {
            Self::Connect(_)
            | Self::ToolGone
            | Self::NotPermitted(_)
            | Self::NotApproved { .. }
            | Self::InvalidArguments { .. }
            | Self::ConsentNeeded
            | Self::Unlisted
            | Self::Withheld { .. }
            | Self::Overloaded { .. } => Some(Outcome::NotSent),
            Self::Refused { .. } => None,
            Self::Internal
            | Self::InvalidAnswer
            | Self::UnknownAnswer
            | Self::EndlessQuestions { .. }
            | Self::Unanswered { .. }
            | Self::BrokenOff { .. }
            | Self::TaskCancelled
            | Self::UnreadableAnswer
            | Self::TooLarge { .. } => Some(Outcome::Unknown),
            Self::Timeout { outcome, .. }
            | Self::Exited { outcome, .. }
            | Self::GivenUp { outcome, .. }
            | Self::Http { outcome, .. }
            | Self::Stopped { outcome }
            | Self::ShuttingDown { outcome } => Some(*outcome),
        }
    }

    /// Returns the sign-in that would fix a call that did not run.
    pub(crate) fn sign_in(&self) -> Option<&SignInNeeded> {
        match self {
            Self::Connect(error) => error.sign_in(),
            Self::Http { fault, outcome } if *outcome != Outcome::Unknown => fault.sign_in(),
            _ => None,
        }
    }

    /// Returns the last lines of the server's stderr, if they may explain the error.
    pub(crate) fn stderr(&self) -> &[String] {
        match self {
            Self::Connect(error) => error.stderr(),
            Self::Exited { stderr, .. } | Self::GivenUp { stderr, .. } => stderr,
            Self::BrokenOff { cause } => cause.stderr(),
            _ => &[],
        }
    }

    /// Returns the time to wait before a retry, if known.
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Connect(error) => error.retry_after(),
            Self::Http { fault, .. } => fault.retry_after(),
            Self::BrokenOff { cause } => cause.retry_after(),
            _ => None,
        }
    }
}

fn refusal(code: &str, message: &str) -> String {
    if message.is_empty() {
        format!("the server answered with error {code}")
    } else {
        visible_lines(message).into_owned()
    }
}
