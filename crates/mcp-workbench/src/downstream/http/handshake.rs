//! The end of a handshake, and its repetition after the server lost the session: once, for all requests that wait for
//! it.

use std::sync::Arc;

use hyper::header::HeaderValue;
use rawjson::RawJson;

use super::{
    FIRST_GENERATION,
    body::SendState,
    client::Response,
    exchange::{Outgoing, ReplyBody, discard, post, reply},
    peer::{Handshake, HandshakeStage, Peer, PeerEvent, Route, SESSION_ID},
    stream::{EventStream, StreamEnd},
};
use crate::{
    alarm::timeout,
    downstream::{error::HttpFault, link::LinkEvent},
    wire::{self, Answer, Frame, Message, parse_on_one_line},
};

/// Completes the first handshake: requests may follow only after the server got `notifications/initialized`.
pub(super) async fn complete(peer: Arc<Peer>, version: Option<HeaderValue>) {
    let agreed = peer.agree(FIRST_GENERATION, peer.agreed_so_far().session, version);
    let sent = send_initialized(&peer, &agreed).await;
    if let Err(fault) = sent {
        // If the server has a problem, the first request will show it.
        tracing::debug!("notifications/initialized: {fault}");
    }
    peer.stage
        .send_replace(HandshakeStage::Open(agreed.clone()));
    peer.tell(PeerEvent::Open(agreed)).await;
}

/// Opens a new session, with this generation, to replace a lost one. If that fails, the connection ends, and the
/// supervisor restarts the server when it is needed.
pub(super) async fn renew(peer: Arc<Peer>, initialize: Frame, generation: u64) {
    let limit = peer.times.connect;
    let renewed = timeout(limit, handshake(&peer, &initialize, generation)).await;
    match renewed.unwrap_or(Err(HttpFault::Slow(limit))) {
        Ok((agreed, said)) => {
            tracing::info!("the server lost the session; reconnected with a new one");
            peer.stage
                .send_replace(HandshakeStage::Open(agreed.clone()));
            // Before `Open`: the server's task must know of the new session before messages of its stream arrive.
            peer.tell(PeerEvent::Renewed(said)).await;
            peer.tell(PeerEvent::Open(agreed)).await;
        }
        Err(fault) => {
            tracing::warn!("the server lost the session, and opening a new one failed: {fault}");
            peer.tell(PeerEvent::Tell(LinkEvent::Lost(fault))).await;
        }
    }
}

async fn handshake(
    peer: &Peer,
    initialize: &Frame,
    generation: u64,
) -> Result<(Handshake, RawJson), HttpFault> {
    let response = send(peer, initialize, &peer.agreed_on_nothing()).await?;
    let session = response.headers().get(&SESSION_ID).cloned();
    let result = result_of(peer, response).await?;
    let version = result
        .member("protocolVersion")
        .and_then(|it| HeaderValue::try_from(it.as_text()?.as_ref()).ok());
    let agreed = peer.agree(generation, session, version);
    send_initialized(peer, &agreed).await?;
    Ok((agreed, result))
}

async fn send_initialized(peer: &Peer, agreed: &Handshake) -> Result<(), HttpFault> {
    let initialized = wire::notification("notifications/initialized", None);
    let response = send(peer, &initialized, agreed).await?;
    discard(response).await;
    Ok(())
}

async fn send(peer: &Peer, frame: &Frame, agreed: &Handshake) -> Result<Response, HttpFault> {
    let (Route::Streamable(target) | Route::Sse(target)) = peer.route().await else {
        return Err(HttpFault::Internal);
    };
    let outgoing = Outgoing {
        frame,
        sending: &Arc::new(SendState::default()),
        agreed,
        modern: None,
        grant: None,
    };
    let sent = post(peer, target, &outgoing, None).await;
    sent.map_err(|error| error.into_setback().fault)
}

/// Returns the result of a handshake, from a JSON body or a stream.
async fn result_of(peer: &Peer, response: Response) -> Result<RawJson, HttpFault> {
    let status = response.status().as_u16();
    let response = match reply(peer, response).await? {
        ReplyBody::Nothing(status) => return Err(HttpFault::NoAnswer { status }),
        ReplyBody::Message(body) => return result_in(&body).ok_or(HttpFault::NoAnswer { status }),
        ReplyBody::Stream(response) => response,
    };
    let mut stream = EventStream::new(response);
    loop {
        match stream.next().await {
            Ok(event) => {
                // Other messages may come before the result.
                if let Some(result) = result_in(&event.data) {
                    stream.finish().await;
                    return Ok(result);
                }
            }
            Err(StreamEnd::Ended) => return Err(HttpFault::StreamEnded),
            Err(StreamEnd::TooLarge) => return Err(HttpFault::TooLarge),
        }
    }
}

fn result_in(text: &bytes::Bytes) -> Option<RawJson> {
    match parse_on_one_line(text) {
        Ok(Message::Response(response)) => match response.answer {
            Answer::Result(result) => Some(result),
            Answer::Error(_) | Answer::Invalid => None,
        },
        _ => None,
    }
}
