//! Sessions: made by `initialize`, required afterwards, each its client's, ended for good.

use std::collections::HashSet;

use pretty_assertions::assert_eq;

use crate::harness::{
    Fault, HttpRequest, Script, Served, Setup, TIMEOUT, TOKEN, initialize_params, poll,
    request_text,
};

fn status(served: &Served, request: &HttpRequest) -> u16 {
    let mut connection = served.connection();
    connection.send(request);
    connection.head().status
}

fn ping() -> String {
    request_text("1", "ping", "{}")
}

#[test]
fn initialize_creates_a_session_with_a_random_id() {
    let fault = Fault::within(
        10,
        "T26a",
        "a client guesses the id of a session",
        "ids are all different, of 32 characters and more",
    );
    let served = Setup::new().serve();
    let ids: HashSet<String> = (0..20).map(|_| served.client().session).collect();
    assert_eq!(ids.len(), 20);
    for id in ids {
        assert!(id.len() >= 32, "{id}");
        assert!(id.bytes().all(|byte| byte.is_ascii_graphic()), "{id}");
    }
    fault.ends();
}

#[test]
fn a_failed_initialize_creates_no_session() {
    let served = Setup::new().serve();
    let response = served
        .connection()
        .ask(&served.post(&request_text("1", "initialize", "{}")));
    assert_eq!(response.message().error().code, -32602);
    assert_eq!(response.head.header("mcp-session-id"), None);
}

#[test]
fn a_session_is_required_and_must_be_known() {
    let fault = Fault::within(
        15,
        "T26b",
        "requests without a session, with an unknown, shortened or duplicate one",
        "400, 404",
    );
    let served = Setup::new().serve();
    let client = served.client();
    let requests = [
        client.posting(&ping()),
        client.posting(r#"{"jsonrpc":"2.0","method":"notifications/x"}"#),
        client.bare("GET"),
        client.bare("DELETE"),
    ];
    for request in requests {
        let missing = request.clone().without("mcp-session-id");
        assert_eq!(status(&served, &missing), 400, "{}", request.text());
        let duplicate = request.clone().header("mcp-session-id", &client.session);
        assert_eq!(status(&served, &duplicate), 404, "{}", request.text());
        for unknown in ["", "x", &client.session[1..], &"0".repeat(64)] {
            let request = request.clone().with("mcp-session-id", unknown);
            assert_eq!(status(&served, &request), 404, "{unknown:?}");
        }
    }
    fault.ends();
}

#[test]
fn the_revision_header_is_checked_after_initialize() {
    let served = Setup::new().serve();
    let mut client = served.client();
    for (version, expected) in [
        ("2025-11-25", 200),
        ("2025-06-18", 200),
        ("2025-03-26", 200),
        ("2024-11-05", 200),
        ("2026-07-28", 400),
        ("1999-01-01", 400),
        ("", 400),
    ] {
        let request = client
            .posting(&ping())
            .header("mcp-protocol-version", version);
        assert_eq!(status(&served, &request), expected, "{version:?}");
    }
    assert_eq!(client.post(&ping()).head.status, 200);
}

#[test]
fn deleting_a_session_cancels_its_requests() {
    let served = Setup::one(&Script::new()).serve();
    let mut client = served.client();
    client.open();
    let mut listening = client.listen(None);
    assert_eq!(listening.head().status, 200);
    let use_hang = crate::harness::use_params("hang", "{}");
    let mut hanging = client.begin("\"h\"", "tools/call", &use_hang);
    let journal = served.workbench.journal("dev", "fs");
    poll(TIMEOUT, || (!journal.called().is_empty()).then_some(())).unwrap();
    assert_eq!(status(&served, &client.bare("DELETE")), 204);
    hanging.response();
    assert!(listening.event().is_none_or(|event| event.data.is_empty()));
    poll(TIMEOUT, || {
        let cancels = journal.received("notifications/cancelled");
        (!cancels.is_empty()).then_some(())
    })
    .expect("the server is notified");
    for request in [
        client.posting(&ping()),
        client.bare("GET"),
        client.bare("DELETE"),
    ] {
        assert_eq!(status(&served, &request), 404);
    }
}

#[test]
fn an_idle_session_expires_unless_it_has_a_stream() {
    let setup = Setup::new().env("WORKBENCH_TOKEN", TOKEN);
    let served = setup.serve_with(&["--session-timeout", "1"]);
    let (idle, listener) = (served.client(), served.client());
    let mut listening = listener.listen(None);
    assert_eq!(listening.head().status, 200);
    // Looking at a session is using it: only the time between two looks counts.
    let lookup = idle.bare("GET").with("accept", "text/html");
    assert_eq!(status(&served, &lookup), 406);
    let mut other = served.connection();
    other.send_bytes(b"GET ").unwrap();
    // A connection without a request is closed long after the session has expired.
    other.wait_closed();
    assert_eq!(status(&served, &idle.posting(&ping())), 404);
    assert_eq!(status(&served, &listener.posting(&ping())), 200);
}

#[test]
fn a_session_can_be_used_only_by_its_principal() {
    let fault = Fault::within(
        10,
        "T26c",
        "a client replays the session of another token: POST, GET, DELETE",
        "404 as if it did not exist; its owner goes on",
    );
    let setup = Setup::new();
    let tokens = setup.write("tokens", "# the team\nalpha-alpha-alpha\nbeta-beta-beta\n");
    let served = setup.serve_with(&["--token-file", tokens.to_str().unwrap()]);
    let as_alpha = |request: HttpRequest| request.with("authorization", "Bearer alpha-alpha-alpha");
    let as_beta = |request: HttpRequest| request.with("authorization", "Bearer beta-beta-beta");
    let begin = served.post(&request_text(
        "1",
        "initialize",
        &initialize_params("2025-11-25"),
    ));
    let response = served.connection().ask(&as_alpha(begin.clone()));
    let session = response.head.header("mcp-session-id").unwrap().to_owned();
    let requests = [
        served.post(&ping()),
        served.request("GET", "/mcp"),
        served.request("DELETE", "/mcp"),
    ];
    for request in &requests {
        let request = as_beta(request.clone()).header("mcp-session-id", &session);
        let refused = served.connection().ask(&request);
        let unknown = served
            .connection()
            .ask(&request.with("mcp-session-id", "x"));
        assert_eq!(refused.head.status, 404);
        assert_eq!(refused.body, unknown.body, "as if there were none");
    }
    let own = as_alpha(requests[0].clone()).header("mcp-session-id", &session);
    assert_eq!(status(&served, &own), 200);
    assert_eq!(status(&served, &begin), 401, "the token of others");
    fault.ends();
}
