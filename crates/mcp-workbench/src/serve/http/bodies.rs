//! Bodies of answers: one message as JSON, or a stream of events. Neither copies a large result.

use std::{
    collections::VecDeque,
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::{BufMut, Bytes, BytesMut};
use hyper::body::{Body, Frame as BodyFrame, SizeHint};
use memchr::memchr2;
use tokio::time::{Instant, Sleep, sleep};

use super::{
    limits::{KEEP_ALIVE, RETRY_MS},
    streams::{EventId, Next, StreamReader},
};
use crate::wire::Frame;

/// Bytes that are all there.
pub(super) struct PartsBody {
    parts: VecDeque<Bytes>,
}

impl PartsBody {
    /// A message.
    pub(super) fn message(frame: Frame) -> Self {
        Self {
            parts: frame.into_parts().into(),
        }
    }
}

impl Body for PartsBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<BodyFrame<Bytes>, Infallible>>> {
        Poll::Ready(next_part(&mut self.parts).map(Ok))
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.parts.iter().map(|part| part.len() as u64).sum())
    }
}

/// The events of a stream, as long as it goes on.
pub(super) struct EventBody {
    reader: StreamReader,
    /// What is to be sent before the next event.
    parts: VecDeque<Bytes>,
    silence: Pin<Box<Sleep>>,
}

/// How a stream of events begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Opening {
    /// With an event without data that says where to resume, and when.
    Priming,
    /// With a comment, for clients that would take such an event for a message.
    Comment,
}

impl EventBody {
    pub(super) fn new(reader: StreamReader, opening: Opening) -> Self {
        let opening = match opening {
            Opening::Priming => {
                format!("id: {}\nretry: {RETRY_MS}\ndata: \n\n", reader.position())
            }
            Opening::Comment => ":\n\n".to_owned(),
        };
        Self {
            reader,
            parts: VecDeque::from([opening.into()]),
            silence: Box::pin(sleep(KEEP_ALIVE)),
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
                Poll::Ready(Next::Event(id, frame)) => self.parts = event(id, frame),
                Poll::Ready(Next::Ended) => return Poll::Ready(None),
                Poll::Pending => {
                    if self.silence.as_mut().poll(context).is_pending() {
                        return Poll::Pending;
                    }
                    self.parts.push_back(Bytes::from_static(b":\n\n"));
                }
            }
            self.silence.as_mut().reset(Instant::now() + KEEP_ALIVE);
        }
        Poll::Ready(next_part(&mut self.parts).map(Ok))
    }
}

fn next_part(parts: &mut VecDeque<Bytes>) -> Option<BodyFrame<Bytes>> {
    let mut parts = std::iter::from_fn(|| parts.pop_front());
    parts.find(|part| !part.is_empty()).map(BodyFrame::data)
}

/// A message as an event. It stands on one line, so line ends between the parts of its JSON go.
fn event(id: EventId, frame: Frame) -> VecDeque<Bytes> {
    let mut text = frame.into_parts();
    if let Some(last) = text.iter_mut().rfind(|part| !part.is_empty()) {
        last.truncate(last.trim_ascii_end().len());
    }
    let mut parts = VecDeque::from([format!("id: {id}\ndata: ").into()]);
    parts.extend(text.map(without_line_ends));
    parts.push_back(Bytes::from_static(b"\n\n"));
    parts
}

/// The text with spaces in place of line ends. In JSON they stand only where white space may.
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
