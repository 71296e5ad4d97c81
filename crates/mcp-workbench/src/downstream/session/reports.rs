//! The progress of calls, passed on to their callers.

use tokio::time::Instant;

use crate::{
    call::CallContext,
    downstream::session::calls::Calls,
    wire::{self, RawJson},
};

impl Calls {
    /// Passes progress on with the caller's own token in place of ours.
    pub(crate) fn forward_progress(&mut self, params: &RawJson) {
        let token = params.member("progressToken");
        let id = token.and_then(|token| token.as_str().parse().ok());
        let Some(call) = id.and_then(|id| self.pending.progress(id)) else {
            return;
        };
        if let Some(params) = call.progress.pass(params.clone(), Instant::now()) {
            report(&mut call.queued.call.context, &params);
        } else if let Some(due) = call.progress.due() {
            self.pending.expect_report(due);
        }
    }

    /// Passes on progress that was held back and is due.
    pub(crate) fn release_progress(&mut self, now: Instant) {
        for call in self.pending.calls_mut() {
            if let Some(params) = call.progress.release_due(now) {
                report(&mut call.queued.call.context, &params);
            }
        }
        self.pending.reports_released();
    }
}

/// Tells a client of progress, under the token of the request that it waits for now.
pub(crate) fn report(context: &mut CallContext, params: &RawJson) {
    if let Some(token) = context.client.progress_token()
        && context.progress.note(params)
    {
        let params = params.with_member("progressToken", &token);
        context
            .client
            .notify(wire::notification("notifications/progress", Some(&params)));
    }
}
