//! Refusals of requests over HTTP: the status, the message, and the headers.

use hyper::{
    StatusCode,
    header::{self, HeaderValue},
};
use thiserror::Error;

use super::{
    limits::{
        MAX_CONNECTIONS, MAX_EXTENSION_SETS, MAX_EXTENSION_SETS_OF_PRINCIPAL, MAX_RUNNING,
        MAX_SESSIONS, MAX_STATELESS, MAX_USERS,
    },
    quotas::Exceeded,
    response::{Response, json},
};
use crate::{
    oauth::TokenRefusal,
    serve::revision::Revision,
    wire::{self, Frame, MAX_FRAME_BYTES, code},
};

/// The code of refusals that are about HTTP and not about the message.
pub(super) const REFUSED: i64 = -32000;

/// The challenges in responses to requests without a valid token.
const CHALLENGE: HeaderValue = HeaderValue::from_static("Bearer realm=\"mcp-workbench\"");
const CHALLENGE_INVALID: HeaderValue =
    HeaderValue::from_static("Bearer realm=\"mcp-workbench\", error=\"invalid_token\"");

const CHALLENGE_SCOPE: HeaderValue =
    HeaderValue::from_static("Bearer realm=\"mcp-workbench\", error=\"insufficient_scope\"");

pub(super) const CLOSE: HeaderValue = HeaderValue::from_static("close");

/// A reason why a request is refused.
#[derive(Debug, Error)]
pub(super) enum Refusal {
    /// Its `Host` is missing, duplicate, or not ours.
    #[error("the Host header is missing, duplicate or not allowed")]
    ForeignHost,
    /// Its `Origin` is duplicate, malformed, or not ours.
    #[error("this Origin is not allowed")]
    ForeignOrigin,
    #[error("a token is required: send `Authorization: Bearer TOKEN`")]
    NoToken,
    #[error("invalid token")]
    WrongToken,
    /// A token that the authorization server may have issued.
    #[error(transparent)]
    Token(#[from] TokenRefusal),
    #[error("the content type must be application/json")]
    NotJson,
    /// It does not accept the type of the response.
    #[error("the client must accept {0}")]
    NotAcceptable(&'static str),
    #[error("the message is larger than {} MiB", MAX_FRAME_BYTES / (1024 * 1024))]
    TooLarge,
    /// Its body took too long.
    #[error("timed out reading the request body")]
    BodyTimeout,
    #[error("failed to read the request body")]
    BodyBroken,
    #[error("the body is not a JSON-RPC message")]
    NoMessage(Box<Frame>),
    /// It has no session, and its headers and its body do not match.
    #[error("headers and body do not agree")]
    Disagrees(Box<Frame>),
    /// It is a response, and there was no request.
    #[error("a response needs a session: without one the workbench sends no requests")]
    NothingAsked,
    /// It names no session and starts none.
    #[error("the header Mcp-Session-Id is required: send initialize first")]
    NoSession,
    /// It names a session that does not exist, or belongs to another principal.
    #[error("session not found: send initialize again, without a session")]
    UnknownSession,
    #[error("unsupported MCP-Protocol-Version (supported: {})", revisions())]
    UnknownRevision,
    /// It resumes after an event that is no longer stored, or never was.
    #[error("unknown or expired Last-Event-ID")]
    UnknownEvent,
    /// Its session has too many running requests, or too many unread responses.
    #[error("more than {MAX_RUNNING} requests at once, or too many unread responses")]
    TooBusy,
    /// Its sender has reached one of its limits.
    #[error("{}: retry in {} s", .0.limit, .0.retry_after())]
    Limited(Exceeded),
    /// There are too many connections, and each has a running request.
    #[error("more than {MAX_CONNECTIONS} connections at once")]
    TooManyConnections,
    #[error("more than {MAX_STATELESS} requests without a session at once")]
    TooManyRequests,
    #[error("more than {MAX_SESSIONS} sessions at once")]
    TooManySessions,
    #[error("more than {MAX_USERS} users at once")]
    TooManyUsers,
    #[error(
        "more than {MAX_EXTENSION_SETS_OF_PRINCIPAL} different sets of extensions of one client, or {MAX_EXTENSION_SETS} of all, at once"
    )]
    TooManyExtensionSets,
    /// The request bodies that are being read are too large together.
    #[error("too many large requests at once")]
    TooManyBytes,
    #[error("the workbench is shutting down")]
    ShuttingDown,
    #[error("this method is not allowed here")]
    MethodNotAllowed,
    /// The path can only be read.
    #[error("only GET is allowed here")]
    OnlyRead,
    #[error("without a session only POST is allowed here")]
    OnlyPosted,
    #[error("not found: the endpoint is /mcp")]
    NotFound,
}

impl Refusal {
    fn status(&self) -> StatusCode {
        match self {
            Self::ForeignHost | Self::ForeignOrigin => StatusCode::FORBIDDEN,
            Self::NoToken | Self::WrongToken | Self::Token(TokenRefusal::Invalid) => {
                StatusCode::UNAUTHORIZED
            }
            Self::Token(TokenRefusal::MissingScopes(_) | TokenRefusal::NoClient) => {
                StatusCode::FORBIDDEN
            }
            Self::NotJson => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::NotAcceptable(_) => StatusCode::NOT_ACCEPTABLE,
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::BodyTimeout => StatusCode::REQUEST_TIMEOUT,
            Self::BodyBroken
            | Self::NoMessage(_)
            | Self::Disagrees(_)
            | Self::NothingAsked
            | Self::NoSession
            | Self::UnknownRevision
            | Self::UnknownEvent => StatusCode::BAD_REQUEST,
            Self::UnknownSession | Self::NotFound => StatusCode::NOT_FOUND,
            Self::TooBusy | Self::Limited(_) => StatusCode::TOO_MANY_REQUESTS,
            Self::Token(TokenRefusal::Unavailable)
            | Self::TooManyConnections
            | Self::TooManyRequests
            | Self::TooManySessions
            | Self::TooManyUsers
            | Self::TooManyExtensionSets
            | Self::TooManyBytes
            | Self::ShuttingDown => StatusCode::SERVICE_UNAVAILABLE,
            Self::MethodNotAllowed | Self::OnlyRead | Self::OnlyPosted => {
                StatusCode::METHOD_NOT_ALLOWED
            }
        }
    }

    /// Returns the JSON-RPC error for the body.
    fn frame(&self) -> Frame {
        match self {
            Self::NoMessage(frame) | Self::Disagrees(frame) => (**frame).clone(),
            Self::TooLarge => wire::error(None, code::INVALID_REQUEST, &self.to_string()),
            _ => wire::error(None, REFUSED, &self.to_string()),
        }
    }

    /// Returns the refusal as a response.
    pub(super) fn into_response(self) -> Response {
        let mut response = json(self.status(), self.frame());
        let headers = response.headers_mut();
        match self {
            Self::NoToken => {
                headers.insert(header::WWW_AUTHENTICATE, CHALLENGE);
            }
            Self::WrongToken | Self::Token(TokenRefusal::Invalid) => {
                headers.insert(header::WWW_AUTHENTICATE, CHALLENGE_INVALID);
            }
            Self::Token(TokenRefusal::MissingScopes(_)) => {
                headers.insert(header::WWW_AUTHENTICATE, CHALLENGE_SCOPE);
            }
            Self::Token(TokenRefusal::Unavailable) => {
                // The keys of the issuer are fetched again after 5 s at the earliest.
                headers.insert(header::RETRY_AFTER, HeaderValue::from_static("5"));
            }
            Self::TooBusy
            | Self::TooManyRequests
            | Self::TooManySessions
            | Self::TooManyUsers
            | Self::TooManyExtensionSets
            | Self::TooManyBytes => {
                headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
            }
            Self::Limited(exceeded) => {
                let seconds = HeaderValue::from(exceeded.retry_after());
                headers.insert(header::RETRY_AFTER, seconds);
            }
            Self::TooManyConnections => {
                headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
                headers.insert(header::CONNECTION, CLOSE);
            }
            // The rest of the body must not be read as the next request.
            Self::TooLarge | Self::BodyTimeout | Self::BodyBroken => {
                headers.insert(header::CONNECTION, CLOSE);
            }
            Self::MethodNotAllowed => {
                headers.insert(header::ALLOW, HeaderValue::from_static("GET, POST, DELETE"));
            }
            Self::OnlyRead => {
                headers.insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
            }
            Self::OnlyPosted => {
                headers.insert(header::ALLOW, HeaderValue::from_static("POST"));
            }
            _ => {}
        }
        response
    }
}

fn revisions() -> String {
    Revision::ALL.map(Revision::name).join(", ")
}
