//! The output to one client, in order. Every sender holds a [`ClientOutput`]. Over stdio one task writes all of it;
//! over HTTP every request has its own stream. Waiting bytes are counted: a slow client gets results first and few
//! notifications. A client that does not read gets no more requests read, and is disconnected after a minute.

use std::{
    future::{pending, poll_fn},
    io::{self, IoSlice},
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::{
    io::{AsyncWrite, AsyncWriteExt},
    sync::Notify,
    time::Instant,
};

use super::{
    http::EventStream,
    notices::{MAX_PROMPT_BYTES, Notices},
};
use crate::{
    alarm::Alarm,
    pipe::SLICES_PER_WRITE,
    sync::lock,
    wire::{Frame, Outbox, Outgoing},
};

/// The bound on waiting bytes. Beyond it nothing more is read from the client.
const MAX_QUEUED_BYTES: usize = 64 * 1024 * 1024;
/// How long a client may leave output unread.
pub(super) const READ_TIMEOUT: Duration = Duration::from_mins(1);

/// The way to a client. Cheap to clone.
#[derive(Clone)]
pub(super) enum ClientOutput {
    /// The single pipe of a client.
    Pipe(PipeOutput),
    /// The stream of one request, or that of a session for messages that belong to no request.
    Stream(EventStream),
}

impl ClientOutput {
    /// Sends a message that must arrive.
    pub(super) fn send<'a>(&self, message: impl Into<Outgoing<'a>>) {
        match self {
            Self::Pipe(pipe) => pipe.send(message),
            Self::Stream(stream) => stream.send(message.into().into_frame()),
        }
    }

    /// Returns the output for a new request.
    pub(super) fn for_request(&self) -> Self {
        match self {
            Self::Pipe(pipe) => Self::Pipe(pipe.for_request()),
            Self::Stream(stream) => Self::Stream(stream.clone()),
        }
    }

    /// Sends progress, or other notifications that a slow client may miss. They never come after the response.
    pub(super) fn notify(&self, frame: Frame) {
        match self {
            Self::Pipe(pipe) => pipe.notify(pipe.request, frame),
            Self::Stream(stream) => stream.notify(frame),
        }
    }

    /// Sends a log message, which a slow client may miss too. On a pipe it may come after the response.
    pub(super) fn log(&self, frame: Frame) {
        match self {
            Self::Pipe(pipe) => pipe.notify(NO_REQUEST, frame),
            Self::Stream(stream) => stream.notify(frame),
        }
    }

    /// Announces a change, unless the client does not read at all.
    pub(super) fn announce(&self, frame: Frame) {
        if !self.is_full() {
            self.send(frame);
        }
    }

    /// Returns true if the client is slow.
    pub(super) fn is_full(&self) -> bool {
        match self {
            Self::Pipe(pipe) => pipe.is_full(),
            Self::Stream(stream) => stream.is_full(),
        }
    }

    /// Returns true if a server that works for this client alone should wait for it. Streams hold up no server: their
    /// client may be gone, and may or may not come back.
    pub(super) fn holds_up(&self) -> bool {
        match self {
            Self::Pipe(pipe) => pipe.is_full(),
            Self::Stream(_) => false,
        }
    }

    /// Sends the response to a request. Nothing follows it on the stream of the request.
    pub(super) fn answer<'a>(&self, message: impl Into<Outgoing<'a>>) {
        match self {
            Self::Pipe(pipe) => pipe.answer(message),
            Self::Stream(stream) => stream.answer(message.into().into_frame()),
        }
    }

    /// Ends the stream of a request that is not answered.
    pub(super) fn end(&self) {
        match self {
            Self::Pipe(pipe) => pipe.end.0.frames().notices.forget(pipe.request),
            Self::Stream(stream) => stream.end(),
        }
    }

    /// Waits until the client has read enough. Cancel-safe.
    pub(super) async fn has_room(&self) {
        match self {
            Self::Pipe(pipe) => pipe.has_room().await,
            // The bound of a session is checked when it posts.
            Self::Stream(_) => {}
        }
    }
}

/// The number for messages that belong to no request.
const NO_REQUEST: u64 = 0;

/// The way to a client that reads one pipe. Every request has a share of it.
#[derive(Clone)]
pub(super) struct PipeOutput {
    end: Arc<PipeEnd>,
    /// The number of the request that it belongs to.
    request: u64,
}

/// The sending end of the pipe. Dropping it ends the queue.
struct PipeEnd(Arc<Queue>);

impl Drop for PipeEnd {
    fn drop(&mut self) {
        self.0.frames().has_ended = true;
        // The writer may be waiting for a message that never comes.
        self.0.more.notify_one();
    }
}

/// The messages that are not written yet. Senders put them directly into the write buffer.
#[derive(Default)]
struct Queue {
    frames: Mutex<Frames>,
    /// How many bytes wait. It changes only while the frames are locked.
    bytes: AtomicUsize,
    requests: AtomicU64,
    /// Wakes the writer when a message waits, or when the queue has ended.
    more: Notify,
    fewer: Notify,
}

#[derive(Default)]
struct Frames {
    outbox: Outbox,
    /// Notifications that move to the outbox when it is nearly empty. There are none while the outbox is empty.
    notices: Notices,
    /// True if no sender is left.
    has_ended: bool,
    /// True if the writer has ended.
    is_closed: bool,
}

impl Queue {
    fn frames(&self) -> MutexGuard<'_, Frames> {
        lock(&self.frames)
    }

    /// Returns true if a message waits, or `None` if the queue is empty and has ended.
    fn waits(&self) -> Option<bool> {
        let frames = self.frames();
        let waits = !frames.outbox.is_empty();
        (waits || !frames.has_ended).then_some(waits)
    }

    /// Writes as much as the pipe takes now. Cancel-safe.
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
        let mut slices = [IoSlice::new(&[]); SLICES_PER_WRITE];
        let filled = frames.outbox.fill(&mut slices);
        let written = Pin::new(pipe).poll_write_vectored(context, &slices[..filled]);
        let written = ready!(written)?;
        if written == 0 {
            return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
        }
        frames.outbox.advance(written);
        // Notifications move up only when little is queued, so that a response never waits behind many of them.
        while frames.outbox.len() < MAX_PROMPT_BYTES
            && let Some(notice) = frames.notices.pop()
        {
            frames.outbox.push(notice);
        }
        self.bytes.store(frames.outbox.len(), Ordering::Relaxed);
        Poll::Ready(Ok(()))
    }
}

/// The receiving end of an output, for the writer.
pub(super) struct QueuedFrames(Arc<Queue>);

impl Drop for QueuedFrames {
    /// Closes the queue. The client has disconnected, and the connection ends on its own.
    fn drop(&mut self) {
        let mut frames = self.0.frames();
        frames.is_closed = true;
        // Nobody will read it, and the connection may live for a while.
        frames.outbox = Outbox::default();
        frames.notices = Notices::default();
    }
}

impl PipeOutput {
    /// Creates an output, and the receiving end for its writer.
    pub(super) fn channel() -> (Self, QueuedFrames) {
        let queue = Arc::<Queue>::default();
        let output = Self {
            end: Arc::new(PipeEnd(Arc::clone(&queue))),
            request: NO_REQUEST,
        };
        (output, QueuedFrames(queue))
    }

    fn for_request(&self) -> Self {
        let before = self.queue().requests.fetch_add(1, Ordering::Relaxed);
        Self {
            end: Arc::clone(&self.end),
            request: before + 1,
        }
    }

    fn send<'a>(&self, message: impl Into<Outgoing<'a>>) {
        self.push(self.queue().frames(), message);
    }

    fn answer<'a>(&self, message: impl Into<Outgoing<'a>>) {
        let mut frames = self.queue().frames();
        // A notification must not come after the response to its request.
        if !frames.notices.is_empty() {
            frames.notices.forget(self.request);
        }
        self.push(frames, message);
    }

    fn notify(&self, request: u64, frame: Frame) {
        let mut frames = self.queue().frames();
        // If others are waiting, it has to wait too, or their order would change.
        if frames.outbox.len() < MAX_PROMPT_BYTES && frames.notices.is_empty() {
            self.push(frames, frame);
        } else {
            frames.notices.push(request, frame);
        }
    }

    fn push<'a>(&self, mut frames: MutexGuard<'_, Frames>, message: impl Into<Outgoing<'a>>) {
        let queue = self.queue();
        if frames.is_closed {
            return;
        }
        // The writer is woken once and then writes all that waits.
        let is_first = frames.outbox.is_empty();
        frames.outbox.push(message);
        queue.bytes.store(frames.outbox.len(), Ordering::Relaxed);
        drop(frames);
        if is_first {
            queue.more.notify_one();
        }
    }

    fn queue(&self) -> &Queue {
        &self.end.0
    }

    async fn has_room(&self) {
        while self.is_full() {
            // Registered before the second check, so that room that is made in between is not missed.
            let fewer = self.queue().fewer.notified();
            if self.is_full() {
                fewer.await;
            }
        }
    }

    fn is_full(&self) -> bool {
        self.queue().bytes.load(Ordering::Relaxed) > MAX_QUEUED_BYTES
    }
}

/// Writes frames until all outputs are dropped, or the client has disconnected.
pub(super) async fn write_frames<W: AsyncWrite + Unpin>(
    queued: QueuedFrames,
    mut pipe: W,
) -> io::Result<()> {
    let queue = &queued.0;
    let mut gives_up_at = Instant::now() + READ_TIMEOUT;
    let mut alarm = Alarm::default();
    // The pipe may begin with bytes that an earlier host did not send.
    let mut is_flushed = false;
    while let Some(waits) = queue.waits() {
        // Writes the waiting bytes. If there are none, flushes what the pipe has not taken yet. After that, there is
        // nothing to do until a message comes.
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
                gives_up_at = Instant::now() + READ_TIMEOUT;
            }
            // A client that had nothing to read was not slow.
            () = queue.more.notified(), if !waits => gives_up_at = Instant::now() + READ_TIMEOUT,
            () = alarm.wait(Some(gives_up_at)), if waits => {
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
    }
    pipe.flush().await
}

/// Flushes a pipe. Returns true if that did not have to wait.
async fn flushes_at_once<W: AsyncWrite + Unpin>(pipe: &mut W) -> io::Result<bool> {
    poll_fn(|context| match Pin::new(&mut *pipe).poll_flush(context) {
        Poll::Ready(flushed) => Poll::Ready(flushed.map(|()| true)),
        Poll::Pending => Poll::Ready(Ok(false)),
    })
    .await
}

#[cfg(test)]
mod tests {
    use rawjson::RawJson;
    use tokio::task::yield_now;

    use super::*;
    use crate::{
        serve::notices::MAX_NOTICE_BYTES,
        wire::{self, RequestId},
    };

    impl ClientOutput {
        fn queued_bytes(&self) -> usize {
            match self {
                Self::Pipe(pipe) => pipe.queue().bytes.load(Ordering::Relaxed),
                Self::Stream(_) => 0,
            }
        }
    }

    /// A pipe that takes all bytes at once and never finishes a flush.
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
    async fn written_frames_do_not_count_as_queued() {
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
            assert!(output.queue().bytes.load(Ordering::Relaxed) <= 2 * size);
        };
        tokio::select! {
            biased;
            () = speaker => {}
            ended = write_frames(queued, NeverFlushed) => panic!("{ended:?}"),
        }
    }
    /// Returns the frames that a client reads if it starts to read after these messages were sent.
    async fn read_late(speak: impl FnOnce(&ClientOutput)) -> Vec<String> {
        let (output, queued) = PipeOutput::channel();
        let output = ClientOutput::Pipe(output);
        speak(&output);
        drop(output);
        let mut written = Vec::new();
        write_frames(queued, &mut written).await.unwrap();
        let text = String::from_utf8(written).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    fn log_message() -> Frame {
        let params = RawJson::of(&"x".repeat(1000));
        wire::notification("notifications/message", Some(&params))
    }

    fn result() -> Frame {
        let id = RequestId::from_json(RawJson::of(&1)).unwrap();
        wire::result(&id, &RawJson::of(&"result"))
    }

    #[tokio::test]
    async fn a_result_goes_before_the_log_messages_of_a_flood() {
        let count = 10 * MAX_NOTICE_BYTES / log_message().len();
        let lines = read_late(|output| {
            for _ in 0..count {
                output.log(log_message());
            }
            output.for_request().answer(result());
        })
        .await;
        let at = lines.iter().position(|line| line.contains("result"));
        let before: usize = lines[..at.unwrap()].iter().map(String::len).sum();
        assert!(before < MAX_PROMPT_BYTES + 2000, "{before}");
        let read: usize = lines.iter().map(String::len).sum();
        let most = MAX_PROMPT_BYTES + MAX_NOTICE_BYTES;
        assert!((most - 10_000..most + 2000).contains(&read), "{read}");
    }

    #[tokio::test]
    async fn a_client_that_keeps_up_reads_everything_in_order() {
        let lines = read_late(|output| {
            let request = output.for_request();
            for _ in 0..10 {
                request.notify(log_message());
            }
            request.answer(result());
            output.log(log_message());
        })
        .await;
        assert_eq!(lines.len(), 12);
        assert!(lines[10].contains("result"));
    }

    #[tokio::test]
    async fn progress_that_waits_is_dropped_with_the_answer_to_its_request() {
        let progress = |number: u32| {
            let params = RawJson::of(&number);
            wire::notification("notifications/progress", Some(&params))
        };
        let lines = read_late(|output| {
            while output.queued_bytes() < MAX_PROMPT_BYTES {
                output.log(log_message());
            }
            let (ended, running, cancelled) = (
                output.for_request(),
                output.for_request(),
                output.for_request(),
            );
            ended.notify(progress(1));
            running.notify(progress(2));
            cancelled.notify(progress(3));
            ended.answer(result());
            cancelled.end();
        })
        .await;
        let [.., answer, last] = &lines[..] else {
            panic!("{lines:?}");
        };
        assert!(answer.contains("result"), "{answer}");
        assert!(last.contains(r#""params":2"#), "{last}");
        assert!(!lines.iter().any(|line| line.contains(r#""params":1"#)));
    }
}
