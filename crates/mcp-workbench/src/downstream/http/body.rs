//! The body of a request, which knows whether it has been begun: a call may be sent again only if no byte
//! of it went out, or if the server proved that it did not run it.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU8, AtomicUsize, Ordering},
    },
    task::{Context, Poll, ready},
};

use tokio::io::AsyncWrite;

use super::lane::LaneError;
use crate::{call::Outcome, dial::Stream, wire::Frame};

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

    /// Notes that no byte went out after all; false if the request was taken back.
    fn unbegin(&self) -> bool {
        let order = Ordering::Relaxed;
        let changed = self.0.compare_exchange(BEGUN, WAITING, order, order);
        changed.is_ok()
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

/// How large a message may be that is copied behind its head, so that both are one piece.
const COPY_BELOW: usize = 16 * 1024;

/// The message of a request, as long as it is not written.
pub(super) struct MessageBody<'a> {
    parts: [&'a [u8]; 3],
    sending: Option<&'a Sending>,
    share: Option<Share>,
}

impl<'a> MessageBody<'a> {
    pub(super) fn empty() -> Self {
        Self {
            parts: [&[]; 3],
            sending: None,
            share: None,
        }
    }

    pub(super) fn new(frame: &'a Frame, sending: &'a Sending, share: Option<Share>) -> Self {
        Self {
            parts: frame.parts(),
            sending: Some(sending),
            share,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.parts.iter().map(|part| part.len()).sum()
    }
}

/// A request on its way out.
pub(super) struct OutgoingRequest<'a> {
    /// The head, and a small body.
    first: Vec<u8>,
    rest: [&'a [u8]; 3],
    written: usize,
    is_flushed: bool,
    sending: Option<&'a Sending>,
    share: Option<Share>,
}

impl<'a> OutgoingRequest<'a> {
    pub(super) fn new(mut head: Vec<u8>, body: MessageBody<'a>) -> Self {
        let mut rest = body.parts;
        if body.len() < COPY_BELOW {
            for part in &mut rest {
                head.extend_from_slice(std::mem::take(part));
            }
        }
        Self {
            first: head,
            rest,
            written: 0,
            is_flushed: false,
            sending: body.sending,
            share: body.share,
        }
    }

    /// Whether all of it went out.
    pub(super) fn is_written(&self) -> bool {
        self.is_flushed
    }

    /// Lets it go to another stream; false if the first one took a byte of it, or if the request was taken back.
    pub(super) fn unbegin(&self) -> bool {
        self.written == 0 && self.sending.is_none_or(Sending::unbegin)
    }

    /// Writes what the stream takes. Whoever is asked has begun with it from then on.
    pub(super) fn poll_write(
        &mut self,
        stream: &mut Box<dyn Stream>,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), LaneError>> {
        if self.is_flushed {
            return Poll::Ready(Ok(()));
        }
        if self.sending.is_some_and(|sending| !sending.begin()) {
            return Poll::Ready(Err(LaneError::Withdrawn));
        }
        let mut stream = Pin::new(stream);
        loop {
            let mut left = [IoSlice::new(&[]); 4];
            let count = self.fill(&mut left);
            if count == 0 {
                break;
            }
            // One piece needs no list of pieces.
            let written = match left[..count] {
                [ref only] => stream.as_mut().poll_write(context, only),
                ref several => stream.as_mut().poll_write_vectored(context, several),
            };
            match ready!(written)? {
                0 => return Poll::Ready(Err(io::Error::from(io::ErrorKind::WriteZero).into())),
                written => self.written += written,
            }
        }
        self.share = None;
        ready!(stream.poll_flush(context))?;
        self.is_flushed = true;
        Poll::Ready(Ok(()))
    }

    /// Gives what is still to be written; returns how many pieces that is.
    fn fill<'b>(&'b self, pieces: &mut [IoSlice<'b>; 4]) -> usize {
        let mut skip = self.written;
        let mut count = 0;
        for part in [&self.first[..]].into_iter().chain(self.rest) {
            let left = part.get(skip..).unwrap_or_default();
            skip = skip.saturating_sub(part.len());
            if !left.is_empty() {
                pieces[count] = IoSlice::new(left);
                count += 1;
            }
        }
        count
    }
}
