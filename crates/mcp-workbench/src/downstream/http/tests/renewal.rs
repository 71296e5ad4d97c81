//! Requests around the loss of a session.

use std::sync::atomic::{AtomicU64, Ordering};

use pretty_assertions::assert_eq;

use super::{
    LONG, empty_result, event_in_short, heard, json, link_over,
    remote::{Remote, Script},
    reply,
};
use crate::{
    call::Outcome,
    config::RemoteProtocol,
    downstream::{
        error::HttpFault,
        http::peer::PeerEvent,
        link::{Link, LinkEvent},
    },
};

/// Starts a server that gives out the sessions `s0`, `s1` and so on, and that forgets `s0` at the first ping.
fn forgetful() -> Remote {
    let sessions = AtomicU64::new(0);
    Remote::start(move |seen| match seen.method().as_str() {
        "initialize" => {
            let session = sessions.fetch_add(1, Ordering::Relaxed);
            let Script::Whole(answer) = empty_result(seen) else {
                unreachable!("it is whole");
            };
            let header = format!("\r\nMcp-Session-Id: s{session}\r\n");
            Script::Whole(answer.replacen("\r\n", &header, 1))
        }
        "notifications/initialized" => Script::Whole(reply("202 Accepted", "")),
        "ping" if seen.headers("mcp-session-id") == [("mcp-session-id", "s0")] => {
            Script::Whole(reply("404 Not Found", ""))
        }
        "ping" | "tools/call" => empty_result(seen),
        _ => Script::Whole(reply("405 Method Not Allowed", "")),
    })
}

#[tokio::test]
async fn a_call_of_a_lost_session_is_not_sent_in_the_next_one() {
    let remote = forgetful();
    let mut link = link_over(&remote, RemoteProtocol::Http, LONG).await;
    link.request(1, "initialize", json("{}").into(), &[]);
    assert_eq!(heard(&mut link).await, "on 1: answer 1 {}");
    link.initialized("2025-11-25");
    link.request(2, "tools/call", json("{}").into(), &[]);
    assert_eq!(heard(&mut link).await, "on 2: answer 2 {}");
    link.request(3, "ping", json("{}").into(), &[]);
    let Link::Http(http) = &link else {
        unreachable!("it is over HTTP");
    };
    // The link has not taken the report of the loss yet, so this call still belongs to the lost session.
    while http.events.is_empty() {
        tokio::task::yield_now().await;
    }
    link.request(4, "tools/call", json("{}").into(), &[]);
    assert_eq!(heard(&mut link).await, "session lost");
    let mut events = Vec::new();
    for _ in 0..3 {
        events.push(heard(&mut link).await);
    }
    events.sort_unstable();
    let expected = [
        "4 failed: http_404, NotSent",
        "on 3: answer 3 {}",
        "renewed",
    ];
    assert_eq!(events, expected);
    let calls = remote.methods().into_iter().filter(|it| it == "tools/call");
    assert_eq!(calls.count(), 1);
}

#[tokio::test]
async fn events_that_arrived_together_are_taken_without_waiting() {
    let remote = forgetful();
    let mut link = link_over(&remote, RemoteProtocol::Http, LONG).await;
    let Link::Http(http) = &link else {
        unreachable!("it is over HTTP");
    };
    let failed = |id| LinkEvent::Failed {
        id,
        fault: HttpFault::StreamEnded,
        outcome: Outcome::Unknown,
    };
    http.peer.tell(PeerEvent::Tell(failed(1))).await;
    // The report of a loss that is already known is no event.
    http.peer.tell(PeerEvent::SessionLost(7)).await;
    http.peer.tell(PeerEvent::Tell(failed(2))).await;
    let first = heard(&mut link).await;
    let second = link.ready_event().map(|event| event_in_short(&event));
    assert_eq!(first.replacen('1', "2", 1), second.unwrap());
    assert!(link.ready_event().is_none());
}
