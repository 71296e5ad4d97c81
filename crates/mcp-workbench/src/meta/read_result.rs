//! `read_result`: reads a stored result page by page, or searches it for a text. It is for clients that cannot read
//! resources.

use std::borrow::Cow;

use rawjson::{Kind, RawJson};
use serde_json::json;

use super::{
    failure::Failure,
    hints,
    parameters::{Key, ParameterReader, near_key},
    read_only,
    text_matches::text_matches,
};
use crate::{
    budget::Address,
    call::CallContext,
    config::MetaTool,
    workbench::{PageError, StoredResult, Workbench, count},
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

const KEYS: [Key; 3] = [RESULT, PAGE, QUERY];

/// An upper bound that no result reaches.
const MAX_PAGES: usize = 1_000_000;

pub(super) fn definition() -> RawJson {
    RawJson::of(&json!({
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
    }))
}

/// Reads the page, or searches for the text, that the arguments name.
pub(super) fn run(
    workbench: &Workbench,
    arguments: &RawJson,
    context: &CallContext,
) -> Result<RawJson, Failure> {
    let params = ReadResultParams::read(arguments)?;
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
    let stored = workbench.results().find(address, owner).map_err(refused)?;
    let texts = match &params.query {
        Some(query) => vec![found(&stored, query)],
        None => {
            let page = stored.page(address.view, address.page).map_err(refused)?;
            vec![page.to_owned(), place(&stored, address)]
        }
    };
    let content: Vec<_> = texts
        .iter()
        .map(|text| json!({ "type": "text", "text": text }))
        .collect();
    Ok(RawJson::of(&json!({ "content": content })))
}

/// The parsed parameters.
struct ReadResultParams {
    /// The result as the caller named it.
    result: String,
    /// `None` if that cannot be a valid id.
    address: Option<Address>,
    query: Option<String>,
}

impl ReadResultParams {
    fn read(arguments: &RawJson) -> Result<Self, Failure> {
        let mut problems = Vec::new();
        let hint = |key: &str| near_key(key, &KEYS);
        let reader = ParameterReader::read(arguments, "", &KEYS, hint, &mut problems);
        let result = match arguments.kind() {
            Kind::Object => reader.name(&RESULT, &mut problems),
            _ => None,
        };
        let page = reader.integer(&PAGE, 1..=MAX_PAGES, &mut problems);
        let query = reader.optional_name(&QUERY, &mut problems);
        let Some(result) = result.filter(|_| problems.is_empty()) else {
            return Err(Failure::InvalidParameters {
                problems,
                available: None,
            });
        };
        let mut address = Address::parse_loosely(&result);
        if let (Some(address), Some(page)) = (&mut address, page) {
            address.page = page;
        }
        Ok(Self {
            address,
            query: query.map(Cow::into_owned),
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
