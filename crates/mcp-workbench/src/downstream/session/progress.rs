//! Limits the progress of one call that is passed on. Normal progress passes; a flood is reduced to its newest
//! notification, in order, and held-back progress is sent before the response.

use std::time::Duration;

use rawjson::RawJson;
use tokio::time::Instant;

use crate::call::CallContext;

/// The size of a burst, and the interval at which further notifications may pass.
const BURST: u32 = 100;
const PAUSE: Duration = Duration::from_millis(100);

/// The rate limiter for the progress of one call.
pub(crate) struct ProgressGate {
    /// How many more notifications may pass at once.
    credit: u32,
    /// The time at which credit was last added.
    credited_at: Instant,
    /// The parameters of the notification that is held back, as the server sent them.
    held_back: Option<RawJson>,
}

impl ProgressGate {
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            credit: BURST,
            credited_at: now,
            held_back: None,
        }
    }

    /// Takes a notification; returns the one to send now.
    pub(crate) fn pass(&mut self, report: RawJson, now: Instant) -> Option<RawJson> {
        self.give_credit(now);
        if self.credit == 0 {
            self.held_back = Some(report);
            return None;
        }
        self.credit -= 1;
        // It is older than this one, and progress must not go backwards.
        self.held_back = None;
        Some(report)
    }

    /// Returns when the held-back notification may be sent.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.held_back.as_ref().map(|_| self.credited_at + PAUSE)
    }

    /// Returns the held-back notification if it is due.
    pub(crate) fn release_due(&mut self, now: Instant) -> Option<RawJson> {
        self.due().filter(|due| *due <= now)?;
        self.give_credit(now);
        self.credit = self.credit.saturating_sub(1);
        self.held_back.take()
    }

    /// Returns the held-back notification at the end of the call.
    pub(crate) fn release(&mut self) -> Option<RawJson> {
        self.held_back.take()
    }

    fn give_credit(&mut self, now: Instant) {
        let pauses = (now - self.credited_at).as_millis() / PAUSE.as_millis();
        let pauses = u32::try_from(pauses).unwrap_or(u32::MAX);
        if pauses > 0 {
            self.credit = self.credit.saturating_add(pauses).min(BURST);
            // The rest of an unfinished pause is lost, so that the limit only becomes a little stricter.
            self.credited_at = now;
        }
    }
}

/// Sends progress to a client, under the token of its current request.
pub(crate) fn report(context: &mut CallContext, params: &RawJson) {
    if context.client.progress_token().is_some() && context.reports.record(params) {
        context.client.report_progress(params);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(number: u32) -> RawJson {
        RawJson::of(&number)
    }

    #[test]
    fn normal_progress_passes_and_a_flood_is_reduced_to_the_newest() {
        let start = Instant::now();
        let mut gate = ProgressGate::new(start);
        for number in 0..BURST {
            assert!(gate.pass(report(number), start).is_some());
        }
        assert_eq!(gate.due(), None);
        for number in BURST..1000 {
            assert!(gate.pass(report(number), start).is_none());
        }
        assert_eq!(gate.due(), Some(start + PAUSE));
        assert!(gate.release_due(start).is_none());
        assert_eq!(gate.release_due(start + PAUSE), Some(report(999)));
        assert_eq!(gate.due(), None);
    }

    #[test]
    fn held_back_progress_is_sent_once_at_the_end_of_the_call() {
        let start = Instant::now();
        let mut gate = ProgressGate::new(start);
        for number in 0..=BURST {
            gate.pass(report(number), start);
        }
        assert_eq!(gate.release(), Some(report(BURST)));
        assert!(gate.release().is_none());
    }

    #[test]
    fn newer_progress_replaces_held_back_progress() {
        let start = Instant::now();
        let mut gate = ProgressGate::new(start);
        for number in 0..=BURST {
            gate.pass(report(number), start);
        }
        assert!(gate.pass(report(500), start + PAUSE).is_some());
        assert!(gate.release().is_none(), "an older report must not follow");
    }
}
