//! The body of a request, which knows whether it has been begun: a call may be sent again only if no byte
//! of it went out, or if the server proved that it did not run it.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU8, AtomicUsize, Ordering},
    },
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::{Body, Frame as BodyFrame, SizeHint};

use crate::{call::Outcome, wire::Frame};

const WAITING: u8 = 0;
const BEGUN: u8 = 1;
const REJECTED: u8 = 2;
const WITHDRAWN: u8 = 3;

/// How far a request has got. Shared between its owner, its task and its body.
#[derive(Debug)]
pub(super) struct Sending(AtomicU8);

impl Default for Sending {
    fn default() -> Self {
        Self(AtomicU8::new(WAITING))
    }
}

impl Sending {
    /// What is known of the request's effects, if nothing more is heard of it.
    pub(super) fn outcome(&self) -> Outcome {
        match self.0.load(Ordering::Relaxed) {
            BEGUN => Outcome::Unknown,
            REJECTED => Outcome::Rejected,
            _ => Outcome::NotSent,
        }
    }

    /// Takes the request back: what has not been begun never will be.
    pub(super) fn withdraw(&self) -> Outcome {
        let outcome = self.outcome();
        if outcome != Outcome::Unknown {
            self.0.store(WITHDRAWN, Ordering::Relaxed);
        }
        outcome
    }

    /// Notes that the server proved that it did not run the request.
    pub(super) fn rejected(&self) {
        self.0.store(REJECTED, Ordering::Relaxed);
    }

    /// Notes that a byte is about to go out; false if the request was taken back.
    fn begin(&self) -> bool {
        let withdrawn = self.0.load(Ordering::Relaxed) == WITHDRAWN;
        if !withdrawn {
            self.0.store(BEGUN, Ordering::Relaxed);
        }
        !withdrawn
    }
}

/// How many bytes of all requests of a connection wait to be sent.
#[derive(Debug, Default, Clone)]
pub(super) struct Backlog(Arc<AtomicUsize>);

impl Backlog {
    pub(super) fn bytes(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// Counts bytes until the share is dropped.
    pub(super) fn share(&self, bytes: usize) -> Share {
        self.0.fetch_add(bytes, Ordering::Relaxed);
        Share {
            backlog: self.clone(),
            bytes,
        }
    }
}

/// The bytes of one request that waits to be sent.
#[derive(Debug)]
pub(super) struct Share {
    backlog: Backlog,
    bytes: usize,
}

impl Drop for Share {
    fn drop(&mut self) {
        self.backlog.0.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// The bytes of one message on their way out.
pub(super) struct MessageBody {
    /// Those that were given out are empty.
    parts: [Bytes; 3],
    sending: Arc<Sending>,
    share: Option<Share>,
}

impl MessageBody {
    /// Nothing.
    pub(super) fn empty() -> Self {
        Self {
            parts: Default::default(),
            sending: Arc::default(),
            share: None,
        }
    }

    pub(super) fn new(frame: &Frame, sending: &Arc<Sending>, share: Option<Share>) -> Self {
        Self {
            parts: frame.clone().into_parts(),
            sending: Arc::clone(sending),
            share,
        }
    }
}

/// A request was taken back before it was begun.
#[derive(Debug, thiserror::Error)]
#[error("withdrawn")]
pub(super) struct Withdrawn;

impl Body for MessageBody {
    type Data = Bytes;
    type Error = Withdrawn;

    /// The connection asks for this when it writes the head, and before it has flushed it.
    fn poll_frame(
        self: Pin<&mut Self>,
        _context: &mut Context<'_>,
    ) -> Poll<Option<Result<BodyFrame<Bytes>, Withdrawn>>> {
        let this = self.get_mut();
        if this.is_end_stream() {
            return Poll::Ready(None);
        }
        if !this.sending.begin() {
            return Poll::Ready(Some(Err(Withdrawn)));
        }
        let part = this.parts.iter_mut().find(|part| !part.is_empty());
        let part = part.map(std::mem::take);
        if this.is_end_stream() {
            this.share = None;
        }
        Poll::Ready(part.map(|part| Ok(BodyFrame::data(part))))
    }

    fn is_end_stream(&self) -> bool {
        self.parts.iter().all(Bytes::is_empty)
    }

    fn size_hint(&self) -> SizeHint {
        let left: usize = self.parts.iter().map(Bytes::len).sum();
        SizeHint::with_exact(left as u64)
    }
}
