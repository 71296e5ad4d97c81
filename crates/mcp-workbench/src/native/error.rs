//! Why a request in native mode got no result.

use crate::{downstream::CallError, ident::ServerName, wire::RawJson};

/// Why a request got no result.
pub(crate) enum NativeError {
    /// No server has this family of requests.
    NotOffered,
    /// The parameters are not usable, or name something that is not there; this is why, in words.
    Invalid(String),
    /// No server has a resource of this URI.
    ResourceNotFound(String),
    /// The server answered with an error, which is passed on as it is.
    Refused(RawJson),
    /// The server did not answer.
    Failed {
        server: ServerName,
        /// The tool, prompt or resource.
        what: String,
        error: CallError,
    },
}

impl NativeError {
    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self::Invalid(message.into())
    }
}
