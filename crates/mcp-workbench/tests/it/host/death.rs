//! The host ends while it has clients: their sessions continue with a new one.

use pretty_assertions::assert_eq;
use rustix::process::Signal;
use serde_json::json;

use super::{Machine, alive};
use crate::harness::{Script, TIMEOUT, ToolResult, kill, poll};

fn script() -> Script {
    Script::named(&["hang", "one"])
        .on_call("hang", r#"["hang"]"#)
        .answers("one", r#"{"content":[{"type":"text","text":"done"}]}"#)
}

#[test]
fn a_session_continues_after_the_host_was_killed() {
    let machine = Machine::one(&script());
    let mut clients = [machine.connect(), machine.connect()];
    for client in &mut clients {
        client.open();
    }
    let host = machine.host_pid();
    let servers = machine.journal().pids();
    kill(host, Signal::KILL);
    for client in &mut clients {
        // No `initialize`, and the toolbox is still open.
        assert_eq!(client.use_tool("one", "{}").text(), "done");
    }
    assert_ne!(machine.host_pid(), host);
    assert_eq!(machine.host()["clients"].as_array().unwrap().len(), 2);
    let gone = poll(TIMEOUT, || {
        servers.iter().all(|pid| !alive(*pid)).then_some(())
    });
    assert!(gone.is_some(), "the servers of the killed host end");
    // Once more, since the second host has a journal of its own.
    kill(machine.host_pid(), Signal::KILL);
    for client in &mut clients {
        assert_eq!(client.use_tool("one", "{}").text(), "done");
    }
}

#[test]
fn calls_in_flight_are_answered_once_with_an_unknown_outcome() {
    let machine = Machine::one(&script());
    let mut client = machine.connect();
    client.open();
    let calls: Vec<String> = (0..3).map(|_| client.send_use("hang", "{}")).collect();
    machine.wait_received("tools/call", 3);
    kill(machine.host_pid(), Signal::KILL);
    let mut answered = Vec::new();
    for _ in &calls {
        let answer = client.next();
        answered.push(answer.id().unwrap().to_owned());
        let result = ToolResult::of(&answer);
        let details = result.failure();
        assert_eq!(
            details,
            &json!({"code": "host_exited", "outcome": "unknown"})
        );
        assert!(
            result
                .error()
                .starts_with("Error: The shared workbench process ended")
        );
    }
    answered.sort();
    assert_eq!(answered, calls);
    assert_eq!(client.use_tool("one", "{}").text(), "done");
    // No call was sent again.
    assert_eq!(machine.journal().received("tools/call").len(), 4);
}

#[test]
fn a_request_that_only_reads_is_answered_by_the_next_host() {
    let machine = Machine::one(&script());
    let mut client = machine.start();
    // The host is killed between the request and the answer, or after it: one answer comes in both cases.
    let params = super::initialize_params(&json!({}));
    let id = client.request("initialize", &params);
    let host = poll(TIMEOUT, || machine.hosts().first().map(super::pid)).unwrap();
    kill(host, Signal::KILL);
    assert_eq!(
        client.response(&id).result()["protocolVersion"],
        "2025-11-25"
    );
    assert!(client.ask("tools/list", "{}").result()["tools"].is_array());
}

#[test]
fn a_log_level_survives_the_host() {
    let logs = Script::named(&["log"]).on_call(
        "log",
        r#"[{"notify":{"method":"notifications/message","params":{"level":"info","data":"quiet"}}},
            {"answer":{"content":[]}}]"#,
    );
    let machine = Machine::one(&logs);
    let mut client = machine.connect();
    client.open();
    client.ask("logging/setLevel", r#"{"level":"error"}"#);
    kill(machine.host_pid(), Signal::KILL);
    let id = client.send_use("log", "{}");
    let first = client.next();
    assert!(first.answers(&id), "no log message comes before the answer");
}

#[test]
fn a_stopped_host_comes_back_when_a_client_needs_it() {
    let machine = Machine::one(&script());
    let mut client = machine.connect();
    client.open();
    machine.run(&["stop"]);
    machine.wait_clean();
    assert_eq!(machine.hosts().len(), 0);
    assert_eq!(client.use_tool("one", "{}").text(), "done");
    assert_eq!(machine.hosts().len(), 1);
    machine.run(&["stop"]);
    machine.wait_clean();
    assert!(client.finish().success());
    assert_eq!(machine.hosts().len(), 0);
}

#[test]
fn a_signal_lets_the_host_end_in_order() {
    let machine = Machine::one(&script());
    let mut client = machine.connect();
    client.open();
    let call = client.send_use("hang", "{}");
    machine.wait_received("tools/call", 1);
    kill(machine.host_pid(), Signal::TERM);
    let result = ToolResult::of(&client.response(&call));
    let details = result.failure();
    assert_eq!(details["outcome"], "unknown");
    assert_eq!(client.use_tool("one", "{}").text(), "done");
}
