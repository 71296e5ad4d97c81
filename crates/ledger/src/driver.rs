//! The client: executes the plan with many concurrent requests. It records every action before it happens and every
//! event when it arrives. One thread owns the history.

use std::{
    collections::{BTreeMap, HashMap},
    sync::mpsc::RecvTimeoutError,
    time::{Duration, Instant},
};

use thiserror::Error;

use crate::{
    history::{Answer, Event, History, Request},
    identity::{Id, ServerIndex},
    outgoing,
    plan::{Plan, Planned, Step},
    workbench::Workbench,
};

/// The bound on concurrent requests.
const WINDOW: usize = 128;

/// The idle time after which scheduled cancellations are sent early: every slot may be taken by a call that waits for
/// its cancellation.
const STILL: Duration = Duration::from_millis(100);

/// The idle time after which unanswered requests count as lost.
pub(crate) const SILENCE: Duration = Duration::from_secs(30);

/// How long to wait before a server that could not be reached is tried again.
const RETRY: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub(crate) struct Driver {
    pub workbench: Workbench,
    /// The history since it was last taken.
    pub history: History,
    /// The longest that a request has waited for its answer while stdin was open.
    pub slowest: Duration,
    plan: Plan,
    step: u64,
    open: HashMap<Id, OpenRequest>,
    /// How many answers are awaited.
    awaited: usize,
    /// The requests to cancel, by the step at which it is time to.
    cancels: BTreeMap<u64, Vec<Id>>,
}

#[derive(Debug)]
struct OpenRequest {
    left: usize,
    since: Instant,
}

/// The end of the load.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Limit {
    Steps(u64),
    /// After so many steps, or at this moment if that comes first.
    StepsUntil(u64, Instant),
}

/// The client cannot go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Stuck {
    #[error("the workbench has ended")]
    Ended,
    /// The workbench sends nothing, although responses are due.
    #[error("the workbench is silent, although {awaited} answers are due")]
    Silent { awaited: usize },
}

impl Driver {
    /// A client of this workbench.
    pub(crate) fn new(workbench: Workbench, plan: Plan) -> Self {
        Self {
            workbench,
            history: History::default(),
            slowest: Duration::ZERO,
            plan,
            step: 0,
            open: HashMap::new(),
            awaited: 0,
            cancels: BTreeMap::new(),
        }
    }

    /// Introduces itself and opens all toolboxes.
    pub(crate) fn begin(&mut self, toolboxes: usize) -> Result<(), Stuck> {
        let id = Id(0);
        let [initialize, initialized] = outgoing::handshake(id);
        self.note_sent(id, Request::Plain);
        self.write(initialize)?;
        self.settle()?;
        self.write(initialized)?;
        for toolbox in 0..toolboxes {
            let planned = self.plan.open(toolbox);
            self.send(&[planned])?;
        }
        self.settle()
    }

    pub(crate) fn load(&mut self, limit: Limit) -> Result<(), Stuck> {
        let (steps, end) = match limit {
            Limit::Steps(steps) => (steps, None),
            Limit::StepsUntil(steps, end) => (steps, Some(end)),
        };
        for _ in 0..steps {
            if end.is_some_and(|end| Instant::now() >= end) {
                break;
            }
            self.await_room(WINDOW - 1)?;
            self.next_step()?;
        }
        Ok(())
    }

    /// Waits until every request that is not cancelled has a response.
    pub(crate) fn settle(&mut self) -> Result<(), Stuck> {
        while !self.cancels.is_empty() {
            self.cancel_next()?;
        }
        self.await_room(0)
    }

    /// Calls a server until it gives a result; false if it does not in time.
    pub(crate) fn is_alive(
        &mut self,
        server: ServerIndex,
        within: Duration,
    ) -> Result<bool, Stuck> {
        let end = Instant::now() + within;
        while Instant::now() < end {
            let planned = self.plan.probe(server);
            let id = planned.id;
            let seen = self.history.events.len();
            self.send(&[planned])?;
            self.settle()?;
            let mut events = self.history.events[seen..].iter();
            let has_result = |event: &Event| matches!(event, Event::Answered { id: own, answer: Answer::Echo { .. } } if *own == id);
            if events.any(has_result) {
                return Ok(true);
            }
            self.listen(RETRY)?;
        }
        Ok(false)
    }

    /// Sends some last calls and ends stdin.
    pub(crate) fn send_last_requests(&mut self) -> Result<(), Stuck> {
        for planned in self.plan.last_requests() {
            self.send(&[planned])?;
        }
        self.history.events.push(Event::Closing);
        self.workbench.close();
        // Later responses wait for the shutdown and say nothing about the load.
        self.open.clear();
        self.awaited = 0;
        Ok(())
    }

    /// Records the output of the workbench until it has closed its stdout, or until `deadline`.
    pub(crate) fn hear_out(&mut self, deadline: Instant) {
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.workbench.events.recv_timeout(left) {
                Ok(event) => self.take(event),
                Err(_) => return,
            }
        }
    }

    fn next_step(&mut self) -> Result<(), Stuck> {
        self.step += 1;
        while let Some(due) = self.cancels.first_entry()
            && *due.key() <= self.step
        {
            self.cancel_next()?;
        }
        match self.plan.step() {
            Step::Requests(requests, None) => self.send(&requests),
            Step::Requests(requests, Some(0)) => {
                let id = requests[0].id;
                // In one piece with the requests, so that the cancellation arrives right behind them.
                let mut lines = self.note_requests(&requests);
                self.note_cancelled(id);
                lines.push_str(&outgoing::cancel(id));
                self.write(lines)
            }
            Step::Requests(requests, Some(after)) => {
                let due = self.cancels.entry(self.step + after).or_default();
                due.push(requests[0].id);
                self.send(&requests)
            }
            Step::Garbage => {
                self.history.events.push(Event::GarbageSent);
                self.write(outgoing::GARBAGE.to_owned())
            }
        }
    }

    /// Sends requests in one piece.
    fn send(&mut self, requests: &[Planned]) -> Result<(), Stuck> {
        let lines = self.note_requests(requests);
        self.write(lines)
    }

    /// Writes requests down, and gives their lines.
    fn note_requests(&mut self, requests: &[Planned]) -> String {
        let mut lines = String::new();
        for planned in requests {
            self.note_sent(planned.id, planned.request());
            lines.push_str(&outgoing::line(planned));
        }
        lines
    }

    fn cancel_next(&mut self) -> Result<(), Stuck> {
        let Some((_, ids)) = self.cancels.pop_first() else {
            return Ok(());
        };
        for id in ids {
            self.note_cancelled(id);
            self.write(outgoing::cancel(id))?;
        }
        Ok(())
    }

    fn note_sent(&mut self, id: Id, request: Request) {
        self.history.events.push(Event::Sent { id, request });
        let since = Instant::now();
        let open = self.open.entry(id);
        open.or_insert(OpenRequest { left: 0, since }).left += 1;
        self.awaited += 1;
    }

    fn note_cancelled(&mut self, id: Id) {
        self.history.events.push(Event::Cancelled(id));
        if let Some(open) = self.open.remove(&id) {
            self.awaited -= open.left;
        }
    }

    fn write(&mut self, lines: String) -> Result<(), Stuck> {
        if self.workbench.write(lines) {
            Ok(())
        } else {
            Err(Stuck::Ended)
        }
    }

    /// Records responses until no more than `awaited` are due, and at least those that are already there.
    fn await_room(&mut self, awaited: usize) -> Result<(), Stuck> {
        while let Ok(event) = self.workbench.events.try_recv() {
            self.take(event);
        }
        let mut heard = Instant::now();
        while self.awaited > awaited {
            if self.listen(STILL)? {
                heard = Instant::now();
            } else if heard.elapsed() > SILENCE {
                return Err(Stuck::Silent {
                    awaited: self.awaited,
                });
            } else {
                self.cancel_next()?;
            }
        }
        Ok(())
    }

    /// Records one event. Returns false if none arrives in time.
    fn listen(&mut self, within: Duration) -> Result<bool, Stuck> {
        match self.workbench.events.recv_timeout(within) {
            Ok(event) => {
                self.take(event);
                Ok(true)
            }
            Err(RecvTimeoutError::Timeout) => Ok(false),
            Err(RecvTimeoutError::Disconnected) => Err(Stuck::Ended),
        }
    }

    fn take(&mut self, event: Event) {
        if let Event::Answered { id, .. } = &event
            && let Some(open) = self.open.get_mut(id)
        {
            self.slowest = self.slowest.max(open.since.elapsed());
            open.left -= 1;
            self.awaited -= 1;
            if open.left == 0 {
                self.open.remove(id);
            }
        }
        self.history.events.push(event);
    }
}
