//! An event stream, and its resumption after it broke.

use std::time::Duration;

use super::{
    client::Response,
    fault::is_type,
    peer::{Handshake, Peer, Route},
};
use crate::{
    downstream::error::HttpFault,
    wire::{EventParser, MAX_FRAME_BYTES, StreamEvent},
};

/// The pause before a stream is resumed, unless its server names one, and its upper bound.
const PAUSE: Duration = Duration::from_millis(500);
const MAX_PAUSE: Duration = Duration::from_secs(30);
/// Upper bound on the consecutive resumptions without a new event.
const MAX_RESUMES: usize = 5;
/// How long the end of a stream is awaited after its last message, so that its connection can be reused.
const STREAM_END_TIMEOUT: Duration = Duration::from_millis(250);

pub(super) struct EventStream {
    response: Response,
    parser: EventParser,
}

/// The reason why there is no next event.
pub(super) enum StreamEnd {
    Ended,
    TooLarge,
}

impl EventStream {
    pub(super) fn new(response: Response) -> Self {
        Self {
            response,
            parser: EventParser::new(MAX_FRAME_BYTES),
        }
    }

    /// Returns the next event. Cancel-safe: bytes that were read stay in the parser.
    pub(super) async fn next(&mut self) -> Result<StreamEvent, StreamEnd> {
        loop {
            match self.parser.next_event() {
                Ok(Some(event)) => return Ok(event),
                Ok(None) => {}
                Err(_) => return Err(StreamEnd::TooLarge),
            }
            match self.response.chunk().await {
                Ok(Some(chunk)) => self.parser.push(&chunk),
                Ok(None) | Err(_) => return Err(StreamEnd::Ended),
            }
        }
    }

    /// Reads to the end, if it arrives soon.
    pub(super) async fn finish(mut self) {
        let end = async { while self.next().await.is_ok() {} };
        let _ = tokio::time::timeout(STREAM_END_TIMEOUT, end).await;
    }
}

/// The position in a stream, and when it may be resumed.
#[derive(Debug, Clone)]
pub(super) struct StreamPosition {
    pub(super) last_id: Option<String>,
    pub(super) pause: Duration,
}

impl StreamPosition {
    /// Adopts the event id and the retry time of a stream, if it has them.
    pub(super) fn advance(&mut self, stream: &EventStream) {
        if let Some(last_id) = stream.parser.last_id() {
            self.last_id = Some(last_id.to_owned());
        }
        if let Some(pause) = stream.parser.retry() {
            self.pause = pause.min(MAX_PAUSE);
        }
    }
}

/// The stream of one request, resumed if possible. The request itself is never sent again.
pub(super) struct ResumableStream<'a> {
    peer: &'a Peer,
    /// The handshake to resume with; `None` for a modern server, which cannot resume.
    agreed: Option<&'a Handshake>,
    stream: EventStream,
    position: StreamPosition,
    /// The number of resumptions since the last event.
    resumes: usize,
}

impl<'a> ResumableStream<'a> {
    pub(super) fn new(peer: &'a Peer, agreed: &'a Handshake, response: Response) -> Self {
        Self {
            agreed: Some(agreed),
            ..Self::once(peer, response)
        }
    }

    /// Creates a stream that is not resumed.
    pub(super) fn once(peer: &'a Peer, response: Response) -> Self {
        Self {
            peer,
            agreed: None,
            stream: EventStream::new(response),
            position: StreamPosition {
                last_id: None,
                pause: PAUSE,
            },
            resumes: 0,
        }
    }

    pub(super) async fn next(&mut self) -> Result<StreamEvent, HttpFault> {
        loop {
            match self.stream.next().await {
                Ok(event) => {
                    // Only resumptions that bring nothing count.
                    self.resumes = 0;
                    return Ok(event);
                }
                Err(StreamEnd::TooLarge) => return Err(HttpFault::TooLarge),
                Err(StreamEnd::Ended) => self.resume().await?,
            }
        }
    }

    pub(super) async fn finish(self) {
        self.stream.finish().await;
    }

    /// Requests the rest of the stream, a few times.
    async fn resume(&mut self) -> Result<(), HttpFault> {
        self.position.advance(&self.stream);
        // Without the id of an event there is no position to resume from.
        let (Some(agreed), Some(last_id)) = (self.agreed, &self.position.last_id) else {
            return Err(HttpFault::StreamEnded);
        };
        while self.resumes < MAX_RESUMES {
            self.resumes += 1;
            tokio::time::sleep(self.position.pause).await;
            // Only Streamable HTTP can resume a stream.
            let Route::Streamable(target) = self.peer.route().await else {
                break;
            };
            let Ok(response) = self.peer.get(target, agreed, Some(last_id)).await else {
                continue;
            };
            if response.status().is_success() && is_type(&response, "text/event-stream") {
                self.stream = EventStream::new(response);
                return Ok(());
            }
            // A refusal is final. An error of the server may pass.
            if !response.status().is_server_error() {
                break;
            }
        }
        Err(HttpFault::StreamEnded)
    }
}
