//! The client's lines.

use serde_json::{Value, json};

use crate::{
    history::ProgressWish,
    identity::{Id, Nonce},
    plan::{Ask, Planned, PlannedCall, Target},
    site::{TOOLBOXES, address},
};

pub(crate) const GARBAGE: &str = "{\"jsonrpc\": nonsense\n";

/// Returns the payload of a call. Any part of a different call's payload would be detected in it.
pub(crate) fn payload(nonce: Nonce, length: usize) -> String {
    let word = format!("{:016x}", nonce.0);
    let mut payload = word.repeat(length.div_ceil(word.len()));
    payload.truncate(length);
    payload
}

/// The first request of all, and the notification that follows its answer.
pub(crate) fn handshake(id: Id) -> [String; 2] {
    let params = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": { "name": "ledger", "version": "1" },
    });
    let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    [
        request(id, "initialize", &params),
        format!("{initialized}\n"),
    ]
}

/// The line of a request.
pub(crate) fn line(planned: &Planned) -> String {
    let id = planned.id;
    match &planned.ask {
        Ask::Ping => request(id, "ping", &json!({})),
        Ask::ListTools => request(id, "tools/list", &json!({})),
        Ask::Open(toolbox) => {
            let arguments = json!({ "toolbox": TOOLBOXES[*toolbox] });
            let params = json!({ "name": "open_toolbox", "arguments": arguments });
            request(id, "tools/call", &params)
        }
        Ask::Call(call) => request(id, "tools/call", &use_tool(call)),
    }
}

/// The line that cancels a request.
pub(crate) fn cancel(id: Id) -> String {
    let params = json!({ "requestId": id.to_json(), "reason": "changed my mind" });
    let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params });
    format!("{cancel}\n")
}

fn request(id: Id, method: &str, params: &Value) -> String {
    let request =
        json!({ "jsonrpc": "2.0", "id": id.to_json(), "method": method, "params": params });
    format!("{request}\n")
}

fn use_tool(call: &PlannedCall) -> Value {
    let mut tool = call.tool.name();
    let (toolbox, server) = match call.target {
        Target::Server(server) => address(server),
        Target::MissingToolbox => ("middle", "server-0".to_owned()),
        Target::MissingServer => (TOOLBOXES[0], "server-x".to_owned()),
        Target::MissingTool(server) => {
            tool = "ecko";
            address(server)
        }
    };
    let arguments = json!({
        "nonce": call.nonce.0,
        "tool": tool,
        "ms": call.ms,
        "code": 5,
        "length": call.length,
        "payload": payload(call.nonce, call.length),
    });
    let identifier = json!({ "toolbox": toolbox, "server": server, "tool": tool });
    let mut params = json!({
        "name": "use_tool",
        "arguments": { "tool": identifier, "arguments": arguments },
    });
    if call.progress == ProgressWish::Wanted {
        params["_meta"] = json!({ "progressToken": call.nonce.to_token() });
    }
    params
}
