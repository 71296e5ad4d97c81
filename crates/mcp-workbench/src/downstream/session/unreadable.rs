//! What a server writes that is no message, or too much of one: whoever waits for it is told.

use bytes::Bytes;
use tokio::time::Instant;

use crate::{
    downstream::{error::CallError, session::Session},
    wire::{MAX_FRAME_BYTES, RequestId, id_from_head, recover_answer_id},
};

impl Session {
    /// A line that cannot be read may have been an answer: then its caller is told.
    pub(crate) fn take_bad_line(&mut self, line: &Bytes) {
        tracing::debug!("a line on stdout is no message");
        if let Some(id) = recover_answer_id(line).and_then(|id| id.as_u64()) {
            self.calls
                .fail(id, CallError::UnreadableAnswer, &mut self.link);
        }
    }

    /// The beginning of a message that is too large: its caller is told at once if it can be known.
    pub(crate) fn take_oversized(&mut self, head: &Bytes) {
        let has_owner = self.fail_oversized(id_from_head(head).as_ref());
        let bytes = self.link.oversized_bytes();
        self.health.oversized(has_owner, bytes, Instant::now());
    }

    pub(crate) fn fail_oversized(&mut self, id: Option<&RequestId>) -> bool {
        let id = match id {
            Some(id) => id.as_u64(),
            None => self.calls.only_one(),
        };
        let error = CallError::TooLarge {
            limit: MAX_FRAME_BYTES,
        };
        id.is_some_and(|id| self.calls.fail(id, error, &mut self.link))
    }
}
