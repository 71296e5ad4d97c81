//! Remote servers: the requests to them, faults on the way, and the errors for callers.

mod cures;
mod faults;
mod fidelity;
mod old_transport;
mod secrets;
mod sessions;
mod streams;

use pretty_assertions::assert_eq;
use serde_json::Value;

use self::server::RemoteServer;
use crate::harness::{Workbench, remote_server as server};

/// A workbench whose toolbox with this server is open.
fn opened(server: &RemoteServer, keys: &Value) -> Workbench {
    let mut workbench = server.setup(keys).connect();
    assert_eq!(workbench.open("dev").tool_names(), ["t", "u"]);
    workbench
}
