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

/// How many readings may end while the server announces another change before calls are sent all the same: a server
/// that announces without end must not hold them up.
const MAX_UNSETTLED: u32 = 3;

/// The reading of a list that has changed.
#[derive(Default)]
pub(crate) struct Refresh {
    /// Set while the list is not known to be current.
    is_outdated: bool,
    /// Set while the session is lost, and there is nobody to read from.
    is_lost: bool,
    /// The time to begin, if a change was announced.
    due: Option<Instant>,
    began: Option<Instant>,
    walk: Option<ListWalk>,
    /// The request for the page that is read; others are of an earlier reading.
    page: Option<u64>,
    waiting: Vec<ConnectReply>,
    /// The introduction of a new session or account. Nothing is known of its tools before the reading is complete.
    renewed: Option<Introduction>,
    /// How many readings have ended outdated, one after the other.
    unsettled: u32,
}

/// The outcome of a page of the list.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Page {
    /// Another page follows, to be requested with these parameters.
    Next(RawJson),
    /// It belongs to no reading.
    Ignored,
    /// The list is complete, and calls may be sent.
    Listed,
    /// The list is complete, and another change was announced meanwhile.
    ChangedAgain,
    /// The list cannot be read. The last one is still shown, and no call is sent by it.
    Unreadable,
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
        self.is_outdated = true;
        self.due.get_or_insert(earliest.max(now));
    }

    /// Begins the next reading at once: a call waits for it, so the pause between readings would only delay the call.
    pub(crate) fn hasten(&mut self, now: Instant) {
        if self.is_outdated && self.walk.is_none() {
            self.due = Some(now);
        }
    }

    /// Stops reading from a session that is lost. Returns the request whose answer is of no use any more.
    pub(crate) fn lose(&mut self) -> Option<u64> {
        self.is_outdated = true;
        self.is_lost = true;
        self.drop_walk()
    }

    /// Makes the next reading that of a new session or account, which cannot be used without it. Returns the request
    /// whose answer is of no use any more.
    pub(crate) fn require(&mut self, introduction: Introduction) -> Option<u64> {
        self.renewed = Some(introduction);
        self.is_lost = false;
        self.began = None;
        self.drop_walk()
    }

    fn drop_walk(&mut self) -> Option<u64> {
        self.walk = None;
        self.page.take()
    }

    /// Notes the request for the next page.
    pub(crate) fn asked(&mut self, id: u64) {
        self.page = Some(id);
    }

    /// Returns whether the list is not current.
    pub(crate) fn is_on(&self) -> bool {
        self.is_outdated
    }

    /// When to begin a reading, or to give up the one that is under way.
    pub(crate) fn due(&self) -> Option<Instant> {
        match self.walk {
            Some(_) => self.began.map(|began| began + LISTING_TIMEOUT),
            None => self.due.filter(|_| !self.is_lost),
        }
    }

    /// Gives up a reading that takes too long. Returns the request that is given up, and what that means.
    pub(crate) fn give_up_if_due(
        &mut self,
        now: Instant,
        status: &watch::Sender<Status>,
    ) -> Option<(Option<u64>, Page)> {
        if self.walk.is_none() || self.due().is_none_or(|due| due > now) {
            return None;
        }
        let page = self.drop_walk();
        if self.renewed.is_some() {
            return Some((page, Page::Lost));
        }
        tracing::warn!("listing the changed tools timed out");
        self.finish(status);
        Some((page, Page::Unreadable))
    }

    /// Answers somebody when the list is current. One that could not be read is read again.
    pub(crate) fn wait(&mut self, reply: ConnectReply, now: Instant) {
        if self.walk.is_none() {
            self.due.get_or_insert(now);
        }
        self.waiting.push(reply);
    }

    /// Those who still wait.
    pub(crate) fn into_waiting(self) -> Vec<ConnectReply> {
        self.waiting
    }

    /// Begins a reading if it is time; returns the parameters of the first request.
    pub(crate) fn begin_if_due(&mut self, now: Instant) -> Option<RawJson> {
        let due = self.due.filter(|_| !self.is_lost)?;
        if due > now || self.walk.is_some() {
            return None;
        }
        self.due = None;
        self.began = Some(now);
        Some(self.walk.insert(ListWalk::tools()).params())
    }

    /// Takes the answer to a request for a page of the list.
    pub(crate) fn take_page(
        &mut self,
        id: u64,
        answer: &Answer,
        reading: &Reading<'_>,
        status: &watch::Sender<Status>,
    ) -> Page {
        if self.page != Some(id) {
            return Page::Ignored;
        }
        self.page = None;
        let Some(mut walk) = self.walk.take() else {
            return Page::Ignored;
        };
        let step = match answer {
            Answer::Result(page) => walk.accept(page),
            Answer::Error(_) | Answer::Invalid => None,
        };
        match step {
            Some(Step::Next) => return Page::Next(self.walk.insert(walk).params()),
            Some(Step::Done) => publish(walk, self.renewed.take(), reading, status),
            None if self.renewed.is_some() => return Page::Lost,
            None => {
                tracing::warn!("the changed list of tools cannot be read");
                self.finish(status);
                return Page::Unreadable;
            }
        }
        self.is_outdated = self.due.is_some();
        self.unsettled = if self.is_outdated {
            self.unsettled + 1
        } else {
            0
        };
        self.finish(status);
        if self.is_outdated && self.unsettled < MAX_UNSETTLED {
            Page::ChangedAgain
        } else {
            Page::Listed
        }
    }

    /// Publishes whether the list is current, and answers everybody who waits for it.
    fn finish(&mut self, status: &watch::Sender<Status>) {
        let is_outdated = self.is_outdated;
        status.send_modify(|status| status.stale = is_outdated);
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
