//! The task of one request: sends it, passes on its response, and recovers where possible: from a lost session by a
//! new one, from a busy server by waiting, from a failed connection by another one. A call is sent again only if it
//! is certain that it did not run.

use std::{sync::Arc, time::Duration};

use hyper::HeaderMap;
use tokio::time::Instant;

use super::{
    body::{Sending, Share},
    client::Response as HttpResponse,
    exchange::{Outgoing, PostError, Reply, post, reply},
    fault::{Refusal, Setback, not_modern},
    modern,
    peer::{Agreed, Event, Peer, Route, SESSION_ID, Stage},
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

/// Upper bounds on the retries of a connection, and of a repeatable request.
const MAX_CONNECTS: u32 = 2;
const MAX_REPEATS: u32 = 3;
/// The pause before the first retry; it doubles.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
/// Upper bound on the `Retry-After` of a server.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(30);

/// The kind of a request, which determines if it may be repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
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

impl Kind {
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
    pub(super) kind: Kind,
    /// The session that the request is made for.
    pub(super) generation: u64,
    /// The account that the request is made for.
    pub(super) grant: Option<String>,
    /// The headers of a modern request; a legacy one has those of the handshake.
    pub(super) modern: Option<HeaderMap>,
    pub(super) frame: Frame,
    pub(super) sending: Arc<Sending>,
    pub(super) share: Option<Share>,
}

/// The recovery steps of a request so far.
#[derive(Debug, Default)]
struct Tried {
    renewed: bool,
    waited: bool,
    again: u32,
    /// The session that was lost.
    lost: Option<u64>,
}

/// The recovery from a failure.
enum Cure {
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
        self.peer.tell(Event::Tell(failed)).await;
    }

    /// Returns how long the caller of the request waits at least.
    fn caller_timeout(&self) -> Duration {
        let times = self.peer.times;
        match self.kind {
            Kind::Once => times.call.min(times.max_call),
            Kind::Initialize | Kind::Probe | Kind::Listen | Kind::Repeatable => times.connect,
        }
    }

    async fn settle(&mut self, deadline: Instant) -> Result<(), Setback> {
        let mut tried = Tried::default();
        loop {
            let agreed = self.agreed(&tried).await?;
            let Err(error) = self.attempt(&agreed).await else {
                return Ok(());
            };
            let cure = self.cure(&mut tried, &error, deadline);
            let setback = error.into_setback();
            if setback.outcome == Outcome::Rejected {
                self.sending.rejected();
            }
            match cure {
                Cure::Again(pause) => tokio::time::sleep(pause).await,
                Cure::NewSession => {
                    tried.lost = Some(agreed.generation);
                    self.peer.tell(Event::SessionLost(agreed.generation)).await;
                    // The tools of the new session must be compared first, so the owner sends the call again.
                    if self.kind == Kind::Once {
                        return Err(setback);
                    }
                }
                Cure::FallBack => {
                    self.peer.route.send_replace(Route::SseWaiting);
                    self.peer.tell(Event::FallBack(setback.fault)).await;
                }
                Cure::None => return Err(setback),
            }
        }
    }

    async fn agreed(&self, tried: &Tried) -> Result<Agreed, Setback> {
        if self.kind == Kind::Initialize || self.modern.is_some() {
            return Ok(self.peer.agreed_on_nothing());
        }
        let agreed = self.peer.agreed(tried.lost).await;
        if self.kind == Kind::Once {
            self.peer.listens().await;
        }
        let outcome = self.sending.outcome();
        match agreed {
            Ok(agreed) if self.kind == Kind::Once && agreed.generation != self.generation => {
                let fault = HttpFault::SessionLost { status: 404 };
                Err(Setback { fault, outcome })
            }
            agreed => agreed.map_err(|fault| Setback { fault, outcome }),
        }
    }

    fn cure(&self, tried: &mut Tried, error: &PostError, deadline: Instant) -> Cure {
        let setback = match error {
            PostError::Setback(setback) | PostError::Broken(setback) => setback,
            PostError::Refusal(refusal) => &refusal.setback,
        };
        match &setback.fault {
            HttpFault::SessionLost { .. } if !tried.renewed => {
                tried.renewed = true;
                Cure::NewSession
            }
            HttpFault::Status {
                status: 429,
                retry_after: Some(wait),
                ..
            } if !tried.waited && *wait <= MAX_RETRY_AFTER && Instant::now() + *wait < deadline => {
                tried.waited = true;
                Cure::Again(*wait)
            }
            HttpFault::Status {
                status: 400 | 404 | 405,
                ..
            } if self.may_fall_back(error) => Cure::FallBack,
            HttpFault::Unreachable { .. } if tried.again < MAX_CONNECTS => tried.again(),
            _ if self.may_repeat(error) && tried.again < MAX_REPEATS => tried.again(),
            _ => Cure::None,
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
        self.kind == Kind::Initialize
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
                failed && self.kind != Kind::Probe
            }
        };
        passing && !matches!(self.kind, Kind::Once | Kind::Listen)
    }

    /// Sends the request once and passes on its response.
    async fn attempt(&mut self, agreed: &Agreed) -> Result<(), PostError> {
        let peer = Arc::clone(&self.peer);
        let route = peer.route().await;
        let share = self.share.take();
        let outgoing = Outgoing {
            frame: &self.frame,
            sending: &self.sending,
            agreed,
            modern: self.modern.as_ref(),
            grant: (self.kind == Kind::Once).then_some(&self.grant),
        };
        match route {
            Route::Streamable(target) => {
                let posted = post(&peer, target, &outgoing, share).await;
                self.take_posted(posted, agreed).await
            }
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
        agreed: &Agreed,
    ) -> Result<(), PostError> {
        let response = match posted {
            Err(PostError::Refusal(mut refusal)) => {
                let message = refusal.message.take().map(|it| self.attributed(it));
                return match message {
                    Some(message) if self.is_answer_despite(&refusal.setback, &message) => {
                        self.peer.pass_on(message, Origin::Request(self.id)).await;
                        Ok(())
                    }
                    message => Err(PostError::Refusal(Refusal { message, ..refusal })),
                };
            }
            posted => posted?,
        };
        if self.kind == Kind::Initialize {
            let session = response.headers().get(&SESSION_ID).cloned();
            self.peer.stage.send_replace(Stage::Opening(session));
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
    async fn take(&self, reply: Reply, agreed: &Agreed) -> Result<(), HttpFault> {
        let response = match reply {
            Reply::Nothing(status) => return Err(HttpFault::NoAnswer { status }),
            Reply::Message(body) => {
                let message = parse_on_one_line(&body).map_err(|_| HttpFault::Unreadable)?;
                let message = self.attributed(message);
                if !self.is_answer(&message) {
                    return Err(HttpFault::NoAnswer { status: 200 });
                }
                return self.pass_on_answer(message).await;
            }
            Reply::Stream(response) => response,
        };
        // On the heap, so that requests without a stream need no space for one.
        Box::pin(self.take_stream(response, agreed)).await
    }

    /// Passes on the messages of a stream, up to the response to this request.
    async fn take_stream(&self, response: HttpResponse, agreed: &Agreed) -> Result<(), HttpFault> {
        let mut stream = if self.modern.is_some() {
            ResumableStream::once(&self.peer, response)
        } else {
            ResumableStream::new(&self.peer, agreed, response)
        };
        loop {
            let event = stream.next().await?;
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
                Err(_) if self.is_broken_answer(&event.data) => return Err(HttpFault::Unreadable),
                Err(_) => tracing::debug!("ignoring an event that is not an MCP message"),
            }
        }
    }

    /// Passes on the response, unless it shows that the server is not modern.
    async fn pass_on_answer(&self, answer: Message) -> Result<(), HttpFault> {
        if self.kind == Kind::Probe
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
        let plain = matches!(setback.fault, HttpFault::Status { status, .. } if status < 500 && status != 429);
        // A probe that is refused with an error that is not modern is followed by the legacy era.
        let counts = match self.kind {
            Kind::Initialize | Kind::Probe => modern::is_modern_error(message),
            Kind::Listen | Kind::Repeatable | Kind::Once => true,
        };
        plain && counts && self.is_answer(message)
    }
}

impl Tried {
    fn again(&mut self) -> Cure {
        let pause = FIRST_PAUSE * 2_u32.pow(self.again);
        self.again += 1;
        Cure::Again(pause)
    }
}
