//! Output of a server that is not a message, or an oversized one: the call that waits for it fails.

use bytes::Bytes;
use tokio::time::Instant;

use crate::{
    downstream::{error::CallError, session::Session},
    wire::{MAX_FRAME_BYTES, RequestId, id_from_head, recover_answer_id},
};

/// Fails the call whose response an unreadable line may have been.
pub(crate) fn take_bad_line(session: &mut Session, line: &Bytes) {
    tracing::debug!("ignoring a line on stdout that is not an MCP message");
    if let Some(id) = recover_answer_id(line).and_then(|id| id.as_u64()) {
        session
            .calls
            .fail(id, CallError::UnreadableAnswer, &mut session.link);
    }
}

/// Handles the beginning of an oversized message, and fails its call at once if it can be identified.
pub(crate) fn take_oversized(session: &mut Session, head: &Bytes) {
    let has_owner = fail_oversized(session, id_from_head(head).as_ref());
    let bytes = session.link.oversized_bytes();
    session.health.oversized(has_owner, bytes, Instant::now());
}

/// Fails the call that an oversized message answers; returns false if it cannot be identified.
pub(crate) fn fail_oversized(session: &mut Session, id: Option<&RequestId>) -> bool {
    let id = match id {
        Some(id) => id.as_u64(),
        // With one pending call it can be the answer to no other.
        None => session.calls.only_one(),
    };
    let error = CallError::TooLarge {
        limit: MAX_FRAME_BYTES,
    };
    id.is_some_and(|id| session.calls.fail(id, error, &mut session.link))
}
