//! The connection to one server, whatever carries it. The server's task owns it and knows no transport:
//! it sends requests under ids of its own, hears events, and can tell of each request whether it has
//! gone out.

use std::{borrow::Cow, sync::Arc};

use bytes::Bytes;
use rawjson::RawJson;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use super::{
    error::{ConnectError, HttpFault},
    http::HttpLink,
    oauth::{OAuthClient, OAuthContext},
    process::{Exit, ProcessTable},
    stdio::StdioLink,
};
use crate::{
    call::Outcome,
    config::{Secrets, Server, Transport},
    era::Era,
    wire::{self, Frame, FrameTicket, Message, Outgoing, Params},
};

/// A connection to a server.
pub(crate) enum Link {
    Stdio(Box<StdioLink>),
    /// A server at an address.
    Http(Box<HttpLink>),
}

/// What links have in common with the rest of the workbench.
#[derive(Clone)]
pub(crate) struct LinkContext {
    pub(crate) processes: Arc<ProcessTable>,
    /// Runs what outlives a link for a moment.
    pub(crate) tasks: TaskTracker,
    /// Settings for OAuth that all servers share.
    pub(crate) oauth: OAuthContext,
}

/// Where a message of a server came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The connection as a whole: which request it belongs to is not told.
    Connection,
    /// The stream of this request.
    Request(u64),
}

/// What a link has to tell.
pub(crate) enum LinkEvent {
    Message {
        message: Message,
        origin: Origin,
    },
    /// The server wrote a line that is no message.
    BadLine(Bytes),
    /// The server has written nothing else for too long.
    Nonsense,
    /// The server is writing a message that is too large; this is its beginning.
    TooLarge(Bytes),
    /// The message that was too large is over; this is its end.
    TooLargeEnded(Bytes),
    /// A request has failed by itself; the connection goes on.
    Failed {
        id: u64,
        fault: HttpFault,
        /// What is known of its effects.
        outcome: Outcome,
    },
    /// The server has lost the session, and a new one is being made. What was not sent yet is not sent to it.
    SessionLost,
    /// The token belongs to another account now. What the server offers may have changed.
    AccountChanged,
    /// The new session is open, and this is what the server said of itself. What it offers may have changed.
    Renewed(RawJson),
    /// Nothing more will come from a remote server.
    Lost(HttpFault),
    Ended(Exit),
}

impl Link {
    /// Makes the connection. Dropping it ends the server.
    pub(crate) async fn open(
        server: &Server,
        context: &LinkContext,
        oauth: Option<&OAuthClient>,
    ) -> Result<Self, ConnectError> {
        match &server.transport {
            Transport::Stdio(launch) => {
                let link = StdioLink::start(launch, &context.processes).await;
                let link = link.map_err(|error| error.redacted(&launch.secrets))?;
                Ok(Self::Stdio(Box::new(link)))
            }
            Transport::Remote(endpoint) => {
                let link = HttpLink::open(endpoint, oauth.cloned(), server.times, &context.tasks)?;
                Ok(Self::Http(Box::new(link)))
            }
            Transport::Unset(variables) => Err(ConnectError::Unset(variables.clone())),
        }
    }

    /// The era of the server, where its transport leaves no choice.
    pub(crate) fn fixed_era(&self) -> Option<Era> {
        match self {
            Self::Stdio(_) => None,
            Self::Http(link) => link.fixed_era(),
        }
    }

    /// Whether the server is at an address and no child process.
    pub(crate) fn is_remote(&self) -> bool {
        matches!(self, Self::Http(_))
    }

    /// Says in which era the next requests are made. A probe of the modern one may be followed by the legacy one.
    pub(crate) fn set_era(&mut self, era: Era) {
        match self {
            // The messages themselves say it all.
            Self::Stdio(_) => {}
            Self::Http(link) => link.set_era(era),
        }
    }

    /// Whether the server is told by a message that a request was taken back.
    pub(crate) fn cancels_by_notification(&self) -> bool {
        match self {
            Self::Stdio(_) => true,
            Self::Http(link) => link.era() == Era::Legacy,
        }
    }

    /// Sends a request. `headers` are those for arguments of its tool, where requests have headers.
    pub(crate) fn request(
        &mut self,
        id: u64,
        method: &str,
        params: Params<'_>,
        headers: &[(String, String)],
    ) -> FrameTicket {
        match self {
            Self::Stdio(link) => link.send(Outgoing::Request { id, method, params }),
            Self::Http(link) => link.request(id, method, &params.into_json(), headers),
        }
    }

    /// Sends a notification, or the answer to a request of the server.
    pub(crate) fn send(&mut self, frame: Frame) {
        match self {
            Self::Stdio(link) => {
                link.send(frame);
            }
            Self::Http(link) => link.send(frame),
        }
    }

    /// Completes the handshake in the revision that the server has chosen.
    pub(crate) fn initialized(&mut self, version: &str) {
        match self {
            Self::Stdio(link) => {
                link.send(wire::notification("notifications/initialized", None));
            }
            Self::Http(link) => link.initialized(version),
        }
    }

    /// Takes a request back; returns what is known of its effects.
    pub(crate) fn withdraw(&mut self, request: FrameTicket) -> Outcome {
        match self {
            Self::Stdio(link) => {
                if link.withdraw(request) {
                    Outcome::NotSent
                } else {
                    Outcome::Unknown
                }
            }
            Self::Http(link) => link.withdraw(request),
        }
    }

    /// What is known of the effects of a request that is not answered.
    pub(crate) fn outcome(&mut self, request: FrameTicket) -> Outcome {
        match self {
            Self::Stdio(link) => {
                let started = link.outbox().has_started(request);
                if started {
                    Outcome::Unknown
                } else {
                    Outcome::NotSent
                }
            }
            Self::Http(link) => link.outcome(request),
        }
    }

    /// How many bytes wait to be sent.
    pub(crate) fn backlog(&mut self) -> usize {
        match self {
            Self::Stdio(link) => link.outbox().len(),
            Self::Http(link) => link.backlog(),
        }
    }

    /// When the server has left unread for too long what is sent to it.
    pub(crate) fn stalls_at(&self) -> Option<Instant> {
        match self {
            Self::Stdio(link) => link.stalls_at(),
            Self::Http(_) => None,
        }
    }

    /// Begins to count anew how long the server leaves things unread.
    pub(crate) fn excuse_stall(&mut self) {
        match self {
            Self::Stdio(link) => link.excuse_stall(),
            Self::Http(_) => {}
        }
    }

    /// How much of the message that is too large has been read so far.
    pub(crate) fn oversized_bytes(&self) -> u64 {
        match self {
            Self::Stdio(link) => link.oversized_bytes(),
            Self::Http(_) => 0,
        }
    }

    /// Returns whether the server is in the middle of a message that is too large.
    pub(crate) fn is_mid_oversized(&self) -> bool {
        match self {
            Self::Stdio(link) => link.is_mid_oversized(),
            Self::Http(_) => false,
        }
    }

    /// The next thing that happens; sending goes on meanwhile. Cancel-safe.
    pub(crate) async fn next_event(&mut self) -> LinkEvent {
        match self {
            Self::Stdio(link) => link.next_event().await,
            Self::Http(link) => link.next_event().await,
        }
    }

    /// What has come together with the last event, if it can be had without waiting.
    pub(crate) fn ready_event(&mut self) -> Option<LinkEvent> {
        match self {
            Self::Stdio(link) => link.ready_event(),
            Self::Http(_) => None,
        }
    }

    /// The last lines that the server wrote to stderr.
    pub(crate) async fn stderr_tail(&mut self) -> Vec<String> {
        match self {
            Self::Stdio(link) => link.stderr_tail().await,
            Self::Http(_) => Vec::new(),
        }
    }

    /// The values that must not appear in messages about this server.
    pub(crate) fn secrets(&self) -> Cow<'_, Secrets> {
        match self {
            Self::Stdio(link) => Cow::Borrowed(link.secrets()),
            Self::Http(link) => link.secrets(),
        }
    }

    /// Makes the end of the server count from `since`.
    pub(crate) fn closing_since(&mut self, since: Instant) {
        match self {
            Self::Stdio(link) => link.closing_since(since),
            Self::Http(link) => link.closing_since(since),
        }
    }
}
