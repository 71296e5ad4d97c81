//! Replicas behind one balancer: processes with one key, of which any may get the next request of a client.

mod consents;
mod forwarding;
mod probes;
mod sessions;
mod streams;
pub(crate) mod team;

use serde_json::json;

use crate::harness::{Script, Served, Setup};

/// The key of all replicas.
const KEY: &str = "0123456789abcdef0123456789abcdef";

/// A server with a tool that asks, one that answers, and one that waits for a file.
fn script(setup: &Setup) -> Script {
    let ask = r#"[{"request":{"method":"elicitation/create","params":{"message":"who?"}}},
        {"line":"{\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":{\"content\":[],\"told\":$REPLY}}"}]"#;
    let wait = json!([{"awaitFile": setup.path("gate")}, {"answer": {"content": [], "waited": 1}}]);
    Script::named(&["ask", "plain", "wait"])
        .on_call("ask", ask)
        .on_call("wait", &wait.to_string())
        .answers("plain", r#"{"content":[],"plain":1}"#)
}

/// One replica. Others cannot reach it.
fn alone() -> Setup {
    let setup = Setup::new();
    let script = script(&setup);
    setup
        .toolbox("dev", "d")
        .server("fs", &script)
        .env("SEAL_KEY", KEY)
        .top("seal", json!({"key": "${SEAL_KEY}"}))
}

/// One replica that others reach.
fn reachable() -> Setup {
    alone().top("replicaAddress", json!("http://127.0.0.1:0"))
}

/// The number of calls that the server of a replica has got.
fn calls(served: &Served) -> usize {
    let journal = served.workbench.journal("dev", "fs");
    journal.received("tools/call").len()
}
