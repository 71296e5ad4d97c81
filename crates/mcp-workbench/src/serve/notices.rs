//! Notifications that a client may miss: progress and log messages. While the client does not keep up, they wait behind
//! everything else, and few of them do. Without this a server that logs a lot would delay the results of all others.

use std::collections::VecDeque;

use crate::wire::Frame;

/// How many bytes of notifications may wait for a client that does not keep up. More are dropped.
pub(super) const MAX_NOTICE_BYTES: usize = 1024 * 1024;
/// How many bytes may wait for a client that keeps up. So much is written at once, and notifications keep their place
/// among results.
pub(super) const PROMPT_BYTES: usize = 64 * 1024;

/// The notifications that wait behind everything else.
#[derive(Default)]
pub(super) struct Notices {
    waiting: VecDeque<Notice>,
    bytes: usize,
}

struct Notice {
    /// The number of the request that it must not come after the answer of.
    request: u64,
    frame: Frame,
}

impl Notices {
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Adds a notification at the end, if there is room for it.
    pub(super) fn push(&mut self, request: u64, frame: Frame) {
        if self.bytes + frame.len() <= MAX_NOTICE_BYTES {
            self.bytes += frame.len();
            self.waiting.push_back(Notice { request, frame });
        }
    }

    pub(super) fn pop(&mut self) -> Option<Frame> {
        let Notice { frame, .. } = self.waiting.pop_front()?;
        self.bytes -= frame.len();
        Some(frame)
    }

    /// Drops those of a request that is over.
    pub(super) fn forget(&mut self, request: u64) {
        let bytes = &mut self.bytes;
        self.waiting.retain(|notice| {
            let stays = notice.request != request;
            if !stays {
                *bytes -= notice.frame.len();
            }
            stays
        });
    }
}
