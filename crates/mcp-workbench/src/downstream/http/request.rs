//! The task of one request: it is sent, its answer is passed on, and what can be cured is cured: a lost
//! session by a new one, a busy server by waiting, a failed connection by another. A call is sent again
//! only if it is certain that it did not run.

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;

use super::{
    body::{Sending, Share},
    exchange::{Outgoing, PostError, Reply, post, reply},
    fault::Setback,
    peer::{Agreed, Event, Peer, Route, Stage},
    stream::ResumableStream,
};
use crate::{
    call::Outcome,
    downstream::{
        error::HttpFault,
        link::{LinkEvent, Origin},
    },
    wire::{self, Answer, Frame, Message, RawJson, RequestId, Response, parse_on_one_line},
};

/// How often a connection is tried again, and a request that may be repeated.
const MAX_CONNECTS: u32 = 2;
const MAX_REPEATS: u32 = 3;
/// The pause before the first of them; it doubles.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
/// The longest wait that a server may ask for.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// The errors by which a server of a newer revision is known: it does not have the older transport.
const MODERN_ERRORS: [&str; 3] = ["-32020", "-32021", "-32022"];

/// What a request is, as far as its repetition is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// The handshake, which is sent before anything is agreed on.
    Initialize,
    /// Asks without effects: it may be sent again.
    Repeatable,
    /// May have effects: it is never sent again once it may have run.
    Once,
}

impl Kind {
    pub(super) fn of(method: &str) -> Self {
        match method {
            "initialize" => Self::Initialize,
            "ping" | "resources/read" => Self::Repeatable,
            listing if listing.ends_with("/list") => Self::Repeatable,
            _ => Self::Once,
        }
    }
}

/// A request on its way.
pub(super) struct RequestTask {
    pub(super) peer: Arc<Peer>,
    pub(super) id: u64,
    pub(super) kind: Kind,
    pub(super) frame: Frame,
    pub(super) sending: Arc<Sending>,
    pub(super) share: Option<Share>,
}

/// What has been tried for a request.
#[derive(Debug, Default)]
struct Tried {
    renewed: bool,
    waited: bool,
    again: u32,
    /// The session that was lost.
    lost: Option<u64>,
}

/// What to do about a setback.
enum Cure {
    /// Send it again after this time.
    Again(Duration),
    /// Send it again in a new session.
    NewSession,
    /// Send it again over the older transport.
    FallBack,
    /// Nothing helps.
    None,
}

impl RequestTask {
    /// Runs the request to its end and tells the link of it.
    pub(super) async fn run(mut self) {
        let times = self.peer.times;
        // Whoever waits gives up before this; it is for answers that nobody waits for any more.
        let limit = match self.kind {
            Kind::Once => times.max_call,
            Kind::Repeatable => times.connect.max(times.call),
            Kind::Initialize => times.connect,
        };
        let deadline = Instant::now() + self.patience();
        let settled = tokio::time::timeout(limit, self.settle(deadline)).await;
        let setback = match settled {
            Ok(Ok(())) => return,
            Ok(Err(setback)) => setback,
            Err(_) => Setback {
                fault: HttpFault::Slow(limit),
                outcome: self.sending.outcome(),
            },
        };
        let failed = LinkEvent::Failed {
            id: self.id,
            fault: setback.fault,
            outcome: setback.outcome,
        };
        self.peer.tell(Event::Tell(failed)).await;
    }

    /// How long whoever waits for the request waits at least.
    fn patience(&self) -> Duration {
        let times = self.peer.times;
        match self.kind {
            Kind::Once => times.call.min(times.max_call),
            Kind::Initialize | Kind::Repeatable => times.connect,
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
        if self.kind == Kind::Initialize {
            return Ok(Agreed::default());
        }
        let agreed = self.peer.agreed(tried.lost).await;
        agreed.map_err(|fault| Setback {
            fault,
            outcome: self.sending.outcome(),
        })
    }

    fn cure(&self, tried: &mut Tried, error: &PostError, deadline: Instant) -> Cure {
        let setback = match error {
            PostError::Setback(setback) => setback,
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
            } if !tried.waited && *wait <= LONGEST_WAIT && Instant::now() + *wait < deadline => {
                tried.waited = true;
                Cure::Again(*wait)
            }
            HttpFault::Status {
                status: 400 | 404 | 405,
                ..
            } if self.may_fall_back(error) => Cure::FallBack,
            HttpFault::Unreachable { .. } if tried.again < MAX_CONNECTS => tried.again(),
            fault if self.may_repeat(fault) && tried.again < MAX_REPEATS => tried.again(),
            _ => Cure::None,
        }
    }

    /// Whether a refusal of the handshake can mean that the server has the older transport only.
    fn may_fall_back(&self, error: &PostError) -> bool {
        let modern = match error {
            PostError::Refusal(refusal) => refusal.message.as_ref().is_some_and(is_modern),
            PostError::Setback(_) => false,
        };
        self.kind == Kind::Initialize
            && !modern
            && matches!(*self.peer.route.borrow(), Route::Streamable(_))
    }

    fn may_repeat(&self, fault: &HttpFault) -> bool {
        let passing = matches!(
            fault,
            HttpFault::Status {
                status: 500 | 502 | 503 | 504,
                ..
            } | HttpFault::ConnectionLost { .. }
                | HttpFault::StreamEnded
        );
        self.kind != Kind::Once && passing
    }

    /// Sends the request once and passes on what comes back.
    async fn attempt(&mut self, agreed: &Agreed) -> Result<(), PostError> {
        let peer = Arc::clone(&self.peer);
        let route = peer.route().await;
        let outgoing = Outgoing {
            frame: &self.frame,
            sending: &self.sending,
            agreed,
        };
        let share = self.share.take();
        match route {
            Route::Streamable(url) => {
                let response = match post(&peer, url, &outgoing, share).await {
                    Err(PostError::Refusal(refusal)) => match refusal.message {
                        Some(message) if self.is_answer_despite(&refusal.setback, &message) => {
                            peer.pass_on(message, Origin::Request(self.id)).await;
                            return Ok(());
                        }
                        _ => return Err(PostError::Refusal(refusal)),
                    },
                    response => response?,
                };
                if self.kind == Kind::Initialize {
                    let session = response.headers().get("mcp-session-id").cloned();
                    peer.stage.send_replace(Stage::Opening(session));
                }
                let taken = match reply(&peer, response).await {
                    Ok(reply) => self.take(reply, agreed).await,
                    Err(fault) => Err(fault),
                };
                taken.map_err(|fault| {
                    PostError::Setback(Setback {
                        fault,
                        outcome: Outcome::Unknown,
                    })
                })
            }
            Route::Sse(url) => {
                // The answer comes on the one stream.
                let response = post(&peer, url, &outgoing, share).await?;
                super::exchange::discard(response).await;
                Ok(())
            }
            Route::SseWaiting => Err(Peer::not_sent(HttpFault::Internal).into()),
        }
    }

    /// Passes on what a reply holds, up to the answer to this request.
    async fn take(&self, reply: Reply, agreed: &Agreed) -> Result<(), HttpFault> {
        let response = match reply {
            Reply::Nothing(status) => return Err(HttpFault::NoAnswer { status }),
            Reply::Message(body) => {
                let message = parse_on_one_line(&body).map_err(|_| HttpFault::Unreadable)?;
                if !self.is_answer(&message) {
                    return Err(HttpFault::NoAnswer { status: 200 });
                }
                self.peer.pass_on(message, Origin::Request(self.id)).await;
                return Ok(());
            }
            Reply::Stream(response) => response,
        };
        let mut stream = ResumableStream::new(&self.peer, agreed, response);
        loop {
            let event = stream.next().await?;
            if !matches!(event.name.as_str(), "" | "message") {
                continue;
            }
            match parse_on_one_line(&event.data) {
                Ok(message) if self.is_answer(&message) => {
                    self.peer.pass_on(message, Origin::Request(self.id)).await;
                    stream.finish().await;
                    return Ok(());
                }
                // The answer to another request does not belong here.
                Ok(Message::Response(_)) => {}
                Ok(message) => self.peer.pass_on(message, Origin::Request(self.id)).await,
                Err(_) if self.is_broken_answer(&event.data) => return Err(HttpFault::Unreadable),
                Err(_) => tracing::debug!("an event is no message"),
            }
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

    /// Whether the server has answered the request in the terms of the protocol, beside its status.
    fn is_answer_despite(&self, setback: &Setback, message: &Message) -> bool {
        let plain = matches!(setback.fault, HttpFault::Status { status, .. } if status < 500 && status != 429);
        // A handshake that is refused in other words than a newer server's is one to be tried otherwise.
        let counts = self.kind != Kind::Initialize || is_modern(message);
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

fn is_modern(message: &Message) -> bool {
    let Message::Response(Response {
        answer: Answer::Error(error),
        ..
    }) = message
    else {
        return false;
    };
    let code = error.member("code");
    code.is_some_and(|code: RawJson| MODERN_ERRORS.contains(&code.as_str()))
}
