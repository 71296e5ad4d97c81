//! Faults of HTTP in a call, one row each: the code and the outcome that the caller gets, and the number of times that
//! the server saw the call.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::{
    opened,
    server::{Out, RemoteServer, Seen, Then},
};
use crate::harness::Fault;

/// The handling of a call by a server. `$ID` is the id of the call, `$PATH` the path of its request.
enum Does {
    /// Answers with this head and body.
    Replies(&'static str, &'static str),
    /// Writes this and closes the connection.
    Closes(&'static str),
}

impl Does {
    fn with(&self, seen: &Seen, out: &mut Out) -> Then {
        let fill = |text: &str| text.replace("$ID", &seen.id()).replace("$PATH", &seen.path);
        match self {
            Self::Replies(head, body) => out.reply(&fill(head), &fill(body)),
            Self::Closes(text) => {
                out.raw(text);
                Then::Close
            }
        }
    }
}

/// The number, what goes wrong, what the server does, the code, the outcome (none if empty), how often the server sees the call, and
/// what the reason holds.
type Row = (
    &'static str,
    &'static str,
    Does,
    &'static str,
    &'static str,
    usize,
    &'static str,
);

const ROWS: &[Row] = &[
    (
        "F35a",
        "answers a call with 401",
        Does::Replies(
            "401 Unauthorized\nWWW-Authenticate: Bearer resource_metadata=\"http://169.254.169.254/x\"",
            "",
        ),
        "auth_required",
        "rejected",
        1,
        "not signed in",
    ),
    (
        "F36",
        "answers a call with 403",
        Does::Replies("403 Forbidden", "no"),
        "auth_required",
        "rejected",
        1,
        "HTTP 403",
    ),
    (
        "F47e",
        "answers a call with 400 and a text",
        Does::Replies("400 Bad Request\nContent-Type: text/plain", "what?"),
        "http_400",
        "rejected",
        1,
        "HTTP 400 (text/plain): what?",
    ),
    (
        "F39a",
        "answers a call with 429 without a time",
        Does::Replies("429 Too Many Requests", ""),
        "http_429",
        "rejected",
        1,
        "HTTP 429",
    ),
    (
        "F39b",
        "answers a call with 429 and Retry-After: 31",
        Does::Replies("429 Too Many Requests\nRetry-After: 31", ""),
        "http_429",
        "rejected",
        1,
        "HTTP 429",
    ),
    (
        "F39c",
        "answers a call twice with 429",
        Does::Replies("429 Too Many Requests\nRetry-After: 0", ""),
        "http_429",
        "rejected",
        2,
        "HTTP 429",
    ),
    (
        "F40a",
        "answers a call with 500",
        Does::Replies("500 Internal Server Error", ""),
        "http_500",
        "unknown",
        1,
        "HTTP 500",
    ),
    (
        "F40b",
        "answers a call with 502",
        Does::Replies("502 Bad Gateway", ""),
        "http_502",
        "unknown",
        1,
        "HTTP 502",
    ),
    (
        "F41a",
        "answers a call with 503 and Retry-After: 1",
        Does::Replies("503 Service Unavailable\nRetry-After: 1", ""),
        "http_503",
        "unknown",
        1,
        "HTTP 503",
    ),
    (
        "F40c",
        "answers a call with 504",
        Does::Replies("504 Gateway Timeout", ""),
        "http_504",
        "unknown",
        1,
        "HTTP 504",
    ),
    (
        "F43a",
        "closes the connection of a call before it answers",
        Does::Closes(""),
        "connection_lost",
        "unknown",
        1,
        "connection lost",
    ),
    (
        "F43b",
        "closes the connection of a call in the head of the answer",
        Does::Closes("HTTP/1.1 200 O"),
        "connection_lost",
        "unknown",
        1,
        "lost",
    ),
    (
        "F44d",
        "closes the connection of a call in the body of the answer",
        Does::Closes(
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{",
        ),
        "connection_lost",
        "unknown",
        1,
        "lost",
    ),
    (
        "F44a",
        "ends the stream of a call without an answer",
        Does::Closes(
            "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n",
        ),
        "connection_lost",
        "unknown",
        1,
        "stream ended",
    ),
    (
        "F47a",
        "answers a call with a login page in HTML",
        Does::Replies(
            "200 OK\nContent-Type: text/html; charset=utf-8",
            "<html>\u{1b}[2JPlease log in",
        ),
        "invalid_response",
        "unknown",
        1,
        "HTTP 200 with content type text/html; charset=utf-8 instead of JSON or an event stream: <html>⟦U+001B⟧[2JPlease log in",
    ),
    (
        "F47b",
        "answers a call with JSON that is cut off",
        Does::Replies("200 OK\nContent-Type: application/json", "{\"jsonrpc\""),
        "invalid_response",
        "unknown",
        1,
        "not valid JSON",
    ),
    (
        "F47c",
        "answers a call with 202 and nothing",
        Does::Replies("202 Accepted", ""),
        "invalid_response",
        "unknown",
        1,
        "HTTP 202 without a response",
    ),
    (
        "F47d",
        "answers a call with the answer to another",
        Does::Replies(
            "200 OK\nContent-Type: application/json",
            "{\"jsonrpc\":\"2.0\",\"id\":9999,\"result\":{}}",
        ),
        "invalid_response",
        "unknown",
        1,
        "without a response",
    ),
    (
        "T35a",
        "answers a call with a compressed body, which was not asked for",
        Does::Replies(
            "200 OK\nContent-Type: application/json\nContent-Encoding: gzip",
            "\u{1f}",
        ),
        "invalid_response",
        "unknown",
        1,
        "content encoding gzip",
    ),
    (
        "F46a",
        "answers a call with 302 to another path",
        Does::Replies("302 Found\nLocation: /login?token=x", ""),
        "http_302",
        "rejected",
        1,
        "redirects to /login,",
    ),
    (
        "F46b",
        "answers a call with 307 to another origin",
        Does::Replies(
            "307 Temporary Redirect\nLocation: https://u:p@evil.example/x?y",
            "",
        ),
        "http_307",
        "rejected",
        1,
        "redirects to https://evil.example,",
    ),
    (
        "F46c",
        "answers a call with 307 for ever",
        Does::Replies("307 Temporary Redirect\nLocation: $PATHx", ""),
        "http_307",
        "rejected",
        4,
        "redirects to itself repeatedly",
    ),
    (
        "F47g",
        "answers a call with 400 and an error of the protocol",
        Does::Replies(
            "400 Bad Request\nContent-Type: application/json",
            "{\"jsonrpc\":\"2.0\",\"id\":$ID,\"error\":{\"code\":-32602,\"message\":\"no such tool\"}}",
        ),
        "server_error",
        "",
        1,
        "no such tool",
    ),
];

fn told(code: &str, outcome: &str, count: usize) -> String {
    let comma = if outcome.is_empty() { "" } else { ", " };
    let times = ["never", "once", "twice", "three times", "four times"][count];
    format!("{code}{comma}{outcome}; the call is sent {times}; the next one succeeds")
}

#[test]
fn each_fault_of_a_call_has_its_code_and_outcome_and_nothing_is_sent_twice() {
    for (number, name, does, code, outcome, count, text) in ROWS {
        let mut fault = Fault::within(4, number, name, &told(code, outcome, *count));
        let server = RemoteServer::start(move |seen, out| {
            let faulty = seen.method() == "tools/call" && seen.body.contains("\"t\"");
            faulty.then(|| does.with(seen, out))
        });
        let mut workbench = opened(&server, &json!({}));
        fault.begins();
        let result = workbench.use_tool("t", "{}");
        let failure = result.failure();
        let outcome = Some(*outcome).filter(|it| !it.is_empty());
        assert_eq!(failure["code"], *code, "{name}: {}", result.raw);
        assert_eq!(
            failure["outcome"],
            outcome.map_or(Value::Null, Value::from),
            "{name}"
        );
        assert!(result.error().contains(text), "{name}: {}", result.error());
        let calls = server.received("tools/call");
        assert_eq!(calls.len(), *count, "{name}: {calls:#?}");
        // The connection goes on: the next call works.
        let next = workbench.use_tool("u", "{}");
        assert_eq!(next.raw, r#"{"content":[]}"#, "{name}");
        fault.ends();
    }
}
