//! What can go wrong between a remote server and us. Text of the server is cut and without the values of
//! variables before it gets here; addresses are named without user, query and fragment.

use std::{sync::OnceLock, time::Duration};

use rawjson::MAX_DEPTH;
use thiserror::Error;

use super::{SignInNeeded, seconds};
use crate::{era::MODERN_REVISION, visible::visible, wire::MAX_FRAME_BYTES};

/// Why a request to a remote server failed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum HttpFault {
    /// No connection could be made.
    #[error("cannot connect: {}", visible(.reason))]
    Unreachable {
        /// What the system or the certificate check said.
        reason: String,
    },
    /// The connection ended before an answer.
    #[error("connection lost before the response: {}", visible(.reason))]
    ConnectionLost { reason: String },
    /// The stream ended before the answer and could not be resumed.
    #[error("the server's stream ended before the response")]
    StreamEnded,
    /// A step of our own took too long.
    #[error("timed out after {} waiting for a response", seconds(*.0))]
    Slow(Duration),
    /// The server wants to know who we are, and its entry says that nobody signs in to it.
    #[error(
        "HTTP 401: the server requires authorization; check \"headers\" of its entry, for example \
         \"Authorization\": \"Bearer ${{TOKEN}}\"; to sign in instead, take that header and \"oauth\": \
         false out of it"
    )]
    Unauthorized,
    /// The server wants to know who we are, and somebody has to sign in for that.
    #[error(transparent)]
    SignIn(#[from] Box<SignInNeeded>),
    /// The server knows enough and refuses.
    #[error(
        "HTTP 403: access denied by the server; check the permissions of the account, or \"headers\" \
         of its entry holds"
    )]
    Forbidden,
    /// The server no longer knows our session, or could not make another one.
    #[error("HTTP {status}: session not found on the server")]
    SessionLost { status: u16 },
    /// The token belongs to another account now.
    #[error("the sign-in changed to a different account")]
    AccountChanged,
    /// Another status than one of success.
    #[error("HTTP {status}{}", described(.content_type.as_deref(), .excerpt))]
    Status {
        status: u16,
        /// The content type of the answer.
        content_type: Option<String>,
        /// The beginning of the answer.
        excerpt: String,
        /// When the server wants to be asked again.
        retry_after: Option<Duration>,
    },
    /// The server wants us to go elsewhere.
    #[error(
        "HTTP {status}: the server redirects to {}, and the redirect was not followed; if the target is right, correct \
         \"url\"", visible(.target)
    )]
    Redirect { status: u16, target: String },
    /// A success whose body is no answer.
    #[error(
        "HTTP {status} with {} instead of JSON or an event stream{}",
        named_type(.content_type.as_deref()), quoted(.excerpt)
    )]
    NotMcp {
        status: u16,
        /// The content type of the answer.
        content_type: Option<String>,
        /// The beginning of the answer.
        excerpt: String,
    },
    /// A compressed body, which was not asked for.
    #[error("HTTP {status} with unsupported content encoding {}", visible(.encoding))]
    Encoded { status: u16, encoding: String },
    /// A success without an answer.
    #[error("HTTP {status} without a response to the request")]
    NoAnswer { status: u16 },
    /// The answer of a server that knows only older revisions.
    #[error("the server does not support protocol version {MODERN_REVISION}: {excerpt}")]
    NotModern {
        /// The beginning of its error.
        excerpt: String,
    },
    /// The answer cannot be read.
    #[error("the server's response is not valid JSON, or nested deeper than {MAX_DEPTH} levels")]
    Unreadable,
    /// The answer is larger than a message may be.
    #[error("the server's response is larger than {} MiB", MAX_FRAME_BYTES / (1024 * 1024))]
    TooLarge,
    /// The stream of an old server does not say where to send messages, or names another origin.
    #[error("refusing to send messages to a different origin: {}", visible(.target))]
    ForeignEndpoint {
        /// The origin that it named.
        target: String,
    },
    #[error("internal error in the workbench")]
    Internal,
}

impl HttpFault {
    /// The stable code for programs.
    pub(crate) fn code(&self) -> &'static str {
        match self {
            Self::Unreachable { .. } => "server_unreachable",
            Self::ConnectionLost { .. } | Self::StreamEnded => "connection_lost",
            Self::Slow(_) => "call_timeout",
            Self::Unauthorized | Self::SignIn(_) | Self::Forbidden | Self::AccountChanged => {
                "auth_required"
            }
            Self::SessionLost { status }
            | Self::Status { status, .. }
            | Self::Redirect { status, .. } => status_code(*status),
            Self::NotMcp { .. }
            | Self::Encoded { .. }
            | Self::NoAnswer { .. }
            | Self::NotModern { .. }
            | Self::Unreadable
            | Self::ForeignEndpoint { .. } => "invalid_response",
            Self::TooLarge => "frame_too_large",
            Self::Internal => "internal_error",
        }
    }

    /// The code where the fault kept a server from coming up.
    pub(super) fn start_code(&self) -> &'static str {
        match self {
            Self::Unreachable { .. } | Self::ConnectionLost { .. } | Self::StreamEnded => {
                "server_start_failed"
            }
            Self::Slow(_) => "server_start_timeout",
            other => other.code(),
        }
    }

    /// Whether the same request may go through another time: the server was busy, or out of reach.
    pub(crate) fn may_pass(&self) -> bool {
        match self {
            Self::Status { status, .. } => *status == 429 || *status >= 500,
            Self::Unreachable { .. }
            | Self::ConnectionLost { .. }
            | Self::StreamEnded
            | Self::Slow(_) => true,
            _ => false,
        }
    }

    /// Whether the server has refused whoever asked, and not what: nothing is learned of how it speaks, and nothing
    /// is spared by asking it less often.
    pub(crate) fn is_about_access(&self) -> bool {
        matches!(self, Self::Unauthorized | Self::SignIn(_))
    }

    /// The sign-in that would help.
    pub(crate) fn sign_in(&self) -> Option<&SignInNeeded> {
        match self {
            Self::SignIn(needed) => Some(needed),
            _ => None,
        }
    }

    /// When to try again, where the server said it.
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Status { retry_after, .. } => *retry_after,
            _ => None,
        }
    }
}

/// `http_503` and the like: made once each, since codes live as long as the program.
fn status_code(status: u16) -> &'static str {
    static CODES: [OnceLock<String>; 1000] = [const { OnceLock::new() }; 1000];
    CODES
        .get(usize::from(status))
        .map_or("http_status", |code| {
            code.get_or_init(|| format!("http_{status}"))
        })
}

fn described(content_type: Option<&str>, excerpt: &str) -> String {
    match content_type {
        Some(content_type) if !excerpt.is_empty() => {
            format!(" ({}){}", visible(content_type), quoted(excerpt))
        }
        _ => quoted(excerpt),
    }
}

fn named_type(content_type: Option<&str>) -> String {
    content_type.map_or_else(
        || "no content type".to_owned(),
        |name| format!("content type {}", visible(name)),
    )
}

fn quoted(excerpt: &str) -> String {
    if excerpt.is_empty() {
        String::new()
    } else {
        format!(": {excerpt}")
    }
}
