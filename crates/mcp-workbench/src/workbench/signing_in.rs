//! Signing in on the way: where servers want it and the client can show an address, its user is asked, and what was
//! wanted is tried again.

use std::sync::Arc;

use super::{LookupError, Workbench};
use crate::{
    call::{Call, ClientHandle},
    downstream::{CallError, ServerHandle},
    ident::ToolIdentifier,
    toolbox::{OpenError, Opened, Toolbox},
    wire::RawJson,
};

impl Workbench {
    /// Opens a toolbox. The user is offered to sign in to the servers that want it, one after the other; whatever comes
    /// of that, there is what there is.
    pub async fn open_signing_in(
        &self,
        toolbox: &Toolbox,
        client: &Arc<dyn ClientHandle>,
    ) -> Result<Arc<Opened>, OpenError> {
        let opened = self.open(toolbox, client).await;
        let failures = match &opened {
            Ok(opened) => &opened.failures,
            Err(error) => &error.failures,
        };
        let mut has_changed = false;
        for failure in failures {
            let server = toolbox.server(&failure.server);
            if let (Some(server), Some(needed)) = (server, failure.error.sign_in()) {
                has_changed |= Box::pin(server.offer_sign_in(needed, client)).await;
            }
        }
        if has_changed {
            return self.open(toolbox, client).await;
        }
        opened
    }

    /// Finds the server that has a tool. The user is offered to sign in to it, if it wants that.
    pub async fn find_signing_in(
        &self,
        tool: &ToolIdentifier,
        client: &Arc<dyn ClientHandle>,
    ) -> Result<Arc<ServerHandle>, LookupError> {
        let found = self.find(tool, client).await;
        let Err(LookupError::NotConnected(error)) = &found else {
            return found;
        };
        let server = self.toolbox(tool.toolbox.as_str());
        let server = server.and_then(|toolbox| toolbox.server(&tool.server));
        if let (Some(server), Some(needed)) = (server, error.sign_in())
            && Box::pin(server.offer_sign_in(needed, client)).await
        {
            return self.find(tool, client).await;
        }
        found
    }

    /// Makes a call. The user is offered to sign in, if the server wants that, and the call is made again: it was
    /// refused, and did not run.
    pub async fn call_signing_in(server: &ServerHandle, call: Call) -> Result<RawJson, CallError> {
        let client = Arc::clone(&call.context.client);
        if !server.may_want_sign_in() {
            return server.call(call).await;
        }
        let again = call.clone();
        let result = server.call(call).await;
        if let Err(error) = &result
            && let Some(needed) = error.sign_in()
            && Box::pin(server.offer_sign_in(needed, &client)).await
        {
            return server.call(again).await;
        }
        result
    }
}
