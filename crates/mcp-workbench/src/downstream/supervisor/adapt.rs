//! Changes of a server's entry. A running server adopts most of them; only a change of how it is reached needs a new
//! connection. A server that replaces another one inherits its subscriptions.

use std::sync::Arc;

use ident::ToolboxName;
use rawjson::RawJson;
use tokio::sync::watch;

use crate::{
    call::ExtensionSet,
    config::Server,
    downstream::{
        listing::PinRules,
        server::{Command, Status},
        session::{Session, resubscriptions::Resubscriptions},
        supervisor::{report_trust, unapproved},
    },
    era::Era,
    oauth::CredentialOwner,
};

/// The configuration of a server. It is replaced as a whole.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// The toolbox that the server belongs to.
    pub(crate) toolbox: ToolboxName,
    pub(crate) server: Arc<Server>,
    /// The answer to `roots/list`, if the configuration gives it.
    pub(crate) roots: Option<RawJson>,
    /// Set if the questions of the server name it.
    pub(crate) names_asker: bool,
    /// The capabilities that the server gets, whoever starts it, if clients may share it.
    pub(crate) declared: Option<RawJson>,
    /// The extensions that all of its clients declare, if it is not shared by clients that declare others.
    pub(crate) extensions: Option<ExtensionSet>,
    /// The owner of its credentials, if every user has their own.
    pub(crate) owner: Option<CredentialOwner>,
}

/// A change of a server's entry.
pub(crate) struct EntryChange {
    before: Arc<Server>,
    now: Arc<Server>,
}

impl EntryChange {
    /// Creates the change from one entry to another.
    pub(crate) fn new(before: Arc<Server>, now: Arc<Server>) -> Self {
        Self { before, now }
    }

    /// Combines this change with an earlier one.
    pub(crate) fn after(self, earlier: Option<Self>) -> Self {
        Self {
            before: earlier.map_or(self.before, |earlier| earlier.before),
            now: self.now,
        }
    }

    /// Removes at once the tools that changed filters and permissions do not let through. Tools that they let through
    /// in addition appear after the server lists them again. Returns true if that is needed.
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

/// Handles a command about a change of the configuration.
pub(crate) fn take_change(session: &mut Session, change: Command, status: &watch::Sender<Status>) {
    match change {
        Command::Adapt(adaption) => adapt(session, &adaption, status),
        Command::HandOver(successor) => session.calls.resubscriptions().hand_over(&successor),
        Command::Inherit(resubscriptions) => inherit(session, resubscriptions),
        Command::Recheck => recheck(session, status),
        _ => {}
    }
}

/// Applies a change of the entry to a session.
pub(crate) fn adapt(session: &mut Session, adaption: &EntryChange, status: &watch::Sender<Status>) {
    session.server = Arc::clone(&adaption.now);
    session.calls.set_times(session.server.times);
    if adaption.narrow(status) {
        recheck(session, status);
    }
}

/// Compares every tool with the lock file again: the known ones at once, then the list of the server.
fn recheck(session: &mut Session, status: &watch::Sender<Status>) {
    let rules = PinRules {
        pins: &session.pins,
        mode: session.server.pin,
    };
    let before = status.borrow().tools.clone();
    status.send_modify(|status| {
        status.tools = status.tools.as_ref().map(|tools| tools.ruled(&rules));
    });
    // The lock file may have changed for other servers only, and then nothing is new.
    if let (Some(before), Some(tools)) = (before, session.calls.listed())
        && unapproved(&before) != unapproved(&tools)
    {
        report_trust(session.calls.about(), &tools, unapproved(&before));
    }
    // A list that is being checked is judged by the rules from before.
    session.refresh.discard_work(session.calls.now());
    session.announce_change(status);
}

/// Restores the subscriptions of the replaced server.
fn inherit(session: &mut Session, resubscriptions: Resubscriptions) {
    session.calls.resubscriptions().inherit(resubscriptions);
    match session.calls.era() {
        Era::Legacy => session.calls.resubscribe(&mut session.link),
        Era::Modern => session.listen(),
    }
}
