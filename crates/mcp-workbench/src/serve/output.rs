//! What goes to one client, in the order in which it was said. Everybody who has something to say
//! holds a [`ClientOutput`]. Over stdio one task writes all of it; over HTTP every request has a stream of
//! its own. What waits is counted: a client that does not read gets no more notifications, is not read
//! from either, and is given up after a minute.

use std::{
    future::{pending, poll_fn},
    io::{self, IoSlice},
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::{
    io::{AsyncWrite, AsyncWriteExt},
    sync::Notify,
    time::Instant,
};

use super::http::EventStream;
use crate::{
    alarm::Alarm,
    pipe::SLICES_A_WRITE,
    wire::{Frame, Outbox, Outgoing},
};

/// How many bytes may wait before nothing more is read from the client.
const MAX_QUEUED_BYTES: usize = 64 * 1024 * 1024;
/// How long a client may leave unread what is written to it.
const PATIENCE: Duration = Duration::from_mins(1);

/// The way to a client. Cheap to clone.
#[derive(Clone)]
pub(super) enum ClientOutput {
    /// The one pipe that everything goes to.
    Pipe(PipeOutput),
    /// The stream of one request, or that of a session for what belongs to no request.
    Stream(EventStream),
}

impl ClientOutput {
    /// Says something that must arrive.
    pub(super) fn send<'a>(&self, message: impl Into<Outgoing<'a>>) {
        match self {
            Self::Pipe(pipe) => pipe.send(message),
            Self::Stream(stream) => stream.send(message.into().into_frame()),
        }
    }

    /// Says something that a client which does not keep up may miss.
    pub(super) fn notify(&self, frame: Frame) {
        if !self.is_full() {
            self.send(frame);
        }
    }

    /// Whether the client does not keep up.
    pub(super) fn is_full(&self) -> bool {
        match self {
            Self::Pipe(pipe) => pipe.is_full(),
            Self::Stream(stream) => stream.is_full(),
        }
    }

    /// Whether a server that works for this client alone should wait for it. Streams do not hold up
    /// anybody: their client may be away and come back, or never.
    pub(super) fn holds_up(&self) -> bool {
        match self {
            Self::Pipe(pipe) => pipe.is_full(),
            Self::Stream(_) => false,
        }
    }

    /// Says the last word on a request. Nothing follows it on the stream of the request.
    pub(super) fn answer<'a>(&self, message: impl Into<Outgoing<'a>>) {
        self.send(message);
        self.end();
    }

    /// Ends the stream of a request that is not answered.
    pub(super) fn end(&self) {
        match self {
            Self::Pipe(_) => {}
            Self::Stream(stream) => stream.end(),
        }
    }

    /// Waits until the client has read enough. Cancel-safe.
    pub(super) async fn has_room(&self) {
        match self {
            Self::Pipe(pipe) => pipe.has_room().await,
            // What a session may have waiting is looked at when it posts.
            Self::Stream(_) => {}
        }
    }
}

/// The way to a client that reads one pipe. Every request has a share of it.
#[derive(Clone)]
pub(super) struct PipeOutput(Arc<PipeEnd>);

/// Where everything is said; the queue ends with it.
struct PipeEnd(Arc<Queue>);

impl Drop for PipeEnd {
    fn drop(&mut self) {
        self.0.frames().has_ended = true;
        self.0.more.notify_one();
    }
}

/// What was said and is not written yet. Whoever says something puts it where it is written from.
#[derive(Default)]
struct Queue {
    frames: Mutex<Frames>,
    /// How many bytes wait. It changes only while the frames are locked.
    bytes: AtomicUsize,
    /// Tells the writer that something waits, or that nothing more will come.
    more: Notify,
    fewer: Notify,
}

#[derive(Default)]
struct Frames {
    outbox: Outbox,
    /// Whether nobody has anything to say any more.
    has_ended: bool,
    /// Whether nobody writes any more.
    is_closed: bool,
}

impl Queue {
    fn frames(&self) -> MutexGuard<'_, Frames> {
        self.frames.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether something waits; nothing if nothing does and nothing will.
    fn waits(&self) -> Option<bool> {
        let frames = self.frames();
        let waits = !frames.outbox.is_empty();
        (waits || !frames.has_ended).then_some(waits)
    }

    /// Writes what the pipe takes now. Cancel-safe.
    async fn write_some<W: AsyncWrite + Unpin>(&self, pipe: &mut W) -> io::Result<()> {
        poll_fn(|context| self.poll_write(pipe, context)).await?;
        self.fewer.notify_waiters();
        Ok(())
    }

    fn poll_write<W: AsyncWrite + Unpin>(
        &self,
        pipe: &mut W,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        let mut frames = self.frames();
        let mut slices = [IoSlice::new(&[]); SLICES_A_WRITE];
        let filled = frames.outbox.fill(&mut slices);
        let written = Pin::new(pipe).poll_write_vectored(context, &slices[..filled]);
        let written = ready!(written)?;
        if written == 0 {
            return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
        }
        frames.outbox.advance(written);
        self.bytes.store(frames.outbox.len(), Ordering::Relaxed);
        Poll::Ready(Ok(()))
    }
}

/// What the writer takes from an output.
pub(super) struct QueuedFrames(Arc<Queue>);

impl Drop for QueuedFrames {
    /// A client that has gone away reads nothing; the connection ends on its own.
    fn drop(&mut self) {
        let mut frames = self.0.frames();
        frames.is_closed = true;
        frames.outbox = Outbox::default();
    }
}

impl PipeOutput {
    /// An output, and what its writer takes from it.
    pub(super) fn channel() -> (Self, QueuedFrames) {
        let queue = Arc::<Queue>::default();
        let output = Self(Arc::new(PipeEnd(Arc::clone(&queue))));
        (output, QueuedFrames(queue))
    }

    fn send<'a>(&self, message: impl Into<Outgoing<'a>>) {
        let queue = &self.0.0;
        let mut frames = queue.frames();
        if frames.is_closed {
            return;
        }
        let is_first = frames.outbox.is_empty();
        frames.outbox.push(message);
        queue.bytes.store(frames.outbox.len(), Ordering::Relaxed);
        drop(frames);
        if is_first {
            queue.more.notify_one();
        }
    }

    async fn has_room(&self) {
        while self.is_full() {
            let fewer = self.0.0.fewer.notified();
            if self.is_full() {
                fewer.await;
            }
        }
    }

    /// Whether too much waits.
    fn is_full(&self) -> bool {
        self.0.0.bytes.load(Ordering::Relaxed) > MAX_QUEUED_BYTES
    }
}

/// Writes frames until all outputs are gone, or the client is.
pub(super) async fn write_frames<W: AsyncWrite + Unpin>(
    queued: QueuedFrames,
    mut pipe: W,
) -> io::Result<()> {
    let queue = &queued.0;
    let mut gives_up_at = Instant::now() + PATIENCE;
    let mut alarm = Alarm::default();
    let mut is_flushed = true;
    while let Some(waits) = queue.waits() {
        let write = async {
            match (waits, is_flushed) {
                (true, _) => {
                    queue.write_some(&mut pipe).await?;
                    flushes_at_once(&mut pipe).await
                }
                (false, false) => pipe.flush().await.map(|()| true),
                (false, true) => pending().await,
            }
        };
        tokio::select! {
            biased;
            written = write => {
                is_flushed = written?;
                gives_up_at = Instant::now() + PATIENCE;
            }
            () = queue.more.notified(), if !waits => gives_up_at = Instant::now() + PATIENCE,
            () = alarm.wait(Some(gives_up_at)), if waits => {
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
    }
    pipe.flush().await
}

/// Flushes a pipe, and returns whether that is done already.
async fn flushes_at_once<W: AsyncWrite + Unpin>(pipe: &mut W) -> io::Result<bool> {
    poll_fn(|context| match Pin::new(&mut *pipe).poll_flush(context) {
        Poll::Ready(flushed) => Poll::Ready(flushed.map(|()| true)),
        Poll::Pending => Poll::Ready(Ok(false)),
    })
    .await
}

#[cfg(test)]
mod tests {
    use tokio::task::yield_now;

    use super::*;
    use crate::wire;

    /// Takes everything at once and is never done with it.
    struct NeverFlushed;

    impl AsyncWrite for NeverFlushed {
        fn poll_write(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            Poll::Ready(Ok(bytes.len()))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Pending
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Pending
        }
    }

    #[tokio::test]
    async fn what_is_written_does_not_wait_even_if_it_is_not_flushed() {
        let (output, queued) = PipeOutput::channel();
        let speaker = async {
            let size = wire::notification("m", None).len();
            for _ in 0..100 {
                output.send(wire::notification("m", None));
                // One turn for the frame, one for the write.
                yield_now().await;
                yield_now().await;
            }
            // The last one is counted until something happens.
            assert!(output.0.0.bytes.load(Ordering::Relaxed) <= 2 * size);
        };
        tokio::select! {
            biased;
            () = speaker => {}
            ended = write_frames(queued, NeverFlushed) => panic!("{ended:?}"),
        }
    }
}
