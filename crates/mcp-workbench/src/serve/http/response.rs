//! Responses and their bodies: empty, one message, or a stream of events.

use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::{Buf, Bytes};
use hyper::{
    HeaderMap, StatusCode,
    body::{Body, Frame as BodyFrame, SizeHint},
    header::{self, HeaderValue},
};

use super::{bodies::WholeBody, quotas::Meter, timed_stream::Turn};
use crate::wire::{Frame, FrameText};

pub(super) type Response = hyper::Response<ResponseBody>;

/// The answer to a request.
pub(super) enum Answered {
    /// A single message.
    Message(StatusCode, Frame),
    Response(Response),
}

impl Answered {
    /// Returns the response to a request with these headers.
    pub(super) fn into_response(self, headers: HeaderMap) -> Response {
        match self {
            Self::Message(status, frame) => json_with(headers, status, frame),
            Self::Response(response) => response,
        }
    }
}

pub(super) struct ResponseBody {
    content: Content,
    /// The turn of the client that ends with it.
    turn: Option<Turn>,
    /// Counts its bytes.
    meter: Option<Meter>,
}

enum Content {
    /// Bytes that are all there.
    Whole(WholeBody),
    Events(Pin<Box<dyn Body<Data = Bytes, Error = Infallible> + Send>>),
}

impl ResponseBody {
    /// Creates a body with the events of a stream.
    pub(super) fn events(
        events: impl Body<Data = Bytes, Error = Infallible> + Send + 'static,
    ) -> Self {
        Self {
            content: Content::Events(Box::pin(events)),
            turn: None,
            meter: None,
        }
    }

    /// Ends a turn with this body.
    pub(super) fn set_turn(&mut self, turn: Turn) {
        self.turn = Some(turn);
    }

    /// Counts the bytes of this body as they are written.
    pub(super) fn set_meter(&mut self, meter: Meter) {
        self.meter = Some(meter);
    }

    /// Creates a body of bytes that are all there.
    pub(super) fn whole(whole: WholeBody) -> Self {
        Self {
            content: Content::Whole(whole),
            turn: None,
            meter: None,
        }
    }
}

impl Body for ResponseBody {
    type Data = FrameText;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<BodyFrame<FrameText>, Infallible>>> {
        let polled = match &mut self.content {
            Content::Whole(whole) => Pin::new(whole).poll_frame(context),
            Content::Events(events) => events
                .as_mut()
                .poll_frame(context)
                .map_ok(|frame| frame.map_data(FrameText::from)),
        };
        if let (Poll::Ready(Some(Ok(frame))), Some(meter)) = (&polled, &self.meter) {
            meter.count(frame.data_ref().map_or(0, Buf::remaining));
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        match &self.content {
            Content::Whole(whole) => whole.is_end_stream(),
            Content::Events(events) => events.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            Content::Whole(whole) => whole.size_hint(),
            Content::Events(events) => events.size_hint(),
        }
    }
}

pub(super) fn empty(status: StatusCode) -> Response {
    with_status(status, WholeBody::default())
}

/// Returns a message as a response.
pub(super) fn json(status: StatusCode, frame: Frame) -> Response {
    json_with(HeaderMap::new(), status, frame)
}

/// Returns a message as a response, whose headers take the place of others. With those of the request no memory is
/// allocated: hyper reads the next request into the headers of the last response.
fn json_with(mut headers: HeaderMap, status: StatusCode, frame: Frame) -> Response {
    let mut response = with_status(status, WholeBody::message(frame));
    headers.clear();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/json"),
    );
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    *response.headers_mut() = headers;
    response
}

pub(super) fn text(words: &'static str) -> Response {
    typed("text/plain; charset=utf-8", words)
}

/// Returns text of a media type as a response.
pub(super) fn typed(media_type: &'static str, text: impl Into<Bytes>) -> Response {
    let mut response = with_status(StatusCode::OK, WholeBody::text(text));
    let media_type = HeaderValue::from_static(media_type);
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, media_type);
    response
}

fn with_status(status: StatusCode, body: WholeBody) -> Response {
    let mut response = Response::new(ResponseBody::whole(body));
    *response.status_mut() = status;
    response
}
