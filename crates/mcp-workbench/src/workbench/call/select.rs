//! Filters: a client gets the part of a result that a filter selects. The whole result is stored, like one that is over
//! its budget. A filter that fails changes nothing: the result is passed on with a line that says why, and the tool is
//! never called again for it.

use rawjson::RawJson;
use serde_json::{Map, Value, json};

use super::{
    CallReply, CallResult, Mode, Run,
    budget::{RESULT_KEY, addresses},
};
use crate::{
    budget::{Address, MetaMember, NotSelectable, SelectableResult, View, with_remark},
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

/// A result to which a filter was applied or not, and the line that says so.
struct Selected {
    result: RawJson,
    remark: Option<SelectRemark>,
}

/// A line for the model, and the members of `_meta` for programs.
struct SelectRemark {
    text: String,
    mark: (&'static str, RawJson),
    /// The members that say where the whole result is read, if it is stored.
    whole: Map<String, Value>,
}

/// Applies a filter to the result of a call, and returns the reply. The line about the filter is added after the budget
/// was applied, so that it is never cut, and is not part of a stored result.
pub(super) async fn reply(run: &Run, filter: &Filter, result: CallResult) -> CallReply {
    let Selected {
        result: json,
        remark,
    } = apply(run, filter, result.json).await;
    // `None`: the operation in the event stream has ended before the filter ran.
    let within_budget = run.prepare(CallResult::new(json.clone(), result.era), None);
    let result = match remark {
        Some(remark) => {
            let is_cut = within_budget.json != json;
            CallResult::new(remark.add_to(&within_budget.json, is_cut), result.era)
        }
        None => within_budget,
    };
    CallReply::Result(result.into_client(run.client.era()))
}

async fn apply(run: &Run, filter: &Filter, result: RawJson) -> Selected {
    let unchanged = |result| Selected {
        result,
        remark: None,
    };
    let refused = |result, why: &str| Selected {
        result,
        remark: Some(SelectRemark::refused(why)),
    };
    let selection = match SelectableResult::of(&result) {
        // The client was shown the tool's `outputSchema`, and rejects a result without its structured content.
        Ok(selection) if run.mode == Mode::Registered && selection.is_structured() => {
            return unchanged(result);
        }
        Ok(selection) => selection,
        Err(NotSelectable::NotFinal) => return unchanged(result),
        Err(error @ NotSelectable::NotJson) => return refused(result, &error.to_string()),
    };
    let output = match filters::run(&run.workbench, filter, selection.input()).await {
        Ok(output) => output,
        Err(error) => return refused(result.clone(), &error.to_string()),
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
        // Nothing is left out that nobody could read.
        return refused(result.clone(), "the whole result is too large to be stored");
    };
    let characters = selection.characters();
    Selected {
        result: selection.compose(&[&output]),
        remark: Some(SelectRemark::selected(&run.workbench, &stored, characters)),
    }
}

impl SelectRemark {
    /// Creates the remark about a part: how much there is, and how to read it.
    fn selected(workbench: &Workbench, stored: &StoredResult, characters: usize) -> Self {
        let place = if workbench.has(MetaTool::ReadResult) {
            let call = json!({ "result": stored.id });
            format!("{} with {call}", MetaTool::ReadResult.name())
        } else {
            Address::first(&stored.id, View::Text).to_string()
        };
        let mut whole = Map::new();
        whole.insert("characters".to_owned(), characters.into());
        whole.extend(addresses(stored));
        Self {
            text: format!(
                "[Selected from {characters} characters. The whole result, for a while: {place}]"
            ),
            mark: ("selected", RawJson::of(&true)),
            whole,
        }
    }

    /// Creates the remark about a result that was not filtered.
    fn refused(why: &str) -> Self {
        Self {
            text: format!("[select was not applied: {why}. The result is not filtered.]"),
            mark: ("select_error", RawJson::of(&why)),
            whole: Map::new(),
        }
    }

    /// Adds the remark to a result. In one that is cut, `_meta` already says where the rest of the shown part is.
    fn add_to(&self, result: &RawJson, is_cut: bool) -> RawJson {
        let about_cut = result.member("_meta").and_then(|it| it.member(RESULT_KEY));
        let whole = RawJson::of(&self.whole);
        let (mark, value) = &self.mark;
        let about = match about_cut.filter(|_| is_cut) {
            Some(about) if self.whole.is_empty() => about.with_member(mark, value),
            Some(about) => about.with_member(mark, value).with_member("whole", &whole),
            None => whole.with_member(mark, value),
        };
        let about = MetaMember {
            key: RESULT_KEY,
            value: &about,
        };
        with_remark(result, &self.text, about)
    }
}
