//! The export of a host: the variables of the client that started it count, for all clients.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::mpsc::{self, Receiver},
    thread,
};

use serde_json::json;

use super::Machine;
use crate::harness::{Script, Setup, TIMEOUT};

/// Receives requests over HTTP; returns the endpoint and the bodies.
fn receiver() -> (String, Receiver<Vec<u8>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}/v1/traces", listener.local_addr().unwrap());
    let (sender, bodies) = mpsc::channel();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let sender = sender.clone();
            thread::spawn(move || receive(stream, &sender));
        }
    });
    (endpoint, bodies)
}

/// Answers the requests of a connection.
fn receive(stream: TcpStream, bodies: &mpsc::Sender<Vec<u8>>) {
    let mut reader = BufReader::new(stream);
    let (mut length, mut line) = (0, String::new());
    while reader.read_line(&mut line).unwrap_or(0) > 0 {
        let head = line.trim().to_ascii_lowercase();
        if let Some(value) = head.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if head.is_empty() {
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            let response = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
            if bodies.send(body).is_err() || reader.get_mut().write_all(response).is_err() {
                return;
            }
        }
        line.clear();
    }
}

#[test]
fn a_host_exports_the_spans_of_all_clients() {
    let (endpoint, bodies) = receiver();
    let script = Script::named(&["one", "two"])
        .answers("one", r#"{"content":[]}"#)
        .answers("two", r#"{"content":[]}"#);
    let setup = Setup::new().toolbox("dev", "Development tools");
    let machine = Machine::new(setup.server_with("fs", &script, &json!({"cwd": "."})));
    let mut command = machine.command();
    command.env("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", endpoint);
    let mut first = super::Client::spawn(command);
    first.initialize();
    first.open();
    assert!(!first.use_tool("one", "{}").failed());
    let mut second = machine.connect();
    second.open();
    assert!(!second.use_tool("two", "{}").failed());
    machine.run(&["stop"]);
    let mut wanted = vec!["tools/call one", "tools/call two"];
    while !wanted.is_empty() {
        let body = bodies.recv_timeout(TIMEOUT).expect("an export");
        let body = String::from_utf8_lossy(&body).into_owned();
        wanted.retain(|name| !body.contains(name));
    }
}
