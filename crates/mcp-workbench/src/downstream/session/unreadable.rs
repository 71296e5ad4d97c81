//! What a server writes that is no message, or too much of one: whoever waits for it is told.

use bytes::Bytes;
use tokio::time::Instant;

use crate::{
    downstream::{error::CallError, session::Session},
    wire::{MAX_FRAME_BYTES, RequestId, id_from_head, recover_answer_id},
};

/// Fails the call that an unreadable line may have been the answer to.
pub(crate) fn take_bad_line(session: &mut Session, line: &Bytes) {
    tracing::debug!("ignoring a line on stdout that is not an MCP message");
    if let Some(id) = recover_answer_id(line).and_then(|id| id.as_u64()) {
        session
            .calls
            .fail(id, CallError::UnreadableAnswer, &mut session.link);
    }
}

/// Takes the beginning of a message that is too large, and fails its call at once if it can be identified.
pub(crate) fn take_oversized(session: &mut Session, head: &Bytes) {
    let has_owner = fail_oversized(session, id_from_head(head).as_ref());
    let bytes = session.link.oversized_bytes();
    session.health.oversized(has_owner, bytes, Instant::now());
}

/// Fails the call that a message that is too large answers; returns false if it cannot be identified.
pub(crate) fn fail_oversized(session: &mut Session, id: Option<&RequestId>) -> bool {
    let id = match id {
        Some(id) => id.as_u64(),
        None => session.calls.only_one(),
    };
    let error = CallError::TooLarge {
        limit: MAX_FRAME_BYTES,
    };
    id.is_some_and(|id| session.calls.fail(id, error, &mut session.link))
}
