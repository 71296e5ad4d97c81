//! Streams of servers that want a token: every request for one carries it, and one that is refused is asked for again with
//! another.

use std::sync::{Mutex, mpsc};

use serde_json::json;
use tempfile::TempDir;

use super::served::{
    ACCEPT, address, answer, browse, keeping_in, offer, send_open, showing, sign_in_elsewhere,
};
use crate::harness::{
    Setup, TIMEOUT,
    authority::{Authority, Protected},
    poll,
    remote_server::{Then, initialize_result, tools},
};

#[test]
fn a_stream_is_requested_again_with_a_new_token() {
    let state = TempDir::new().unwrap();
    let authority = Authority::start();
    let server = Protected::start_with(&authority, |seen, out| {
        // It is over as soon as it has begun, each time.
        (seen.verb == "GET").then(|| {
            out.stream();
            out.event(r#"{"jsonrpc":"2.0","method":"notifications/none"}"#);
            Then::Close
        })
    });
    let setup = || keeping_in(state.path(), server.setup(&json!({})));
    sign_in_elsewhere(setup());
    let mut workbench = setup().connect();
    workbench.open("dev");
    server.server().wait_verb("GET");
    authority.end_access();
    let refreshed = poll(TIMEOUT, || {
        let given = authority.secrets();
        let newest = given.iter().rfind(|it| it.contains("access"))?;
        let mut seen = server.seen().into_iter();
        let is_new = !authority.token_requests("refresh_token").is_empty();
        seen.find(|it| is_new && it.verb == "GET" && it.bearer() == Some(newest))
    });
    assert!(refreshed.is_some(), "{:#?}", server.seen());
}

#[test]
fn a_broken_stream_is_resumed_with_the_token() {
    let state = TempDir::new().unwrap();
    let authority = Authority::start();
    let called = Mutex::new(String::new());
    let server = Protected::start_with(&authority, move |seen, out| {
        if seen.header("last-event-id") == Some("e1") {
            out.stream();
            out.event(&called.lock().unwrap());
            return Some(Then::Close);
        }
        (seen.method() == "tools/call").then(|| {
            *called.lock().unwrap() = seen.answer(r#"{"content":[]}"#);
            out.stream();
            out.raw("id: e1\nretry: 1\ndata:\n\n");
            Then::Close
        })
    });
    let setup = || keeping_in(state.path(), server.setup(&json!({})));
    sign_in_elsewhere(setup());
    let mut workbench = setup().connect();
    workbench.open("dev");
    assert!(!workbench.use_tool("t", "{}").failed());
    let seen = server.seen();
    let resumed = seen.iter().find(|it| it.header("last-event-id").is_some());
    assert!(resumed.expect("it is resumed").bearer().is_some());
}

/// A protected server of HTTP+SSE.
fn old_server(authority: &Authority) -> Protected {
    let (say, heard) = mpsc::channel::<String>();
    let (say, heard) = (Mutex::new(say), Mutex::new(heard));
    Protected::start_with(authority, move |seen, out| {
        if seen.verb == "GET" {
            out.stream();
            out.raw("event: endpoint\ndata: /mcp?session=1\n\n");
            let heard = heard.lock().unwrap();
            while let Ok(message) = heard.recv_timeout(TIMEOUT) {
                out.event(&message);
            }
            return Some(Then::Close);
        }
        if !seen.path.contains("session") {
            return Some(out.reply("404 Not Found", ""));
        }
        let result = match seen.method().as_str() {
            "initialize" => initialize_result(),
            "tools/list" => tools(),
            "tools/call" => r#"{"content":[]}"#.to_owned(),
            _ => return Some(out.reply("202 Accepted", "")),
        };
        say.lock().unwrap().send(seen.answer(&result)).unwrap();
        Some(out.reply("202 Accepted", ""))
    })
}

#[test]
fn http_sse_requests_have_the_token() {
    let state = TempDir::new().unwrap();
    let authority = Authority::start();
    let server = old_server(&authority);
    let setup = || -> Setup { keeping_in(state.path(), server.setup(&json!({"type": "sse"}))) };
    let mut workbench = showing(setup());
    let opening = send_open(&mut workbench);
    let offer = offer(&mut workbench);
    answer(&mut workbench, &offer, ACCEPT);
    browse(&address(&offer));
    assert_eq!(workbench.tool_result(&opening).tool_names(), ["t", "u"]);
    assert!(!workbench.use_tool("t", "{}").failed());
    let seen = server.seen();
    let calls = seen.iter().filter(|it| it.path.contains("session"));
    assert!(calls.clone().count() >= 3);
    assert!(
        calls.into_iter().all(|it| it.bearer().is_some()),
        "{seen:#?}"
    );
}
