//! What stands between a call and its tool: what is not permitted, what was permitted for a while, and what is noted.

use std::sync::Arc;

use super::{LookupError, Workbench};
use crate::{
    audit::AuditLog,
    call::ClientId,
    downstream::{Cause, ToolList, Withheld},
    ident::ToolIdentifier,
    lock::{Pins, Scope},
    toolbox::Toolbox,
};

impl Workbench {
    /// Where calls are noted.
    pub fn audit(&self) -> &AuditLog {
        &self.audit
    }

    /// What is pinned of servers.
    pub fn pins(&self) -> &Arc<Pins> {
        self.pool.pins()
    }

    /// Notes that somebody is told what has changed in a toolbox, so that they are not told again.
    pub fn told(&self, toolbox: &Toolbox) {
        self.pool.pins().tell(Scope::Toolbox(toolbox.name()));
        self.pool.record_soon();
    }

    /// Takes up a lock file that may have changed. Servers that run are compared with it at once, others at their next start.
    pub fn take_up_lock(&self) {
        if self.pool.pins().is_changed() {
            tracing::info!("the lock file has changed; tools are compared with it again");
            let now = Arc::clone(&self.now.borrow());
            for toolbox in now.toolboxes.values() {
                toolbox.contents().recheck();
            }
        }
    }

    /// Forgets what was permitted to a client that has gone.
    pub fn forget_client(&self, client: ClientId) {
        let now = Arc::clone(&self.now.borrow());
        for toolbox in now.toolboxes.values().filter(|it| it.is_usable()) {
            for server in toolbox.contents().servers().values() {
                server.forget_consents(client);
            }
        }
    }
}

/// Why a tool is not in a list.
pub(super) fn missing(tools: &ToolList, tool: &ToolIdentifier) -> LookupError {
    let name = tool.tool.as_str();
    if let Some(refusal) = tools.denied(name) {
        return LookupError::NotPermitted(refusal);
    }
    match tools.withheld_as(name) {
        Some(Withheld { cause, reason, .. }) if *cause == Cause::NotApproved => {
            LookupError::ToolNotApproved {
                reason: reason.clone(),
            }
        }
        Some(Withheld { reason, .. }) => LookupError::ToolWithheld {
            reason: reason.clone(),
        },
        None => LookupError::ToolUnknown,
    }
}
