//! Reading a list again that its server says has changed: at once the first time, then not more often
//! than once a second, however often it is announced. Whoever wants a current list waits for it.

use std::{sync::Arc, time::Duration};

use tokio::{sync::watch, time::Instant};

use crate::{
    downstream::{
        introduction::Introduction,
        listing::{ListRules, ListWalk, Step, ToolList},
        server::{ConnectReply, Status},
        told::Told,
    },
    era::Era,
    wire::{Answer, RawJson},
};

/// The least time between two readings.
const PAUSE: Duration = Duration::from_secs(1);
/// How long a reading may take.
pub(crate) const LISTING_TIMEOUT: Duration = Duration::from_secs(30);

/// The reading of a list that has changed.
#[derive(Default)]
pub(crate) struct Refresh {
    /// When to begin, if a change was announced.
    due: Option<Instant>,
    began: Option<Instant>,
    walk: Option<ListWalk>,
    waiting: Vec<ConnectReply>,
    /// The introduction of a new session. Nothing is known of its tools before the reading is complete.
    renewed: Option<Introduction>,
}

/// The outcome of a page of the list.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Page {
    /// Another page follows, to be requested with these parameters.
    Next(RawJson),
    /// The list is complete, or the last one stays.
    Listed,
    /// The list of a new session cannot be read, so the session is of no use.
    Lost,
}

/// How a list is read.
pub(crate) struct Reading<'a> {
    /// How the server speaks.
    pub(crate) era: Era,
    pub(crate) rules: ListRules<'a>,
    /// Keeps what the server has told.
    pub(crate) keep: &'a dyn Fn(&Told),
}

impl Refresh {
    /// Notes that the server has announced a change.
    pub(crate) fn announce(&mut self) {
        let now = Instant::now();
        let earliest = self.began.map_or(now, |began| began + PAUSE);
        self.due.get_or_insert(earliest.max(now));
    }

    /// Begins the next reading at once: a call waits for it, so the pause between readings would only delay the call.
    pub(crate) fn hasten(&mut self, now: Instant) {
        self.due = self.due.map(|due| due.min(now));
    }

    /// Makes the next reading that of a new session, which cannot be used without it.
    pub(crate) fn require(&mut self, introduction: Introduction) {
        self.renewed = Some(introduction);
    }

    /// Whether the list is not current.
    pub(crate) fn is_on(&self) -> bool {
        self.due.is_some() || self.walk.is_some()
    }

    /// When to begin a reading, or to give up the one that is under way.
    pub(crate) fn due(&self) -> Option<Instant> {
        match self.walk {
            Some(_) => self.began.map(|began| began + LISTING_TIMEOUT),
            None => self.due,
        }
    }

    /// Gives up a reading that takes too long. Returns whether the session cannot go on without it.
    pub(crate) fn give_up_if_due(&mut self, now: Instant, status: &watch::Sender<Status>) -> bool {
        if self.walk.is_none() || self.due().is_none_or(|due| due > now) {
            return false;
        }
        self.walk = None;
        if self.renewed.is_some() {
            return true;
        }
        tracing::warn!("listing the changed tools timed out; the last list stays");
        self.finish(status);
        false
    }

    /// Answers somebody when the list is current.
    pub(crate) fn wait(&mut self, reply: ConnectReply) {
        self.waiting.push(reply);
    }

    /// Those who still wait.
    pub(crate) fn into_waiting(self) -> Vec<ConnectReply> {
        self.waiting
    }

    /// Begins a reading if it is time; returns the parameters of the first request.
    pub(crate) fn begin_if_due(&mut self, now: Instant) -> Option<RawJson> {
        self.due.filter(|due| *due <= now && self.walk.is_none())?;
        self.due = None;
        self.began = Some(now);
        Some(self.walk.insert(ListWalk::tools()).params())
    }

    /// Takes a page of the list.
    pub(crate) fn take_page(
        &mut self,
        answer: &Answer,
        reading: &Reading<'_>,
        status: &watch::Sender<Status>,
    ) -> Page {
        let Some(mut walk) = self.walk.take() else {
            return Page::Listed;
        };
        let step = match answer {
            Answer::Result(page) => walk.accept(page),
            Answer::Error(_) | Answer::Invalid => None,
        };
        match step {
            Some(Step::Next) => return Page::Next(self.walk.insert(walk).params()),
            Some(Step::Done) => publish(walk, self.renewed.take(), reading, status),
            None if self.renewed.is_some() => return Page::Lost,
            None => tracing::warn!("the changed list of tools cannot be read; the last one stays"),
        }
        self.finish(status);
        Page::Listed
    }

    /// Tells everybody who waits what the list is now.
    fn finish(&mut self, status: &watch::Sender<Status>) {
        let changed_again = self.due.is_some();
        status.send_modify(|status| status.stale = changed_again);
        let tools = status.borrow().tools.clone().unwrap_or_default();
        for reply in self.waiting.drain(..) {
            let _ = reply.send(Ok(Arc::clone(&tools)));
        }
    }
}

/// Publishes a list that is not equal to the last.
fn publish(
    walk: ListWalk,
    renewed: Option<Introduction>,
    reading: &Reading<'_>,
    status: &watch::Sender<Status>,
) {
    let known = status.borrow().tools.clone().unwrap_or_default();
    let introduction = renewed.unwrap_or_else(|| known.introduction.clone());
    let told = walk.told(reading.era, introduction);
    (reading.keep)(&told);
    let tools = ToolList::of(&told, &reading.rules);
    let tools = tools.after(&known, reading.rules.permissions);
    if tools != *known {
        status.send_modify(|status| status.tools = Some(Arc::new(tools)));
    }
}

#[cfg(test)]
mod tests;
