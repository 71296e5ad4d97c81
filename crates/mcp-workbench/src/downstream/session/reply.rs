//! The receiver of the response to a call, and the meaning of the response for the caller.

use rawjson::{RawJson, Spliced};
use tokio::{sync::oneshot, time::Instant};

use crate::{
    call::{Call, CallRequest},
    downstream::{
        asks::asking_server::has_elicitations, error::CallError, protocol::rounds,
        server::ServerHandle,
    },
    era::{Era, HEADER_MISMATCH, without_type},
    wire::ResultMarks,
};

/// A call that its server has completed.
pub(crate) struct CompletedCall {
    /// The call, which may have to be repeated.
    pub(crate) call: Call,
    pub(crate) answer: Result<RawJson, CallError>,
    /// The marks of the result, if there is one.
    pub(crate) marks: ResultMarks,
    /// The era of the server that answered; `None` if none did.
    pub(crate) by: Option<Era>,
    /// The time at which the call was last passed to a connection; `None` if it never was.
    pub(crate) sent_at: Option<Instant>,
}

/// The end of a call at its server.
#[expect(clippy::large_enum_variant, reason = "it is taken apart at once")]
pub(crate) enum CallEnd {
    Over {
        /// The call, which can be repeated if it did not run.
        call: Call,
        result: Result<CallResult, CallError>,
        /// Set if the call did not run because the tool has changed since the call was checked.
        outdated: Option<Outdated>,
    },
    /// The call was dropped without a response: its caller cancelled it, or a bug lost it.
    Dropped,
    /// A question or a task of the server instead of a result.
    Unfinished(Box<Unfinished>),
}

/// The part of a call that no longer matches its tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outdated {
    /// The consent: the user has not permitted the current definition.
    Consent,
    /// The headers: a modern server refused them.
    Headers,
}

pub(crate) struct CallResult {
    /// The unchanged result.
    pub json: RawJson,
    pub marks: ResultMarks,
    /// The era that it is written in.
    pub era: Era,
}

impl CallResult {
    /// Creates a result of the workbench itself, in the era of its client.
    pub(crate) fn new(json: RawJson, era: Era) -> Self {
        Self {
            marks: ResultMarks::of(&json),
            json,
            era,
        }
    }

    /// Returns the result as a client of an era gets it.
    pub(crate) fn into_client(self, era: Era) -> Spliced {
        match (self.era, era) {
            (_, Era::Modern) => self.marks.with_type(self.json),
            (Era::Modern, Era::Legacy) => self.marks.without_type(self.json),
            (Era::Legacy, Era::Legacy) => Spliced::from(self.json),
        }
    }
}

/// A call that its server has answered with a question or a task.
pub(crate) struct Unfinished(pub(crate) CompletedCall);

impl CallEnd {
    /// Returns the meaning of an answer for the client.
    pub(crate) fn of(answered: CompletedCall) -> Self {
        if answered.is_unfinished() {
            return Self::Unfinished(Box::new(Unfinished(answered)));
        }
        let CompletedCall {
            call,
            answer,
            marks,
            by,
            ..
        } = answered;
        let outdated = answer.as_ref().err().and_then(|it| Outdated::of(it, by));
        let result = match (answer, by, call.context.client.era()) {
            // A legacy result is always complete. A modern client would read another type as a question or a task,
            // which has passed no check.
            (Ok(json), Some(Era::Legacy), Era::Modern) if !marks.is_complete() => {
                Ok(CallResult::new(without_type(&json), Era::Legacy))
            }
            (Ok(json), Some(era), _) => Ok(CallResult { json, marks, era }),
            (Ok(json), None, era) => Ok(CallResult::new(json, era)),
            (Err(error), ..) => Err(error),
        };
        Self::Over {
            call,
            result,
            outdated,
        }
    }

    /// Waits for the result. Dropping the future cancels the call.
    pub(crate) async fn result(self, server: &ServerHandle) -> Result<RawJson, CallError> {
        match self {
            Self::Over { result, .. } => result.map(|result| result.json),
            Self::Dropped => Err(CallError::Internal),
            Self::Unfinished(call) => Box::pin(call.follow(server)).await,
        }
    }
}

impl CompletedCall {
    /// Returns true if the response may need further steps: it is an error that sends the user to an address, or the
    /// server is modern and asks a question, starts a task, or returns a kind of result that the eras write
    /// differently.
    fn is_unfinished(&self) -> bool {
        match &self.answer {
            Ok(_) => {
                let is_tool = matches!(self.call.request, CallRequest::Tool(_));
                self.by == Some(Era::Modern) && !(is_tool && self.marks.is_complete())
            }
            Err(CallError::Refused { error, .. }) => has_elicitations(error),
            Err(_) => false,
        }
    }
}

impl Outdated {
    /// Returns the part of a call that prevented it from running, if its tool has changed.
    fn of(error: &CallError, by: Option<Era>) -> Option<Self> {
        match error {
            CallError::ConsentNeeded => Some(Self::Consent),
            CallError::Refused { code, .. }
                if by == Some(Era::Modern) && *code == HEADER_MISMATCH.to_string() =>
            {
                Some(Self::Headers)
            }
            _ => None,
        }
    }
}

impl Unfinished {
    /// Follows the call until there is a result. Dropping the future cancels it.
    pub(crate) async fn follow(self, server: &ServerHandle) -> Result<RawJson, CallError> {
        rounds::follow(server, self.0).await
    }
}

pub(crate) enum AnswerReceiver {
    /// A future that waits for it.
    Waiting(oneshot::Sender<CompletedCall>),
    /// A callback that handles it at once.
    Callback(AnswerCallback),
}

impl AnswerReceiver {
    pub(crate) fn give(self, answered: CompletedCall) {
        match self {
            Self::Waiting(reply) => {
                // A caller that is gone has cancelled the call.
                let _ = reply.send(answered);
            }
            Self::Callback(then) => then.run(answered),
        }
    }
}

/// A callback for an answer. It is called once, even if the call is dropped without one.
pub(crate) struct AnswerCallback(Option<Box<dyn FnOnce(CallEnd) + Send>>);

impl AnswerCallback {
    pub(crate) fn new(then: impl FnOnce(CallEnd) + Send + 'static) -> Self {
        Self(Some(Box::new(then)))
    }

    fn run(mut self, answered: CompletedCall) {
        if let Some(then) = self.0.take() {
            then(CallEnd::of(answered));
        }
    }
}

impl Drop for AnswerCallback {
    fn drop(&mut self) {
        if let Some(then) = self.0.take() {
            // A panic or a bug in the task of the server must not leave the caller without an answer.
            then(CallEnd::Dropped);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::{
        downstream::{
            server::{CallTicket, QueuedCall},
            test_client::{TestClient, json},
        },
        shapes::Shapes,
    };

    /// Describes the end of a call.
    fn described(end: &CallEnd) -> String {
        match end {
            CallEnd::Over {
                result: Ok(result), ..
            } => result.json.as_str().to_owned(),
            CallEnd::Over {
                result: Err(error), ..
            } => error.to_string(),
            CallEnd::Dropped => "dropped".to_owned(),
            CallEnd::Unfinished(_) => "unfinished".to_owned(),
        }
    }

    fn answered(by: Era) -> CompletedCall {
        CompletedCall {
            marks: ResultMarks::default(),
            call: TestClient::new(Era::Legacy, "{}").call(),
            answer: Ok(json(r#"{"a":1}"#)),
            by: Some(by),
            sent_at: None,
        }
    }

    /// Returns the descriptions of the ends that a receiver got during `act`.
    fn described_by(act: impl FnOnce(AnswerReceiver)) -> Vec<String> {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let hear = Arc::clone(&heard);
        act(AnswerReceiver::Callback(AnswerCallback::new(move |end| {
            hear.lock().unwrap().push(described(&end));
        })));
        Arc::into_inner(heard).unwrap().into_inner().unwrap()
    }

    #[test]
    fn the_end_of_a_call_is_reported_once_even_if_it_is_dropped() {
        let legacy = described_by(|reply| reply.give(answered(Era::Legacy)));
        assert_eq!(legacy, [r#"{"a":1}"#]);
        let modern = described_by(|reply| reply.give(answered(Era::Modern)));
        assert_eq!(modern, ["unfinished"]);
        let dropped = described_by(drop);
        assert_eq!(dropped, ["dropped"]);
    }

    #[test]
    fn only_a_success_fills_the_place_for_its_shape() {
        let answers = [
            (Err(CallError::Internal), false),
            (Ok(json(r#"{"a":1}"#)), true),
            (Ok(json(r#"{"a":1}"#)), false),
        ];
        for (answer, is_error) in answers {
            let shape = Shapes::default().of(&"x".into());
            let is_filled = answer.is_ok() && !is_error;
            let call = TestClient::new(Era::Legacy, "{}").call();
            let reply = AnswerReceiver::Callback(AnswerCallback::new(drop));
            let mut queued = QueuedCall::new(CallTicket(1), call, reply);
            queued.shape = shape.due();
            queued.marks.is_error = is_error;
            queued.answer(answer);
            assert_eq!(shape.due().is_none(), is_filled, "{is_error}");
        }
    }
}
