//! Values of variables do not appear on the page, nor in what its commands print.

use serde_json::{Value, json};

use super::{document, stdout};
use crate::harness::{HttpClient, Script, Served, Setup, TIMEOUT, poll, use_arguments};

const SECRET: &str = "kJ8-vN3-qQ2-long-enough";

fn served() -> Served {
    let result = json!({"content": [{"type": "text", "text": format!("key {SECRET}")}]});
    let says = json!([{"stderr": format!("using {SECRET}")}, {"answer": result}]);
    let script = Script::named(&["read", "wipe"]).on_call("read", &says.to_string());
    let entry = json!({"env": {"KEY": "${SHOP_KEY}"}, "permissions": {"allow": ["read"]}});
    let setup = Setup::new().toolbox("dev", "d");
    let setup = setup.server_with("fs", &script, &entry);
    setup.env("SHOP_KEY", SECRET).serve()
}

fn client(served: &Served) -> HttpClient {
    let params = r#"{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"asker","version":"1"}}"#;
    let mut client = served.client_with(params);
    client.open();
    client
}

#[test]
fn values_of_variables_are_not_shown() {
    let served = served();
    document(&served, &["live", "calls", "--json"]);
    let mut client = client(&served);
    let arguments = json!({ "key": SECRET }).to_string();
    assert!(!client.use_tool("read", &arguments).failed());
    let waits = use_arguments(["dev", "fs", "wipe"], Some(&arguments));
    let params = format!(r#"{{"name":"use_tool","arguments":{waits}}}"#);
    let _call = client.begin("7", "tools/call", &params);
    let waiting = poll(TIMEOUT, || {
        let approvals = document(&served, &["live", "approvals", "--json"]);
        approvals["approvals"].get(0).cloned()
    });
    let waiting = waiting.expect("a call that waits");
    let calls = document(&served, &["live", "calls", "--json"]);
    let calls = calls["calls"].as_array().unwrap();
    let read = calls.iter().find(|it| it["tool"] == "read").unwrap();
    let id = read["id"].to_string();
    let whole = document(&served, &["live", "calls", &id]);
    // The messages are there, and so is what the server wrote.
    assert!(whole["reply"]["content"][0]["text"].is_string(), "{whole}");
    let servers = document(&served, &["live", "servers", "--json"]);
    assert_eq!(servers["servers"][0]["stderr"].as_array().unwrap().len(), 1);
    assert_ne!(waiting["arguments"], Value::Null);
    for shown in [
        &["live", "calls", &id][..],
        &["live", "calls", "--json"],
        &["live", "servers", "--json"],
        &["live", "activity", "--json"],
        &["live", "approvals", "--json"],
        &["live", "metrics"],
    ] {
        let text = stdout(&served, shown);
        assert!(!text.contains(SECRET), "{shown:?}: {text}");
    }
}
