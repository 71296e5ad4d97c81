//! The connection to one server, whatever carries it. The server's task owns it and knows no transport:
//! it sends requests under ids of its own, hears events, and can tell of each request whether it has
//! gone out.

use std::sync::Arc;

use bytes::Bytes;
use tokio::time::Instant;

use super::{
    error::ConnectError,
    process::{Exit, ProcessTable},
    stdio::StdioLink,
};
use crate::{
    config::{Secrets, Transport},
    wire::{self, Frame, FrameTicket, Message, RawJson},
};

/// A connection to a server.
pub(super) enum Link {
    /// A child process.
    Stdio(StdioLink),
}

/// What a link has to tell.
pub(super) enum LinkEvent {
    /// The server said something.
    Message(Message),
    /// The server wrote a line that is no message.
    BadLine(Bytes),
    /// The server has written nothing else for too long.
    Nonsense,
    /// The server is writing a message that is too large; this is its beginning.
    TooLarge(Bytes),
    /// The message that was too large is over; this is its end.
    TooLargeEnded(Bytes),
    /// Nothing more will come.
    Ended(Exit),
}

impl Link {
    /// Makes the connection. Dropping it ends the server.
    pub(super) fn open(
        transport: &Transport,
        processes: &Arc<ProcessTable>,
    ) -> Result<Self, ConnectError> {
        match transport {
            Transport::Stdio(launch) => {
                let link = StdioLink::start(launch, processes);
                Ok(Self::Stdio(
                    link.map_err(|error| error.redacted(&launch.secrets))?,
                ))
            }
            Transport::Remote(_) => Err(ConnectError::RemoteUnavailable),
            Transport::Unset(variables) => Err(ConnectError::Unset(variables.clone())),
        }
    }

    /// Sends a request.
    pub(super) fn request(&mut self, id: u64, method: &str, params: &RawJson) -> FrameTicket {
        let frame = wire::request(id, method, params);
        match self {
            Self::Stdio(link) => link.send(frame),
        }
    }

    /// Sends a notification, or the answer to a request of the server.
    pub(super) fn send(&mut self, frame: Frame) {
        match self {
            Self::Stdio(link) => {
                link.send(frame);
            }
        }
    }

    /// Takes a request back; false if a byte of it has gone out.
    pub(super) fn withdraw(&mut self, request: FrameTicket) -> bool {
        match self {
            Self::Stdio(link) => link.outbox().remove(request),
        }
    }

    /// Whether a byte of a request has gone out.
    pub(super) fn has_started(&mut self, request: FrameTicket) -> bool {
        match self {
            Self::Stdio(link) => link.outbox().has_started(request),
        }
    }

    /// How many bytes wait to be sent.
    pub(super) fn backlog(&mut self) -> usize {
        match self {
            Self::Stdio(link) => link.outbox().len(),
        }
    }

    /// When the server has left unread for too long what is sent to it.
    pub(super) fn stalls_at(&self) -> Option<Instant> {
        match self {
            Self::Stdio(link) => link.stalls_at(),
        }
    }

    /// The next thing that happens; sending goes on meanwhile. Cancel-safe.
    pub(super) async fn next_event(&mut self) -> LinkEvent {
        match self {
            Self::Stdio(link) => link.next_event().await,
        }
    }

    /// The last lines that the server wrote to stderr.
    pub(super) async fn stderr_tail(&mut self) -> Vec<String> {
        match self {
            Self::Stdio(link) => link.stderr_tail().await,
        }
    }

    /// The values that must not appear in messages about this server.
    pub(super) fn secrets(&self) -> &Secrets {
        match self {
            Self::Stdio(link) => link.secrets(),
        }
    }

    /// Makes the end of the server count from `since`.
    pub(super) fn closing_since(&mut self, since: Instant) {
        match self {
            Self::Stdio(link) => link.closing_since(since),
        }
    }
}
