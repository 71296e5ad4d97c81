//! The responses to frames that are not messages.

use bytes::Bytes;
use rawjson::ScanError;

use crate::wire::{self, Frame, InvalidMessage, ParseError, RequestId, code, recover_id};

/// Returns the response to a frame that is not a message, with its id if the frame contains one.
pub(super) fn refusal_frame(error: &ParseError, frame: &Bytes) -> Frame {
    let (id, code, message) = refusal(error);
    // Text that is too deep is well-formed, so its id can be trusted. Broken text may contain anything.
    let deep = matches!(error, ParseError::NotJson(ScanError::TooDeep));
    let recovered = deep.then(|| recover_id(frame)).flatten();
    wire::error(id.or(recovered.as_ref()), code, &message)
}

/// Returns the id, code and message of the response to a frame that is not a message.
pub(super) fn refusal(error: &ParseError) -> (Option<&RequestId>, i64, String) {
    match error {
        ParseError::NotJson(ScanError::Syntax(_)) => {
            (None, code::PARSE_ERROR, format!("Parse error: {error}"))
        }
        ParseError::NotJson(ScanError::TooDeep) => (
            None,
            code::INVALID_REQUEST,
            format!("Invalid request: {error}"),
        ),
        ParseError::Invalid(InvalidMessage { id, .. }) => (
            id.as_ref(),
            code::INVALID_REQUEST,
            format!("Invalid request: {error}"),
        ),
    }
}
