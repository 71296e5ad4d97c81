//! What stands between a call and its tool: what is not permitted, what was permitted for a while, and what is noted.

use std::sync::Arc;

use super::{LookupError, Workbench};
use crate::{audit::AuditLog, call::ClientId, downstream::ToolList, ident::ToolIdentifier};

impl Workbench {
    /// Where calls are noted.
    pub fn audit(&self) -> &AuditLog {
        &self.audit
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
    let denied = tools.denied(tool.tool.as_str());
    denied.map_or(LookupError::ToolUnknown, LookupError::NotPermitted)
}
