//! One POST and its response: redirects within the origin, statuses, and kinds of body.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use hyper::HeaderMap;
use url::Url;

use super::{
    body::{BacklogShare, MessageBody, SendState},
    client::{Response, Target},
    fault::{
        HttpRefusal, Setback, encoded, is_type, not_mcp, redirection, refusal, without_response,
    },
    oauth::{RequestToken, TokenVerdict},
    peer::{Handshake, Peer, PeerEvent, Route},
};
use crate::{
    call::Outcome,
    dial::innermost,
    downstream::error::HttpFault,
    wire::{Frame, MAX_FRAME_BYTES, own},
};

/// Upper bound on the redirects of one request.
const MAX_REDIRECTS: usize = 3;
/// Upper bound on an ignored body that is read so that its connection can be reused.
const MAX_DISCARD_BYTES: usize = 64 * 1024;
/// The timeout for reading it.
const DISCARD_TIMEOUT: Duration = Duration::from_secs(1);

/// The body of a success.
pub(super) enum ReplyBody {
    Message(Bytes),
    Stream(Response),
    /// Empty, with this status.
    Nothing(u16),
}

/// A message that is being sent.
pub(super) struct Outgoing<'a> {
    pub(super) frame: &'a Frame,
    pub(super) sending: &'a std::sync::Arc<SendState>,
    pub(super) agreed: &'a Handshake,
    /// All headers of a modern request but its token. A legacy one has those of the handshake.
    pub(super) modern: Option<&'a HeaderMap>,
    /// The account that a call is made for. It is never sent for a different account, whose tools were not compared.
    pub(super) grant: Option<&'a Option<String>>,
}

/// The reason why a POST has no usable reply.
pub(super) enum PostError {
    /// There was no reply, or a redirect that cannot be followed.
    Setback(Setback),
    /// The reply broke off or is invalid.
    Broken(Setback),
    /// The reply has an error status.
    Refusal(HttpRefusal),
}

impl From<Setback> for PostError {
    fn from(setback: Setback) -> Self {
        Self::Setback(setback)
    }
}

impl PostError {
    pub(super) fn into_setback(self) -> Setback {
        match self {
            Self::Setback(setback) | Self::Broken(setback) => setback,
            Self::Refusal(refusal) => refusal.setback,
        }
    }
}

/// Sends a message to `target` and returns the response if it is a success. The target of a
/// redirect is recorded for later messages.
pub(super) async fn post(
    peer: &Peer,
    mut target: Target,
    outgoing: &Outgoing<'_>,
    mut share: Option<BacklogShare>,
) -> Result<Response, PostError> {
    let Outgoing {
        frame,
        sending,
        agreed,
        modern,
        grant,
    } = outgoing;
    let mut token = RequestToken::begin(peer).await;
    let mut redirects = 0;
    // A request with a replaced token does not count. It ends as well, because a request replaces its token only
    // once.
    while redirects <= MAX_REDIRECTS {
        // In each turn, because the token that replaces a refused one may be that of another account.
        if grant.is_some_and(|grant| peer.grant() != *grant) {
            peer.tell(PeerEvent::AccountChanged).await;
            let (fault, outcome) = (HttpFault::AccountChanged, sending.outcome());
            return Err(Setback { fault, outcome }.into());
        }
        let body = MessageBody::new(frame, sending, share.take());
        let bearer = token.headers();
        let headers = [modern.unwrap_or(agreed.posted()), &bearer];
        let response = peer.post(target.clone(), headers, body).await;
        let response =
            response.map_err(|error| without_response(&error, sending, &peer.secrets))?;
        if response.status().is_success() {
            return Ok(response);
        }
        if !response.status().is_redirection() {
            let judged = token.judge(&response).await;
            if let TokenVerdict::Again = judged {
                sending.rejected();
                Box::pin(discard(response)).await;
                continue;
            }
            let had_session = agreed.session.is_some();
            // On the heap because it is rare.
            let mut refusal = Box::pin(refusal(response, had_session, &peer.all_secrets())).await;
            if let TokenVerdict::Lacks(needed) = judged {
                refusal.setback.fault = HttpFault::SignIn(needed);
            }
            return Err(PostError::Refusal(refusal));
        }
        redirects += 1;
        sending.rejected();
        let url = redirection(&response, &peer.secrets).map_err(rejected)?;
        target = peer.target(url).ok_or_else(|| rejected(endless()))?;
        record_redirect(peer, response.url(), &target);
    }
    Err(rejected(endless()).into())
}

fn endless() -> HttpFault {
    HttpFault::Redirect {
        status: 307,
        target: "itself repeatedly".to_owned(),
    }
}

/// Reads the body of a success.
pub(super) async fn reply(peer: &Peer, response: Response) -> Result<ReplyBody, HttpFault> {
    let status = response.status().as_u16();
    if let Some(fault) = encoded(&response) {
        return Err(fault);
    }
    if is_type(&response, "application/json") {
        let body = whole(response, MAX_FRAME_BYTES).await?;
        let blank = body.iter().all(u8::is_ascii_whitespace);
        return Ok(if blank {
            ReplyBody::Nothing(status)
        } else {
            ReplyBody::Message(body)
        });
    }
    if is_type(&response, "text/event-stream") {
        return Ok(ReplyBody::Stream(response));
    }
    if matches!(status, 202 | 204) || response.content_length() == Some(0) {
        Box::pin(discard(response)).await;
        return Ok(ReplyBody::Nothing(status));
    }
    Err(Box::pin(not_mcp(response, &peer.all_secrets())).await)
}

/// Reads a complete body of at most `limit` bytes. The caller limits the time.
pub(super) async fn whole(mut response: Response, limit: usize) -> Result<Bytes, HttpFault> {
    let length = response.content_length().unwrap_or_default();
    if length > limit as u64 {
        return Err(HttpFault::TooLarge);
    }
    let mut body = BytesMut::new();
    loop {
        match response.chunk().await {
            // Most bodies arrive in one piece.
            Ok(Some(chunk)) if body.is_empty() && response.is_over() && chunk.len() <= limit => {
                return Ok(own(chunk));
            }
            Ok(Some(chunk)) => {
                if body.len() + chunk.len() > limit {
                    return Err(HttpFault::TooLarge);
                }
                if body.is_empty() {
                    body.reserve(usize::try_from(length).unwrap_or_default());
                }
                body.extend_from_slice(&chunk);
            }
            Ok(None) => return Ok(body.freeze()),
            Err(error) => {
                return Err(HttpFault::ConnectionLost {
                    reason: innermost(&error),
                });
            }
        }
    }
}

fn rejected(fault: HttpFault) -> Setback {
    Setback {
        fault,
        outcome: Outcome::Rejected,
    }
}

/// Records the new address for the next messages.
fn record_redirect(peer: &Peer, old: &Url, new: &Target) {
    peer.route.send_if_modified(|route| match route {
        Route::Streamable(target) if target.url() == old => {
            *target = new.clone();
            true
        }
        _ => false,
    });
}

/// Reads an ignored body, so that its connection can be reused.
pub(super) async fn discard(response: Response) {
    let _ = tokio::time::timeout(DISCARD_TIMEOUT, whole(response, MAX_DISCARD_BYTES)).await;
}
