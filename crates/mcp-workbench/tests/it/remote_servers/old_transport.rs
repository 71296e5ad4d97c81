//! HTTP+SSE, the transport of 2024-11-05: chosen by the entry, or because the server has nothing newer.

use std::sync::{Arc, Mutex, mpsc};

use pretty_assertions::assert_eq;
use serde_json::json;

use super::server::{Out, RemoteServer, Seen, Then, initialize_result, tools};
use crate::harness::Fault;

/// A message on the stream.
enum Says {
    Message(String),
    Goodbye,
}

/// A server of HTTP+SSE whose stream begins with this event; `refusal` is its answer to a POST at the address
/// of the stream.
fn old_server(endpoint: &'static str, refusal: &'static str) -> RemoteServer {
    let (say, heard) = mpsc::channel::<Says>();
    let (say, heard) = (Mutex::new(say), Arc::new(Mutex::new(heard)));
    RemoteServer::start(move |seen, out| {
        Some(match (seen.verb.as_str(), seen.path.as_str()) {
            ("GET", "/mcp") => stream(endpoint, &heard.lock().unwrap(), out),
            ("POST", "/mcp") => out.reply(refusal, "nothing here"),
            _ => {
                if let Some(answer) = answer(seen) {
                    say.lock().unwrap().send(answer).unwrap();
                }
                out.reply("202 Accepted", "Accepted")
            }
        })
    })
}

fn stream(endpoint: &str, messages: &mpsc::Receiver<Says>, out: &mut Out) -> Then {
    out.stream();
    out.raw(&format!("event: endpoint\r\ndata: {endpoint}\r\n\r\n"));
    while let Ok(Says::Message(message)) = messages.recv() {
        out.raw(&format!("event: message\r\ndata: {message}\r\n\r\n"));
    }
    Then::Close
}

/// Returns the reaction of the stream to a message.
fn answer(seen: &Seen) -> Option<Says> {
    let result = match seen.method().as_str() {
        "initialize" => initialize_result(),
        "tools/list" => tools(),
        "tools/call" if seen.body.contains("\"t\"") => r#"{"content":[],"n":1.000}"#.to_owned(),
        "tools/call" => return Some(Says::Goodbye),
        _ => return None,
    };
    Some(Says::Message(seen.answer(&result)))
}

#[test]
fn http_sse_is_used_if_configured_or_if_nothing_newer_works() {
    let fault = Fault::within(
        15,
        "F38a",
        "knows only HTTP+SSE: answers a POST with 404, 405 or 400",
        "the old transport is used after server/discover and initialize were refused, or at once where the entry says so; calls succeed",
    );
    for (keys, refusal) in [
        (json!({"type": "sse"}), "500 Never asked"),
        (json!({}), "404 Not Found"),
        (json!({"type": "http"}), "405 Method Not Allowed"),
        (json!({"transport": "streamable-http"}), "400 Bad Request"),
    ] {
        let server = old_server("/messages?session=1", refusal);
        let mut workbench = server.setup(&keys).connect();
        assert_eq!(workbench.open("dev").tool_names(), ["t", "u"], "{keys}");
        let result = workbench.use_tool("t", "{}");
        assert_eq!(result.raw, r#"{"content":[],"n":1.000}"#);
        let call = &server.received("tools/call")[0];
        assert_eq!(call.path, "/messages?session=1");
        let refused = server
            .seen()
            .into_iter()
            .filter(|it| it.verb == "POST" && it.path == "/mcp" && it.method() == "initialize");
        assert_eq!(refused.count(), usize::from(keys["type"] != "sse"));
    }
    fault.ends();
}

#[test]
fn a_stream_that_ends_fails_its_calls_and_the_next_call_reconnects() {
    let mut fault = Fault::within(
        6,
        "F44e",
        "ends its stream of HTTP+SSE during a call",
        "connection_lost, unknown; the next call reconnects and succeeds",
    );
    let server = old_server("/messages", "404 Not Found");
    let mut workbench = server.setup(&json!({"type": "sse"})).connect();
    workbench.open("dev");
    fault.begins();
    let result = workbench.use_tool("u", "{}");
    assert_eq!(
        result.failure()["code"],
        "connection_lost",
        "{}",
        result.raw
    );
    assert_eq!(result.failure()["outcome"], "unknown");
    assert!(!workbench.use_tool("t", "{}").failed());
    assert_eq!(server.received("tools/call").len(), 2);
    fault.ends();
}

#[test]
fn messages_are_never_sent_to_a_different_origin() {
    let fault = Fault::within(
        6,
        "T32b",
        "names another origin as the endpoint of HTTP+SSE",
        "opens without it: invalid_response; the other origin sees no request",
    );
    let other = RemoteServer::start(|_, _| None);
    let target: &'static str = format!("http://{}/messages", other.authority()).leak();
    let server = old_server(target, "404 Not Found");
    let mut workbench = server.setup(&json!({"type": "sse"})).connect();
    let result = workbench.open("dev");
    assert_eq!(
        result.failure()["code"],
        "invalid_response",
        "{}",
        result.raw
    );
    assert!(
        result.error().contains("a different origin"),
        "{}",
        result.error()
    );
    assert!(other.seen().is_empty());
    fault.ends();
}

#[test]
fn a_server_without_a_known_transport_is_reported_with_its_first_response() {
    let fault = Fault::within(
        6,
        "F38b",
        "has neither transport at its address",
        "opens without it: http_404 with its first refusal",
    );
    let server = RemoteServer::start(|_, out| {
        Some(out.reply("404 Not Found\nContent-Type: text/plain", "no"))
    });
    let mut workbench = server.setup(&json!({})).connect();
    let result = workbench.open("dev");
    assert_eq!(result.failure()["code"], "http_404", "{}", result.raw);
    assert!(
        result.error().contains("HTTP 404 (text/plain): no"),
        "{}",
        result.error()
    );
    fault.ends();
}

#[test]
fn a_streamable_http_server_that_refuses_is_not_tried_over_sse() {
    let fault = Fault::within(
        6,
        "F38c",
        "refuses our revision in words of the protocol",
        "opens without it; the old transport is not tried",
    );
    let server = RemoteServer::start(|seen, out| {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":{},"error":{{"code":-32022,"message":"Unsupported protocol version"}}}}"#,
            seen.id()
        );
        Some(out.reply("400 Bad Request\nContent-Type: application/json", &body))
    });
    let mut workbench = server.setup(&json!({})).connect();
    let result = workbench.open("dev");
    assert!(
        result.error().contains("Unsupported protocol version"),
        "{}",
        result.error()
    );
    assert!(server.seen().iter().all(|seen| seen.verb == "POST"));
    fault.ends();
}
