//! The number of connections: those without a token make room, and those of clients are bounded.

use pretty_assertions::assert_eq;

use crate::harness::{
    Fault, HttpConnection, Served, Setup, TIMEOUT, initialize_params, poll, request_text,
};

const MAX_CONNECTIONS: usize = 512;

/// A listener of each of so many sessions, which keeps its connection busy.
fn listeners(served: &Served, count: usize) -> Vec<HttpConnection> {
    let begin = request_text("1", "initialize", &initialize_params("2025-11-25"));
    let begin = served.post(&begin);
    let mut connection = served.connection();
    let sessions = (0..count).map(|_| {
        let response = connection.ask(&begin);
        response.head.header("mcp-session-id").unwrap().to_owned()
    });
    let sessions: Vec<_> = sessions.collect();
    let listen = |session: &String| {
        let mut listener = served.connection();
        listener.send(
            &served
                .request("GET", "/mcp")
                .header("mcp-session-id", session),
        );
        assert_eq!(listener.head().status, 200);
        listener
    };
    sessions.iter().map(listen).collect()
}

#[test]
fn silent_connections_without_a_token_do_not_keep_clients_out() {
    let fault = Fault::within(
        20,
        "T29d",
        "opens 520 connections without a token, asks each for the health and falls silent",
        "the oldest are closed; clients are served on old and new connections",
    );
    let served = Setup::new().serve();
    let mut client = served.client();
    let health = served.request("GET", "/healthz").without("authorization");
    let mut flood: Vec<_> = (0..520).map(|_| served.connection()).collect();
    for guest in &mut flood {
        guest.send(&health);
    }
    served.client();
    let ping = request_text("1", "ping", "{}");
    assert_eq!(client.post(&ping).head.status, 200, "who is in stays in");
    flood[0].wait_closed();
    assert_eq!(flood[519].response().head.status, 200, "the newest stay");
    fault.ends();
}

#[test]
fn a_new_connection_is_refused_while_all_are_busy() {
    let fault = Fault::within(
        20,
        "T29i",
        "has a request under way on each of 512 connections",
        "503 on the next one; there is room when one of them goes",
    );
    let served = Setup::new().serve();
    let mut busy = listeners(&served, MAX_CONNECTIONS);
    let begin = request_text("1", "initialize", &initialize_params("2025-11-25"));
    let begin = served.post(&begin);
    let refused = served.connection().ask(&begin).head;
    assert_eq!(refused.status, 503);
    assert_eq!(refused.header("retry-after"), Some("1"));
    assert_eq!(refused.header("connection"), Some("close"));
    busy.pop();
    let free = poll(TIMEOUT, || {
        (served.connection().ask(&begin).head.status == 200).then_some(())
    });
    assert!(free.is_some());
    fault.ends();
}

#[test]
fn an_idle_connection_makes_room_for_a_new_client() {
    let served = Setup::new().serve();
    let begin = request_text("1", "initialize", &initialize_params("2025-11-25"));
    let mut idle = served.connection();
    assert_eq!(idle.ask(&served.post(&begin)).head.status, 200);
    let _busy = listeners(&served, MAX_CONNECTIONS - 1);
    served.client();
    idle.wait_closed();
}
