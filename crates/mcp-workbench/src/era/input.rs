//! Input that a modern server requests in place of a result.

use rawjson::{ObjectText, RawJson};

/// The member of a repeated request that has the answers.
pub(crate) const INPUT_RESPONSES: &str = "inputResponses";
/// The opaque state that a result carries and the repeated request sends back.
pub(crate) const REQUEST_STATE: &str = "requestState";
/// The member of a result that has the questions.
pub(crate) const INPUT_REQUESTS: &str = "inputRequests";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InputRequired {
    /// The questions, in the order in which the server wrote them.
    pub requests: Vec<InputRequest>,
    /// The state to send back unchanged, if any.
    pub state: Option<RawJson>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InputRequest {
    /// The key of the answer.
    pub key: String,
    /// The method of the question, which is the same in the legacy era.
    pub method: String,
    pub params: Option<RawJson>,
}

impl InputRequired {
    /// Reads the questions of a result, or of a task that waits for input; `None` if they are malformed.
    pub(crate) fn read(result: &RawJson) -> Option<Self> {
        let requests = match result.member(INPUT_REQUESTS) {
            None => Vec::new(),
            Some(requests) => {
                let members = requests.members()?;
                let requests = members.iter().map(|member| {
                    Some(InputRequest {
                        key: member.key.clone().into_owned(),
                        method: member.value.member("method")?.as_text()?.into_owned(),
                        params: member.value.member("params"),
                    })
                });
                requests.collect::<Option<_>>()?
            }
        };
        let state = result.member(REQUEST_STATE);
        // A state without questions asks only for a repetition.
        (!requests.is_empty() || state.is_some()).then_some(Self { requests, state })
    }

    pub(crate) fn to_result(&self) -> RawJson {
        let mut result = ObjectText::new().member("resultType", "input_required");
        if !self.requests.is_empty() {
            let requests = self
                .requests
                .iter()
                .fold(ObjectText::new(), |text, request| {
                    let question = ObjectText::new().member("method", &request.method);
                    let question = match &request.params {
                        Some(params) => question.raw("params", params),
                        None => question,
                    };
                    text.raw(&request.key, &question.finish())
                });
            result = result.raw(INPUT_REQUESTS, &requests.finish());
        }
        if let Some(state) = &self.state {
            result = result.raw(REQUEST_STATE, state);
        }
        result.finish()
    }
}
