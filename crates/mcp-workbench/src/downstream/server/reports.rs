//! The progress of calls, passed on to their callers.

use tokio::time::Instant;

use super::calls::Calls;
use crate::wire::{self, RawJson};

impl Calls {
    /// Passes progress on with the caller's own token in place of ours.
    pub(super) fn forward_progress(&mut self, params: &RawJson) {
        let token = params.member("progressToken");
        let id = token.and_then(|token| token.as_str().parse().ok());
        let Some(call) = id.and_then(|id| self.pending.progress(id)) else {
            return;
        };
        let context = &call.queued.call.context;
        if let Some(token) = context.client.progress_token() {
            let params = params.with_member("progressToken", &token);
            let report = wire::notification("notifications/progress", Some(&params));
            if let Some(report) = call.progress.pass(report, Instant::now()) {
                context.client.notify(report);
            }
        }
    }

    /// Passes on progress that was held back and is due.
    pub(super) fn release_progress(&mut self, now: Instant) {
        for call in self.pending.calls_mut() {
            if let Some(report) = call.progress.release_due(now) {
                call.queued.call.context.client.notify(report);
            }
        }
    }
}
