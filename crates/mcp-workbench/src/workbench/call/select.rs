//! Filters: a client gets the part of a result that a filter selects. The whole result is stored, like one that is over
//! its budget. A filter that fails changes nothing: the result is passed on with a line that says why, and the tool is
//! never called again for it.

use rawjson::RawJson;
use serde_json::json;

use super::{
    Mode, Run,
    budget::{RESULT_KEY, addresses},
};
use crate::{
    budget::{Address, MetaMember, NotSelectable, Selection, View, with_remark},
    config::MetaTool,
    jq::Filter,
    workbench::{
        StoredResult, Workbench, filters,
        results::{WholeResult, store_result},
    },
};

/// The length of a page of a stored result whose server has no budget.
const PAGE_CHARACTERS: usize = 20_000;

/// The filter of a call.
pub(crate) enum Select {
    /// The caller's own.
    Filter(Filter),
    /// The one that the configuration has for the tool, if any.
    Default,
    /// None: the result is passed on whole.
    Whole,
}

impl Run {
    /// Returns the filter for the result of the call. Native mode passes results on as they are.
    pub(super) fn filter(&self) -> Option<Filter> {
        match &self.select {
            _ if self.mode == Mode::Native => None,
            Select::Filter(filter) => Some(filter.clone()),
            Select::Default => filters::default_filter(&self.workbench, &self.tool),
            Select::Whole => None,
        }
    }
}

/// Applies a filter to the result of a call.
pub(super) async fn apply(run: &Run, filter: &Filter, result: RawJson) -> RawJson {
    let selection = match Selection::of(&result) {
        // The client was shown the tool's `outputSchema`, and rejects a result without its structured content.
        Ok(selection) if run.mode == Mode::Registered && selection.is_structured() => {
            return result;
        }
        Ok(selection) => selection,
        Err(NotSelectable::NotFinal) => return result,
        Err(error @ NotSelectable::NotJson) => return refused(&result, &error.to_string()),
    };
    let output = match filters::run(&run.workbench, filter, selection.input()).await {
        Ok(output) => output,
        Err(error) => return refused(&result, &error.to_string()),
    };
    let budget = run.workbench.budget(&run.tool.server_identifier());
    let page_size = budget.unwrap_or(PAGE_CHARACTERS);
    let whole = WholeResult {
        owner: run.client.recipient().owner,
        json: &result,
        text: selection.text(),
        text_pages: selection.pages(page_size),
        page_size,
    };
    let Some(stored) = store_result(&run.workbench, whole) else {
        return refused(&result, "the whole result is too large to be stored");
    };
    let notice = notice(&run.workbench, &stored, selection.characters());
    let mut about = json!({ "selected": true, "characters": selection.characters() });
    if let Some(about) = about.as_object_mut() {
        about.extend(addresses(&stored));
    }
    let about = RawJson::of(&about);
    selection.compose(
        &[&output, &notice],
        MetaMember {
            key: RESULT_KEY,
            value: &about,
        },
    )
}

/// Returns the notice for the model: how much there is, and how to read it.
fn notice(workbench: &Workbench, stored: &StoredResult, characters: usize) -> String {
    let place = if workbench.has(MetaTool::ReadResult) {
        let call = json!({ "result": stored.id });
        format!("{} with {call}", MetaTool::ReadResult.name())
    } else {
        Address::first(&stored.id, View::Text).to_string()
    };
    format!("[Selected from {characters} characters. The whole result, for a while: {place}]")
}

/// Returns the result with a line that says why it is whole.
fn refused(result: &RawJson, why: &str) -> RawJson {
    let remark = format!("[select was not applied: {why}. This is the whole result.]");
    let about = RawJson::of(&json!({ "select_error": why }));
    with_remark(
        result,
        &remark,
        MetaMember {
            key: RESULT_KEY,
            value: &about,
        },
    )
}
