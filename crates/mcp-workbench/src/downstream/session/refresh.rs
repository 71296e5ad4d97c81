//! Reads a tool list again after its server announced a change: at once the first time, then at most once per second.
//! Callers that need a current list wait for it.

use std::{future::pending, sync::Arc, time::Duration};

use rawjson::RawJson;
use tokio::{sync::watch, time::Instant};

use crate::{
    config::{ListBounds, Permissions},
    downstream::{
        introduction::Introduction,
        listing::{ListWalk, Step, ToolList},
        server::{ConnectReply, Status},
        snapshot::ServerSnapshot,
    },
    era::Era,
    offload::{Offloaded, ThreadOutput},
    wire::Answer,
};

/// The minimum time between two readings.
const PAUSE: Duration = Duration::from_secs(1);
/// How long a reading may take.
pub(crate) const LISTING_TIMEOUT: Duration = Duration::from_secs(30);

/// The number of consecutive readings that may end with another announced change before calls are sent anyway: a server
/// that keeps announcing changes must not block them.
const MAX_UNSETTLED: u32 = 3;

/// The reading of a changed list.
#[derive(Default)]
pub(crate) struct Refresh {
    /// Set while the list may be outdated.
    is_outdated: bool,
    /// Set while the session is lost, so that nothing can be read.
    is_lost: bool,
    /// The time to begin, if a change was announced.
    due: Option<Instant>,
    began: Option<Instant>,
    walk: Option<ListWalk>,
    /// The check of a large page, or of the whole list after the last page.
    work: Option<ThreadOutput<CheckedPage>>,
    /// A page whose check has ended.
    checked: Option<CheckedPage>,
    /// The request for the current page; responses to others belong to an earlier reading.
    page: Option<u64>,
    waiting: Vec<ConnectReply>,
    /// The introduction of a new session or account. Nothing is known of its tools before the reading is complete.
    renewed: Option<Introduction>,
    /// The number of consecutive readings that ended outdated.
    unsettled: u32,
}

/// The outcome of a page of the list.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PageOutcome {
    /// Request the next page with these parameters.
    Next(RawJson),
    /// The page is large and is being checked on a thread.
    InWork,
    /// The page belongs to no current reading.
    Ignored,
    /// The list is complete, and calls may be sent.
    Listed,
    /// The list is complete, but another change was announced meanwhile.
    ChangedAgain,
    /// The list cannot be read. The last one is still shown, but no call is sent based on it.
    Unreadable,
    /// The list of a new session cannot be read, so the session is unusable.
    Lost,
}

/// The means to read a list.
pub(crate) struct ListReader<'a> {
    pub(crate) era: Era,
    pub(crate) permissions: &'a Permissions,
    /// Makes the list from the server's snapshot.
    pub(crate) make_list: MakeList,
    /// Stores the server's snapshot.
    pub(crate) keep: &'a dyn Fn(&ServerSnapshot),
}

/// Makes a tool list by the rules of its server. A large list is made on a thread.
pub(crate) type MakeList = Box<dyn FnOnce(&ServerSnapshot) -> ToolList + Send>;

/// A page that was checked.
enum CheckedPage {
    Next(Box<ListWalk>),
    /// It was the last one.
    Last(Box<(ServerSnapshot, ToolList)>),
    /// It is not a page of such a list.
    Invalid,
}

/// Checks a page, and the whole list if it is the last one.
fn check(
    mut walk: ListWalk,
    page: &RawJson,
    era: Era,
    introduction: Introduction,
    make_list: MakeList,
) -> CheckedPage {
    match walk.accept(page) {
        Some(Step::Next) => CheckedPage::Next(Box::new(walk)),
        Some(Step::Done) => {
            let snapshot = walk.into_snapshot(era, introduction);
            let list = make_list(&snapshot);
            CheckedPage::Last(Box::new((snapshot, list)))
        }
        None => CheckedPage::Invalid,
    }
}

impl Refresh {
    /// Records that the server announced a change.
    pub(crate) fn announce(&mut self) {
        let now = Instant::now();
        // A server that announces changes all the time is listed once per pause.
        let earliest = self.began.map_or(now, |began| began + PAUSE);
        self.is_outdated = true;
        // An earlier time stays: a call may already wait for that reading.
        self.due.get_or_insert(earliest.max(now));
    }

    /// Begins the next reading at once: a call waits for it, so the pause between readings would only delay the call.
    pub(crate) fn list_now(&mut self, now: Instant) {
        // A reading that runs ends first, and its outcome decides if another one is needed.
        if self.is_outdated && !self.is_reading() {
            self.due = Some(now);
        }
    }

    /// Stops reading from a lost session. Returns the request whose response no longer matters.
    pub(crate) fn lose(&mut self) -> Option<u64> {
        self.is_outdated = true;
        self.is_lost = true;
        self.drop_walk()
    }

    /// Makes the next reading that of a new session or account, which cannot be used without it. Returns the request
    /// whose response no longer matters.
    pub(crate) fn require(&mut self, introduction: Introduction) -> Option<u64> {
        self.renewed = Some(introduction);
        self.is_lost = false;
        // No pause after the reading of the lost session.
        self.began = None;
        // Pages of the lost session must not become part of the new list.
        self.drop_walk()
    }

    fn drop_walk(&mut self) -> Option<u64> {
        self.walk = None;
        self.work = None;
        self.page.take()
    }

    /// Discards a check that used outdated rules, and begins another reading.
    pub(crate) fn discard_work(&mut self, now: Instant) {
        if self.work.take().is_some() {
            self.due = Some(now);
        }
    }

    /// Returns true if a page is being checked.
    pub(crate) fn is_in_work(&self) -> bool {
        self.work.is_some()
    }

    fn is_reading(&self) -> bool {
        self.walk.is_some() || self.work.is_some()
    }

    /// Records the request for the next page.
    pub(crate) fn asked(&mut self, id: u64) {
        self.page = Some(id);
    }

    /// Returns true if the list is not current.
    pub(crate) fn is_on(&self) -> bool {
        self.is_outdated
    }

    /// Returns when to begin a reading, or when the current one times out.
    pub(crate) fn due(&self) -> Option<Instant> {
        if self.is_reading() {
            self.began.map(|began| began + LISTING_TIMEOUT)
        } else {
            self.due.filter(|_| !self.is_lost)
        }
    }

    /// Ends a reading that timed out. Returns the request that is dropped, and the outcome.
    pub(crate) fn give_up_if_due(
        &mut self,
        now: Instant,
        status: &watch::Sender<Status>,
    ) -> Option<(Option<u64>, PageOutcome)> {
        if !self.is_reading() || self.due().is_none_or(|due| due > now) {
            return None;
        }
        let page = self.drop_walk();
        // Without a list no call may be sent in the new session, so it is of no use.
        if self.renewed.is_some() {
            return Some((page, PageOutcome::Lost));
        }
        tracing::warn!("listing the changed tools timed out");
        self.finish(status);
        Some((page, PageOutcome::Unreadable))
    }

    /// Replies when the list is current. A list that could not be read is read again.
    pub(crate) fn wait(&mut self, reply: ConnectReply, now: Instant) {
        if !self.is_reading() {
            self.due.get_or_insert(now);
        }
        self.waiting.push(reply);
    }

    pub(crate) fn into_waiting(self) -> Vec<ConnectReply> {
        self.waiting
    }

    /// Begins a reading if it is due; returns the parameters of the first request.
    pub(crate) fn begin_if_due(&mut self, now: Instant, bounds: ListBounds) -> Option<RawJson> {
        let due = self.due.filter(|_| !self.is_lost)?;
        if due > now || self.is_reading() {
            return None;
        }
        self.due = None;
        self.began = Some(now);
        Some(self.walk.insert(ListWalk::tools(bounds)).params())
    }

    /// Handles the response to a request for a page.
    pub(crate) fn take_page(
        &mut self,
        id: u64,
        answer: &Answer,
        reading: ListReader<'_>,
        status: &watch::Sender<Status>,
    ) -> PageOutcome {
        if self.page != Some(id) {
            return PageOutcome::Ignored;
        }
        self.page = None;
        let Some(walk) = self.walk.take() else {
            return PageOutcome::Ignored;
        };
        let Answer::Result(page) = answer else {
            return self.unreadable(status);
        };
        let introduction = self.renewed.clone().unwrap_or_else(|| {
            let known = status.borrow().tools.clone();
            known.unwrap_or_default().introduction.clone()
        });
        let ListReader {
            era,
            permissions,
            make_list,
            keep,
        } = reading;
        // The last page is checked together with all pages before it.
        let bytes = walk.bytes() + page.as_bytes().len();
        let page = page.clone();
        // Thousands of definitions take milliseconds to check, which would hold up all other servers.
        let work = Offloaded::start(bytes, move || {
            check(walk, &page, era, introduction, make_list)
        });
        match work {
            Offloaded::Done(checked) => {
                self.checked = Some(checked);
                self.take_checked(permissions, keep, status)
            }
            Offloaded::Running(running) => {
                self.work = Some(running);
                PageOutcome::InWork
            }
        }
    }

    /// Waits for the check of a page; forever if there is none. Cancel-safe.
    pub(crate) async fn check_ended(&mut self) {
        self.checked = match &mut self.work {
            Some(work) => Some(work.await),
            None => pending().await,
        };
        self.work = None;
    }

    /// Handles a page whose check has ended.
    pub(crate) fn take_checked(
        &mut self,
        permissions: &Permissions,
        keep: &dyn Fn(&ServerSnapshot),
        status: &watch::Sender<Status>,
    ) -> PageOutcome {
        // A list is taken in three steps, of which any can be interrupted: pages are requested one after the other,
        // each is checked, on a thread if it is large, and after the last one the list is made and published.
        // `drop_walk` ends all three, so that an answer or a check that comes late finds nothing to belong to.
        match self.checked.take() {
            Some(CheckedPage::Next(walk)) => {
                return PageOutcome::Next(self.walk.insert(*walk).params());
            }
            Some(CheckedPage::Last(last)) => {
                let (snapshot, list) = *last;
                self.renewed = None;
                keep(&snapshot);
                publish(list, permissions, status);
            }
            Some(CheckedPage::Invalid) => return self.unreadable(status),
            None => return PageOutcome::Ignored,
        }
        // Another change was announced while this list was read.
        self.is_outdated = self.due.is_some();
        self.unsettled = if self.is_outdated {
            self.unsettled + 1
        } else {
            0
        };
        self.finish(status);
        // After several changed lists in a row, calls continue with the newest, or they would wait forever.
        if self.is_outdated && self.unsettled < MAX_UNSETTLED {
            PageOutcome::ChangedAgain
        } else {
            PageOutcome::Listed
        }
    }

    fn unreadable(&mut self, status: &watch::Sender<Status>) -> PageOutcome {
        if self.renewed.is_some() {
            return PageOutcome::Lost;
        }
        tracing::warn!("failed to read the changed tool list");
        self.finish(status);
        PageOutcome::Unreadable
    }

    /// Publishes if the list is current, and answers all waiting callers.
    fn finish(&mut self, status: &watch::Sender<Status>) {
        let is_outdated = self.is_outdated;
        status.send_modify(|status| status.stale = is_outdated);
        let tools = status.borrow().tools.clone().unwrap_or_default();
        for reply in self.waiting.drain(..) {
            // A caller that is gone needs no list.
            let _ = reply.send(Ok(Arc::clone(&tools)));
        }
    }
}

/// Publishes a list that differs from the last one.
fn publish(tools: ToolList, permissions: &Permissions, status: &watch::Sender<Status>) {
    let known = status.borrow().tools.clone().unwrap_or_default();
    // An earlier annotation that was stricter still counts, or a server could declare itself harmless once it is in
    // use.
    let tools = tools.after(&known, permissions);
    // Every value that is sent wakes all watchers, so an equal list is not published.
    if tools != *known {
        status.send_modify(|status| status.tools = Some(Arc::new(tools)));
    }
}

#[cfg(test)]
mod tests;
