//! Notifications that a client may miss: progress and log messages. For a slow client they wait behind all other
//! messages, and their number is bounded. Otherwise a server that logs a lot would delay the results of all others.

use std::collections::VecDeque;

use crate::wire::Frame;

/// The bound on waiting notifications for a slow client, in bytes. Beyond it they are dropped.
pub(super) const MAX_NOTICE_BYTES: usize = 1024 * 1024;
/// The number of waiting bytes up to which a client counts as fast. They are written at once, and notifications keep
/// their position among results.
pub(super) const MAX_PROMPT_BYTES: usize = 64 * 1024;

/// The notifications that wait behind all other messages.
#[derive(Default)]
pub(super) struct Notices {
    waiting: VecDeque<Notice>,
    bytes: usize,
}

struct Notice {
    /// The number of its request. The notification must not come after the response to it.
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

    /// Drops the notifications of a request that has ended.
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
