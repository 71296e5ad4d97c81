//! A stream of events that is being read, and its resumption after it broke.

use std::time::Duration;

use super::{
    client::Response,
    fault::is_type,
    peer::{Agreed, Peer, Route},
};
use crate::{
    downstream::error::HttpFault,
    wire::{EventParser, MAX_FRAME_BYTES, StreamEvent},
};

/// How long to wait before a stream is resumed, unless its server says otherwise, and at most.
const PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// How often in a row a stream is resumed without anything new on it.
const MAX_RESUMES: usize = 5;
/// How long the end of a stream is waited for after its last message, so that its connection can be used
/// again.
const END_PATIENCE: Duration = Duration::from_millis(250);

pub(super) struct EventStream {
    response: Response,
    parser: EventParser,
}

/// Why there is no next event.
pub(super) enum StreamEnd {
    /// The stream ended or broke.
    Ended,
    /// An event was too large.
    TooLarge,
}

impl EventStream {
    pub(super) fn new(response: Response) -> Self {
        Self {
            response,
            parser: EventParser::new(MAX_FRAME_BYTES),
        }
    }

    /// The next event. Cancel-safe: what was read stays in the parser.
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

    /// Reads to the end, if that is near.
    pub(super) async fn finish(mut self) {
        let end = async { while self.next().await.is_ok() {} };
        let _ = tokio::time::timeout(END_PATIENCE, end).await;
    }
}

/// How far a stream was read, and when it may be resumed.
#[derive(Debug, Clone)]
pub(super) struct Position {
    pub(super) last_id: Option<String>,
    pub(super) pause: Duration,
}

impl Position {
    /// Takes what a stream has said; what it has not stays.
    pub(super) fn advance(&mut self, stream: &EventStream) {
        if let Some(last_id) = stream.parser.last_id() {
            self.last_id = Some(last_id.to_owned());
        }
        if let Some(pause) = stream.parser.retry() {
            self.pause = pause.min(LONGEST_PAUSE);
        }
    }
}

/// The stream of one request, resumed where that is possible. The request itself is never sent again.
pub(super) struct ResumableStream<'a> {
    peer: &'a Peer,
    /// What it may be resumed with; a modern server resumes nothing.
    agreed: Option<&'a Agreed>,
    stream: EventStream,
    position: Position,
    /// How often it was resumed since the last event.
    resumes: usize,
}

impl<'a> ResumableStream<'a> {
    pub(super) fn new(peer: &'a Peer, agreed: &'a Agreed, response: Response) -> Self {
        Self {
            agreed: Some(agreed),
            ..Self::once(peer, response)
        }
    }

    /// A stream that is over when it breaks.
    pub(super) fn once(peer: &'a Peer, response: Response) -> Self {
        Self {
            peer,
            agreed: None,
            stream: EventStream::new(response),
            position: Position {
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

    /// Asks for the rest of the stream, a few times.
    async fn resume(&mut self) -> Result<(), HttpFault> {
        self.position.advance(&self.stream);
        let (Some(agreed), Some(last_id)) = (self.agreed, &self.position.last_id) else {
            return Err(HttpFault::StreamEnded);
        };
        while self.resumes < MAX_RESUMES {
            self.resumes += 1;
            tokio::time::sleep(self.position.pause).await;
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
            if !response.status().is_server_error() {
                break;
            }
        }
        Err(HttpFault::StreamEnded)
    }
}
