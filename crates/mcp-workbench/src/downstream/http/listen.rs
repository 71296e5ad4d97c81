//! Streams for messages of a server outside of requests: the optional GET stream of Streamable HTTP, and the single
//! stream of HTTP+SSE.

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;
use url::Url;

use super::{
    address::origin,
    client::{Response, Target},
    fault::{encoded, is_type, not_mcp, refusal, without_response},
    oauth::NoResponse,
    peer::{Handshake, Peer, PeerEvent, Route},
    stream::{EventStream, StreamEnd, StreamPosition},
};
use crate::{
    downstream::{
        error::HttpFault,
        link::{LinkEvent, Origin},
    },
    wire::{Message, StreamEvent, parse_on_one_line},
};

/// Upper bounds on the consecutive failures of the optional stream, and on the pause between them.
const MAX_FAILURES: u32 = 10;
const MAX_PAUSE: Duration = Duration::from_secs(30);

/// Reads the GET stream of a Streamable HTTP server, as long as the server offers one.
pub(super) async fn listen(peer: Arc<Peer>, agreed: Handshake) {
    hear_all(&peer, agreed).await;
    peer.listening.send_replace(true);
}

async fn hear_all(peer: &Peer, agreed: Handshake) {
    let mut position = StreamPosition {
        last_id: None,
        pause: Duration::from_secs(1),
    };
    let mut failures = 0;
    while failures < MAX_FAILURES {
        let Route::Streamable(target) = peer.route().await else {
            return;
        };
        let response = peer.get(target, &agreed, position.last_id.as_deref());
        match response.await {
            Ok(response) if is_stream(&response) => {
                peer.listening.send_replace(true);
                let mut stream = EventStream::new(response);
                let began = Instant::now();
                let heard = hear(peer, &mut stream).await;
                position.advance(&stream);
                // A stream that was closed after a long quiet time has not failed.
                let lasted = began.elapsed() > MAX_PAUSE;
                failures = if heard || lasted { 0 } else { failures + 1 };
            }
            Ok(response) if response.status().is_server_error() => failures += 1,
            // 405 means that there is no such stream, and so does any other response without a stream.
            Ok(_) => return,
            Err(_) => failures += 1,
        }
        let pause = position.pause * 2_u32.pow(failures);
        tokio::time::sleep(pause.min(MAX_PAUSE)).await;
    }
}

fn is_stream(response: &Response) -> bool {
    response.status().is_success()
        && is_type(response, "text/event-stream")
        && encoded(response).is_none()
}

/// Passes on the messages of a stream until it ends; returns false if there were none.
async fn hear(peer: &Peer, stream: &mut EventStream) -> bool {
    let mut heard = false;
    while let Ok(event) = stream.next().await {
        heard = true;
        match message_in(&event) {
            // Responses arrive on the streams of their requests.
            None | Some(Message::Response(_)) => {}
            Some(message) => peer.pass_on(message, Origin::Connection).await,
        }
    }
    heard
}

/// Runs the connection to an HTTP+SSE server. `refused` is its refusal of Streamable HTTP, if that was tried first:
/// if HTTP+SSE fails too, that refusal is the error.
pub(super) async fn listen_old(peer: Arc<Peer>, refused: Option<HttpFault>) {
    let fault = match connect_old(&peer).await {
        Ok(mut stream) => hear_old(&peer, &mut stream).await,
        Err(fault) => refused.unwrap_or(fault),
    };
    peer.tell(PeerEvent::Tell(LinkEvent::Lost(fault))).await;
}

async fn connect_old(peer: &Peer) -> Result<EventStream, HttpFault> {
    let nothing = peer.agreed_on_nothing();
    let response = peer
        .get(peer.target.clone(), &nothing, None)
        .await
        .map_err(|error| match error {
            NoResponse::Send(error) => {
                // A GET has no body that could have been begun.
                let sending = super::body::SendState::default();
                without_response(&error, &sending, &peer.secrets).fault
            }
            NoResponse::SignIn(needed) => HttpFault::SignIn(needed),
        })?;
    if response.status().is_redirection() {
        return Err(match super::fault::redirection(&response, &peer.secrets) {
            Ok(target) => HttpFault::Redirect {
                status: response.status().as_u16(),
                target: super::fault::place(response.url(), &target, &peer.secrets),
            },
            Err(fault) => fault,
        });
    }
    if !response.status().is_success() {
        let no_session = false;
        return Err(refusal(response, no_session, &peer.secrets)
            .await
            .setback
            .fault);
    }
    match encoded(&response) {
        Some(fault) => Err(fault),
        None if is_type(&response, "text/event-stream") => Ok(EventStream::new(response)),
        None => Err(not_mcp(response, &peer.secrets).await),
    }
}

/// Passes on the messages of the stream until it ends; returns the reason.
async fn hear_old(peer: &Peer, stream: &mut EventStream) -> HttpFault {
    loop {
        let event = match stream.next().await {
            Ok(event) => event,
            Err(StreamEnd::Ended) => return HttpFault::StreamEnded,
            Err(StreamEnd::TooLarge) => return HttpFault::TooLarge,
        };
        if event.name == "endpoint" {
            match endpoint(peer, &event) {
                Ok(target) => peer.route.send_replace(Route::Sse(target)),
                Err(fault) => return fault,
            };
        } else if let Some(message) = message_in(&event) {
            peer.pass_on(message, Origin::Connection).await;
        }
    }
}

/// Returns the address for messages. It must have the same origin, because the headers of the entry are sent there.
fn endpoint(peer: &Peer, event: &StreamEvent) -> Result<Target, HttpFault> {
    let text = String::from_utf8_lossy(&event.data);
    let here = peer.target.url();
    let foreign = |target: String| HttpFault::ForeignEndpoint { target };
    let no_address = || foreign("no address".to_owned());
    let url: Url = here.join(text.trim()).map_err(|_| no_address())?;
    if url.origin() == here.origin() {
        peer.target(url).ok_or_else(no_address)
    } else {
        Err(foreign(origin(&url)))
    }
}

fn message_in(event: &StreamEvent) -> Option<Message> {
    let named = matches!(event.name.as_str(), "" | "message");
    let message = named.then(|| parse_on_one_line(&event.data).ok()).flatten();
    if message.is_none() {
        tracing::debug!("ignoring an event that is not an MCP message");
    }
    message
}
