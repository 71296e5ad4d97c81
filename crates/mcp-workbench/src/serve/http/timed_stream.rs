//! A connection with timeouts: for the head of a request, for the next request, and for unread output.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    task::{Context, Poll, ready},
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    time::Instant,
};

use super::{
    limits::{DISCARD_TIMEOUT, HEADER_TIMEOUT, IDLE_TIMEOUT, MAX_DISCARDED_BYTES, WRITE_TIMEOUT},
    unread::UnreadBudget,
};
use crate::alarm::Alarm;

/// How much is discarded with one read.
const DISCARDED_AT_ONCE: usize = 16 * 1024;

/// The state that the stream of a connection, its requests and the table of connections share: above all the side that
/// has to act next.
#[derive(Clone)]
pub(super) struct Turns(Arc<Shared>);

struct Shared {
    /// Even numbers are turns of the client, which has to send a request; odd ones are ours.
    turn: AtomicU64,
    /// A request on this connection had a valid token.
    is_admitted: AtomicBool,
    /// The last turn of the client for which the stream has a timeout.
    watched: AtomicU64,
    /// A body was refused, and its client may still be sending it.
    is_refused: AtomicBool,
    /// Bytes that wait to be written because the client does not read.
    unread: AtomicUsize,
    /// The time since which the client has to send or to read, in microseconds from `epoch`.
    waiting_since: AtomicU64,
    epoch: Instant,
}

impl Turns {
    /// Creates the state of a new connection. Its clock counts from `epoch`.
    pub(super) fn new(epoch: Instant) -> Self {
        let turns = Self(Arc::new(Shared {
            turn: AtomicU64::new(0),
            is_admitted: AtomicBool::new(false),
            watched: AtomicU64::new(0),
            is_refused: AtomicBool::new(false),
            unread: AtomicUsize::new(0),
            waiting_since: AtomicU64::new(0),
            epoch,
        }));
        turns.wait_from(Instant::now());
        turns
    }

    /// Starts our turn after the head of a request. It lasts until the value is dropped.
    pub(super) fn take(&self) -> Turn {
        self.0.turn.fetch_add(1, Ordering::Relaxed);
        Turn(self.clone())
    }

    /// Records that a request had a valid token.
    pub(super) fn admit(&self) {
        self.0.is_admitted.store(true, Ordering::Relaxed);
    }

    /// Records that the body of the last request was refused. The stream discards a part of it when it is shut down.
    pub(super) fn refuse_body(&self) {
        self.0.is_refused.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_admitted(&self) -> bool {
        self.0.is_admitted.load(Ordering::Relaxed)
    }

    /// Returns true if the client has to send a request.
    pub(super) fn is_clients(&self) -> bool {
        is_clients(self.current())
    }

    /// Returns true if the turn of the client began after the last read from the stream, so that its timeout is not
    /// checked.
    fn is_unwatched(&self) -> bool {
        let turn = self.current();
        is_clients(turn) && turn != self.0.watched.load(Ordering::Relaxed)
    }

    /// Returns the time since which the client has to act, comparable between connections of one epoch.
    pub(super) fn waiting_since(&self) -> u64 {
        self.0.waiting_since.load(Ordering::Relaxed)
    }

    /// Returns how many bytes wait to be written because the client does not read.
    pub(super) fn unread(&self) -> usize {
        self.0.unread.load(Ordering::Relaxed)
    }

    fn wait_from(&self, now: Instant) {
        let since = now.saturating_duration_since(self.0.epoch).as_micros();
        let since = u64::try_from(since).unwrap_or(u64::MAX);
        self.0.waiting_since.store(since, Ordering::Relaxed);
    }

    #[cfg(test)]
    pub(super) fn wait_from_now(&self) {
        self.wait_from(Instant::now());
    }

    fn current(&self) -> u64 {
        self.0.turn.load(Ordering::Relaxed)
    }
}

fn is_clients(turn: u64) -> bool {
    turn.is_multiple_of(2)
}

pub(super) struct Turn(Turns);

impl Drop for Turn {
    fn drop(&mut self) {
        self.0.0.turn.fetch_add(1, Ordering::Relaxed);
    }
}

/// A TCP connection with timeouts for its client.
pub(super) struct TimedStream {
    stream: TcpStream,
    turns: Turns,
    /// The turn that `ends` belongs to.
    turn: u64,
    /// When the turn of the client ends, once it was waited for.
    ends: Option<TurnEnd>,
    timer: Alarm,
    /// The time at which unread output closes the connection, or `None` if no output waits.
    gives_up: Option<Instant>,
    write_timer: Alarm,
    /// The budget that counts waiting output.
    budget: Arc<UnreadBudget>,
    /// The bytes that are still discarded after the shutdown of the stream.
    discard: Option<Discard>,
}

/// How much of a body that was refused is still discarded, and until when.
#[derive(Clone, Copy)]
struct Discard {
    bytes: usize,
    end: Instant,
}

/// When the turn of a client ends.
#[derive(Clone, Copy)]
enum TurnEnd {
    /// The time by which a request must begin.
    Idle(Instant),
    /// The head of the request must be complete.
    Head(Instant),
}

impl TimedStream {
    pub(super) fn new(stream: TcpStream, turns: Turns, budget: Arc<UnreadBudget>) -> Self {
        Self {
            stream,
            turns,
            turn: 0,
            ends: None,
            timer: Alarm::default(),
            gives_up: None,
            budget,
            discard: None,
            write_timer: Alarm::default(),
        }
    }

    /// Checks the timeout while the client has its turn and sends nothing.
    fn watch_turn(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let turn = self.turns.current();
        // A request has begun or ended since, so the deadline is no longer the right one.
        if turn != self.turn {
            self.turn = turn;
            self.ends = None;
        }
        if !is_clients(turn) {
            return Poll::Pending;
        }
        self.turns.0.watched.store(turn, Ordering::Relaxed);
        let ends = self.ends.unwrap_or_else(|| self.begin_wait());
        self.ends = Some(ends);
        let (TurnEnd::Idle(end) | TurnEnd::Head(end)) = ends;
        ready!(self.timer.poll_wait(end, context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }

    /// Starts the timeout for the next request. A guest has no more time for it than for a head.
    fn begin_wait(&self) -> TurnEnd {
        let now = Instant::now();
        self.turns.wait_from(now);
        let idle = if self.turns.is_admitted() {
            IDLE_TIMEOUT
        } else {
            HEADER_TIMEOUT
        };
        TurnEnd::Idle(now + idle)
    }

    /// Records the arrival of bytes. In a turn of the client they begin a head.
    fn record_bytes(&mut self) {
        let turn = self.turns.current();
        // Set once per turn: a client that sends its head byte by byte gets no more time.
        let begun = turn == self.turn && matches!(self.ends, Some(TurnEnd::Head(_)));
        if is_clients(turn) && !begun {
            self.turn = turn;
            self.ends = Some(TurnEnd::Head(Instant::now() + HEADER_TIMEOUT));
        }
    }

    /// Applies the timeout while `bytes` wait to be written, and restarts it when some of them were.
    fn watch<T>(
        &mut self,
        written: Poll<io::Result<T>>,
        bytes: usize,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            if self.gives_up.take().is_some() {
                self.count_unread(0);
            }
            return written;
        }
        if self.gives_up.is_none() {
            // If clients leave too much unread, the connection that has waited longest is closed first.
            self.turns.wait_from(Instant::now());
        }
        self.count_unread(bytes);
        let gives_up = self
            .gives_up
            .get_or_insert_with(|| Instant::now() + WRITE_TIMEOUT);
        ready!(self.write_timer.poll_wait(*gives_up, context));
        self.gives_up = None;
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }

    /// Reads and discards input until the client closes the connection, or the bound is reached.
    fn poll_discard(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let mut bytes = [0; DISCARDED_AT_ONCE];
        while let Some(Discard { bytes: left, end }) = self.discard {
            let mut buffer = ReadBuf::new(&mut bytes);
            match Pin::new(&mut self.stream).poll_read(context, &mut buffer) {
                Poll::Ready(Ok(())) if (1..left).contains(&buffer.filled().len()) => {
                    let bytes = left - buffer.filled().len();
                    self.discard = Some(Discard { bytes, end });
                }
                // Nothing read means that the client has closed the connection.
                Poll::Ready(_) => break,
                Poll::Pending => {
                    ready!(self.timer.poll_wait(end, context));
                    break;
                }
            }
        }
        Poll::Ready(())
    }

    fn count_unread(&self, bytes: usize) {
        let before = self.turns.0.unread.swap(bytes, Ordering::Relaxed);
        self.budget.subtract(before);
        self.budget.add(bytes);
    }
}

impl Drop for TimedStream {
    fn drop(&mut self) {
        self.count_unread(0);
    }
}

impl AsyncRead for TimedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        match read {
            Poll::Ready(_) => {
                self.record_bytes();
                read
            }
            Poll::Pending => self.watch_turn(context),
        }
    }
}

impl AsyncWrite for TimedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.watch(written, bytes.len(), context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        let bytes = slices.iter().map(|slice| slice.len()).sum();
        self.watch(written, bytes, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        // A flush does nothing on a TCP stream, so it says nothing about the client.
        ready!(Pin::new(&mut self.stream).poll_flush(context))?;
        // hyper has read before its response ended, and does not read again until bytes arrive. So the timeout for the
        // next request starts here.
        if self.turns.is_unwatched()
            && let Poll::Ready(timed_out) = self.watch_turn(context)
        {
            return Poll::Ready(timed_out);
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.discard.is_none() {
            let shut = Pin::new(&mut self.stream).poll_shutdown(context);
            ready!(self.watch(shut, 0, context))?;
            if !self.turns.0.is_refused.load(Ordering::Relaxed) {
                return Poll::Ready(Ok(()));
            }
            // A socket that is closed with unread input resets the connection, and the client may never see the refusal.
            self.discard = Some(Discard {
                bytes: MAX_DISCARDED_BYTES,
                end: Instant::now() + DISCARD_TIMEOUT,
            });
        }
        self.poll_discard(context).map(Ok)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpListener,
        time::timeout,
    };

    use super::*;

    /// Returns the time until the stream closes the connection of a silent client.
    async fn waits(stream: &mut TimedStream) -> Duration {
        let began = Instant::now();
        let error = stream.read(&mut [0; 64]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        began.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn a_guest_has_little_time_and_a_client_has_more_between_two_requests() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut client = TcpStream::connect(address).await.unwrap();
        let (stream, _) = listener.accept().await.unwrap();
        let turns = Turns::new(Instant::now());
        let mut stream = TimedStream::new(stream, turns.clone(), Arc::default());
        assert_eq!(waits(&mut stream).await, HEADER_TIMEOUT, "the first head");

        let turn = turns.take();
        let long = Duration::from_hours(1);
        let read = timeout(long, stream.read(&mut [0; 64])).await;
        assert!(read.is_err(), "our turn takes as long as it takes");
        drop(turn);
        assert_eq!(waits(&mut stream).await, HEADER_TIMEOUT, "still a guest");

        turns.admit();
        drop(turns.take());
        assert_eq!(waits(&mut stream).await, IDLE_TIMEOUT, "between requests");

        drop(turns.take());
        client.write_all(b"POST /mcp").await.unwrap();
        assert_eq!(stream.read(&mut [0; 64]).await.unwrap(), 9);
        assert_eq!(waits(&mut stream).await, HEADER_TIMEOUT, "a head began");
    }

    #[tokio::test(start_paused = true)]
    async fn the_timeout_for_the_next_request_starts_with_the_end_of_the_response() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let _client = TcpStream::connect(address).await.unwrap();
        let (stream, _) = listener.accept().await.unwrap();
        let turns = Turns::new(Instant::now());
        let mut stream = TimedStream::new(stream, turns.clone(), Arc::default());
        let turn = turns.take();
        stream.write_all(b"HTTP/1.1 200 OK").await.unwrap();
        stream.flush().await.unwrap();
        assert!(stream.ends.is_none(), "our turn");
        drop(turn);
        assert!(turns.is_unwatched());
        stream.flush().await.unwrap();
        assert!(!turns.is_unwatched());
        assert_eq!(waits(&mut stream).await, HEADER_TIMEOUT);
    }
}
