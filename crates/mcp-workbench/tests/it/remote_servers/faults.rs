//! Faults of HTTP in a call, one row each: the code and the outcome that the caller is told, and how often
//! the server saw the call.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::{
    opened,
    server::{Out, RemoteServer, Seen, Then},
};

/// What a server does with a call. `$ID` is the id of the call, `$PATH` the path that it came to.
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

/// A name, what the server does, the code, the outcome (none if empty), how often the server sees the call, and
/// what the reason holds.
type Row = (
    &'static str,
    Does,
    &'static str,
    &'static str,
    usize,
    &'static str,
);

const ROWS: &[Row] = &[
    (
        "401",
        Does::Replies(
            "401 Unauthorized\nWWW-Authenticate: Bearer resource_metadata=\"http://169.254.169.254/x\"",
            "",
        ),
        "auth_required",
        "rejected",
        1,
        "set it in \"headers\"",
    ),
    (
        "403",
        Does::Replies("403 Forbidden", "no"),
        "auth_required",
        "rejected",
        1,
        "HTTP 403",
    ),
    (
        "400",
        Does::Replies("400 Bad Request\nContent-Type: text/plain", "what?"),
        "http_400",
        "rejected",
        1,
        "HTTP 400 (text/plain): what?",
    ),
    (
        "429 without a time",
        Does::Replies("429 Too Many Requests", ""),
        "http_429",
        "rejected",
        1,
        "HTTP 429",
    ),
    (
        "429 with a long time",
        Does::Replies("429 Too Many Requests\nRetry-After: 31", ""),
        "http_429",
        "rejected",
        1,
        "HTTP 429",
    ),
    (
        "429 twice",
        Does::Replies("429 Too Many Requests\nRetry-After: 0", ""),
        "http_429",
        "rejected",
        2,
        "HTTP 429",
    ),
    (
        "500",
        Does::Replies("500 Internal Server Error", ""),
        "http_500",
        "unknown",
        1,
        "HTTP 500",
    ),
    (
        "502",
        Does::Replies("502 Bad Gateway", ""),
        "http_502",
        "unknown",
        1,
        "HTTP 502",
    ),
    (
        "503",
        Does::Replies("503 Service Unavailable\nRetry-After: 1", ""),
        "http_503",
        "unknown",
        1,
        "HTTP 503",
    ),
    (
        "504",
        Does::Replies("504 Gateway Timeout", ""),
        "http_504",
        "unknown",
        1,
        "HTTP 504",
    ),
    (
        "closed before the answer",
        Does::Closes(""),
        "connection_lost",
        "unknown",
        1,
        "connection was lost",
    ),
    (
        "closed in the head",
        Does::Closes("HTTP/1.1 200 O"),
        "connection_lost",
        "unknown",
        1,
        "lost",
    ),
    (
        "closed in the body",
        Does::Closes(
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{",
        ),
        "connection_lost",
        "unknown",
        1,
        "lost",
    ),
    (
        "stream without an answer",
        Does::Closes(
            "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n",
        ),
        "connection_lost",
        "unknown",
        1,
        "stream ended",
    ),
    (
        "an HTML page",
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
        "no JSON",
        Does::Replies("200 OK\nContent-Type: application/json", "{\"jsonrpc\""),
        "invalid_response",
        "unknown",
        1,
        "not valid JSON",
    ),
    (
        "nothing",
        Does::Replies("202 Accepted", ""),
        "invalid_response",
        "unknown",
        1,
        "HTTP 202 without an answer",
    ),
    (
        "the answer to another",
        Does::Replies(
            "200 OK\nContent-Type: application/json",
            "{\"jsonrpc\":\"2.0\",\"id\":9999,\"result\":{}}",
        ),
        "invalid_response",
        "unknown",
        1,
        "without an answer",
    ),
    (
        "compressed",
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
        "302",
        Does::Replies("302 Found\nLocation: /login?token=x", ""),
        "http_302",
        "rejected",
        1,
        "redirects to /login,",
    ),
    (
        "307 to another origin",
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
        "307 for ever",
        Does::Replies("307 Temporary Redirect\nLocation: $PATHx", ""),
        "http_307",
        "rejected",
        4,
        "again and again",
    ),
    (
        "a JSON-RPC error with a status",
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

#[test]
fn each_fault_of_a_call_has_its_code_and_outcome_and_nothing_is_sent_twice() {
    for (name, does, code, outcome, count, text) in ROWS {
        let server = RemoteServer::start(move |seen, out| {
            let faulty = seen.method() == "tools/call" && seen.body.contains("\"t\"");
            faulty.then(|| does.with(seen, out))
        });
        let mut workbench = opened(&server, &json!({}));
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
    }
}
