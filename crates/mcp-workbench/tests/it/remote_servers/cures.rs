//! Recovery from faults: waiting, retrying if nothing can have run, giving up with a reason; and the limits of
//! recovery.

use std::{
    net::TcpListener,
    sync::atomic::{AtomicUsize, Ordering},
    time::{Duration, Instant},
};

use pretty_assertions::assert_eq;
use serde_json::json;

use super::{
    opened,
    server::{RemoteServer, Seen, Then, usual},
};
use crate::harness::{Fault, Script, Setup};

#[test]
fn an_error_quotes_200_characters_of_the_body() {
    let mut fault = Fault::within(
        4,
        "F47f",
        "answers a call with 500 and 10 kB of text",
        "the error quotes 200 characters of it",
    );
    let server = RemoteServer::start(|seen, out| {
        (seen.method() == "tools/call")
            .then(|| out.reply("500 Oops\nContent-Type: text/plain", &"é".repeat(5000)))
    });
    let mut workbench = opened(&server, &json!({}));
    fault.begins();
    let result = workbench.use_tool("t", "{}");
    let expected = format!(
        "Error executing tool 't' in server 'fs' (toolbox 'dev'): HTTP 500 (text/plain): {}…",
        "é".repeat(200)
    );
    assert_eq!(result.error(), expected);
    fault.ends();
}

#[test]
fn a_busy_server_is_retried_once_after_its_retry_time() {
    let mut fault = Fault::within(
        6,
        "F39d",
        "answers a call with 429 and Retry-After: 1, then well",
        "the call is sent again once, a second later, and succeeds",
    );
    let calls = AtomicUsize::new(0);
    let server = RemoteServer::start(move |seen, out| {
        let first = seen.method() == "tools/call" && calls.fetch_add(1, Ordering::Relaxed) == 0;
        first.then(|| out.reply("429 Too Many Requests\nRetry-After: 1", ""))
    });
    let mut workbench = opened(&server, &json!({}));
    fault.begins();
    let start = Instant::now();
    let result = workbench.use_tool("t", "{}");
    assert_eq!(result.raw, r#"{"content":[]}"#);
    assert!(start.elapsed() >= Duration::from_secs(1));
    assert_eq!(server.received("tools/call").len(), 2);
    fault.ends();
}

#[test]
fn a_retry_time_beyond_the_timeout_of_the_call_is_not_awaited() {
    let mut fault = Fault::within(
        4,
        "F39e",
        "answers a call with 429 and Retry-After: 20 (callTimeoutMs 5000)",
        "fails at once: http_429, rejected, retry_after_ms 20000",
    );
    let server = RemoteServer::start(|seen, out| {
        (seen.method() == "tools/call")
            .then(|| out.reply("429 Too Many Requests\nRetry-After: 20", ""))
    });
    let mut workbench = opened(&server, &json!({"callTimeoutMs": 5000}));
    fault.begins();
    let result = workbench.use_tool("t", "{}");
    assert_eq!(result.failure()["code"], "http_429");
    assert_eq!(result.failure()["outcome"], "rejected");
    assert_eq!(result.failure()["retry_after_ms"], 20_000);
    assert_eq!(server.received("tools/call").len(), 1);
    fault.ends();
}

#[test]
fn a_dead_pooled_connection_never_sends_a_call_twice() {
    let mut fault = Fault::within(
        10,
        "F43c",
        "closes a kept connection as soon as a call has come on it, five times",
        "each is unknown and was sent once; the calls between succeed",
    );
    let server = RemoteServer::start(|seen, out| match seen.method().as_str() {
        "tools/call" if seen.body.contains("\"t\"") => Some(Then::Close),
        // The connection is used again, and dies when it is.
        "tools/call" => Some(out.json(&seen.answer(r#"{"content":[]}"#))),
        _ => None,
    });
    let mut workbench = opened(&server, &json!({}));
    fault.begins();
    for _ in 0..5 {
        assert!(!workbench.use_tool("u", "{}").failed());
        let result = workbench.use_tool("t", "{}");
        assert_eq!(result.failure()["outcome"], "unknown", "{}", result.raw);
    }
    let calls = server.received("tools/call");
    assert_eq!(calls.len(), 10, "{calls:#?}");
    let reused = calls
        .windows(2)
        .filter(|pair| pair[0].connection == pair[1].connection);
    assert!(reused.count() > 0, "no connection was used twice");
    fault.ends();
}

#[test]
fn unannounced_closes_never_send_a_call_twice() {
    let mut fault = Fault::within(
        10,
        "F43d",
        "closes each connection after the answer, unannounced, in fifty calls",
        "no call is sent twice; one that meets the end of its connection is unknown",
    );
    let server = RemoteServer::start(|seen, out| {
        (seen.method() == "tools/call").then(|| {
            out.json(&seen.answer(r#"{"content":[]}"#));
            Then::Close
        })
    });
    let mut workbench = opened(&server, &json!({}));
    fault.begins();
    let mut answered = 0;
    for _ in 0..50 {
        let result = workbench.use_tool("t", "{}");
        if result.failed() {
            // It met the end of its connection, and nobody knows on which side of it.
            assert_eq!(result.failure()["outcome"], "unknown", "{}", result.raw);
        } else {
            answered += 1;
        }
    }
    assert!(answered > 0);
    let calls = server.received("tools/call");
    let mut ids: Vec<String> = calls.iter().map(Seen::id).collect();
    ids.dedup();
    assert_eq!((calls.len(), ids.len()), (answered, answered));
    fault.ends();
}

#[test]
fn lists_are_retried_and_calls_are_not() {
    let fault = Fault::within(
        8,
        "F41b",
        "answers tools/list twice with 503",
        "the list is asked for again; opens with the third answer",
    );
    let lists = AtomicUsize::new(0);
    let server = RemoteServer::start(move |seen, out| match seen.method().as_str() {
        "tools/list" if lists.fetch_add(1, Ordering::Relaxed) < 2 => {
            Some(out.reply("503 Service Unavailable", ""))
        }
        _ => None,
    });
    opened(&server, &json!({}));
    assert_eq!(server.received("tools/list").len(), 3);
    fault.ends();
}

#[test]
fn an_unreachable_server_is_reported_with_its_reason() {
    let fault = Fault::within(
        20,
        "F42a",
        "refuses the connection, or its name is not known",
        "opens without it: server_start_failed, not_sent, with the reason",
    );
    let free = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let rows = [
        (
            format!("http://{free}/mcp"),
            "server_start_failed",
            "Connection refused",
        ),
        (
            "http://no-such-host.invalid/mcp".to_owned(),
            "server_start_failed",
            "cannot connect: ",
        ),
    ];
    for (url, code, text) in rows {
        let mut workbench = Setup::new()
            .toolbox("dev", "d")
            .entry("fs", json!({"url": url}))
            .connect();
        let result = workbench.open("dev");
        assert_eq!(result.failure()["code"], code, "{}", result.raw);
        assert_eq!(result.failure()["outcome"], "not_sent");
        assert!(result.error().contains(text), "{}", result.error());
    }
    fault.ends();
}

#[test]
fn a_call_to_a_vanished_server_is_not_sent() {
    let mut fault = Fault::within(
        10,
        "F42b",
        "is gone when it is called",
        "server_unreachable, not_sent, with the reason",
    );
    let server = RemoteServer::start(|seen, out| {
        out.says_close = true;
        usual(seen, out);
        Some(Then::Close)
    });
    let mut workbench = opened(&server, &json!({}));
    server.wait_verb("GET");
    server.stop();
    fault.begins();
    let result = workbench.use_tool("t", "{}");
    assert_eq!(
        result.failure()["code"],
        "server_unreachable",
        "{}",
        result.raw
    );
    assert_eq!(result.failure()["outcome"], "not_sent");
    let reason = "cannot connect: Connection refused";
    assert!(result.error().contains(reason), "{}", result.error());
    fault.ends();
}

#[test]
fn https_never_falls_back_to_plain_text() {
    let fault = Fault::within(
        15,
        "F48",
        "answers https with plain HTTP",
        "opens without it: server_start_failed; nothing is sent in the clear",
    );
    let server = RemoteServer::start(|_, _| None);
    let url = server.url().replace("http:", "https:");
    let mut workbench = Setup::new()
        .toolbox("dev", "d")
        .entry("fs", json!({"url": url}))
        .connect();
    let result = workbench.open("dev");
    assert_eq!(
        result.failure()["code"],
        "server_start_failed",
        "{}",
        result.raw
    );
    assert!(
        result.error().contains("cannot connect: "),
        "{}",
        result.error()
    );
    assert!(server.received("initialize").is_empty());
    fault.ends();
}

#[test]
fn a_slow_body_ends_at_the_timeout_of_the_call() {
    let mut fault = Fault::within(
        5,
        "F45a",
        "stops in the middle of an event (callTimeoutMs 400)",
        "call_timeout, unknown; it is notified with our id; the next call succeeds",
    );
    let server = RemoteServer::start(|seen, out| {
        (seen.method() == "tools/call" && seen.body.contains("\"t\"")).then(|| {
            out.stream();
            out.raw(": one comment, and then nothing\n\ndata: {");
            out.wait_closed();
            Then::Close
        })
    });
    let mut workbench = opened(&server, &json!({"callTimeoutMs": 400}));
    fault.begins();
    let result = workbench.use_tool("t", "{}");
    assert_eq!(result.failure()["code"], "call_timeout", "{}", result.raw);
    assert_eq!(result.failure()["outcome"], "unknown");
    let cancelled = server.wait("notifications/cancelled", 1);
    let call = server.received("tools/call")[0].id();
    assert_eq!(
        cancelled[0].message()["params"]["requestId"].to_string(),
        call
    );
    assert!(!workbench.use_tool("u", "{}").failed());
    fault.ends();
}

#[test]
fn a_start_that_is_refused_says_what_to_do() {
    let fault = Fault::within(
        15,
        "F35b",
        "answers initialize with 401, 403, 500 or an HTML page",
        "opens without it; the reason says what came, and for 401 what to do",
    );
    let rows = [
        ("401 Unauthorized", "auth_required", "login dev fs"),
        ("403 Forbidden", "auth_required", "HTTP 403"),
        ("500 Oops", "http_500", "HTTP 500"),
        (
            "200 OK\nContent-Type: text/html",
            "invalid_response",
            "content type text/html",
        ),
    ];
    for (head, code, text) in rows {
        let server = RemoteServer::start(move |_, out| Some(out.reply(head, "<p>")));
        let mut workbench = server.setup(&json!({})).connect();
        let result = workbench.open("dev");
        assert_eq!(result.failure()["code"], code, "{head}: {}", result.raw);
        assert!(result.error().contains(text), "{head}: {}", result.error());
    }
    fault.ends();
}

#[test]
fn a_server_that_asks_for_a_token_after_the_handshake_requires_a_sign_in() {
    // As modern servers do that ask for a token late: they do not know the handshake.
    let server = RemoteServer::start(|seen, out| {
        let error = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32020,"message":"no header"}}"#;
        Some(match seen.method().as_str() {
            "initialize" => out.reply("400 Bad Request\nContent-Type: application/json", error),
            _ => out.reply("401 Unauthorized\nWWW-Authenticate: Bearer", ""),
        })
    });
    let mut workbench = server.setup(&json!({})).connect();
    let result = workbench.open("dev");
    assert_eq!(result.failure()["code"], "auth_required", "{}", result.raw);
}

#[test]
fn a_failed_remote_server_does_not_affect_others() {
    let mut fault = Fault::within(
        5,
        "F45b",
        "never answers ten calls, while another server is used",
        "the other server answers at once",
    );
    let server = RemoteServer::start(|seen, out| {
        (seen.method() == "tools/call").then(|| {
            out.wait_closed();
            Then::Close
        })
    });
    let mut workbench = server
        .setup(&json!({}))
        .server("local", &Script::named(&["pid"]))
        .connect();
    workbench.open("dev");
    for _ in 0..10 {
        workbench.send_use("t", "{}");
    }
    server.wait("tools/call", 10);
    fault.begins();
    let start = Instant::now();
    let result = workbench.use_tool_of(["dev", "local", "pid"], "{}");
    assert!(!result.failed(), "{}", result.raw);
    assert!(start.elapsed() < Duration::from_secs(5));
    fault.ends();
}
