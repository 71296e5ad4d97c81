//! Why a request in native mode got no result.

use crate::{downstream::CallError, era::Era, ident::ServerName, wire::RawJson};

/// Why a request got no result.
pub enum NativeError {
    /// No server has this family of requests.
    NotOffered,
    /// The parameters are not usable, or name something that is not there.
    Invalid {
        /// The JSON-RPC code.
        code: i64,
        /// Why, in words.
        message: String,
    },
    /// The server answered with an error, which is passed on as it is.
    Refused(RawJson),
    /// The server did not answer.
    Failed {
        /// The server.
        server: ServerName,
        /// The tool, prompt or resource.
        what: String,
        /// Why.
        error: CallError,
    },
}

/// The JSON-RPC codes of what is refused here.
const INVALID_PARAMS: i64 = -32602;
const RESOURCE_NOT_FOUND: i64 = -32002;

impl NativeError {
    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self::Invalid {
            code: INVALID_PARAMS,
            message: message.into(),
        }
    }

    /// The modern era has no code of its own for this.
    pub(super) fn resource_not_found(uri: &str, era: Era) -> Self {
        Self::Invalid {
            code: match era {
                Era::Legacy => RESOURCE_NOT_FOUND,
                Era::Modern => INVALID_PARAMS,
            },
            message: format!("Resource not found: {uri}"),
        }
    }
}
