//! Many clients, and clients of the modern era.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::{Edited, LIST_CHANGED};
use crate::harness::{HttpClient, Script, Setup};

#[test]
fn all_http_clients_use_the_changed_configuration() {
    let setup = Setup::one(&Script::new());
    let mut edited = Edited::of(&setup);
    let served = setup.serve();
    let mut clients = [served.client(), served.client(), served.client()];
    for client in &mut clients {
        assert!(!client.open().failed());
    }
    let process = |client: &mut HttpClient| client.use_tool("pid", "{}").text().to_owned();
    let before = process(&mut clients[0]);
    let mut listening: Vec<_> = clients.iter().map(|client| client.listen(None)).collect();
    for stream in &mut listening {
        assert_eq!(stream.head().status, 200);
    }
    let dev = edited.config["toolboxes"]["dev"].clone();
    edited.config["toolboxes"]["more"] = dev;
    edited.take_up(&served.workbench);
    for stream in &mut listening {
        // The first event only says where to resume.
        let said = std::iter::from_fn(|| stream.event()).find(|event| !event.data.is_empty());
        let told = said.unwrap().message();
        assert_eq!(told.method.as_deref(), Some(LIST_CHANGED));
    }
    for client in &mut clients {
        assert_eq!(process(client), before);
        let opened = client.call("open_toolbox", r#"{"toolbox":"more"}"#);
        assert_eq!(opened.json()["servers_connected"], 1);
    }
    edited.fs()["env"]["NEW"] = json!("1");
    edited.take_up(&served.workbench);
    let after = process(&mut clients[0]);
    assert_ne!(after, before);
    for client in &mut clients {
        assert_eq!(process(client), after);
    }
}

#[test]
fn a_subscribed_modern_client_is_notified() {
    let setup = Setup::one(&Script::new());
    let mut edited = Edited::of(&setup);
    let mut workbench = setup.start();
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let wanted = json!({"toolsListChanged": true});
    let params = json!({"notifications": wanted, "_meta": meta});
    workbench.send_request("7", "subscriptions/listen", &params.to_string());
    let accepted = workbench.notification("notifications/subscriptions/acknowledged");
    assert_eq!(accepted.params()["notifications"], wanted);
    edited.config["toolboxes"]["more"] = json!({"description": "m", "mcpServers": {}});
    edited.take_up(&workbench);
    let told = workbench.notification(LIST_CHANGED);
    let tag: &Value = &told.params()["_meta"]["io.modelcontextprotocol/subscriptionId"];
    assert_eq!(*tag, 7);
}
