//! A changed entry: what a server can take up while it runs, and what another server in its place is told. Only how a
//! server is reached needs a new connection.

use std::sync::Arc;

use rawjson::RawJson;
use tokio::sync::watch;

use crate::{
    config::Server,
    downstream::{
        listing::PinRules,
        server::{Command, Status},
        session::{Session, resubscriptions::Resubscriptions},
    },
    era::Era,
    ident::ToolboxName,
};

/// What the configuration says of a server. It is replaced whole.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// The toolbox that the server belongs to.
    pub(crate) toolbox: ToolboxName,
    pub(crate) server: Arc<Server>,
    /// The answer to a question for roots, where the configuration gives it.
    pub(crate) roots: Option<RawJson>,
    /// Whether the questions of the server name it.
    pub(crate) names_asker: bool,
}

/// What a server is to adapt to.
pub(crate) struct Adaption {
    before: Arc<Server>,
    now: Arc<Server>,
}

impl Adaption {
    /// Creates the change from one entry to another.
    pub(crate) fn new(before: Arc<Server>, now: Arc<Server>) -> Self {
        Self { before, now }
    }

    /// Both this one and an earlier one.
    pub(crate) fn after(self, earlier: Option<Self>) -> Self {
        Self {
            before: earlier.map_or(self.before, |earlier| earlier.before),
            now: self.now,
        }
    }

    /// Takes away at once what other filters and permissions do not let through. What they let through in addition is
    /// seen when the server is asked again. Returns whether that is needed.
    pub(crate) fn narrow(&self, status: &watch::Sender<Status>) -> bool {
        let (before, now) = (&self.before, &self.now);
        let differs = before.filters != now.filters
            || before.permissions != now.permissions
            || before.pin != now.pin
            || before.list_bounds != now.list_bounds;
        if differs {
            status.send_modify(|status| {
                if let Some(tools) = &status.tools {
                    status.tools = Some(tools.narrowed(now));
                    status.stale = true;
                }
            });
        }
        differs
    }
}

/// Takes a command that is about a change of the configuration.
pub(crate) fn take_change(session: &mut Session, change: Command, status: &watch::Sender<Status>) {
    match change {
        Command::Adapt(adaption) => adapt(session, &adaption, status),
        Command::HandOver(heir) => session.calls.resubscriptions().hand_over(&heir),
        Command::Inherit(resubscriptions) => inherit(session, resubscriptions),
        Command::Recheck => recheck(session, status),
        _ => {}
    }
}

/// Has a session take up what has changed in the entry.
pub(crate) fn adapt(session: &mut Session, adaption: &Adaption, status: &watch::Sender<Status>) {
    session.server = Arc::clone(&adaption.now);
    session.calls.set_times(session.server.times);
    if adaption.narrow(status) {
        recheck(session, status);
    }
}

/// Has every tool compared with the lock file again: those that are known at once, and the list as the server has it.
fn recheck(session: &mut Session, status: &watch::Sender<Status>) {
    let rules = PinRules {
        pins: &session.pins,
        mode: session.server.pin,
    };
    status.send_modify(|status| {
        status.tools = status.tools.as_ref().map(|tools| tools.ruled(&rules));
    });
    session.refresh.discard_work(session.calls.now());
    session.announce_change(status);
}

/// Makes hold what held for the server before.
fn inherit(session: &mut Session, resubscriptions: Resubscriptions) {
    session.calls.resubscriptions().inherit(resubscriptions);
    match session.calls.era() {
        Era::Legacy => session.calls.resubscribe(&mut session.link),
        Era::Modern => session.listen(),
    }
}
