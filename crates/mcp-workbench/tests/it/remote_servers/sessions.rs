//! Sessions of Streamable HTTP: what each request carries, how a lost session is cured, and its end.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use pretty_assertions::assert_eq;
use serde_json::json;

use super::server::{Out, RemoteServer, SESSION, Seen, Then, initialize_result};
use crate::harness::Fault;

#[test]
fn requests_have_the_headers_of_the_revision_and_the_session_is_deleted() {
    let server = RemoteServer::start(|_, _| None);
    let mut workbench = server
        .setup(&json!({
            "era": "legacy",
            "headers": {"X-Key": "k1", "Accept": "text/evil", "Mcp-Session-Id": "stolen"},
        }))
        .connect();
    workbench.open("dev");
    workbench.use_tool("t", "{}");
    let listening = server.wait_verb("GET");
    assert_eq!(listening.header("accept"), Some("text/event-stream"));
    workbench.finish();
    let ended = server.wait_verb("DELETE");
    assert_eq!(ended.header("mcp-session-id"), Some(SESSION));

    let posts: Vec<Seen> = server
        .seen()
        .into_iter()
        .filter(|it| it.verb == "POST")
        .collect();
    let methods: Vec<String> = posts.iter().map(Seen::method).collect();
    assert_eq!(
        methods,
        [
            "initialize",
            "notifications/initialized",
            "tools/list",
            "tools/call"
        ]
    );
    for (at, post) in posts.iter().enumerate() {
        assert_eq!(
            post.header("accept"),
            Some("application/json, text/event-stream")
        );
        assert_eq!(post.header("content-type"), Some("application/json"));
        assert_eq!(post.header("x-key"), Some("k1"));
        assert_eq!(post.header("accept-encoding"), None);
        let (session, version) = if at == 0 {
            (None, None)
        } else {
            (Some(SESSION), Some("2025-06-18"))
        };
        assert_eq!(post.header("mcp-session-id"), session, "{}", post.method());
        assert_eq!(
            post.header("mcp-protocol-version"),
            version,
            "{}",
            post.method()
        );
    }
}

/// A server that forgets its session after `good` calls, and gives a new one for each handshake.
fn forgetful(good: usize, refuse: fn(&mut Out) -> Then) -> (RemoteServer, Arc<AtomicUsize>) {
    let sessions = Arc::new(AtomicUsize::new(0));
    let (given, calls) = (Arc::clone(&sessions), AtomicUsize::new(0));
    let server = RemoteServer::start(move |seen, out| {
        if seen.method() == "initialize" {
            let number = given.fetch_add(1, Ordering::SeqCst);
            let head = format!("200 OK\nContent-Type: application/json\nMcp-Session-Id: s{number}");
            return Some(out.reply(&head, &seen.answer(&initialize_result())));
        }
        let first = seen.header("mcp-session-id") == Some("s0");
        let lost =
            seen.method() == "tools/call" && first && calls.fetch_add(1, Ordering::SeqCst) >= good;
        lost.then(|| refuse(out))
    });
    (server, sessions)
}

#[test]
fn a_lost_session_is_renewed_once_for_all_callers() {
    let fault = Fault::within(
        20,
        "F37a",
        "loses its session (404, or 400 that says so) with forty calls in flight",
        "one new session for all; each call runs once in it and succeeds",
    );
    for (name, refuse) in [
        (
            "404",
            (|out| out.reply("404 Not Found", "")) as fn(&mut Out) -> Then,
        ),
        ("400 that says so", |out| {
            out.reply(
                "400 Bad Request\nContent-Type: application/json",
                r#"{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID provided"},"id":null}"#,
            )
        }),
    ] {
        let (server, sessions) = forgetful(1, refuse);
        let mut workbench = server.setup(&json!({})).connect();
        workbench.open("dev");
        assert!(!workbench.use_tool("t", "{}").failed());
        let calls: Vec<String> = (0..40).map(|_| workbench.send_use("t", "{}")).collect();
        for call in &calls {
            let result = workbench.tool_result(call);
            assert_eq!(result.raw, r#"{"content":[]}"#, "{name}");
        }
        assert_eq!(
            sessions.load(Ordering::SeqCst),
            2,
            "{name}: two handshakes in all"
        );
        let mut ids: Vec<String> = server
            .received("tools/call")
            .iter()
            .filter(|call| call.header("mcp-session-id") == Some("s1"))
            .map(Seen::id)
            .collect();
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), 40, "{name}: each once in the new session");
        // The list is read again, since the server may have changed.
        server.wait("tools/list", 2);
    }
    fault.ends();
}

#[test]
fn a_session_lost_twice_is_an_error_with_outcome_not_run() {
    let mut fault = Fault::within(
        6,
        "F37b",
        "loses each session at its first call",
        "a new session each time; the call is sent twice, then http_404, rejected",
    );
    let server = RemoteServer::start(|seen, out| {
        (seen.method() == "tools/call").then(|| out.reply("404 Not Found", ""))
    });
    let mut workbench = server.setup(&json!({})).connect();
    workbench.open("dev");
    fault.begins();
    let result = workbench.use_tool("t", "{}");
    assert_eq!(result.failure()["code"], "http_404", "{}", result.raw);
    assert_eq!(result.failure()["outcome"], "rejected");
    assert_eq!(server.received("tools/call").len(), 2);
    server.wait("initialize", 3);
    fault.ends();
}

#[test]
fn a_failed_renewal_is_retried_by_the_next_call() {
    let mut fault = Fault::within(
        6,
        "F37c",
        "loses its session and answers the next initialize with 401",
        "one more session, in which the call succeeds",
    );
    let handshakes = AtomicUsize::new(0);
    let server = RemoteServer::start(move |seen, out| match seen.method().as_str() {
        "initialize" => {
            let number = handshakes.fetch_add(1, Ordering::SeqCst);
            if number == 1 {
                return Some(out.reply("401 Unauthorized", ""));
            }
            let head = format!("200 OK\nContent-Type: application/json\nMcp-Session-Id: s{number}");
            Some(out.reply(&head, &seen.answer(&initialize_result())))
        }
        "tools/call" if seen.header("mcp-session-id") == Some("s0") => {
            Some(out.reply("404 Not Found", ""))
        }
        _ => None,
    });
    let mut workbench = server.setup(&json!({})).connect();
    workbench.open("dev");
    fault.begins();
    let result = workbench.use_tool("t", "{}");
    assert!(!result.failed(), "{}", result.raw);
    assert_eq!(server.received("initialize").len(), 3);
    assert_eq!(server.received("tools/call").len(), 2);
    fault.ends();
}

#[test]
fn a_404_without_a_session_does_not_renew_one() {
    let fault = Fault::within(
        6,
        "F37d",
        "gave no session and answers a call with 404",
        "http_404; the call is sent once",
    );
    let server = RemoteServer::start(|seen, out| match seen.method().as_str() {
        "initialize" => Some(out.json(&seen.answer(&initialize_result()))),
        "tools/call" => Some(out.reply("404 Not Found", "")),
        _ => None,
    });
    let mut workbench = server.setup(&json!({})).connect();
    workbench.open("dev");
    let result = workbench.use_tool("t", "{}");
    assert_eq!(result.failure()["code"], "http_404", "{}", result.raw);
    assert_eq!(server.received("tools/call").len(), 1);
    workbench.finish();
    assert!(server.seen().iter().all(|seen| seen.verb != "DELETE"));
    fault.ends();
}

#[test]
fn an_idle_session_is_deleted_and_created_again_on_use() {
    let server = RemoteServer::start(|_, _| None);
    let mut workbench = server.setup(&json!({"idleTimeoutMs": 200})).connect();
    workbench.open("dev");
    server.wait_verb("DELETE");
    assert!(!workbench.use_tool("t", "{}").failed());
    assert_eq!(server.received("initialize").len(), 2);
}
