//! What goes to one client, in the order in which it was said. Everybody who has something to say
//! holds a [`ClientOutput`]. Over stdio one task writes all of it; over HTTP every request has a stream of
//! its own. What waits is counted: a client that does not read gets no more notifications, is not read
//! from either, and is given up after a minute.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{
    io::AsyncWrite,
    sync::{Notify, mpsc},
    time::Instant,
};

use super::http::EventStream;
use crate::{alarm::Alarm, pipe::FrameWriter, wire::Frame};

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
    pub(super) fn send(&self, frame: Frame) {
        match self {
            Self::Pipe(pipe) => pipe.send(frame),
            Self::Stream(stream) => stream.send(frame),
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
    pub(super) fn answer(&self, frame: Frame) {
        self.send(frame);
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

/// The way to a client that reads one pipe. Every request has a share of it, so that there is one thing to share.
#[derive(Clone)]
pub(super) struct PipeOutput(Arc<PipeEnd>);

/// What all outputs to one pipe share.
struct PipeEnd {
    frames: mpsc::UnboundedSender<Frame>,
    waiting: Arc<Waiting>,
}

/// What was said and is not written yet.
#[derive(Default)]
struct Waiting {
    bytes: AtomicUsize,
    fewer: Notify,
}

impl Waiting {
    /// So many bytes have been written.
    fn fewer(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
        self.fewer.notify_waiters();
    }
}

/// What the writer takes from an output.
pub(super) struct QueuedFrames {
    frames: mpsc::UnboundedReceiver<Frame>,
    waiting: Arc<Waiting>,
}

impl PipeOutput {
    /// An output, and what its writer takes from it.
    pub(super) fn channel() -> (Self, QueuedFrames) {
        let (sender, frames) = mpsc::unbounded_channel();
        let waiting = Arc::new(Waiting::default());
        let output = Self(Arc::new(PipeEnd {
            frames: sender,
            waiting: Arc::clone(&waiting),
        }));
        (output, QueuedFrames { frames, waiting })
    }

    fn send(&self, frame: Frame) {
        self.0
            .waiting
            .bytes
            .fetch_add(frame.len(), Ordering::Relaxed);
        // A client that has gone away reads nothing; the connection ends on its own.
        let _ = self.0.frames.send(frame);
    }

    async fn has_room(&self) {
        while self.is_full() {
            let fewer = self.0.waiting.fewer.notified();
            if self.is_full() {
                fewer.await;
            }
        }
    }

    /// Whether too much waits.
    fn is_full(&self) -> bool {
        self.0.waiting.bytes.load(Ordering::Relaxed) > MAX_QUEUED_BYTES
    }
}

/// Writes frames until all outputs are gone, or the client is.
pub(super) async fn write_frames<W: AsyncWrite + Unpin>(
    mut queued: QueuedFrames,
    pipe: W,
) -> io::Result<()> {
    let mut writer = FrameWriter::new(pipe);
    let mut gives_up_at = Instant::now() + PATIENCE;
    let mut alarm = Alarm::default();
    let mut counted = 0;
    loop {
        // Looked at here and not after the write: a write may have gone out and its flush been given up for a frame.
        let waiting = writer.outbox().len();
        if waiting < counted {
            queued.waiting.fewer(counted - waiting);
            gives_up_at = Instant::now() + PATIENCE;
        }
        counted = waiting;
        tokio::select! {
            frame = queued.frames.recv() => {
                let Some(frame) = frame else {
                    return writer.drain().await;
                };
                if waiting == 0 {
                    gives_up_at = Instant::now() + PATIENCE;
                }
                let mut next = Some(frame);
                while let Some(frame) = next {
                    counted += frame.len();
                    writer.push(frame);
                    next = queued.frames.try_recv().ok();
                }
            }
            written = writer.write_some() => written?,
            () = alarm.wait(Some(gives_up_at)), if waiting > 0 => {
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        pin::Pin,
        task::{Context, Poll},
    };

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
            assert!(output.0.waiting.bytes.load(Ordering::Relaxed) <= 2 * size);
        };
        tokio::select! {
            biased;
            () = speaker => {}
            ended = write_frames(queued, NeverFlushed) => panic!("{ended:?}"),
        }
    }
}
