//! The error of a request in native mode.

use ident::ServerIdentifier;
use rawjson::RawJson;

use crate::{downstream::CallError, list_page::UnknownCursor};

/// The reason why a request has no result.
pub(crate) enum NativeError {
    /// No server supports this family of requests.
    NotOffered,
    /// The parameters are invalid or name something unknown; the text is the message.
    Invalid(String),
    /// No server has a resource of this URI.
    ResourceNotFound(String),
    /// The server answered with an error, which is passed on unchanged.
    Refused(RawJson),
    /// The server did not answer.
    Failed {
        server: Box<ServerIdentifier>,
        /// The tool, prompt or resource.
        what: String,
        error: CallError,
    },
}

impl From<UnknownCursor> for NativeError {
    fn from(error: UnknownCursor) -> Self {
        Self::Invalid(error.to_string())
    }
}

impl NativeError {
    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self::Invalid(message.into())
    }
}
