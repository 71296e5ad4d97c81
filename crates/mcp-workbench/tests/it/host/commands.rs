//! `ps`, `stop` and `restart`.

use std::{
    io::{BufRead, BufReader},
    process::Stdio,
};

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::Machine;
use crate::harness::{Script, TIMEOUT, poll};

fn machine() -> Machine {
    Machine::one(&Script::named(&["one"]).answers("one", r#"{"content":[]}"#))
}

#[test]
fn ps_shows_hosts_clients_and_servers() {
    let machine = machine();
    assert_eq!(machine.run(&["ps"]), "no host runs\n");
    assert_eq!(machine.run(&["ps", "--json"]), "{\n  \"hosts\": []\n}\n");
    let mut client = machine.connect();
    client.open();
    client.use_tool("one", "{}");
    let host = machine.host();
    assert_eq!(
        host["config"],
        machine
            .setup
            .config()
            .canonicalize()
            .unwrap()
            .to_str()
            .unwrap()
    );
    assert_eq!(host["draining"], false);
    let shown = &host["clients"][0];
    assert_eq!(shown["program"], "it");
    assert_eq!(shown["pid"], client.pid());
    assert_eq!(shown["folder"], machine.path("work").to_str().unwrap());
    let server = &host["servers"][0];
    assert_eq!(server["pid"], machine.journal().pids()[0]);
    assert!(server["memoryBytes"].as_u64().unwrap() > 0);
    assert_eq!(server["calls"], 1);
    assert_eq!(server["restarts"], 0);
    let text = machine.run(&["ps"]);
    for part in [
        "client #1 it (pid ",
        "server dev/fs: up, pid ",
        " 1 call, ",
        " 0 restarts, ",
        "clients #1",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn a_stopped_server_starts_at_its_next_use() {
    let machine = machine();
    let mut client = machine.connect();
    client.open();
    assert_eq!(machine.run(&["stop", "fs"]), "stopped fs (1)\n");
    let resting = poll(TIMEOUT, || {
        (machine.host()["servers"][0]["state"] == "resting").then_some(())
    });
    assert!(resting.is_some());
    assert_eq!(machine.journal().pids().len(), 1);
    assert!(!client.use_tool("one", "{}").failed());
    assert_eq!(machine.journal().pids().len(), 2);
    assert_eq!(machine.host()["servers"][0]["restarts"], 1);
}

#[test]
fn a_restarted_server_comes_up_at_once() {
    let machine = machine();
    let mut client = machine.connect();
    client.open();
    assert_eq!(
        machine.run(&["restart", "dev/fs"]),
        "restarted dev/fs (1)\n"
    );
    let restarted = poll(TIMEOUT, || {
        let server = machine.host()["servers"][0].clone();
        (server["state"] == "up" && server["restarts"] == 1).then_some(())
    });
    assert!(restarted.is_some());
    assert!(!client.use_tool("one", "{}").failed());
    assert_eq!(machine.journal().pids().len(), 2);
}

#[test]
fn an_unknown_server_is_an_error() {
    let machine = machine();
    let _client = machine.connect();
    let mut command = machine.command();
    let done = command.args(["stop", "other"]).output().unwrap();
    assert!(!done.status.success());
    let stderr = String::from_utf8(done.stderr).unwrap();
    assert!(
        stderr.contains("no running server of a host is called `other`"),
        "{stderr}"
    );
}

#[test]
fn stopping_a_server_answers_its_calls() {
    let hangs = Script::named(&["hang"]).on_call("hang", r#"["hang"]"#);
    let machine = Machine::one(&hangs);
    let mut client = machine.connect();
    client.open();
    let id = client.send_use("hang", "{}");
    machine.wait_received("tools/call", 1);
    machine.run(&["stop", "fs"]);
    let result = crate::harness::ToolResult::of(&client.response(&id));
    let details = result.failure();
    assert_eq!(details["code"], json!("server_stopped"));
    assert_eq!(details["outcome"], json!("unknown"));
}

#[test]
fn ps_prints_one_document_per_line_while_it_watches() {
    let machine = machine();
    let _client = machine.connect();
    let mut command = machine.command();
    let mut child = command
        .args(["ps", "--json", "--watch"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    for _ in 0..2 {
        let document: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        assert_eq!(document["hosts"][0]["clients"][0]["program"], "it");
    }
    // It ends when nobody reads any more.
    drop(lines);
    let ended = poll(TIMEOUT, || child.try_wait().unwrap());
    assert!(ended.is_some_and(|status| status.success()));
}

#[test]
fn stop_and_restart_end_the_host_and_clients_go_on() {
    for verb in ["stop", "restart"] {
        let machine = machine();
        assert_eq!(machine.run(&[verb]), "no host runs\n");
        let mut client = machine.connect();
        client.open();
        let host = machine.host_pid();
        let said = machine.run(&[verb]);
        let done = if verb == "stop" {
            "stopped"
        } else {
            "restarted"
        };
        assert_eq!(said, format!("{done} the host {host} and its servers\n"));
        let ended = poll(TIMEOUT, || (!super::alive(host)).then_some(()));
        assert!(ended.is_some(), "{verb}");
        assert!(!client.use_tool("one", "{}").failed());
        assert_ne!(machine.host_pid(), host);
    }
}
