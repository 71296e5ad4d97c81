//! The streams of an attached client, whose bytes pass through its journal.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::{Buf, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf, unix::AsyncFd};

use super::{Journal, MAX_TAKEN_BYTES};
use crate::serve::standard_streams::ClientStream;

fn watched(stream: ClientStream, interest: Interest) -> io::Result<AsyncFd<ClientStream>> {
    #[expect(
        deprecated,
        reason = "its successor is unsafe because of values that change or close their descriptor, which a \
                  ClientStream does not"
    )]
    AsyncFd::with_interest(stream, interest)
}

/// The bytes of the client: first those that an earlier host has taken and not handled, then those of the stream.
pub(in crate::serve) struct RecordedInput {
    stream: AsyncFd<ClientStream>,
    journal: Arc<Journal>,
    first: Bytes,
}

impl RecordedInput {
    pub(in crate::serve) fn new(
        stream: ClientStream,
        journal: Arc<Journal>,
        first: Bytes,
    ) -> io::Result<Self> {
        Ok(Self {
            stream: watched(stream, Interest::READABLE)?,
            journal,
            first,
        })
    }
}

impl AsyncRead for RecordedInput {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.first.is_empty() {
            let count = self.first.len().min(buffer.remaining());
            buffer.put_slice(&self.first[..count]);
            self.first.advance(count);
            return Poll::Ready(Ok(()));
        }
        loop {
            let room = buffer.remaining().min(MAX_TAKEN_BYTES);
            let mut guard = ready!(self.stream.poll_read_ready(context))?;
            match guard.try_io(|stream| self.journal.take(stream.get_ref(), buffer)) {
                Ok(Ok(count)) => {
                    // Whatever comes after a short read is reported as a new event.
                    if count > 0 && count < room {
                        guard.clear_ready();
                    }
                    return Poll::Ready(Ok(()));
                }
                Ok(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(Err(error)) => return Poll::Ready(Err(error)),
                // It was not ready after all, which `try_io` has recorded.
                Err(_) => {}
            }
        }
    }
}

/// The way to the client.
pub(in crate::serve) struct RecordedOutput {
    stream: AsyncFd<ClientStream>,
    journal: Arc<Journal>,
    /// False once everything was sent that an earlier host has recorded.
    has_backlog: bool,
}

impl RecordedOutput {
    pub(in crate::serve) fn new(stream: ClientStream, journal: Arc<Journal>) -> io::Result<Self> {
        Ok(Self {
            stream: watched(stream, Interest::WRITABLE)?,
            has_backlog: journal.has_backlog(),
            journal,
        })
    }

    fn poll_io<T>(
        &self,
        context: &mut Context<'_>,
        mut io: impl FnMut(&ClientStream) -> io::Result<T>,
    ) -> Poll<io::Result<T>> {
        loop {
            let mut guard = ready!(self.stream.poll_write_ready(context))?;
            match guard.try_io(|stream| io(stream.get_ref())) {
                Ok(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(done) => return Poll::Ready(done),
                Err(_) => {}
            }
        }
    }
}

impl AsyncWrite for RecordedOutput {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(context, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_io(context, |stream| self.journal.send(stream, slices))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.has_backlog {
            ready!(self.poll_io(context, |stream| self.journal.send_backlog(stream)))?;
            self.has_backlog = false;
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_flush(context)
    }
}
