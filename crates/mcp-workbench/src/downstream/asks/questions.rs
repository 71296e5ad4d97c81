//! Asks a client the questions in a response of a modern server, all of them at once.

use std::sync::Arc;

use rawjson::{ObjectText, RawJson};
use tokio::task::JoinSet;

use crate::{
    call::{ClientHandle, Question},
    downstream::error::CallError,
    era::{Era, InputRequest, MISSING_CAPABILITY},
    wire::Answer,
};

/// Upper bound on the questions in one response.
const MAX_QUESTIONS: usize = 100;

/// The member of the elicitation capability that allows addresses.
const URL: &str = "url";
/// The member that allows forms. Without either member, forms are allowed.
const FORM: &str = "form";

/// The client and the configured roots that answer a server's questions.
pub(crate) struct Answerer<'a> {
    pub(crate) client: &'a Arc<dyn ClientHandle>,
    /// The answer to `roots/list`, if the configuration gives it.
    pub(crate) roots: Option<RawJson>,
}

impl Answerer<'_> {
    /// Returns true if the client itself can answer all of these questions.
    pub(crate) fn client_can_answer(&self, requests: &[InputRequest]) -> bool {
        requests.iter().all(|request| {
            Question::named(&request.method).is_some_and(|it| self.client_can(it, request))
        })
    }

    /// Asks all questions and waits for all answers. Returns them by the keys of the questions. Dropping the future
    /// withdraws the questions.
    pub(crate) async fn ask(&self, requests: &[InputRequest]) -> Result<RawJson, CallError> {
        // All are checked before the first is asked, so that nobody answers one question in vain.
        let questions = self.questions(requests)?;
        let mut answers: Vec<Option<RawJson>> = vec![None; requests.len()];
        let mut asked = JoinSet::new();
        for (index, (question, request)) in questions.iter().zip(requests).enumerate() {
            match (question, &self.roots) {
                (Question::Roots, Some(roots)) => answers[index] = Some(roots.clone()),
                _ => {
                    let params = self.params(*question, request);
                    let answer = self.client.ask(*question, params.as_ref());
                    asked.spawn(async move { (index, answer.await) });
                }
            }
        }
        while let Some(answered) = asked.join_next().await {
            let (index, answer) = answered.map_err(|_| CallError::Internal)?;
            let Some(Answer::Result(result)) = answer else {
                // Returning drops `asked`, which withdraws the other questions.
                let question = questions[index].method();
                return Err(CallError::Unanswered { question });
            };
            answers[index] = Some(result);
        }
        let responses =
            requests
                .iter()
                .zip(answers)
                .fold(ObjectText::new(), |text, (request, answer)| match answer {
                    Some(answer) => text.raw(&request.key, &answer),
                    None => text,
                });
        Ok(responses.finish())
    }

    /// Returns the questions, or an error if one of them cannot be answered.
    fn questions(&self, requests: &[InputRequest]) -> Result<Vec<Question>, CallError> {
        if requests.len() > MAX_QUESTIONS {
            return Err(CallError::UnknownAnswer);
        }
        let questions: Option<Vec<_>> = requests
            .iter()
            .map(|request| Question::named(&request.method))
            .collect();
        let questions = questions.ok_or(CallError::UnknownAnswer)?;
        let mut missing = ObjectText::new().finish();
        let mut is_missing = false;
        for (question, request) in questions.iter().zip(requests) {
            let from_configuration = *question == Question::Roots && self.roots.is_some();
            if !from_configuration && !self.client_can(*question, request) {
                is_missing = true;
                // All that is missing is named at once.
                missing = missing.with_member(question.capability(), &needed(*question, request));
            }
        }
        if is_missing {
            return Err(missing_capability(&missing));
        }
        Ok(questions)
    }

    fn client_can(&self, question: Question, request: &InputRequest) -> bool {
        can_answer(self.client, question, request.params.as_ref())
    }

    /// Returns the parameters in the form of the client's era: a legacy client identifies an address by an id.
    fn params(&self, question: Question, request: &InputRequest) -> Option<RawJson> {
        let params = request.params.clone()?;
        let needs_id = question == Question::Elicitation
            && is_url(Some(&params))
            && self.client.own_era() == Era::Legacy
            && params.member("elicitationId").is_none();
        Some(if needs_id {
            params.with_member("elicitationId", &RawJson::of(&fresh_id()))
        } else {
            params
        })
    }
}

/// Returns true if a client can be asked and declared support for this question in its form.
pub(crate) fn can_answer(
    client: &Arc<dyn ClientHandle>,
    question: Question,
    params: Option<&RawJson>,
) -> bool {
    let declared = client.capabilities().get(question);
    let Some(declared) = declared.filter(|_| client.can_answer(question)) else {
        return false;
    };
    let declares = |mode: &str| declared.member(mode).is_some();
    match question {
        Question::Elicitation if is_url(params) => declares(URL),
        Question::Elicitation => declares(FORM) || !declares(URL),
        Question::Sampling | Question::Roots => true,
    }
}

/// Returns the error for a client that lacks a capability.
pub(crate) fn missing_capability(required: &RawJson) -> CallError {
    let data = ObjectText::new().raw("requiredCapabilities", required);
    CallError::refusal(
        MISSING_CAPABILITY,
        "the client cannot answer what the server asks",
        Some(&data.finish()),
    )
}

/// Returns the capability that a question needs.
pub(crate) fn needed(question: Question, request: &InputRequest) -> RawJson {
    let nothing = ObjectText::new().finish();
    if question == Question::Elicitation && is_url(request.params.as_ref()) {
        ObjectText::new().raw(URL, &nothing).finish()
    } else {
        nothing
    }
}

fn is_url(params: Option<&RawJson>) -> bool {
    let mode = params.and_then(|it| it.member("mode"));
    mode.is_some_and(|mode| mode.as_text().is_some_and(|mode| mode == URL))
}

/// Returns an id that nobody can guess.
pub(crate) fn fresh_id() -> String {
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes).expect("the system has random numbers");
    format!("{:032x}", u128::from_be_bytes(bytes))
}

#[cfg(test)]
mod tests;
