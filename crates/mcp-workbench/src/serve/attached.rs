//! Serves one of several clients of a host, over the stdin and stdout of the process that the client started. The host
//! and its servers go on when the client ends.

use std::{io::Cursor, sync::Arc};

use bytes::Bytes;
use rawjson::RawJson;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    time::{Instant, timeout, timeout_at},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    ClientLocation, DRAIN_TIMEOUT, FLUSH_TIMEOUT, ServeContext,
    caller::Caller,
    connection::Connection,
    journal::{Journal, RecordedInput, RecordedOutput, Replay, opened_toolbox},
    output::{ClientOutput, PipeOutput, QueuedFrames},
    standard_streams::PassedStreams,
    stdio::{ServeEnd, read_requests, write},
};
use crate::{
    call::{ClientHandle, ClientIdentity, Principal},
    era::{RequestMeta, to_modern_result},
    meta,
    rare::Rare,
    wire::{self, Message},
    workbench::Workbench,
};

/// A client of a host.
pub(crate) struct AttachedClient {
    connection: Arc<Connection>,
    context: ServeContext,
}

/// The streams of a client, before it is served.
pub(crate) struct ClientStreams {
    pub(crate) streams: PassedStreams,
    pub(crate) journal: Arc<Journal>,
    /// The state that an earlier host left.
    pub(crate) replay: Option<Replay>,
    frames: QueuedFrames,
}

/// The signals that end the service of a client.
pub(crate) struct EndSignals {
    /// The host stops.
    pub(crate) stop: CancellationToken,
    /// The process that waits for the host has ended.
    pub(crate) gone: CancellationToken,
}

impl AttachedClient {
    /// Creates the client with its number and its own workbench.
    pub(crate) fn new(
        workbench: &Arc<Workbench>,
        number: u64,
        streams: PassedStreams,
        journal: Arc<Journal>,
    ) -> (Self, ClientStreams) {
        let (output, frames) = PipeOutput::channel();
        let context = ServeContext::new(Arc::clone(workbench), ClientLocation::Local);
        let output = ClientOutput::Pipe(output);
        let principal = Principal::Attached(number);
        let client = Self {
            connection: Connection::new(context.clone(), output, principal),
            context,
        };
        let streams = ClientStreams {
            streams,
            journal,
            replay: None,
            frames,
        };
        (client, streams)
    }

    /// Returns the identity that the client reports.
    pub(crate) fn identity(&self) -> Arc<ClientIdentity> {
        self.connection.identity()
    }

    /// Returns how many of its requests run.
    pub(crate) fn running(&self) -> usize {
        self.connection.in_flight().count()
    }

    /// Serves the client until it ends, its process is gone, or the host stops.
    pub(crate) async fn serve(
        self: Arc<Self>,
        streams: ClientStreams,
        ends: EndSignals,
    ) -> ServeEnd {
        let ClientStreams {
            streams,
            journal,
            replay,
            frames,
        } = streams;
        let closed = CancellationToken::new();
        let mut output = RecordedOutput {
            output: streams.output,
            journal: Arc::clone(&journal),
        };
        if replay.as_ref().is_some_and(|it| !it.open.is_empty()) {
            // The earlier host may have ended in the middle of a line.
            let _ = timeout(FLUSH_TIMEOUT, output.write_all(b"\n")).await;
        }
        let writer = TaskTracker::new().spawn(write(frames, output, closed.clone()));
        let unhandled = match replay {
            Some(replay) => self.resume(replay, &journal).await,
            None => Vec::new(),
        };
        let input = RecordedInput {
            input: Cursor::new(unhandled).chain(streams.input),
            journal,
        };
        let ended = async {
            tokio::select! {
                () = ends.stop.cancelled() => {}
                () = ends.gone.cancelled() => {}
            }
        };
        tokio::select! {
            biased;
            () = Rare::new(Box::pin(self.context.parked.expire())) => {}
            () = read_requests(&self.connection, input, &closed, ended) => {}
        }
        self.end(&ends).await;
        // The last output goes with the client, and the writer after its last frame.
        drop(self);
        match timeout(FLUSH_TIMEOUT, writer).await {
            Ok(Ok(ended)) => ended,
            Ok(Err(_)) | Err(_) => ServeEnd::Closed,
        }
    }

    /// Lets the requests that were read finish, and cancels the rest. When the host stops, it ends the servers meanwhile,
    /// which answers the rest.
    async fn end(&self, ends: &EndSignals) {
        let since = Instant::now();
        self.connection.workbench().stop_announcing();
        self.connection.questions().give_up();
        let limit = match (ends.gone.is_cancelled(), ends.stop.is_cancelled()) {
            (true, _) => since,
            (false, false) => since + DRAIN_TIMEOUT,
            (false, true) => since + DRAIN_TIMEOUT + FLUSH_TIMEOUT,
        };
        let _ = timeout_at(limit, self.connection.all_answered()).await;
        self.connection.abandon();
        let _ = timeout(FLUSH_TIMEOUT, self.connection.all_answered()).await;
    }

    /// Opens a toolbox that the client had open, in the background. Its tools can be used at once.
    fn open_again(&self, toolbox: &str) {
        let workbench = Arc::clone(self.connection.workbench());
        let Some(toolbox) = workbench.toolbox(toolbox) else {
            return;
        };
        toolbox.mark_found();
        if workbench.is_dynamic() {
            let client: Arc<dyn ClientHandle> = Arc::new(Caller::new(
                Arc::clone(&self.connection),
                self.connection.output(),
            ));
            self.connection.tasks().spawn(async move {
                // A server that does not start is reported by the first call.
                let _ = workbench.open(&toolbox, &client).await;
            });
        }
    }

    /// Restores the session that an earlier host has left, and answers the calls that it did not. Returns the input that
    /// is to be handled again: requests that only read, and the beginning of a line.
    async fn resume(&self, replay: Replay, journal: &Journal) -> Vec<u8> {
        journal.inherit(&replay.session);
        let answered = replay.session.iter().filter(|it| it.is_answered);
        for line in answered {
            if let Ok(Message::Request(request)) = Message::parse(&line.line) {
                match opened_toolbox(&request) {
                    Some(toolbox) => self.open_again(&toolbox),
                    None => self.connection.restore(request).await,
                }
            }
        }
        let mut unhandled = Vec::new();
        for (id, line) in &replay.open {
            let whole = [line, &b"\n"[..]].concat();
            match lost_answer(line) {
                Some(answer) => {
                    journal.read(&whole);
                    self.connection.output().send(wire::result(id, &answer));
                }
                None => unhandled.extend_from_slice(&whole),
            }
        }
        unhandled.extend_from_slice(&replay.partial);
        unhandled
    }
}

/// Returns the answer to a call whose outcome is unknown; `None` for requests that can be handled again.
fn lost_answer(line: &Bytes) -> Option<RawJson> {
    let Ok(Message::Request(request)) = Message::parse(line) else {
        return None;
    };
    if &*request.method != "tools/call" {
        return None;
    }
    let meta = request
        .params
        .as_ref()
        .and_then(|params| params.member("_meta"));
    let is_modern = meta.is_some_and(|meta| RequestMeta::read(&meta).is_modern());
    let answer = meta::lost_call();
    Some(if is_modern {
        to_modern_result(&request.method, &answer)
    } else {
        answer
    })
}
