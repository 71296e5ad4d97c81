//! The host ends while it has clients: their sessions continue with a new one.

use std::{
    io::{self, Read},
    process::{ChildStdout, Stdio},
    sync::{Arc, Mutex},
};

use pretty_assertions::assert_eq;
use rustix::process::Signal;
use serde_json::json;

use super::{Client, Machine, alive, host_processes};
use crate::{
    asking_back::asks,
    harness::{Script, TIMEOUT, ToolResult, kill, poll, use_arguments},
};

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

#[test]
fn a_batch_with_calls_is_answered_once() {
    let machine = Machine::one(&script());
    let mut client = machine.start();
    let params = super::initialize_params(&json!({})).replace("2025-11-25", "2025-03-26");
    client.ask("initialize", &params);
    client.open();
    let call = crate::harness::call_params(
        "use_tool",
        &use_arguments(["dev", "fs", "hang"], Some("{}")),
    );
    client.send(&format!(
        r#"[{{"jsonrpc":"2.0","id":"c","method":"tools/call","params":{call}}},{{"jsonrpc":"2.0","id":"l","method":"tools/list"}}]"#
    ));
    machine.wait_received("tools/call", 1);
    kill(machine.host_pid(), Signal::KILL);
    let answer: serde_json::Value = serde_json::from_str(&client.next_line()).unwrap();
    assert_eq!(
        (
            &answer[0]["id"],
            &answer[0]["result"]["_meta"]["mcp-workbench/error"]["outcome"]
        ),
        (&json!("c"), &json!("unknown"))
    );
    assert_eq!(
        (&answer[1]["id"], &answer[1]["error"]["code"]),
        (&json!("l"), &json!(-32603))
    );
    assert_eq!(client.use_tool("one", "{}").text(), "done");
}

#[test]
fn a_question_that_was_open_is_withdrawn_and_its_call_is_answered() {
    let form = r#"{"message":"?","requestedSchema":{"type":"object","properties":{}}}"#;
    let machine = Machine::one(&asks("elicitation/create", form));
    let mut client = machine.start();
    client.initialize_with(&json!({"elicitation": {}}));
    client.open();
    let answer = |client: &mut Client, id: &str| {
        client.send(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{{"action":"accept","content":{{}}}}}}"#
        ));
    };
    let call = client.send_use("ask", "{}");
    let question = client.next();
    assert_eq!(question.method.as_deref(), Some("elicitation/create"));
    let old = question.id().unwrap().to_owned();
    kill(machine.host_pid(), Signal::KILL);
    let withdrawn = client.next();
    assert_eq!(withdrawn.method.as_deref(), Some("notifications/cancelled"));
    assert!(
        withdrawn.line.contains(&format!(r#""requestId":{old}"#)),
        "{}",
        withdrawn.line
    );
    let result = ToolResult::of(&client.response(&call));
    assert_eq!(result.failure()["outcome"], "unknown");
    // A late answer is for nobody, also while the next question is open.
    let call = client.send_use("ask", "{}");
    let question = client.next();
    let new = question.id().unwrap().to_owned();
    assert_ne!(new, old);
    answer(&mut client, &old);
    answer(&mut client, &new);
    assert!(!ToolResult::of(&client.response(&call)).failed());
}

/// The stdout of a client that does not read while the gate is locked.
struct Gated {
    stdout: ChildStdout,
    gate: Arc<Mutex<()>>,
}

impl Read for Gated {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        drop(self.gate.lock());
        self.stdout.read(buffer)
    }
}

#[test]
fn an_answer_that_was_sent_in_part_is_sent_to_its_end_by_the_next_host() {
    let text = "x".repeat(1_000_000);
    let answer = json!({"content": [{"type": "text", "text": text}]}).to_string();
    let machine = Machine::one(&Script::named(&["long"]).answers("long", &answer));
    let mut command = machine.command();
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let (stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let gate = Arc::new(Mutex::new(()));
    let gated = Gated {
        stdout,
        gate: Arc::clone(&gate),
    };
    let mut client = Client::new(child, stdin, gated);
    client.initialize();
    client.open();
    let closed = gate.lock().unwrap();
    let call = client.send_use("long", "{}");
    machine.wait_received("tools/call", 1);
    let answered = poll(TIMEOUT, || {
        (machine.host()["clients"][0]["running"] == 0).then_some(())
    });
    assert!(answered.is_some(), "{:?}", machine.host());
    kill(machine.host_pid(), Signal::KILL);
    drop(closed);
    // Nothing else makes the next host write.
    let result = ToolResult::of(&client.response(&call));
    assert!(result.text() == text);
    assert_eq!(client.ask("ping", "{}").raw_result(), "{}");
    assert_eq!(machine.journal().received("tools/call").len(), 1);
}

#[test]
fn a_request_that_is_too_long_is_refused_once() {
    let machine = Machine::one(&script());
    let mut client = machine.connect();
    let part = "x".repeat(17 * 1024 * 1024);
    client.send_part(r#"{"jsonrpc":"2.0","id":"long","method":"ping","params":{"x":""#);
    client.send_part(&part);
    let refusal = client.response("\"long\"");
    assert!(
        refusal.line.contains("larger than 16 MiB"),
        "{}",
        refusal.line
    );
    kill(machine.host_pid(), Signal::KILL);
    client.send_part("\"}}\n");
    let id = client.request("ping", "{}");
    assert!(client.next().answers(&id));
    // The one after it is refused as well.
    client.send_part(&format!(
        r#"{{"jsonrpc":"2.0","id":"next","params":"{part}"}}"#
    ));
    client.send_part("\n");
    assert!(client.next().answers("\"next\""));
    let id = client.request("ping", "{}");
    assert!(client.next().answers(&id));
}

#[test]
fn a_client_whose_hosts_keep_ending_is_served_alone() {
    let machine = Machine::one(&script());
    let mut client = machine.connect();
    client.open();
    let call = client.send_use("hang", "{}");
    machine.wait_received("tools/call", 1);
    let said = poll(TIMEOUT, || {
        for host in host_processes(&machine) {
            kill(host, Signal::KILL);
        }
        let said = client.stderr();
        said.contains("serving alone").then_some(said)
    });
    let said = said.expect("the client is served alone");
    assert!(said.contains("the host"), "{said}");
    // The session continues, and the call has its one answer.
    let result = ToolResult::of(&client.response(&call));
    assert_eq!(result.failure()["outcome"], "unknown");
    assert_eq!(client.use_tool("one", "{}").text(), "done");
    assert_eq!(machine.hosts(), Vec::<serde_json::Value>::new());
    assert!(client.finish().success());
    machine.wait_clean();
}
