//! Errors of requests to remote servers. Text of the server is shortened and redacted before it gets here; addresses
//! are shown without user, query and fragment.

use std::{sync::OnceLock, time::Duration};

use rawjson::MAX_DEPTH;
use thiserror::Error;

use super::{SignInNeeded, seconds};
use crate::{era::MODERN_REVISION, visible::visible, wire::MAX_FRAME_BYTES};

/// The reason why a request to a remote server failed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum HttpFault {
    #[error("cannot connect: {}", visible(.reason))]
    Unreachable {
        /// The message of the system or of the certificate check.
        reason: String,
    },
    /// The connection ended before the response.
    #[error("connection lost before the response: {}", visible(.reason))]
    ConnectionLost { reason: String },
    /// The stream ended before the response and could not be resumed.
    #[error("the server's stream ended before the response")]
    StreamEnded,
    /// A step with a time limit of its own timed out.
    #[error("timed out after {} waiting for a response", seconds(*.0))]
    Slow(Duration),
    /// The server requires authorization, but the entry rules out a sign-in.
    #[error(
        "HTTP 401: the server requires authorization; check \"headers\" of its entry, for example \
         \"Authorization\": \"Bearer ${{TOKEN}}\"; to sign in instead, remove that header and \"oauth\": \
         false from it"
    )]
    Unauthorized,
    /// The server requires a sign-in.
    #[error(transparent)]
    SignIn(#[from] Box<SignInNeeded>),
    /// The server denies access in spite of valid authorization.
    #[error(
        "HTTP 403: access denied by the server; check the permissions of the account that it uses, or \
         \"headers\" of its entry"
    )]
    Forbidden,
    /// The server lost the session, or could not create a new one.
    #[error("HTTP {status}: session not found on the server")]
    SessionLost { status: u16 },
    /// The token now belongs to a different account.
    #[error("the sign-in changed to a different account")]
    AccountChanged,
    /// A status that is not a success.
    #[error("HTTP {status}{}", described(.content_type.as_deref(), .excerpt))]
    Status {
        status: u16,
        content_type: Option<String>,
        /// The beginning of the body.
        excerpt: String,
        retry_after: Option<Duration>,
    },
    #[error(
        "HTTP {status}: the server redirects to {}, and the redirect was not followed; if the target is right, correct \
         \"url\"", visible(.target)
    )]
    Redirect { status: u16, target: String },
    /// A success with a body that is neither JSON nor an event stream.
    #[error(
        "HTTP {status} with {} instead of JSON or an event stream{}",
        named_type(.content_type.as_deref()), quoted(.excerpt)
    )]
    NotMcp {
        status: u16,
        content_type: Option<String>,
        /// The beginning of the body.
        excerpt: String,
    },
    /// A compressed body, although the request did not accept one.
    #[error("HTTP {status} with unsupported content encoding {}", visible(.encoding))]
    Encoded { status: u16, encoding: String },
    /// A success without a response to the request.
    #[error("HTTP {status} without a response to the request")]
    NoAnswer { status: u16 },
    /// The response of a server that supports only older revisions.
    #[error("the server does not support protocol version {MODERN_REVISION}: {excerpt}")]
    NotModern {
        /// The beginning of its error.
        excerpt: String,
    },
    /// The response is not valid JSON or too deeply nested.
    #[error("the server's response is not valid JSON, or nested deeper than {MAX_DEPTH} levels")]
    Unreadable,
    /// The tools of a new session cannot be listed, so no call can be checked against them.
    #[error("the tools of the server's new session cannot be listed")]
    Unlisted,
    #[error("the server's response is larger than {} MiB", MAX_FRAME_BYTES / (1024 * 1024))]
    TooLarge,
    /// An HTTP+SSE server names no endpoint for messages, or one in a different origin.
    #[error("refusing to send messages to a different origin: {}", visible(.target))]
    ForeignEndpoint {
        /// The origin that the server named.
        target: String,
    },
    #[error("internal error in the workbench")]
    Internal,
}

impl HttpFault {
    /// Returns the stable code for programs.
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
            | Self::Unlisted
            | Self::ForeignEndpoint { .. } => "invalid_response",
            Self::TooLarge => "frame_too_large",
            Self::Internal => "internal_error",
        }
    }

    /// Returns the code for a fault that prevented a server from starting.
    pub(super) fn start_code(&self) -> &'static str {
        match self {
            Self::Unreachable { .. } | Self::ConnectionLost { .. } | Self::StreamEnded => {
                "server_start_failed"
            }
            Self::Slow(_) => "server_start_timeout",
            other => other.code(),
        }
    }

    /// Returns true if a retry of the same request may succeed: the server was busy or unreachable.
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

    /// Returns true if the server refused the caller and not the request. Such a refusal says nothing about the
    /// server's protocol, and limiting retries gains nothing.
    pub(crate) fn is_about_access(&self) -> bool {
        matches!(self, Self::Unauthorized | Self::SignIn(_))
    }

    /// Returns the sign-in that would fix the error.
    pub(crate) fn sign_in(&self) -> Option<&SignInNeeded> {
        match self {
            Self::SignIn(needed) => Some(needed),
            _ => None,
        }
    }

    /// Returns the time to wait before a retry, if the server named one.
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Status { retry_after, .. } => *retry_after,
            _ => None,
        }
    }
}

/// Returns `http_503` and the like. Each is created once, because codes are static.
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
