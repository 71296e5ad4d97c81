//! `read_result`: reads a stored result page by page, searches it for a text, or selects a part of it. It is for
//! clients that cannot read resources.

use std::borrow::Cow;

use rawjson::{Kind, RawJson};
use serde_json::json;

use super::{
    failure::Failure,
    hints,
    parameters::{Key, ParameterReader, near_key},
    read_only,
    text_matches::text_matches,
    use_tool::SELECT_HINT,
};
use crate::{
    budget::{Address, NotSelectable, SelectableResult},
    call::CallContext,
    config::{MetaTool, Selecting},
    jq::Filter,
    workbench::{PageError, StoredResult, Workbench, count, find_result, fit_page},
};

const RESULT: Key = Key {
    name: "result",
    path: "result",
};
const PAGE: Key = Key {
    name: "page",
    path: "page",
};
const QUERY: Key = Key {
    name: "query",
    path: "query",
};

const SELECT: Key = Key {
    name: "select",
    path: "select",
};

const KEYS: &[Key] = &[RESULT, PAGE, QUERY];
const KEYS_WITH_SELECT: &[Key] = &[RESULT, PAGE, QUERY, SELECT];

/// An upper bound that no result reaches.
const MAX_PAGES: usize = 1_000_000;

pub(super) fn definition(workbench: &Workbench) -> RawJson {
    let mut definition = json!({
        "name": MetaTool::ReadResult.name(),
        "title": "Read result",
        "description": "Read more of a result that was cut: one page, or the lines that contain a text.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "result": { "type": "string", "description": "Id or URI that the cut result names" },
                "page": { "type": "integer", "minimum": 1 },
                "query": { "type": "string", "description": "Text to find" },
            },
            "required": ["result"],
            "additionalProperties": false,
        },
        "annotations": read_only(),
        "_meta": hints(),
    });
    if workbench.config().select == Selecting::On {
        let select = json!({ "type": "string", "description": SELECT_HINT });
        definition["inputSchema"]["properties"]["select"] = select;
    }
    RawJson::of(&definition)
}

/// Reads the page, searches for the text, or applies the filter that the arguments name.
pub(super) async fn run(
    workbench: &Workbench,
    arguments: &RawJson,
    context: &CallContext,
) -> Result<RawJson, Failure> {
    let keys = match workbench.config().select {
        Selecting::On => KEYS_WITH_SELECT,
        Selecting::Off => KEYS,
    };
    let params = ReadResultParams::read(arguments, keys)?;
    let owner = context.client.recipient().owner;
    let refused = |error: PageError| Failure::NotRead {
        result: params.result.clone(),
        page: params.address.as_ref().map_or(1, |address| address.page),
        error,
    };
    let address = params
        .address
        .as_ref()
        .ok_or(PageError::Gone)
        .map_err(refused)?;
    let stored = find_result(workbench, address, owner)
        .await
        .map_err(refused)?;
    if let Some(filter) = &params.select {
        let selected = select(workbench, &stored, filter).await?;
        // The part that the filter selects may be too long again.
        let page_size = stored.page_size;
        return Ok(fit_page(workbench, page_size, owner, texts(&[selected])));
    }
    let read = match &params.query {
        Some(query) => vec![found(&stored, query)],
        None => {
            let page = stored.page(address.view, address.page).map_err(refused)?;
            vec![page.to_owned(), place(&stored, address)]
        }
    };
    Ok(texts(&read))
}

/// Applies a filter to a stored result.
async fn select(
    workbench: &Workbench,
    stored: &StoredResult,
    filter: &Filter,
) -> Result<String, Failure> {
    let failed = |why: String| Failure::NotSelected { why };
    let result = RawJson::parse(&stored.json().to_owned().into())
        .map_err(|_| failed(NotSelectable::NotJson.to_string()))?;
    let selection = SelectableResult::of(&result).map_err(|error| failed(error.to_string()))?;
    let selected = workbench.select(filter, selection.input()).await;
    selected.map_err(|error| failed(error.to_string()))
}

/// Returns a result with these texts.
fn texts(texts: &[String]) -> RawJson {
    let content = texts
        .iter()
        .map(|text| json!({ "type": "text", "text": text }));
    let content: Vec<_> = content.collect();
    RawJson::of(&json!({ "content": content }))
}

struct ReadResultParams {
    /// The result as the caller named it.
    result: String,
    /// `None` if that cannot be a valid id.
    address: Option<Address>,
    query: Option<String>,
    select: Option<Filter>,
}

impl ReadResultParams {
    fn read(arguments: &RawJson, keys: &[Key]) -> Result<Self, Failure> {
        let mut problems = Vec::new();
        let hint = |key: &str| near_key(key, keys);
        let reader = ParameterReader::read(arguments, "", keys, hint, &mut problems);
        let result = match arguments.kind() {
            Kind::Object => reader.name(&RESULT, &mut problems),
            _ => None,
        };
        let page = reader.integer(&PAGE, 1..=MAX_PAGES, &mut problems);
        let query = reader.optional_name(&QUERY, &mut problems);
        let select = reader.filter(&SELECT, &mut problems);
        let Some(result) = result.filter(|_| problems.is_empty()) else {
            return Err(Failure::InvalidParameters {
                problems,
                available: None,
            });
        };
        let mut address = Address::parse_loosely(&result);
        if let (Some(address), Some(page)) = (&mut address, page) {
            // The parameter counts more than the page in the address.
            address.page = page;
        }
        Ok(Self {
            address,
            query: query.map(Cow::into_owned),
            select,
            result: result.into_owned(),
        })
    }
}

/// Returns the position of a page among the others.
fn place(stored: &StoredResult, address: &Address) -> String {
    let (page, pages) = (address.page, stored.pages(address.view));
    if page == pages {
        format!("[Page {page} of {pages}, the last.]")
    } else {
        format!("[Page {page} of {pages}. Read on with page {}.]", page + 1)
    }
}

/// Returns the matches of a text, each with its page, as many as fit on a page.
fn found(stored: &StoredResult, query: &str) -> String {
    let text_matches = text_matches(stored.text(), query);
    let (mut found, mut shown, mut room) = (String::new(), 0, stored.page_size);
    for found_match in &text_matches {
        let entry = format!("page {}: {found_match}\n", stored.page_at(found_match.at));
        let characters = entry.chars().count();
        // A longer answer would have to be cut itself.
        if characters > room {
            break;
        }
        room -= characters;
        shown += 1;
        found += &entry;
    }
    let left_out = if shown < text_matches.len() {
        format!(", {shown} shown")
    } else {
        String::new()
    };
    format!("{found}[{}{left_out}.]", count(text_matches.len(), "match"))
}
