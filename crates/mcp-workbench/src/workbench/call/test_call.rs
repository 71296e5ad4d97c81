//! Calls for unit tests.

use std::sync::Arc;

use ident::ToolIdentifier;

use super::{Mode, ReadyCall, Run};
use crate::{
    downstream::{ServerHandle, test_client::TestClient},
    workbench::Workbench,
};

/// Returns a call of a client that can be sent to a server.
pub(crate) fn ready_call(
    workbench: &Arc<Workbench>,
    server: &Arc<ServerHandle>,
    client: TestClient,
) -> ReadyCall {
    let place = server.identifier();
    let tool = ToolIdentifier {
        toolbox: place.toolbox.clone(),
        server: place.server.clone(),
        tool: "t".into(),
    };
    let call = client.call();
    let run = Run {
        workbench: Arc::clone(workbench),
        client: Arc::clone(&call.context.client),
        mode: Mode::UseTool,
        tool,
        continues: false,
        observed: None,
        checks: 0,
        header_repeats: 0,
        was_offered: false,
        select: super::Select::Default,
    };
    ReadyCall {
        run,
        server: Arc::clone(server),
        call,
        consent: None,
    }
}
