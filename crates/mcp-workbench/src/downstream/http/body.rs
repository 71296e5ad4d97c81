//! The body of a request, which records if it was begun: a call may be sent again only if no byte of it was sent, or
//! if the server proved that it did not run it.

use std::{
    convert::Infallible,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU8, AtomicUsize, Ordering},
    },
    task::{Context, Poll},
};

use bytes::Buf;
use hyper::body::{Body, Frame as BodyFrame, SizeHint};

use super::watched_stream::Watcher;
use crate::{
    call::Outcome,
    wire::{Frame, FrameText},
};

const WAITING: u8 = 0;
const BEGUN: u8 = 1;
const REJECTED: u8 = 2;
const WITHDRAWN: u8 = 3;

/// The progress of sending a request. Shared between its owner, its task and its body.
#[derive(Debug)]
pub(super) struct SendState(AtomicU8);

impl Default for SendState {
    fn default() -> Self {
        Self(AtomicU8::new(WAITING))
    }
}

impl SendState {
    /// Returns the known effects of the request, if no response arrives.
    pub(super) fn outcome(&self) -> Outcome {
        // One thread runs all tasks, so nothing has to be ordered. The value is atomic only because tasks must be
        // `Send`.
        match self.0.load(Ordering::Relaxed) {
            BEGUN => Outcome::Unknown,
            REJECTED => Outcome::Rejected,
            _ => Outcome::NotSent,
        }
    }

    /// Withdraws the request: if it was not begun, it never will be.
    pub(super) fn withdraw(&self) -> Outcome {
        let outcome = self.outcome();
        if outcome != Outcome::Unknown {
            self.0.store(WITHDRAWN, Ordering::Relaxed);
        }
        outcome
    }

    /// Records that the server proved that it did not run the request.
    pub(super) fn rejected(&self) {
        self.0.store(REJECTED, Ordering::Relaxed);
    }

    /// Records that a byte is about to be sent; returns false if the request was withdrawn.
    pub(super) fn begin(&self) -> bool {
        if self.is_withdrawn() {
            return false;
        }
        self.0.store(BEGUN, Ordering::Relaxed);
        true
    }

    fn is_withdrawn(&self) -> bool {
        self.0.load(Ordering::Relaxed) == WITHDRAWN
    }

    /// Records that no byte was sent after all; returns false if the request was withdrawn.
    fn unbegin(&self) -> bool {
        let order = Ordering::Relaxed;
        let changed = self.0.compare_exchange(BEGUN, WAITING, order, order);
        changed.is_ok()
    }
}

/// The number of bytes of all requests of a connection that wait to be sent.
#[derive(Debug, Default, Clone)]
pub(super) struct Backlog(Arc<AtomicUsize>);

impl Backlog {
    pub(super) fn bytes(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// Counts bytes until the share is dropped.
    pub(super) fn share(&self, bytes: usize) -> BacklogShare {
        self.0.fetch_add(bytes, Ordering::Relaxed);
        BacklogShare {
            backlog: self.clone(),
            bytes,
        }
    }
}

/// The bytes of one request that waits to be sent.
#[derive(Debug)]
pub(super) struct BacklogShare {
    backlog: Backlog,
    bytes: usize,
}

impl Drop for BacklogShare {
    fn drop(&mut self) {
        self.backlog.0.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// The message of a request, which may have to be sent more than once.
pub(super) struct MessageBody<'a> {
    frame: Option<&'a Frame>,
    sending: Option<&'a Arc<SendState>>,
    share: Option<BacklogShare>,
}

impl<'a> MessageBody<'a> {
    pub(super) fn empty() -> Self {
        Self {
            frame: None,
            sending: None,
            share: None,
        }
    }

    pub(super) fn new(
        frame: &'a Frame,
        sending: &'a Arc<SendState>,
        share: Option<BacklogShare>,
    ) -> Self {
        Self {
            frame: Some(frame),
            sending: Some(sending),
            share,
        }
    }

    /// Returns the body for an exchange on the connection of `watcher`.
    pub(super) fn begin(&mut self, watcher: &Arc<Watcher>) -> RequestBody {
        watcher.watch(self.sending.cloned(), self.share.take());
        RequestBody {
            text: self.frame.map(Frame::to_text).unwrap_or_default(),
            watcher: Arc::clone(watcher),
        }
    }

    /// Takes the request back from a connection that sent no byte of it; returns false if it was withdrawn.
    pub(super) fn take_back(&mut self, watcher: &Watcher) -> bool {
        self.share = watcher.take_share();
        self.sending.is_none_or(|sending| sending.unbegin())
    }

    pub(super) fn is_withdrawn(&self) -> bool {
        self.sending.is_some_and(|sending| sending.is_withdrawn())
    }
}

/// The body of a request as hyper sends it.
pub(super) struct RequestBody {
    /// Empty after hyper has taken it.
    text: FrameText,
    watcher: Arc<Watcher>,
}

impl Body for RequestBody {
    type Data = FrameText;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<BodyFrame<FrameText>, Infallible>>> {
        if self.is_end_stream() {
            return Poll::Ready(None);
        }
        // Recorded now: hyper knows the length and does not ask again.
        self.watcher.set_body_sent();
        let text = std::mem::take(&mut self.text);
        Poll::Ready(Some(Ok(BodyFrame::data(text))))
    }

    fn is_end_stream(&self) -> bool {
        !self.text.has_remaining()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.text.remaining() as u64)
    }
}
