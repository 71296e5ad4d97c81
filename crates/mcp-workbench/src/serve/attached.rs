//! Serves one of several clients of a host, over the stdin and stdout of the process that the client started. The host
//! and its servers keep running when the client ends.

use std::{io, sync::Arc};

use rawjson::{ObjectText, RawJson};
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    ClientLocation, DRAIN_TIMEOUT, FLUSH_TIMEOUT, ServeContext,
    caller::Caller,
    connection::Connection,
    journal::{
        Journal, JournalFiles, MakeFile, OpenRequest, RecordedInput, RecordedOutput, Replay,
        opened_toolbox, replay,
    },
    output::{ClientOutput, PipeOutput, QueuedFrames},
    standard_streams::PassedStreams,
    stdio::{ServeEnd, read_requests, write},
};
use crate::{
    call::{ClientHandle, ClientIdentity, Principal},
    era::{RequestMeta, UI_EXTENSION, to_modern_result},
    meta,
    rare::Rare,
    wire::{self, Frame, Message, Request, code},
    workbench::Workbench,
};

/// The number of a client that no host has.
const ALONE: u64 = 0;

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
    pub(crate) replay: Replay,
    frames: QueuedFrames,
}

/// The signals that end the service of a client.
pub(crate) struct EndSignals {
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
            replay: Replay::default(),
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
        let output = RecordedOutput::new(streams.output, Arc::clone(&journal));
        let unhandled = self.resume(replay).await;
        let input = RecordedInput::new(streams.input, journal, unhandled.into());
        let (Ok(input), Ok(output)) = (input, output) else {
            tracing::warn!("failed to watch the streams of a client");
            return ServeEnd::Closed;
        };
        let writer = TaskTracker::new().spawn(write(frames, output, closed.clone()));
        let ended = async {
            tokio::select! {
                () = ends.stop.cancelled() => {}
                () = ends.gone.cancelled() => {}
            }
        };
        tokio::select! {
            biased;
            // Does not end. It is here because parked calls expire while the client is served.
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
        // If the process of the client is gone, nobody reads the answers. If the host stops, the servers end first,
        // which answers the rest and takes a moment longer.
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
        let client: Arc<dyn ClientHandle> = Arc::new(Caller::new(
            Arc::clone(&self.connection),
            self.connection.output(),
        ));
        let knows_apps = client.capabilities().has_extension(UI_EXTENSION);
        if workbench.is_dynamic() || knows_apps {
            self.connection.tasks().spawn(async move {
                // A server that does not start is reported by the first call.
                let _ = workbench.open(&toolbox, &client).await;
            });
        }
    }

    /// Restores the session that an earlier host has left, withdraws its questions, and answers the calls that it did not.
    /// Returns the input that is to be handled again: requests that only read, and the beginning of a line.
    async fn resume(&self, replay: Replay) -> Vec<u8> {
        if replay == Replay::default() {
            return Vec::new();
        }
        // The order matters: first the session, then the questions of its servers, and last the requests that need
        // both.
        let answered = replay.session.iter().filter(|it| it.is_answered);
        for line in answered {
            if let Ok(Message::Request(request)) = Message::parse(&line.line) {
                match opened_toolbox(&request) {
                    Some(toolbox) => self.open_again(&toolbox),
                    None => self.connection.restore(request).await,
                }
            }
        }
        let output = self.connection.output();
        self.connection.questions().resume();
        for (id, _) in &replay.questions {
            let params = ObjectText::new().raw("requestId", &id.to_json()).finish();
            output.send(wire::notification("notifications/cancelled", Some(&params)));
        }
        let mut unhandled = Vec::new();
        for open in &replay.open {
            match lost_answer(open) {
                Some(answer) => output.send(answer),
                None => {
                    unhandled.extend_from_slice(&open.line);
                    unhandled.push(b'\n');
                }
            }
        }
        if replay.refused.is_some() {
            self.connection.expect_refused_line();
        }
        // Last, because the rest of this line follows on the pipe.
        unhandled.extend_from_slice(&replay.partial);
        unhandled
    }
}

/// Returns the answer to a line with calls, whose outcome is unknown; `None` for requests that can be handled again.
fn lost_answer(open: &OpenRequest) -> Option<Frame> {
    let is_call = |request: &Request| &*request.method == "tools/call";
    if !open.requests.iter().any(is_call) {
        return None;
    }
    let answers: Vec<Frame> = open
        .requests
        .iter()
        .map(|request| {
            if is_call(request) {
                return wire::result(&request.id, &lost_call(request));
            }
            // The other requests of a batch have no answer of their own.
            wire::error(
                Some(&request.id),
                code::INTERNAL_ERROR,
                "The shared workbench process ended; send the request again",
            )
        })
        .collect();
    match (&answers[..], open.is_batch) {
        ([answer], false) => Some(answer.clone()),
        _ => Some(Frame::batch(&answers)),
    }
}

/// Returns the result of a call whose outcome is unknown, in the era of its request.
fn lost_call(request: &Request) -> RawJson {
    let params = request.params.as_ref();
    let meta = params.and_then(|params| params.member("_meta"));
    let is_modern = meta.is_some_and(|meta| RequestMeta::read(&meta).is_modern());
    let answer = meta::lost_call();
    if is_modern {
        to_modern_result(&request.method, &answer)
    } else {
        answer
    }
}

/// The session of a client whose hosts keep ending.
pub(crate) struct UnfinishedSession {
    /// The journal of its last host.
    pub(crate) files: JournalFiles,
    pub(crate) make: MakeFile,
}

/// Continues a session over stdin and stdout, without a host. Ends all servers with it.
pub(crate) async fn serve_alone(
    workbench: Arc<Workbench>,
    session: UnfinishedSession,
    stop: impl Future<Output = ()>,
) -> io::Result<ServeEnd> {
    let UnfinishedSession { files, make } = session;
    let not_passed = || io::Error::other("stdin and stdout are neither pipes nor sockets");
    let streams = PassedStreams::of_process().ok_or_else(not_passed)?;
    let replay = replay(&files)?.resume();
    let journal = Arc::new(Journal::new(make, &replay)?);
    let (client, mut client_streams) = AttachedClient::new(&workbench, ALONE, streams, journal);
    client_streams.replay = replay;
    let ends = EndSignals {
        stop: CancellationToken::new(),
        gone: CancellationToken::new(),
    };
    let stopped = ends.stop.clone();
    let serving = Arc::new(client).serve(client_streams, ends);
    tokio::pin!(serving);
    tokio::select! {
        ended = &mut serving => {
            workbench.shut_down(Instant::now()).await;
            Ok(ended)
        }
        () = stop => {
            stopped.cancel();
            // Ending the servers answers the rest.
            let servers = workbench.shut_down(Instant::now());
            Ok(tokio::join!(servers, serving).1)
        }
    }
}
