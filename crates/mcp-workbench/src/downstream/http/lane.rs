//! One connection of HTTP/1.1, which carries one exchange at a time. Nothing runs beside it: whoever waits for an
//! exchange drives the connection, so that an answer passes through no other task, and what is asked for and answered
//! in one piece each takes one write and one read.

use std::{
    future::poll_fn,
    io,
    pin::pin,
    task::{Context, Poll, Waker, ready},
};

use bytes::{Bytes, BytesMut};
use thiserror::Error;
use tokio::{io::AsyncReadExt, time::Instant};

use super::{
    body::OutgoingRequest,
    chunks::{Chunks, Step},
    head::{self, Ending, Head},
};
use crate::dial::Stream;

/// How much is read at once, at least and at most.
const LEAST_READ: usize = 8 * 1024;
const MOST_READ: usize = 256 * 1024;
/// With less room than this a buffer is not read into.
const LEAST_ROOM: usize = 2 * 1024;

/// Why there is no answer, or not all of it.
#[derive(Debug, Error)]
pub(super) enum LaneError {
    /// The server closed the connection.
    #[error("connection closed before message completed")]
    Ended,
    #[error(transparent)]
    Broken(#[from] io::Error),
    /// What came is not HTTP.
    #[error(transparent)]
    NotHttp(#[from] httparse::Error),
    /// What came can be read in two ways.
    #[error("the answer is not clear about {0}")]
    Unclear(&'static str),
    /// The head has no end.
    #[error("the head of the answer is too long")]
    LongHead,
    /// The request was taken back before it was begun.
    #[error("withdrawn")]
    Withdrawn,
}

pub(super) struct Lane {
    stream: Box<dyn Stream>,
    /// What was read and is not used yet.
    read: BytesMut,
    /// What is left of the body of the answer.
    left: Left,
    /// Whether another exchange may follow.
    persists: bool,
    /// When its last exchange was over.
    pub(super) idle_since: Instant,
}

/// What is left of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Left {
    /// So many bytes.
    Bytes(u64),
    /// Chunks, from here on.
    Chunks(Chunks),
    All,
}

impl Lane {
    /// Begins HTTP on a stream.
    pub(super) fn new(stream: Box<dyn Stream>) -> Self {
        Self {
            stream,
            read: BytesMut::new(),
            left: Left::Bytes(0),
            persists: true,
            idle_since: Instant::now(),
        }
    }

    /// Sends a request and waits for the head of its answer. The body comes chunk by chunk.
    pub(super) async fn exchange(
        &mut self,
        request: &mut OutgoingRequest<'_>,
    ) -> Result<Head, LaneError> {
        let head = poll_fn(|context| self.poll_exchange(request, context)).await?;
        self.left = match head.ending {
            Ending::Length(length) => Left::Bytes(length),
            Ending::Chunks => Left::Chunks(Chunks::Size),
            Ending::Close => Left::All,
        };
        // A server that has answered before it had read everything may not read the rest.
        self.persists = head.persists && request.is_written();
        Ok(head)
    }

    fn poll_exchange(
        &mut self,
        request: &mut OutgoingRequest<'_>,
        context: &mut Context<'_>,
    ) -> Poll<Result<Head, LaneError>> {
        let written = request.poll_write(&mut self.stream, context);
        let failed = match written {
            Poll::Ready(Err(LaneError::Withdrawn)) => {
                return Poll::Ready(Err(LaneError::Withdrawn));
            }
            Poll::Ready(Err(error)) => Some(error),
            Poll::Ready(Ok(())) | Poll::Pending => None,
        };
        loop {
            if !self.read.is_empty()
                && let Some((head, length)) = head::read(&self.read)?
            {
                let _ = self.read.split_to(length);
                return Poll::Ready(Ok(head));
            }
            // A server that reads no more may have said why.
            match (self.poll_read(LEAST_READ, context), failed.is_some()) {
                (Poll::Ready(Ok(1..)), _) => {}
                (Poll::Ready(Ok(0)), false) => return Poll::Ready(Err(LaneError::Ended)),
                (Poll::Ready(Err(error)), false) => return Poll::Ready(Err(error.into())),
                (Poll::Pending, false) => return Poll::Pending,
                (_, true) => return Poll::Ready(Err(failed.unwrap_or(LaneError::Ended))),
            }
        }
    }

    /// The next bytes of the body; none at its end. Cancel-safe.
    pub(super) fn poll_chunk(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, LaneError>> {
        loop {
            if let Some(chunk) = self.take_chunk()? {
                return Poll::Ready(Ok(Some(chunk)));
            }
            if self.is_over() {
                return Poll::Ready(Ok(None));
            }
            let expected = match self.left {
                Left::Bytes(left) => usize::try_from(left).unwrap_or(MOST_READ),
                Left::Chunks(_) | Left::All => LEAST_READ,
            };
            let expected = expected.clamp(LEAST_READ, MOST_READ);
            if ready!(self.poll_read(expected, context))? > 0 {
                continue;
            }
            self.persists = false;
            return Poll::Ready(match self.left {
                Left::All => {
                    self.left = Left::Bytes(0);
                    Ok(None)
                }
                Left::Bytes(_) | Left::Chunks(_) => Err(LaneError::Ended),
            });
        }
    }

    /// What was read of the body.
    fn take_chunk(&mut self) -> Result<Option<Bytes>, LaneError> {
        let count = match &mut self.left {
            Left::All => self.read.len(),
            Left::Bytes(left) => {
                let here = self.read.len();
                let count = usize::try_from(*left).map_or(here, |left| left.min(here));
                *left -= count as u64;
                count
            }
            Left::Chunks(chunks) => loop {
                match chunks.step(&self.read)? {
                    Step::Skip(count) => drop(self.read.split_to(count)),
                    Step::Take(count) => break count,
                    Step::Wait => break 0,
                }
            },
        };
        let chunk = (count > 0).then(|| self.read.split_to(count).freeze());
        self.skip_end()?;
        Ok(chunk)
    }

    /// Reads over what follows the last chunk, as far as it is there.
    fn skip_end(&mut self) -> Result<(), LaneError> {
        if let Left::Chunks(chunks) = &mut self.left {
            while !matches!(chunks, Chunks::Data(_))
                && let Step::Skip(count) = chunks.step(&self.read)?
            {
                let _ = self.read.split_to(count);
            }
        }
        Ok(())
    }

    /// Whether all of the body was read.
    pub(super) fn is_over(&self) -> bool {
        matches!(self.left, Left::Bytes(0) | Left::Chunks(Chunks::Over))
    }

    /// How long the body is, if its head said so and nothing of it was read.
    pub(super) fn content_length(&self) -> Option<u64> {
        match self.left {
            Left::Bytes(left) => Some(left),
            Left::Chunks(_) | Left::All => None,
        }
    }

    /// Whether another exchange may begin: the last one is over, and the server has said nothing since, nor closed the
    /// connection.
    pub(super) fn is_ready(&mut self) -> bool {
        self.persists
            && self.is_over()
            && self.read.is_empty()
            && self
                .poll_read(LEAST_READ, &mut Context::from_waker(Waker::noop()))
                .is_pending()
    }

    fn poll_read(&mut self, room: usize, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let here = self.read.capacity() - self.read.len();
        if here < LEAST_ROOM || (room > LEAST_READ && here < room) {
            self.read.reserve(room);
        }
        let reading = pin!(self.stream.read_buf(&mut self.read));
        reading.poll(context)
    }
}
