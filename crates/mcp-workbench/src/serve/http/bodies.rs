//! Response bodies: one message as JSON, or a stream of events. Neither copies a large result.

use std::{
    collections::VecDeque,
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::{Buf, BufMut, Bytes, BytesMut};
use hyper::{
    body::{Body, Frame as BodyFrame, SizeHint},
    header::{self, HeaderValue},
};
use memchr::memchr2;
use tokio::time::{Instant, Sleep, sleep};

use super::{
    headers::EVENT_STREAM,
    limits::{KEEP_ALIVE, RETRY_MS},
    response::{Response, ResponseBody},
    streams::{EventId, Next, StreamReader},
};
use crate::wire::{Frame, FrameText};

/// Bytes that are all there.
#[derive(Default)]
pub(super) struct WholeBody {
    /// Empty after hyper has taken it.
    text: FrameText,
}

impl WholeBody {
    pub(super) fn message(frame: Frame) -> Self {
        Self {
            text: frame.into_text(),
        }
    }

    pub(super) fn text(text: impl Into<Bytes>) -> Self {
        Self {
            text: text.into().into(),
        }
    }
}

impl Body for WholeBody {
    type Data = FrameText;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<BodyFrame<FrameText>, Infallible>>> {
        if self.is_end_stream() {
            return Poll::Ready(None);
        }
        let text = std::mem::take(&mut self.text);
        Poll::Ready(Some(Ok(BodyFrame::data(text))))
    }

    fn is_end_stream(&self) -> bool {
        !self.text.has_remaining()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.text.remaining() as u64)
    }
}

/// The events of a stream, as long as it lasts.
pub(super) struct EventBody {
    reader: StreamReader,
    /// The bytes to send before the next event.
    parts: VecDeque<Bytes>,
    silence: Pin<Box<Sleep>>,
    opening: Opening,
    /// The handle of the stream in the ids of its events, if there are replicas.
    handle: Option<String>,
}

/// The beginning of a stream of events. It says if the stream can be resumed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Opening {
    /// An event without data with the position and delay for resuming.
    Priming,
    /// A comment, for clients that would take such an event for a message.
    Comment,
    /// With a comment, and no event has an id: it cannot be resumed.
    Passing,
}

impl EventBody {
    pub(super) fn new(reader: StreamReader, opening: Opening, handle: Option<String>) -> Self {
        let first = match opening {
            Opening::Priming => {
                let id = event_id(handle.as_deref(), reader.position());
                format!("id: {id}\nretry: {RETRY_MS}\ndata: \n\n")
            }
            Opening::Comment | Opening::Passing => ":\n\n".to_owned(),
        };
        Self {
            reader,
            parts: VecDeque::from([first.into()]),
            silence: Box::pin(sleep(KEEP_ALIVE)),
            opening,
            handle,
        }
    }
}

impl Body for EventBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<BodyFrame<Bytes>, Infallible>>> {
        if self.parts.is_empty() {
            match self.reader.poll_next(context) {
                Poll::Ready(Next::Event(id, frame)) => {
                    let has_id = self.opening != Opening::Passing;
                    let id = has_id.then(|| event_id(self.handle.as_deref(), id));
                    self.parts = event(id, frame);
                }
                Poll::Ready(Next::Ended) => return Poll::Ready(None),
                Poll::Pending => {
                    if self.silence.as_mut().poll(context).is_pending() {
                        return Poll::Pending;
                    }
                    // A comment, so that no proxy closes the connection for being silent.
                    self.parts.push_back(Bytes::from_static(b":\n\n"));
                }
            }
            self.silence.as_mut().reset(Instant::now() + KEEP_ALIVE);
        }
        Poll::Ready(next_part(&mut self.parts).map(Ok))
    }
}

/// Returns a stream of events as a response.
pub(super) fn event_response(events: ResponseBody) -> Response {
    let mut response = Response::new(events);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(EVENT_STREAM));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // nginx would collect events before it passes them on.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

fn next_part(parts: &mut VecDeque<Bytes>) -> Option<BodyFrame<Bytes>> {
    let mut parts = std::iter::from_fn(|| parts.pop_front());
    parts.find(|part| !part.is_empty()).map(BodyFrame::data)
}

/// Returns the id of an event as clients see it.
fn event_id(handle: Option<&str>, id: EventId) -> String {
    match handle {
        Some(handle) => format!("{handle}.{id}"),
        None => id.to_string(),
    }
}

/// Returns a message as an event without an id.
pub(super) fn lone_event(frame: Frame) -> Bytes {
    let mut text = BytesMut::new();
    for part in event(None, frame) {
        text.put(part);
    }
    text.freeze()
}

/// Returns the text of a message that another replica has made as an event.
pub(super) fn event_text(id: &str, message: &Bytes) -> Bytes {
    let line = without_line_ends(message.slice(..message.trim_ascii_end().len()));
    let mut text = BytesMut::from(format!("id: {id}\ndata: ").as_bytes());
    text.put(line);
    text.put(&b"\n\n"[..]);
    text.freeze()
}

/// Returns a message as an event. An event is one line, so line ends between the tokens of the JSON are replaced.
fn event(id: Option<String>, frame: Frame) -> VecDeque<Bytes> {
    let mut text = frame.into_parts();
    if let Some(last) = text.iter_mut().rfind(|part| !part.is_empty()) {
        // The newline that ends every frame would end the event.
        last.truncate(last.trim_ascii_end().len());
    }
    let mut parts = VecDeque::from([match id {
        Some(id) => format!("id: {id}\ndata: ").into(),
        None => Bytes::from_static(b"data: "),
    }]);
    parts.extend(text.map(without_line_ends));
    parts.push_back(Bytes::from_static(b"\n\n"));
    parts
}

/// Replaces line ends with spaces. In JSON they appear only between tokens.
pub(super) fn without_line_ends(text: Bytes) -> Bytes {
    if memchr2(b'\n', b'\r', &text).is_none() {
        return text;
    }
    let mut clean = BytesMut::with_capacity(text.len());
    clean.put(text);
    for byte in clean.iter_mut() {
        if matches!(byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
    clean.freeze()
}
