//! Interviews: the way in which a tool or a prompt asks the client, in both eras.
//!
//! A client of 2026-07-28 gets the questions as a result and sends a new request with the answers; that request
//! contains everything that is needed. An older client is sent the questions of a round as concurrent requests, and the
//! call waits. A client that has not announced the capability is not asked.

use std::{
    future::poll_fn,
    hash::{BuildHasher as _, RandomState},
    task::Poll,
};

use rmcp::{
    ErrorData, RoleServer,
    model::{
        ClientCapabilities, InputRequest, InputRequests, InputRequiredResult, InputResponses,
        ServerRequest,
    },
    service::{RequestContext, ServiceError},
};
use serde_json::{Value, json};

/// The questions of one tool or prompt.
pub(crate) struct Interview {
    /// The questions, by round and in order. There is at least one round.
    pub(crate) rounds: Vec<InputRequests>,
    /// The state that the client must return. Several rounds require one.
    pub(crate) state: State,
}

/// The state that comes with questions.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// None: only the answers come back.
    None,
    /// The client brings back the round that it answers, sealed.
    Sealed,
}

/// The answers and the state in a client's next request.
pub(crate) struct Retry<'a> {
    /// The tool or prompt; a state is good for no other.
    pub(crate) name: &'a str,
    pub(crate) responses: Option<&'a InputResponses>,
    /// The state that came with the questions.
    pub(crate) state: Option<&'a str>,
}

/// The progress of an interview.
pub(crate) enum Outcome {
    /// The answers of the last round, or of all rounds if they were asked one by one.
    Answered(InputResponses),
    /// The client must answer first.
    Asks(InputRequiredResult),
    /// The client gave no answer, for this reason.
    Failed(String),
}

impl Interview {
    /// One round of questions, without a state.
    pub(crate) fn once(questions: InputRequests) -> Self {
        Self {
            rounds: vec![questions],
            state: State::None,
        }
    }

    /// Asks the questions that are not answered yet.
    pub(crate) async fn hold(
        &self,
        retry: Retry<'_>,
        seals: &Seals,
        context: &RequestContext<RoleServer>,
    ) -> Result<Outcome, ErrorData> {
        let missing = self.missing_capabilities(context);
        if is_modern(context) {
            if !missing.is_empty() {
                return Err(ErrorData::missing_required_client_capability(required(
                    &missing,
                )));
            }
            return self.ask_by_result(&retry, seals);
        }
        if !missing.is_empty() {
            let words = format!("The client does not support {}", missing.join(", "));
            return Ok(Outcome::Failed(words));
        }
        Ok(self.ask_by_requests(context).await)
    }

    /// The capabilities that the questions need and the client has not announced.
    fn missing_capabilities(&self, context: &RequestContext<RoleServer>) -> Vec<&'static str> {
        let capabilities = context.client_capabilities().unwrap_or_default();
        let mut missing: Vec<_> = self
            .rounds
            .iter()
            .flatten()
            .filter(|(_, question)| !can_answer(&capabilities, question))
            .map(|(_, question)| capability_for(question))
            .collect();
        missing.sort_unstable();
        missing.dedup();
        missing
    }

    fn ask_by_result(&self, retry: &Retry<'_>, seals: &Seals) -> Result<Outcome, ErrorData> {
        let round = match retry.state {
            Some(state) => seals.open(retry.name, state, self.rounds.len())?,
            None => 0,
        };
        let stateless = self.state == State::None;
        let answered = retry
            .responses
            .filter(|responses| is_answered(&self.rounds[round], responses))
            .filter(|_| stateless || retry.state.is_some());
        let next = match answered {
            Some(responses) if round + 1 == self.rounds.len() => {
                return Ok(Outcome::Answered(responses.clone()));
            }
            Some(_) => round + 1,
            None => round,
        };
        let state = (!stateless).then(|| seals.seal(retry.name, next));
        let questions = self.rounds[next].clone();
        Ok(Outcome::Asks(InputRequiredResult::new(
            Some(questions),
            state,
        )))
    }

    async fn ask_by_requests(&self, context: &RequestContext<RoleServer>) -> Outcome {
        let mut responses = InputResponses::new();
        for questions in &self.rounds {
            let asking = questions
                .iter()
                .map(|(key, question)| ask(context, key, question.clone()));
            for answer in all(asking).await {
                match answer {
                    Ok((key, answer)) => responses.insert(key, answer),
                    Err(error) => return Outcome::Failed(format!("Asking failed: {error}")),
                };
            }
        }
        Outcome::Answered(responses)
    }
}

/// Seals the states of this process, so that one that was changed is found out.
#[derive(Default)]
pub(crate) struct Seals(RandomState);

impl Seals {
    fn seal(&self, name: &str, round: usize) -> String {
        format!("{round}.{:016x}", self.0.hash_one((name, round)))
    }

    fn open(&self, name: &str, state: &str, rounds: usize) -> Result<usize, ErrorData> {
        (0..rounds)
            .find(|&round| self.seal(name, round) == state)
            .ok_or_else(|| ErrorData::invalid_params("Unknown requestState", None))
    }
}

/// Returns true if the request is of a revision without `initialize`.
pub(crate) fn is_modern(context: &RequestContext<RoleServer>) -> bool {
    context
        .protocol_version()
        .is_some_and(|version| !version.has_initialize())
}

/// Returns true if the client has announced the capability for the question.
pub(crate) fn can_answer(capabilities: &ClientCapabilities, question: &InputRequest) -> bool {
    match question {
        InputRequest::CreateMessage(_) => capabilities.sampling.is_some(),
        InputRequest::Elicitation(_) => capabilities.elicitation.is_some(),
        InputRequest::ListRoots(_) => capabilities.roots.is_some(),
        _ => false,
    }
}

fn capability_for(question: &InputRequest) -> &'static str {
    match question {
        InputRequest::CreateMessage(_) => "sampling",
        InputRequest::ListRoots(_) => "roots",
        _ => "elicitation",
    }
}

fn required(names: &[&str]) -> ClientCapabilities {
    let capabilities: Value = names.iter().map(|&name| (name, json!({}))).collect();
    serde_json::from_value(capabilities).expect("these are names of capabilities")
}

fn is_answered(questions: &InputRequests, responses: &InputResponses) -> bool {
    questions.iter().all(|(key, question)| {
        responses
            .get(key)
            .is_some_and(|answer| is_answer(question, answer))
    })
}

/// Returns true if a value has the form of an answer to the question.
fn is_answer(question: &InputRequest, answer: &Value) -> bool {
    match question {
        InputRequest::CreateMessage(_) => answer.get("content").is_some(),
        InputRequest::ListRoots(_) => answer.get("roots").is_some_and(Value::is_array),
        _ => match answer.get("action").and_then(Value::as_str) {
            Some("accept") => answer.get("content").is_some_and(Value::is_object),
            Some("decline" | "cancel") => true,
            _ => false,
        },
    }
}

async fn ask(
    context: &RequestContext<RoleServer>,
    key: &str,
    question: InputRequest,
) -> Result<(String, Value), ServiceError> {
    let request = match question {
        InputRequest::CreateMessage(request) => ServerRequest::CreateMessageRequest(request),
        InputRequest::Elicitation(request) => ServerRequest::ElicitRequest(request),
        InputRequest::ListRoots(request) => ServerRequest::ListRootsRequest(request),
        _ => return Err(ServiceError::UnexpectedResponse),
    };
    let answer = context.peer.send_request(request).await?;
    Ok((key.to_owned(), json!(answer)))
}

/// Waits for all of them side by side, in this task: rmcp knows by the task which request a question
/// belongs to.
async fn all<F: Future>(futures: impl Iterator<Item = F>) -> Vec<F::Output> {
    let mut futures: Vec<_> = futures.map(Box::pin).collect();
    let mut outputs: Vec<_> = futures.iter().map(|_| None).collect();
    poll_fn(|context| {
        for (future, output) in futures.iter_mut().zip(&mut outputs) {
            if output.is_none()
                && let Poll::Ready(ready) = future.as_mut().poll(context)
            {
                *output = Some(ready);
            }
        }
        if outputs.iter().all(Option::is_some) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
    outputs.into_iter().flatten().collect()
}
