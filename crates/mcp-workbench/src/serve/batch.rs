//! The destination of a response: its own line or stream, or the single response of a batch, which only revision
//! 2025-03-26 has.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use rawjson::RawJson;

use super::{
    caller::Caller, connection::Connection, modern, output::ClientOutput, revision::Revision,
    unreadable::refusal,
};
use crate::{
    sync::lock,
    wire::{self, CallOutline, Frame, Message, Outgoing, code},
};

/// The destination of the response to one request.
pub(super) enum ReplyPlace {
    /// Its own line, or the end of the stream of its request.
    Line(ClientOutput),
    Batch(BatchPart),
}

impl ReplyPlace {
    /// Returns the client as servers see it while they work for this request.
    pub(super) fn caller(&self, connection: &Arc<Connection>) -> Caller {
        Caller::new(Arc::clone(connection), self.output().clone())
    }

    /// Returns the output to the client while the request runs.
    pub(super) fn output(&self) -> &ClientOutput {
        match self {
            Self::Line(output) => output,
            Self::Batch(part) => &part.0.output,
        }
    }

    pub(super) fn answer<'a>(self, message: impl Into<Outgoing<'a>>) {
        match self {
            Self::Line(output) => output.answer(message),
            Self::Batch(part) => part.add(message.into().into_frame()),
        }
    }

    /// Ends the request without a response, because it was cancelled.
    pub(super) fn withhold(self) {
        match self {
            Self::Line(output) => output.end(),
            // The batch is answered without this request.
            Self::Batch(_) => {}
        }
    }
}

/// Returns the elements of a batch, or `None` if the frame is not a batch or the revision has none.
pub(super) fn elements(connection: &Connection, frame: &Bytes) -> Option<Vec<RawJson>> {
    if !connection.revision().is_some_and(Revision::has_batches) {
        return None;
    }
    let elements = RawJson::parse(frame).ok()?.elements()?;
    (!elements.is_empty()).then_some(elements)
}

/// Handles the messages of a batch. The single response goes to `output`.
pub(super) fn take(connection: &Arc<Connection>, messages: &[RawJson], output: ClientOutput) {
    // This share keeps the batch open until all of its messages are taken. Without it the first one could answer the
    // batch before the last one is read.
    let batch = BatchPart::new(output);
    for message in messages {
        let mut outline = CallOutline::default();
        match Message::parse_outlined(message.as_bytes(), &mut outline) {
            // Such a request would bypass the checks of its headers, and a subscription would delay the other
            // responses.
            Ok(Message::Request(request)) if modern::is_modern(&request, &outline) => {
                let refusal =
                    "Invalid request: a request without a session cannot be part of a batch";
                batch.add(wire::error(
                    Some(&request.id),
                    code::INVALID_REQUEST,
                    refusal,
                ));
            }
            Ok(message) => {
                let place = ReplyPlace::Batch(batch.clone());
                // Counted as small: the bound on a frame is one on all of its messages together.
                connection.take_message(message, &outline, place, 0);
            }
            Err(error) => {
                let (id, code, message) = refusal(&error);
                batch.add(wire::error(id, code, &message));
            }
        }
    }
}

/// A share in a batch. The batch is answered when the last share is dropped.
#[derive(Clone)]
pub(super) struct BatchPart(Arc<Batch>);

struct Batch {
    output: ClientOutput,
    answers: Mutex<Vec<Frame>>,
}

impl BatchPart {
    /// Creates a batch, with the share of the task that distributes it.
    pub(super) fn new(output: ClientOutput) -> Self {
        Self(Arc::new(Batch {
            output,
            answers: Mutex::default(),
        }))
    }

    pub(super) fn add(&self, answer: Frame) {
        lock(&self.0.answers).push(answer);
    }
}

impl Drop for Batch {
    /// Sends the response, unless no message of the batch needs one.
    fn drop(&mut self) {
        let answers = self
            .answers
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        if answers.is_empty() {
            self.output.end();
        } else {
            self.output.answer(Frame::batch(answers));
        }
    }
}
