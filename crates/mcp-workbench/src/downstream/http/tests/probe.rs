//! Probes of a server's era, and the fallback to the legacy era.

use pretty_assertions::assert_eq;

use super::{
    LONG, heard, json, json_reply, link_over, modern_link,
    remote::{Remote, Script, Seen},
    reply, stream,
};
use crate::{config::RemoteProtocol, downstream::link::Link, era::Era};

const DISCOVERED: &str =
    r#"{"jsonrpc":"2.0","id":1,"result":{"supportedVersions":["2026-07-28"]}}"#;
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","id":2,"result":{"protocolVersion":"2025-06-18"}}"#;

fn error(id: &str, code: i64) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":"m"}}}}"#)
}

/// Starts a server that answers a probe like this, and otherwise as a legacy server with sessions.
fn answering(probe: String) -> Remote {
    Remote::start(move |seen| match seen.method().as_str() {
        "server/discover" => Script::Whole(probe.clone()),
        "initialize" => Script::Whole(reply(
            "200 OK\nContent-Type: application/json\nMcp-Session-Id: s",
            INITIALIZED,
        )),
        "notifications/initialized" => Script::Whole(reply("202 Accepted", "")),
        "tools/list" => super::empty_result(seen),
        _ => Script::Whole(reply("405 Method Not Allowed", "")),
    })
}

fn discover(link: &mut Link) {
    link.request(1, "server/discover", json("{}").into(), &[]);
}

#[tokio::test]
async fn modern_responses_to_a_probe_are_passed_on() {
    let result = r#"on 1: answer 1 {"supportedVersions":["2026-07-28"]}"#;
    let refused = |code| format!(r#"on 1: error 1 {{"code":{code},"message":"m"}}"#);
    let event = format!(": first\n\nevent: message\ndata: {DISCOVERED}\n\n");
    for (answer, expected) in [
        (json_reply("200 OK", DISCOVERED), result.to_owned()),
        (stream(&event), result.to_owned()),
        (
            json_reply("400 Bad Request", &error("1", -32022)),
            refused(-32022),
        ),
        (
            json_reply("400 Bad Request", &error("null", -32020)),
            refused(-32020),
        ),
        (json_reply("200 OK", &error("1", -32021)), refused(-32021)),
        (
            json_reply("200 OK", &error("null", -32022)),
            refused(-32022),
        ),
    ] {
        let remote = answering(answer.clone());
        let mut link = modern_link(&remote).await;
        discover(&mut link);
        assert_eq!(heard(&mut link).await, expected, "{answer}");
        assert_eq!(remote.methods(), ["server/discover"], "{answer}");
    }
}

#[tokio::test]
async fn other_responses_fail_the_probe_and_the_handshake_follows() {
    for (answer, expected) in [
        (reply("404 Not Found", ""), "1 failed: http_404, Rejected"),
        (
            reply("405 Method Not Allowed", ""),
            "1 failed: http_405, Rejected",
        ),
        (
            json_reply("400 Bad Request", &error("null", -32000)),
            "1 failed: http_400, Rejected",
        ),
        (
            json_reply("400 Bad Request", &error("1", -32602)),
            "1 failed: http_400, Rejected",
        ),
        (
            json_reply("404 Not Found", &error("null", -32601)),
            "1 failed: http_404, Rejected",
        ),
        (
            json_reply("200 OK", &error("1", -32601)),
            "1 failed: invalid_response, Unknown",
        ),
        (
            stream(&format!("data: {}\n\n", error("1", -32601))),
            "1 failed: invalid_response, Unknown",
        ),
        (
            reply("200 OK\nContent-Type: text/html", "<html>"),
            "1 failed: invalid_response, Unknown",
        ),
        (reply("200 OK", ""), "1 failed: invalid_response, Unknown"),
        (
            reply("500 Internal Server Error", ""),
            "1 failed: http_500, Unknown",
        ),
        (
            reply("401 Unauthorized", ""),
            "1 failed: auth_required, Rejected",
        ),
    ] {
        let remote = answering(answer.clone());
        let mut link = modern_link(&remote).await;
        discover(&mut link);
        assert_eq!(heard(&mut link).await, expected, "{answer}");
        fall_back(&remote, &mut link).await;
    }
}

/// Falls back to the legacy era after a probe, and checks the requests.
async fn fall_back(remote: &Remote, link: &mut Link) {
    link.set_era(Era::Legacy);
    assert!(link.cancels_by_notification());
    link.request(2, "initialize", json("{}").into(), &[]);
    assert_eq!(
        heard(link).await,
        r#"on 2: answer 2 {"protocolVersion":"2025-06-18"}"#
    );
    link.initialized("2025-06-18");
    link.request(3, "tools/list", json("{}").into(), &[]);
    assert_eq!(heard(link).await, "on 3: answer 3 {}");
    let seen = remote.seen();
    let of = |method: &str| seen.iter().find(|seen| seen.method() == method).unwrap();
    assert_eq!(of("initialize").headers("mcp-"), []);
    assert_eq!(
        sorted(of("tools/list")),
        [
            ("mcp-protocol-version", "2025-06-18"),
            ("mcp-session-id", "s")
        ]
    );
    let probes = seen.iter().filter(|it| it.method() == "server/discover");
    assert_eq!(probes.count(), 1);
}

fn sorted(seen: &Seen) -> Vec<(&str, &str)> {
    let mut headers = seen.headers("mcp-");
    headers.sort_unstable();
    headers
}

#[tokio::test]
async fn http_sse_servers_are_detected_after_the_probe() {
    let events = format!("event: endpoint\ndata: /messages\n\ndata: {INITIALIZED}\n\n");
    let remote = Remote::start(move |seen| {
        if seen.verb == "GET" {
            return Script::Open(stream(&events));
        }
        Script::Whole(reply("404 Not Found", ""))
    });
    let mut link = modern_link(&remote).await;
    assert_eq!(link.fixed_era(), None);
    discover(&mut link);
    assert_eq!(heard(&mut link).await, "1 failed: http_404, Rejected");
    link.set_era(Era::Legacy);
    link.request(2, "initialize", json("{}").into(), &[]);
    assert_eq!(
        heard(&mut link).await,
        r#"on none: answer 2 {"protocolVersion":"2025-06-18"}"#
    );
    assert_eq!(link.fixed_era(), Some(Era::Legacy));
}

#[tokio::test]
async fn http_sse_entries_are_legacy() {
    let remote = Remote::start(|_| Script::Open(String::new()));
    let link = link_over(&remote, RemoteProtocol::Sse, LONG).await;
    assert_eq!(link.fixed_era(), Some(Era::Legacy));
}
