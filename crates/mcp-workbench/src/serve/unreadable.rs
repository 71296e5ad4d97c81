//! What is answered to a frame that is no message.

use bytes::Bytes;
use rawjson::ScanError;

use crate::wire::{self, Frame, InvalidMessage, ParseError, RequestId, code, recover_id};

/// The answer to a frame that is no message, with its id if one can be found in it.
pub(super) fn refusal_frame(error: &ParseError, frame: &Bytes) -> Frame {
    let (id, code, message) = refusal(error);
    let deep = matches!(error, ParseError::NotJson(ScanError::TooDeep));
    let recovered = deep.then(|| recover_id(frame)).flatten();
    wire::error(id.or(recovered.as_ref()), code, &message)
}

/// What is answered to a frame that is no message.
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
