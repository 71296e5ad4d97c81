//! Completions: words that begin with the typed text.

use rmcp::{
    ErrorData,
    model::{CompleteRequestParams, CompleteResult, CompletionInfo, Reference},
};

use crate::{prompts, resources};

const WORDS: [&str; 5] = ["paris", "park", "party", "test", "testing"];
const IDS: [&str; 3] = ["1", "12", "123"];

pub(crate) fn complete(request: &CompleteRequestParams) -> Result<CompleteResult, ErrorData> {
    let candidates: &[&str] = match (&request.r#ref, request.argument.name.as_str()) {
        (Reference::Prompt(prompt), "arg1" | "arg2") if prompt.name == prompts::WITH_ARGUMENTS => {
            &WORDS
        }
        (Reference::Resource(template), "id") if template.uri == resources::TEMPLATE => &IDS,
        _ => return Err(ErrorData::invalid_params("Nothing to complete there", None)),
    };
    let values = candidates
        .iter()
        .filter(|candidate| candidate.starts_with(&request.argument.value))
        .map(|&candidate| candidate.to_owned())
        .collect();
    let completion = CompletionInfo::with_all_values(values)
        .expect("the lists are shorter than what one answer may hold");
    Ok(CompleteResult::new(completion))
}
