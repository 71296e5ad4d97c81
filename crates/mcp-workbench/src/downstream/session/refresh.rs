//! Reading a list again that its server says has changed: at once the first time, then not more often
//! than once a second, however often it is announced. Whoever wants a current list waits for it.

use std::{sync::Arc, time::Duration};

use tokio::{sync::watch, time::Instant};

use crate::{
    downstream::{
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
const PATIENCE: Duration = Duration::from_secs(30);

/// The reading of a list that has changed.
#[derive(Default)]
pub(crate) struct Refresh {
    /// When to begin, if a change was announced.
    due: Option<Instant>,
    began: Option<Instant>,
    walk: Option<ListWalk>,
    waiting: Vec<ConnectReply>,
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

    /// Whether the list is not current.
    pub(crate) fn is_on(&self) -> bool {
        self.due.is_some() || self.walk.is_some()
    }

    /// When to begin a reading, or to give up the one that is under way.
    pub(crate) fn due(&self) -> Option<Instant> {
        match self.walk {
            Some(_) => self.began.map(|began| began + PATIENCE),
            None => self.due,
        }
    }

    /// Gives up a reading that takes too long.
    pub(crate) fn give_up_if_due(&mut self, now: Instant, status: &watch::Sender<Status>) {
        if self.walk.is_some() && self.due().is_some_and(|due| due <= now) {
            tracing::warn!("the changed list of tools was not told in time; the last one stays");
            self.walk = None;
            self.finish(status);
        }
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

    /// Takes a page; returns the parameters of the next request, if there is one.
    pub(crate) fn take_page(
        &mut self,
        answer: &Answer,
        reading: &Reading<'_>,
        status: &watch::Sender<Status>,
    ) -> Option<RawJson> {
        let mut walk = self.walk.take()?;
        let step = match answer {
            Answer::Result(page) => walk.accept(page),
            Answer::Error(_) | Answer::Invalid => None,
        };
        match step {
            Some(Step::Next) => return Some(self.walk.insert(walk).params()),
            Some(Step::Done) => publish(walk, reading, status),
            None => tracing::warn!("the changed list of tools cannot be read; the last one stays"),
        }
        self.finish(status);
        None
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
fn publish(walk: ListWalk, reading: &Reading<'_>, status: &watch::Sender<Status>) {
    let known = status.borrow().tools.clone().unwrap_or_default();
    let told = walk.told(reading.era, known.introduction.clone());
    (reading.keep)(&told);
    let tools = ToolList::of(&told, &reading.rules);
    let tools = tools.after(&known, reading.rules.permissions);
    if tools != *known {
        status.send_modify(|status| status.tools = Some(Arc::new(tools)));
    }
}

#[cfg(test)]
mod tests;
