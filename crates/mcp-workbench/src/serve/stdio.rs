//! Serves one client over stdin and stdout, until one of them ends or the workbench is asked to stop.

use std::{io, sync::Arc};

use tokio::{
    io::{AsyncRead, AsyncWrite},
    time::{Instant, timeout, timeout_at},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    ClientLocation, DRAIN_TIMEOUT, FLUSH_TIMEOUT, ServeContext, changes,
    connection::Connection,
    output::{ClientOutput, PipeOutput, QueuedFrames, READ_TIMEOUT, write_frames},
    standard_streams,
};
use crate::{call::Principal, pipe::LineReader, rare::Rare, workbench::Workbench};

/// The way in which serving over stdin and stdout ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ServeEnd {
    /// The client closed stdin or stdout, or `stop` was done.
    Closed,
    /// The client left stdout unread for too long.
    Unread,
}

/// Serves until stdin ends, stdout is closed or not read, or `stop` is done; then ends all servers.
pub(crate) async fn serve(workbench: Arc<Workbench>, stop: impl Future<Output = ()>) -> ServeEnd {
    let (output, frames) = PipeOutput::channel();
    let closed = CancellationToken::new();
    let writer = write(frames, standard_streams::output(), closed.clone());
    let writer = TaskTracker::new().spawn(writer);
    let output = ClientOutput::Pipe(output);
    let context = ServeContext::new(Arc::clone(&workbench), ClientLocation::Local);
    let connection = Connection::new(context.clone(), output, Principal::Local);
    tokio::select! {
        biased;
        // Does not end. It is here because parked calls expire while the client is served.
        () = Rare::new(Box::pin(context.parked.expire())) => {}
        () = read_requests(&connection, standard_streams::input(), &closed, stop) => {}
    }
    end(&workbench, connection).await;
    // A client that no longer reads must not delay the shutdown.
    match timeout(FLUSH_TIMEOUT, writer).await {
        Ok(Ok(ended)) => ended,
        Ok(Err(_)) | Err(_) => ServeEnd::Closed,
    }
}

/// Writes to the client until all outputs are dropped, or the client has disconnected.
pub(super) async fn write<W: AsyncWrite + Unpin>(
    frames: QueuedFrames,
    pipe: W,
    closed: CancellationToken,
) -> ServeEnd {
    let written = write_frames(frames, pipe).await;
    // Ends the reading too.
    closed.cancel();
    match written {
        Err(error) if error.kind() == io::ErrorKind::TimedOut => {
            let seconds = READ_TIMEOUT.as_secs();
            tracing::warn!("the client has not read from stdout for {seconds} s; shutting down");
            ServeEnd::Unread
        }
        Err(error) => {
            tracing::debug!("failed to write to stdout: {error}");
            ServeEnd::Closed
        }
        Ok(()) => ServeEnd::Closed,
    }
}

/// Reads requests until the input ends, or `closed` or `stop` are done.
pub(super) async fn read_requests(
    connection: &Arc<Connection>,
    input: impl AsyncRead + Unpin,
    closed: &CancellationToken,
    stop: impl Future<Output = ()>,
) {
    let mut reader = LineReader::new(input);
    let mut changes = Rare::new(Box::pin(changes::tell_changes(connection)));
    let mut closed = Rare::new(Box::pin(closed.cancelled()));
    let mut stop = Rare::new(Box::pin(stop));
    loop {
        // While there are too many requests or the client does not read, nothing is read. The pipe fills, and the
        // client has to wait.
        let next = async {
            if !connection.has_room_now() {
                connection.has_room().await;
            }
            reader.next().await
        };
        tokio::select! {
            biased;
            // The ends come first: a client that writes without a pause must not delay the shutdown.
            () = &mut stop => return,
            () = &mut closed => return,
            () = &mut changes => {}
            line = next => match line {
                Ok(Some(line)) => {
                    connection.take_line(line);
                    // Lines that were read together are handled together, so that they are passed on together.
                    while connection.has_room_now() && let Some(line) = reader.ready_line() {
                        connection.take_line(line);
                    }
                }
                Ok(None) => return,
                Err(error) => {
                    tracing::debug!("failed to read from stdin: {error}");
                    return;
                }
            },
        }
    }
}

/// Lets the requests that were read finish, then ends the servers, which fails the rest.
async fn end(workbench: &Workbench, connection: Arc<Connection>) {
    let since = Instant::now();
    // Subscriptions never end by themselves, and nothing is read any more that could answer a question. Both would only
    // use up the time of the other requests.
    workbench.stop_announcing();
    connection.questions().give_up();
    let _ = timeout_at(since + DRAIN_TIMEOUT, connection.all_answered()).await;
    let servers = workbench.shut_down(since);
    let answers = async {
        let _ = timeout_at(
            since + DRAIN_TIMEOUT + FLUSH_TIMEOUT,
            connection.all_answered(),
        )
        .await;
        // The last output goes with the connection, and the writer after its last frame.
        drop(connection);
    };
    tokio::join!(servers, answers);
}

#[cfg(test)]
mod tests {
    use tokio::{io::AsyncReadExt, task::yield_now};

    use super::*;
    use crate::wire;

    /// Returns a writer with many frames, to a pipe that takes few bytes at once.
    fn writer() -> (impl Future<Output = ServeEnd>, tokio::io::DuplexStream) {
        let (output, frames) = PipeOutput::channel();
        let output = ClientOutput::Pipe(output);
        for _ in 0..100 {
            output.send(wire::notification("m", None));
        }
        let (ours, client) = tokio::io::duplex(16);
        let closed = CancellationToken::new();
        let writing = async move {
            let _output = output;
            write(frames, ours, closed).await
        };
        (writing, client)
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_does_not_read_ends_the_session() {
        let (writing, _client) = writer();
        let began = Instant::now();
        assert_eq!(writing.await, ServeEnd::Unread);
        assert_eq!(began.elapsed(), READ_TIMEOUT);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_reads_after_a_late_wake_up_keeps_its_session() {
        let (writing, mut client) = writer();
        let writing = TaskTracker::new().spawn(writing);
        yield_now().await;
        tokio::time::advance(READ_TIMEOUT * 2).await;
        yield_now().await;
        let mut read = vec![0; 1000];
        client.read_exact(&mut read).await.unwrap();
        drop(client);
        assert_eq!(writing.await.unwrap(), ServeEnd::Closed);
    }
}
