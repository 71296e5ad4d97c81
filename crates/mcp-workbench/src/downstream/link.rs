//! The connection to one server, independent of its transport. The server's task owns it: it sends requests under ids
//! of its own, receives events, and can query for each request if it was sent.

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
    server::ProcessView,
    stdio::StdioLink,
};
use crate::{
    call::{Carrier, Outcome},
    config::{Secrets, Server, Transport},
    era::Era,
    events::RemoteAddress,
    wire::{self, Frame, FrameTicket, Message, Outgoing, Params},
};

/// A connection to a server.
pub(crate) enum Link {
    Stdio(Box<StdioLink>),
    Http(Box<HttpLink>),
}

/// The parts of the workbench that all links share.
#[derive(Clone)]
pub(crate) struct LinkContext {
    pub(crate) processes: Arc<ProcessTable>,
    /// Runs tasks that outlive a link for a moment.
    pub(crate) tasks: TaskTracker,
    /// Settings for OAuth that all servers share.
    pub(crate) oauth: OAuthContext,
}

/// The origin of a message of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The connection as a whole; the message does not say which request it belongs to.
    Connection,
    /// The stream of this request.
    Request(u64),
}

pub(crate) enum LinkEvent {
    Message {
        message: Message,
        origin: Origin,
    },
    /// The server wrote a line that is not an MCP message.
    BadLine(Bytes),
    /// The server wrote too many such lines in a row.
    Nonsense,
    /// The server is writing an oversized message; this is its beginning.
    TooLarge(Bytes),
    /// The oversized message ended; this is its end.
    TooLargeEnded(Bytes),
    /// A single request failed; the connection continues.
    Failed {
        id: u64,
        fault: HttpFault,
        /// The known effects of the request.
        outcome: Outcome,
    },
    /// The server lost the session, and the link opens a new one. Requests that were not sent yet are not sent to it.
    SessionLost,
    /// The token now belongs to a different account. The tools may have changed.
    AccountChanged,
    /// The new session is open, with the server's description of itself. The tools may have changed.
    Renewed(RawJson),
    /// The connection to a remote server ended.
    Lost(HttpFault),
    Ended(Exit),
}

impl Link {
    /// Opens the connection. Dropping it ends the server.
    pub(crate) async fn open(
        server: &Server,
        context: &LinkContext,
        oauth: Option<&OAuthClient>,
    ) -> Result<Self, ConnectError> {
        match &server.transport {
            Transport::Stdio(launch) => {
                let link = StdioLink::start(launch, &context.processes)
                    .await
                    .map_err(|error| error.redacted(&launch.secrets))?;
                Ok(Self::Stdio(Box::new(link)))
            }
            Transport::Remote(endpoint) => {
                let link =
                    HttpLink::open(endpoint, oauth.cloned(), server.times, &context.tasks).await?;
                Ok(Self::Http(Box::new(link)))
            }
            Transport::Unset(variables) => Err(ConnectError::Unset(variables.clone())),
        }
    }

    /// Returns the era of the server, if its transport determines it.
    pub(crate) fn fixed_era(&self) -> Option<Era> {
        match self {
            Self::Stdio(_) => None,
            Self::Http(link) => link.fixed_era(),
        }
    }

    /// Returns true if the server is remote, and not a child process.
    pub(crate) fn is_remote(&self) -> bool {
        matches!(self, Self::Http(_))
    }

    /// Returns the transport of the connection.
    pub(crate) fn carrier(&self) -> Carrier {
        match self {
            Self::Stdio(_) => Carrier::Pipe,
            Self::Http(_) => Carrier::Tcp,
        }
    }

    /// Returns the address of a remote server.
    pub(crate) fn address(&self) -> Option<RemoteAddress> {
        match self {
            Self::Stdio(_) => None,
            Self::Http(link) => link.address(),
        }
    }

    /// Returns the session that a remote server gave the workbench.
    pub(crate) fn session(&self) -> Option<String> {
        match self {
            Self::Stdio(_) => None,
            Self::Http(link) => link.session(),
        }
    }

    /// Returns the process of the server, if it is one.
    pub(crate) fn process(&self) -> Option<ProcessView> {
        match self {
            Self::Stdio(link) => link.view(),
            Self::Http(_) => None,
        }
    }

    /// Sets the era of the next requests. A probe of the modern era may be followed by the legacy one.
    pub(crate) fn set_era(&mut self, era: Era) {
        match self {
            // The messages themselves contain the era.
            Self::Stdio(_) => {}
            Self::Http(link) => link.set_era(era),
        }
    }

    /// Returns true if a cancellation is sent to the server as a message.
    pub(crate) fn cancels_by_notification(&self) -> bool {
        match self {
            Self::Stdio(_) => true,
            Self::Http(link) => link.era() == Era::Legacy,
        }
    }

    /// Sends a request. `headers` are those for arguments of its tool, if the transport has headers.
    pub(crate) fn request(
        &mut self,
        id: u64,
        method: &str,
        params: Params<'_>,
        headers: &[(String, String)],
    ) -> FrameTicket {
        match self {
            Self::Stdio(link) => link.send(Outgoing::Request { id, method, params }),
            Self::Http(link) => link.request(id, method, params, headers),
        }
    }

    /// Sends a notification, or the response to a request of the server.
    pub(crate) fn send(&mut self, frame: Frame) {
        match self {
            Self::Stdio(link) => {
                link.send(frame);
            }
            Self::Http(link) => link.send(frame),
        }
    }

    /// Completes the handshake in the revision that the server chose.
    pub(crate) fn initialized(&mut self, version: &str) {
        match self {
            Self::Stdio(link) => {
                link.send(wire::notification("notifications/initialized", None));
            }
            Self::Http(link) => link.initialized(version),
        }
    }

    /// Withdraws a request; returns its known effects.
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

    /// Returns the known effects of an unanswered request.
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

    /// Returns how many bytes are waiting to be sent.
    pub(crate) fn backlog(&mut self) -> usize {
        match self {
            Self::Stdio(link) => link.outbox().len(),
            Self::Http(link) => link.backlog(),
        }
    }

    /// Returns the deadline for the server to read its input.
    pub(crate) fn stalls_at(&self) -> Option<Instant> {
        match self {
            Self::Stdio(link) => link.stalls_at(),
            Self::Http(_) => None,
        }
    }

    /// Restarts the time that the server has to read its input.
    pub(crate) fn excuse_stall(&mut self) {
        match self {
            Self::Stdio(link) => link.excuse_stall(),
            Self::Http(_) => {}
        }
    }

    /// Returns how much of an oversized message was read so far.
    pub(crate) fn oversized_bytes(&self) -> u64 {
        match self {
            Self::Stdio(link) => link.oversized_bytes(),
            Self::Http(_) => 0,
        }
    }

    /// Returns true if the server is in the middle of an oversized message.
    pub(crate) fn is_mid_oversized(&self) -> bool {
        match self {
            Self::Stdio(link) => link.is_mid_oversized(),
            // An oversized message ends its own response only, and delays no other.
            Self::Http(_) => false,
        }
    }

    /// Returns the next event, and sends meanwhile. Cancel-safe.
    pub(crate) async fn next_event(&mut self) -> LinkEvent {
        match self {
            Self::Stdio(link) => link.next_event().await,
            Self::Http(link) => link.next_event().await,
        }
    }

    /// Returns an event that arrived together with the last one, without waiting.
    pub(crate) fn ready_event(&mut self) -> Option<LinkEvent> {
        match self {
            Self::Stdio(link) => link.ready_event(),
            Self::Http(link) => link.ready_event(),
        }
    }

    /// Returns the last lines that the server wrote to stderr.
    pub(crate) async fn stderr_tail(&mut self) -> Vec<String> {
        match self {
            Self::Stdio(link) => link.stderr_tail().await,
            Self::Http(_) => Vec::new(),
        }
    }

    /// Returns the values to redact in messages about this server.
    pub(crate) fn secrets(&self) -> Cow<'_, Secrets> {
        match self {
            Self::Stdio(link) => Cow::Borrowed(link.secrets()),
            Self::Http(link) => link.secrets(),
        }
    }

    /// Makes the deadlines for ending the server count from `since`.
    pub(crate) fn closing_since(&mut self, since: Instant) {
        match self {
            Self::Stdio(link) => link.closing_since(since),
            Self::Http(link) => link.closing_since(since),
        }
    }
}
