//! The stream below hyper, which records the bytes that are actually sent: a call may be sent again only if no byte
//! of it was written.

use std::{
    io,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard},
    task::{Context, Poll, ready},
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::body::{BacklogShare, SendState};
use crate::{dial::Stream, sync::lock};

/// The request that a connection carries, as its stream and its owner see it.
#[derive(Default)]
pub(super) struct Watcher(Mutex<WatchedRequest>);

#[derive(Default)]
struct WatchedRequest {
    sending: Option<Arc<SendState>>,
    /// Its share of the waiting bytes.
    share: Option<BacklogShare>,
    /// Set when hyper has taken the whole body.
    is_body_sent: bool,
    written: usize,
}

impl Watcher {
    /// Starts to watch the next request.
    pub(super) fn watch(&self, sending: Option<Arc<SendState>>, share: Option<BacklogShare>) {
        *self.lock() = WatchedRequest {
            sending,
            share,
            is_body_sent: false,
            written: 0,
        };
    }

    /// Records that hyper has taken the whole body of the request.
    pub(super) fn set_body_sent(&self) {
        self.lock().is_body_sent = true;
    }

    pub(super) fn written(&self) -> usize {
        self.lock().written
    }

    /// Takes the share if the request goes to another connection.
    pub(super) fn take_share(&self) -> Option<BacklogShare> {
        self.lock().share.take()
    }

    /// Records that a byte is about to be sent; returns false if the request was withdrawn.
    fn begin(&self) -> bool {
        let watched = self.lock();
        watched.sending.as_ref().is_none_or(|it| it.begin())
    }

    fn add_written(&self, bytes: usize) {
        self.lock().written += bytes;
    }

    /// Records that all bytes were flushed.
    fn flushed(&self) {
        let mut watched = self.lock();
        if watched.is_body_sent {
            watched.share = None;
        }
    }

    fn lock(&self) -> MutexGuard<'_, WatchedRequest> {
        lock(&self.0)
    }
}

pub(super) struct WatchedStream {
    stream: Box<dyn Stream>,
    watcher: Arc<Watcher>,
    /// The failed write. The server may have sent the reason before, so reading continues.
    failure: Option<io::Error>,
}

impl WatchedStream {
    pub(super) fn new(stream: Box<dyn Stream>, watcher: Arc<Watcher>) -> Self {
        Self {
            stream,
            watcher,
            failure: None,
        }
    }

    fn write(
        &mut self,
        length: usize,
        context: &mut Context<'_>,
        write: impl FnOnce(Pin<&mut Box<dyn Stream>>, &mut Context<'_>) -> Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        // hyper has to believe that the rest was written too, or it would not read on.
        if self.failure.is_some() {
            return Poll::Ready(Ok(length));
        }
        if !self.watcher.begin() {
            return Poll::Ready(Err(io::Error::other("withdrawn")));
        }
        match ready!(write(Pin::new(&mut self.stream), context)) {
            Ok(written) => {
                self.watcher.add_written(written);
                Poll::Ready(Ok(written))
            }
            // hyper would stop without reading what the server has sent, so the next read fails instead.
            Err(error) if self.watcher.written() > 0 => {
                self.failure = Some(error);
                context.waker().wake_by_ref();
                Poll::Ready(Ok(length))
            }
            // No byte was written, so the request may be sent again on another connection.
            Err(error) => Poll::Ready(Err(error)),
        }
    }
}

impl AsyncRead for WatchedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        if self.failure.is_some() && buffer.filled().len() == before {
            return Poll::Ready(Err(self.failure.take().unwrap_or_else(closed)));
        }
        read
    }
}

fn closed() -> io::Error {
    io::ErrorKind::BrokenPipe.into()
}

impl AsyncWrite for WatchedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.write(bytes.len(), context, |stream, context| {
            stream.poll_write(context, bytes)
        })
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let length = slices.iter().map(|slice| slice.len()).sum();
        self.write(length, context, |stream, context| {
            stream.poll_write_vectored(context, slices)
        })
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.failure.is_none() {
            ready!(Pin::new(&mut self.stream).poll_flush(context))?;
        }
        // The bytes count as waiting until they have left, not only until hyper has taken them.
        self.watcher.flushed();
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
