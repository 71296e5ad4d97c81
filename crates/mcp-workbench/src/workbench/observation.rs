//! The parts of a workbench that see the calls of all its clients. The workbenches of one process may share them.

use std::sync::Arc;

use super::Approvals;
use crate::{
    audit::AuditLog,
    config::Config,
    events::{Events, SecretsOwner},
};

/// The event stream, its audit log, and the calls that wait for a decision.
pub(crate) struct Observation {
    pub(super) events: Arc<Events>,
    pub(super) audit: Arc<AuditLog>,
    pub(super) approvals: Arc<Approvals>,
    /// The workbench that has this part, for its secrets.
    owner: SecretsOwner,
}

impl Default for Observation {
    fn default() -> Self {
        let events = Arc::<Events>::default();
        Self {
            audit: Arc::new(AuditLog::new(&events)),
            approvals: Arc::default(),
            owner: events.add_owner(),
            events,
        }
    }
}

impl Observation {
    /// Returns the same parts for another workbench, whose secrets may be different.
    pub(crate) fn beside(&self) -> Self {
        Self {
            events: Arc::clone(&self.events),
            audit: Arc::clone(&self.audit),
            approvals: Arc::clone(&self.approvals),
            owner: self.events.add_owner(),
        }
    }

    pub(crate) fn events(&self) -> &Arc<Events> {
        &self.events
    }

    /// Adopts the secrets and the audit log of a configuration. Those of the whole file count, so that it does not matter
    /// which of several clients has it.
    pub(super) fn renew(&self, config: &Config) {
        self.events.renew(self.owner, config);
        self.audit.renew(config);
    }

    /// Writes the last lines of the audit log.
    pub(crate) async fn close(&self) {
        self.audit.close().await;
    }
}

impl Drop for Observation {
    fn drop(&mut self) {
        self.events.forget(self.owner);
    }
}
