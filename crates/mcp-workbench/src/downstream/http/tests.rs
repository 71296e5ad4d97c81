//! Links to servers with each kind of response: modern requests, probes, and ends of requests. The start of a server
//! and its calls have integration tests.

mod connections;
mod modern;
mod probe;
mod remote;
mod renewal;

use std::time::Duration;

use bytes::Bytes;
use indexmap::IndexMap;
use rawjson::RawJson;
use tokio_util::task::TaskTracker;

use self::remote::{Remote, Script};
use super::HttpLink;
use crate::{
    config::{RemoteEndpoint, RemoteProtocol, Secrets, ServerTimes},
    downstream::link::{Link, LinkEvent, Origin},
    era::Era,
    wire::{Answer, Message, RequestId},
};

/// Longer than any test; tests end by events.
const LONG: Duration = Duration::from_mins(1);

/// Returns a link over this transport, with this limit for all timeouts.
async fn link_over(remote: &Remote, protocol: RemoteProtocol, limit: Duration) -> Link {
    let headers = [
        ("Authorization", "Bearer x"),
        ("Mcp-Name", "forged"),
        ("Mcp-Param-A", "forged"),
    ];
    let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let endpoint = RemoteEndpoint {
        url: format!("http://{}/mcp", remote.address),
        headers: IndexMap::from(headers),
        oauth: crate::config::OAuth::Off,
        protocol,
        secrets: Secrets::default(),
    };
    let times = ServerTimes {
        connect: limit,
        call: limit,
        max_call: limit,
        idle: None,
    };
    let link = HttpLink::open(&endpoint, None, times, &TaskTracker::new())
        .await
        .unwrap();
    Link::Http(Box::new(link))
}

/// Returns a link to a modern server.
async fn modern_link(remote: &Remote) -> Link {
    let mut link = link_over(remote, RemoteProtocol::Http, LONG).await;
    link.set_era(Era::Modern);
    link
}

fn json(text: &str) -> RawJson {
    RawJson::parse(&Bytes::copy_from_slice(text.as_bytes())).unwrap()
}

fn reply(head: &str, body: &str) -> String {
    let head = head.replace('\n', "\r\n");
    let length = body.len();
    format!("HTTP/1.1 {head}\r\nContent-Length: {length}\r\n\r\n{body}")
}

/// Returns a JSON response with this status.
fn json_reply(status: &str, body: &str) -> String {
    reply(&format!("{status}\nContent-Type: application/json"), body)
}

/// Returns the beginning of an event stream that ends with the connection.
fn stream(events: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n{events}"
    )
}

/// Answers every request under id `n` with an empty result.
fn empty_result(seen: &remote::Seen) -> Script {
    let message: serde_json::Value = serde_json::from_str(&seen.body).unwrap();
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":{},"result":{{}}}}"#,
        message["id"]
    );
    Script::Whole(json_reply("200 OK", &body))
}

/// Describes the next event of a link.
async fn heard(link: &mut Link) -> String {
    event_in_short(&link.next_event().await)
}

fn event_in_short(event: &LinkEvent) -> String {
    match event {
        LinkEvent::Message { message, origin } => {
            let origin = match origin {
                Origin::Request(id) => format!("on {id}"),
                Origin::Connection => "on none".to_owned(),
            };
            format!("{origin}: {}", message_in_short(message))
        }
        LinkEvent::Failed { id, fault, outcome } => {
            format!("{id} failed: {}, {outcome:?}", fault.code())
        }
        LinkEvent::Lost(fault) => format!("lost: {}", fault.code()),
        LinkEvent::SessionLost => "session lost".to_owned(),
        LinkEvent::Renewed(_) => "renewed".to_owned(),
        _ => panic!("this is of another transport"),
    }
}

fn message_in_short(message: &Message) -> String {
    match message {
        Message::Request(request) => format!("request {}", request.method),
        Message::Notification(notification) => format!("notification {}", notification.method),
        Message::Response(response) => {
            let id = response.id.as_ref().and_then(RequestId::as_u64);
            let id = id.expect("what is passed on has our id");
            match &response.answer {
                Answer::Result(result) => format!("answer {id} {}", result.as_str()),
                Answer::Error(error) => format!("error {id} {}", error.as_str()),
                Answer::Invalid => format!("nonsense {id}"),
            }
        }
    }
}
