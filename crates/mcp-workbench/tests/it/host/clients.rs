//! Clients of one host: they share servers and nothing else.

use pretty_assertions::assert_eq;
use serde_json::json;

use super::{Machine, alive};
use crate::harness::{Script, Setup, poll};

#[test]
fn clients_share_one_server_process() {
    let machine = Machine::one(&Script::named(&["one"]).answers("one", r#"{"content":[]}"#));
    let mut clients: Vec<_> = (0..4).map(|_| machine.connect()).collect();
    for client in &mut clients {
        client.open();
        client.use_tool("one", "{}");
    }
    assert_eq!(machine.journal().pids().len(), 1);
    let host = machine.host();
    assert_eq!(host["clients"].as_array().unwrap().len(), 4);
    let server = &host["servers"][0];
    assert_eq!(server["state"], "up");
    assert_eq!(server["clients"], json!([1, 2, 3, 4]));
    assert_eq!(server["calls"], 4);
    for client in clients {
        assert!(client.finish().success());
    }
    machine.run(&["stop"]);
    machine.wait_clean();
}

#[test]
fn a_client_that_ends_leaves_the_others_alone() {
    let machine = Machine::one(&Script::named(&["one"]).answers("one", r#"{"content":[]}"#));
    let mut stays = machine.connect();
    let mut ends = machine.connect();
    for client in [&mut stays, &mut ends] {
        client.open();
    }
    assert!(ends.finish().success());
    assert!(!stays.use_tool("one", "{}").failed());
    assert_eq!(machine.journal().pids().len(), 1);
}

#[test]
fn a_killed_waiting_process_cancels_the_calls_of_its_client() {
    let hangs = Script::named(&["hang", "one"])
        .on_call("hang", r#"["awaitCancel"]"#)
        .answers("one", r#"{"content":[]}"#);
    let machine = Machine::one(&hangs);
    let mut killed = machine.connect();
    let mut other = machine.connect();
    killed.open();
    other.open();
    killed.send_use("hang", "{}");
    machine.wait_received("tools/call", 1);
    drop(killed);
    machine.wait_received("notifications/cancelled", 1);
    assert!(!other.use_tool("one", "{}").failed());
    let left = poll(crate::harness::TIMEOUT, || {
        let clients = machine.host()["clients"].as_array().unwrap().len();
        (clients == 1).then_some(())
    });
    assert!(left.is_some(), "the host forgets the client");
}

#[test]
fn a_toolbox_that_one_client_opens_is_not_open_for_another() {
    let machine = Machine::one(&Script::named(&["one"]));
    let mut one = machine.connect();
    let mut other = machine.connect();
    one.open();
    let refused = other.use_tool("one", "{}");
    assert_eq!(
        refused.error(),
        "Error: Toolbox 'dev' is not open. Call open_toolbox first."
    );
}

#[test]
fn tools_that_one_client_registers_do_not_appear_for_another() {
    let setup = Setup::new()
        .top("toolMode", json!("dynamic"))
        .toolbox("dev", "Development tools")
        .server_with("fs", &Script::named(&["one"]), &json!({"cwd": "."}));
    let machine = Machine::new(setup);
    let mut one = machine.connect();
    let mut other = machine.connect();
    one.open();
    let names = |listed: serde_json::Value| -> Vec<String> {
        let tools = listed["tools"].as_array().unwrap();
        let names = tools.iter().map(|tool| tool["name"].as_str().unwrap());
        names.map(str::to_owned).collect()
    };
    let registered = "dev__fs__one".to_owned();
    assert!(names(one.ask("tools/list", "{}").result()).contains(&registered));
    assert!(!names(other.ask("tools/list", "{}").result()).contains(&registered));
    assert_eq!(machine.journal().pids().len(), 1);
}

#[test]
fn nothing_is_left_after_the_last_client_and_the_host() {
    let machine = Machine::one(&Script::named(&["one"]));
    let mut client = machine.connect();
    client.open();
    let [server] = machine.journal().pids()[..] else {
        panic!("one server was started");
    };
    assert!(client.finish().success());
    machine.run(&["stop"]);
    machine.wait_clean();
    assert!(!alive(server));
    assert_eq!(super::sockets(&machine.place()), Vec::<String>::new());
}
