//! Serving one client over stdin and stdout, until one of them ends or we are told to.

use std::sync::Arc;

use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    GRACE, LAST_WORDS, ServeContext, Whereabouts, changes,
    connection::Connection,
    output::{ClientOutput, PipeOutput, QueuedFrames, write_frames},
    standard_streams,
};
use crate::{call::Principal, pipe::LineReader, rare::Rare, workbench::Workbench};

/// Serves until stdin ends, stdout is closed or `stop` is done; then ends all servers.
pub async fn serve(workbench: Arc<Workbench>, stop: impl Future<Output = ()>) {
    let (output, frames) = PipeOutput::channel();
    let closed = CancellationToken::new();
    let writer = TaskTracker::new().spawn(write(frames, closed.clone()));
    let output = ClientOutput::Pipe(output);
    let context = ServeContext::new(Arc::clone(&workbench), Whereabouts::Here);
    let connection = Connection::new(context.clone(), output, Principal::Local);
    tokio::select! {
        biased;
        () = Rare::new(Box::pin(context.parked.expire())) => {}
        () = read_requests(&connection, &closed, stop) => {}
    }
    end(&workbench, connection).await;
    // A client that no longer reads must not keep us.
    let _ = timeout(LAST_WORDS, writer).await;
}

/// Writes to the client until nothing more is said, or it is gone.
async fn write(frames: QueuedFrames, closed: CancellationToken) {
    if let Err(error) = write_frames(frames, standard_streams::output()).await {
        tracing::debug!("stdout: {error}");
    }
    closed.cancel();
}

async fn read_requests(
    connection: &Arc<Connection>,
    closed: &CancellationToken,
    stop: impl Future<Output = ()>,
) {
    let mut reader = LineReader::new(standard_streams::input());
    let mut changes = Rare::new(Box::pin(changes::tell_changes(connection)));
    let mut closed = Rare::new(Box::pin(closed.cancelled()));
    let mut stop = Rare::new(Box::pin(stop));
    loop {
        let next = async {
            if !connection.has_room_now() {
                connection.has_room().await;
            }
            reader.next().await
        };
        tokio::select! {
            biased;
            () = &mut stop => return,
            () = &mut closed => return,
            () = &mut changes => {}
            line = next => match line {
                Ok(Some(line)) => {
                    connection.take_line(line);
                    // What was read with it comes too, so that it goes on in one piece.
                    while connection.has_room_now() && let Some(line) = reader.ready_line() {
                        connection.take_line(line);
                    }
                }
                Ok(None) => return,
                Err(error) => {
                    tracing::debug!("stdin: {error}");
                    return;
                }
            },
        }
    }
}

/// Lets the requests that were read finish, then ends the servers, which fails the rest.
async fn end(workbench: &Workbench, connection: Arc<Connection>) {
    let since = Instant::now();
    workbench.fall_silent();
    connection.questions().give_up();
    let _ = timeout_at(since + GRACE, connection.all_answered()).await;
    let servers = workbench.shut_down(since);
    let answers = async {
        let _ = timeout_at(since + GRACE + LAST_WORDS, connection.all_answered()).await;
        // The last output goes with the connection, and the writer after its last frame.
        drop(connection);
    };
    tokio::join!(servers, answers);
}
