//! The task of one request: sends it, passes on its response, and recovers where possible: from a lost session by a
//! new one, from a busy server by waiting, from a failed connection by another one. A call is sent again only if it
//! is certain that it did not run.

use std::{sync::Arc, time::Duration};

use hyper::HeaderMap;
use tokio::time::Instant;

use super::{
    body::{BacklogShare, SendState},
    client::Response as HttpResponse,
    exchange::{Outgoing, PostError, ReplyBody, post, reply},
    fault::{HttpRefusal, Setback, not_modern},
    modern,
    peer::{Handshake, HandshakeStage, Peer, PeerEvent, Route, SESSION_ID},
    stream::ResumableStream,
};
use crate::{
    call::Outcome,
    config::ServerTimes,
    downstream::{
        error::HttpFault,
        link::{LinkEvent, Origin},
    },
    wire::{self, Frame, Message, RequestId, parse_on_one_line},
};

/// Upper bounds on the retries after a failed connection, and of a repeatable request.
const MAX_CONNECTS: u32 = 2;
const MAX_REPEATS: u32 = 3;
/// The pause before the first retry; it doubles.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
/// Upper bound on the `Retry-After` of a server.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(30);

/// The kind of a request, which determines if it may be repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RequestKind {
    /// The handshake, which is sent before anything is negotiated.
    Initialize,
    /// Detects a modern server. Any other response is a failure at once.
    Probe,
    /// The subscription, which is answered when it ends: it may stay open forever.
    Listen,
    /// Has no effects: it may be repeated.
    Repeatable,
    /// May have effects: it is never repeated once it may have run.
    Once,
}

impl RequestKind {
    pub(super) fn of(method: &str) -> Self {
        match method {
            "initialize" => Self::Initialize,
            "server/discover" => Self::Probe,
            "subscriptions/listen" => Self::Listen,
            "ping" | "resources/read" | "tasks/get" => Self::Repeatable,
            listing if listing.ends_with("/list") => Self::Repeatable,
            _ => Self::Once,
        }
    }

    /// Returns the timeout of the request. Callers give up earlier; this one ends requests that no caller waits for.
    pub(super) fn limit(self, times: ServerTimes) -> Option<Duration> {
        match self {
            Self::Once => Some(times.max_call),
            Self::Repeatable => Some(times.connect.max(times.call)),
            Self::Initialize | Self::Probe => Some(times.connect),
            Self::Listen => None,
        }
    }
}

/// A request that is being sent.
pub(super) struct RequestTask {
    pub(super) peer: Arc<Peer>,
    pub(super) id: u64,
    pub(super) kind: RequestKind,
    /// The session that the request is made for.
    pub(super) generation: u64,
    /// The account that the request is made for.
    pub(super) grant: Option<String>,
    /// All headers of a modern request but its token; a legacy one has those of the handshake.
    pub(super) modern: Option<HeaderMap>,
    pub(super) frame: Frame,
    pub(super) sending: Arc<SendState>,
    pub(super) share: Option<BacklogShare>,
}

/// The recovery steps of a request so far.
#[derive(Debug, Default)]
struct RetryState {
    renewed: bool,
    waited: bool,
    again: u32,
    /// The session that was lost.
    lost: Option<u64>,
}

/// The recovery from a failure.
enum Recovery {
    /// Send the request again after this time.
    Again(Duration),
    /// Open a new session, in which repeatable requests are sent again.
    NewSession,
    /// Send the request again over HTTP+SSE.
    FallBack,
    None,
}

impl RequestTask {
    /// Runs the request to its end and reports the outcome to the link.
    pub(super) async fn run(mut self) {
        let deadline = Instant::now() + self.caller_timeout();
        let Err(setback) = self.settle(deadline).await else {
            return;
        };
        let failed = LinkEvent::Failed {
            id: self.id,
            fault: setback.fault,
            outcome: setback.outcome,
        };
        self.peer.tell(PeerEvent::Tell(failed)).await;
    }

    /// Returns the minimum time that the caller of the request waits.
    fn caller_timeout(&self) -> Duration {
        let times = self.peer.times;
        match self.kind {
            RequestKind::Once => times.call.min(times.max_call),
            RequestKind::Initialize
            | RequestKind::Probe
            | RequestKind::Listen
            | RequestKind::Repeatable => times.connect,
        }
    }

    async fn settle(&mut self, deadline: Instant) -> Result<(), Setback> {
        let mut tried = RetryState::default();
        loop {
            let agreed = self.agreed(&tried).await?;
            let Err(error) = self.attempt(&agreed).await else {
                return Ok(());
            };
            let cure = self.cure(&mut tried, &error, deadline);
            let setback = error.into_setback();
            if setback.outcome == Outcome::Rejected {
                // The server proved that it did not run the request, so it counts as never sent.
                self.sending.rejected();
            }
            match cure {
                Recovery::Again(pause) => tokio::time::sleep(pause).await,
                Recovery::NewSession => {
                    // A request that is sent again waits for a session that is newer than this one.
                    tried.lost = Some(agreed.generation);
                    self.peer
                        .tell(PeerEvent::SessionLost(agreed.generation))
                        .await;
                    // The tools of the new session must be compared first, so the owner sends the call again.
                    if self.kind == RequestKind::Once {
                        return Err(setback);
                    }
                }
                Recovery::FallBack => {
                    self.peer.route.send_replace(Route::SseWaiting);
                    // With the reason, which the user sees if HTTP+SSE fails too.
                    self.peer.tell(PeerEvent::FallBack(setback.fault)).await;
                }
                Recovery::None => return Err(setback),
            }
        }
    }

    async fn agreed(&self, tried: &RetryState) -> Result<Handshake, Setback> {
        if self.kind == RequestKind::Initialize || self.modern.is_some() {
            return Ok(self.peer.agreed_on_nothing());
        }
        let agreed = self.peer.agreed(tried.lost).await;
        if self.kind == RequestKind::Once {
            self.peer.listens().await;
        }
        let outcome = self.sending.outcome();
        match agreed {
            Ok(agreed)
                if self.kind == RequestKind::Once && agreed.generation != self.generation =>
            {
                // The call was admitted by the tools of the earlier session, so it is not sent in this one.
                // The fault of a refused request, so that the owner puts the call back into its queue.
                let fault = HttpFault::SessionLost { status: 404 };
                Err(Setback { fault, outcome })
            }
            agreed => agreed.map_err(|fault| Setback { fault, outcome }),
        }
    }

    fn cure(&self, tried: &mut RetryState, error: &PostError, deadline: Instant) -> Recovery {
        let setback = match error {
            PostError::Setback(setback) | PostError::Broken(setback) => setback,
            PostError::Refusal(refusal) => &refusal.setback,
        };
        match &setback.fault {
            HttpFault::SessionLost { .. } if !tried.renewed => {
                tried.renewed = true;
                Recovery::NewSession
            }
            HttpFault::Status {
                status: 429,
                retry_after: Some(wait),
                ..
            } if !tried.waited && *wait <= MAX_RETRY_AFTER && Instant::now() + *wait < deadline => {
                tried.waited = true;
                Recovery::Again(*wait)
            }
            HttpFault::Status {
                status: 400 | 404 | 405,
                ..
            } if self.may_fall_back(error) => Recovery::FallBack,
            // No byte was sent, so even a call may be tried again.
            HttpFault::Unreachable { .. } if tried.again < MAX_CONNECTS => tried.again(),
            _ if self.may_repeat(error) && tried.again < MAX_REPEATS => tried.again(),
            _ => Recovery::None,
        }
    }

    /// Returns true if a refusal of the handshake can mean that the server supports only HTTP+SSE.
    fn may_fall_back(&self, error: &PostError) -> bool {
        let modern = match error {
            PostError::Refusal(refusal) => {
                let message = refusal.message.as_ref();
                message.is_some_and(modern::is_modern_error)
            }
            PostError::Setback(_) | PostError::Broken(_) => false,
        };
        self.kind == RequestKind::Initialize
            && !modern
            && matches!(*self.peer.route.borrow(), Route::Streamable(_))
    }

    fn may_repeat(&self, error: &PostError) -> bool {
        let lost = |fault: &HttpFault| {
            matches!(
                fault,
                HttpFault::ConnectionLost { .. } | HttpFault::StreamEnded
            )
        };
        let passing = match error {
            PostError::Setback(setback) => lost(&setback.fault),
            // A modern server requires a new id for a repetition, which only the owner can assign.
            PostError::Broken(setback) => self.modern.is_none() && lost(&setback.fault),
            PostError::Refusal(refusal) => {
                let failed = matches!(
                    refusal.setback.fault,
                    HttpFault::Status {
                        status: 500 | 502 | 503 | 504,
                        ..
                    }
                );
                failed && self.kind != RequestKind::Probe
            }
        };
        passing && !matches!(self.kind, RequestKind::Once | RequestKind::Listen)
    }

    /// Sends the request once and passes on its response.
    async fn attempt(&mut self, agreed: &Handshake) -> Result<(), PostError> {
        let peer = Arc::clone(&self.peer);
        let route = peer.route().await;
        let share = self.share.take();
        let outgoing = Outgoing {
            frame: &self.frame,
            sending: &self.sending,
            agreed,
            modern: self.modern.as_ref(),
            grant: (self.kind == RequestKind::Once).then_some(&self.grant),
        };
        match route {
            Route::Streamable(target) => {
                let posted = post(&peer, target, &outgoing, share).await;
                self.take_posted(posted, agreed).await
            }
            // HTTP+SSE, the transport before Streamable HTTP.
            Route::Sse(target) => {
                // The response arrives on the single stream.
                let response = Box::pin(post(&peer, target, &outgoing, share)).await?;
                Box::pin(super::exchange::discard(response)).await;
                Ok(())
            }
            Route::SseWaiting => Err(Peer::not_sent(HttpFault::Internal).into()),
        }
    }

    /// Passes on the response to a POST.
    async fn take_posted(
        &self,
        posted: Result<HttpResponse, PostError>,
        agreed: &Handshake,
    ) -> Result<(), PostError> {
        let response = match posted {
            Err(PostError::Refusal(mut refusal)) => {
                let message = refusal.message.take().map(|it| self.attributed(it));
                return match message {
                    Some(message) if self.is_answer_despite(&refusal.setback, &message) => {
                        self.peer.pass_on(message, Origin::Request(self.id)).await;
                        Ok(())
                    }
                    message => Err(PostError::Refusal(HttpRefusal { message, ..refusal })),
                };
            }
            posted => posted?,
        };
        if self.kind == RequestKind::Initialize {
            // Known before the body is read: what the server sends meanwhile is answered in this session.
            let session = response.headers().get(&SESSION_ID).cloned();
            self.peer
                .stage
                .send_replace(HandshakeStage::Opening(session));
        }
        let taken = match reply(&self.peer, response).await {
            Ok(reply) => self.take(reply, agreed).await,
            Err(fault) => Err(fault),
        };
        taken.map_err(|fault| {
            PostError::Broken(Setback {
                fault,
                outcome: Outcome::Unknown,
            })
        })
    }

    /// Passes on the messages of a reply, up to the response to this request.
    async fn take(&self, reply: ReplyBody, agreed: &Handshake) -> Result<(), HttpFault> {
        let response = match reply {
            ReplyBody::Nothing(status) => return Err(HttpFault::NoAnswer { status }),
            ReplyBody::Message(body) => {
                let message = parse_on_one_line(&body).map_err(|_| HttpFault::Unreadable)?;
                let message = self.attributed(message);
                if !self.is_answer(&message) {
                    return Err(HttpFault::NoAnswer { status: 200 });
                }
                return self.pass_on_answer(message).await;
            }
            ReplyBody::Stream(response) => response,
        };
        // On the heap, so that requests without a stream need no space for one.
        Box::pin(self.take_stream(response, agreed)).await
    }

    /// Passes on the messages of a stream, up to the response to this request.
    async fn take_stream(
        &self,
        response: HttpResponse,
        agreed: &Handshake,
    ) -> Result<(), HttpFault> {
        let mut stream = if self.modern.is_some() {
            ResumableStream::once(&self.peer, response)
        } else {
            ResumableStream::new(&self.peer, agreed, response)
        };
        loop {
            let event = stream.next().await?;
            // Other events are not MCP, such as the keep-alives of some servers.
            if !matches!(event.name.as_str(), "" | "message") {
                continue;
            }
            let message = parse_on_one_line(&event.data).map(|it| self.attributed(it));
            match message {
                Ok(message) if self.is_answer(&message) => {
                    self.pass_on_answer(message).await?;
                    stream.finish().await;
                    return Ok(());
                }
                // A response to a different request does not belong here.
                Ok(Message::Response(_)) => {}
                Ok(message) => self.peer.pass_on(message, Origin::Request(self.id)).await,
                // Without this the call would wait until its timeout for a response that has arrived.
                Err(_) if self.is_broken_answer(&event.data) => return Err(HttpFault::Unreadable),
                Err(_) => tracing::debug!("ignoring an event that is not an MCP message"),
            }
        }
    }

    /// Passes on the response, unless it shows that the server is not modern.
    async fn pass_on_answer(&self, answer: Message) -> Result<(), HttpFault> {
        if self.kind == RequestKind::Probe
            && let Some(error) = modern::other_error(&answer)
        {
            return Err(not_modern(error, &self.peer.secrets));
        }
        self.peer.pass_on(answer, Origin::Request(self.id)).await;
        Ok(())
    }

    fn attributed(&self, message: Message) -> Message {
        if self.modern.is_some() {
            modern::attributed(message, self.id)
        } else {
            message
        }
    }

    fn is_answer(&self, message: &Message) -> bool {
        let Message::Response(response) = message else {
            return false;
        };
        response.id.as_ref().and_then(RequestId::as_u64) == Some(self.id)
    }

    fn is_broken_answer(&self, data: &[u8]) -> bool {
        wire::recover_id(data).and_then(|id| id.as_u64()) == Some(self.id)
    }

    /// Returns true if the server answered the request with a JSON-RPC response in spite of its error status.
    fn is_answer_despite(&self, setback: &Setback, message: &Message) -> bool {
        // The other statuses may be temporary, and are retried where the request allows it.
        let plain = matches!(setback.fault, HttpFault::Status { status, .. } if status < 500 && status != 429);
        // A probe that is refused with an error that is not modern is followed by the legacy era.
        let counts = match self.kind {
            RequestKind::Initialize | RequestKind::Probe => modern::is_modern_error(message),
            RequestKind::Listen | RequestKind::Repeatable | RequestKind::Once => true,
        };
        plain && counts && self.is_answer(message)
    }
}

impl RetryState {
    fn again(&mut self) -> Recovery {
        let pause = FIRST_PAUSE * 2_u32.pow(self.again);
        self.again += 1;
        Recovery::Again(pause)
    }
}
