//! Where the answer to a call goes, and what it means to whoever made the call.

use tokio::{sync::oneshot, time::Instant};

use crate::{
    call::Call,
    downstream::{error::CallError, protocol::rounds},
    era::Era,
    wire::RawJson,
};

/// A call that is over for its server.
pub(crate) struct Answered {
    /// The call, which may have to be made again.
    pub(crate) call: Call,
    pub(crate) answer: Result<RawJson, CallError>,
    /// How the server speaks that has answered; nothing if none has.
    pub(crate) by: Option<Era>,
    /// When the call was last given to a connection; nothing if it never was.
    pub(crate) sent_at: Option<Instant>,
}

/// What has come of a call.
pub enum CallEnd {
    /// A result, or why there is none.
    Over(Result<RawJson, CallError>),
    /// An answer that may be a question or a task: it has to be gone on with.
    Unfinished(Box<Unfinished>),
}

/// A call whose answer has to be gone on with.
pub struct Unfinished(pub(crate) Answered);

impl CallEnd {
    /// What an answer means for the client.
    pub(crate) fn of(answered: Answered) -> Self {
        match (answered.by, answered.call.context.client.era()) {
            (Some(Era::Modern), _) => Self::Unfinished(Box::new(Unfinished(answered))),
            (Some(Era::Legacy), Era::Modern) => Self::Over(rounds::answer_for_modern(answered)),
            _ => Self::Over(answered.answer),
        }
    }
}

/// Where the answer to a call goes.
pub(crate) enum CallReply {
    /// To a future that waits for it.
    Waiting(oneshot::Sender<Answered>),
    /// To whoever goes on with it at once.
    Then(Then),
}

impl CallReply {
    /// Gives the answer.
    pub(crate) fn give(self, answered: Answered) {
        match self {
            Self::Waiting(reply) => {
                // A caller that has gone away has cancelled.
                let _ = reply.send(answered);
            }
            Self::Then(then) => then.run(answered),
        }
    }
}

/// What is done with an answer. It is done once, even if the call is dropped without one.
pub(crate) struct Then(Option<Box<dyn FnOnce(CallEnd) + Send>>);

impl Then {
    pub(crate) fn new(then: impl FnOnce(CallEnd) + Send + 'static) -> Self {
        Self(Some(Box::new(then)))
    }

    fn run(mut self, answered: Answered) {
        if let Some(then) = self.0.take() {
            then(CallEnd::of(answered));
        }
    }
}

impl Drop for Then {
    fn drop(&mut self) {
        if let Some(then) = self.0.take() {
            then(CallEnd::Over(Err(CallError::Internal)));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::downstream::test_client::{TestClient, json};

    /// What was told, in words.
    fn told(end: &CallEnd) -> String {
        match end {
            CallEnd::Over(Ok(result)) => result.as_str().to_owned(),
            CallEnd::Over(Err(error)) => error.to_string(),
            CallEnd::Unfinished(_) => "unfinished".to_owned(),
        }
    }

    fn answered(by: Era) -> Answered {
        Answered {
            call: TestClient::new(Era::Legacy, "{}").call(),
            answer: Ok(json(r#"{"a":1}"#)),
            by: Some(by),
            sent_at: None,
        }
    }

    /// What is told by a reply with which this is done.
    fn told_by(act: impl FnOnce(CallReply)) -> Vec<String> {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let hear = Arc::clone(&heard);
        act(CallReply::Then(Then::new(move |end| {
            hear.lock().unwrap().push(told(&end));
        })));
        Arc::into_inner(heard).unwrap().into_inner().unwrap()
    }

    #[test]
    fn the_end_of_a_call_is_told_once_even_if_it_is_dropped() {
        let legacy = told_by(|reply| reply.give(answered(Era::Legacy)));
        assert_eq!(legacy, [r#"{"a":1}"#]);
        let modern = told_by(|reply| reply.give(answered(Era::Modern)));
        assert_eq!(modern, ["unfinished"]);
        let dropped = told_by(drop);
        assert_eq!(dropped, [CallError::Internal.to_string()]);
    }
}
