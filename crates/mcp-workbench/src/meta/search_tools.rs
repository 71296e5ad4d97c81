//! `search_tools`: searches the tools of all toolboxes. The tools that it finds can be used at once.

use ident::ToolboxName;
use rawjson::{Kind, RawJson};
use search::Query;
use serde_json::{Map, Value, json};

use super::{
    detail::{DETAIL, detail_schema, read_detail},
    failure::Failure,
    found, hides_app_tools, hints, known_toolboxes,
    parameters::{Key, ParameterProblem, ParameterReader, near_key},
    read_only,
};
use crate::{
    call::CallContext,
    config::{Detail, MetaTool},
    toolbox::text_result,
    workbench::Workbench,
};

pub(super) const QUERY: Key = Key {
    name: "query",
    path: "query",
};
const TOOLBOX: Key = Key {
    name: "toolbox",
    path: "toolbox",
};
const LIMIT: Key = Key {
    name: "limit",
    path: "limit",
};
const KEYS: [Key; 4] = [QUERY, TOOLBOX, DETAIL, LIMIT];

/// The maximum number of tools that are shown.
pub(crate) const MAX_HITS: usize = 50;
/// The default number of tools that are shown.
pub(crate) const DEFAULT_HITS: usize = 5;

const MAX_QUERY_CHARACTERS: usize = 4096;

/// Returns the definition. It names the toolboxes if no other meta-tool does.
pub(super) fn definition(workbench: &Workbench) -> RawJson {
    let mut toolbox = Map::new();
    toolbox.insert("type".into(), "string".into());
    if !workbench.has(MetaTool::OpenToolbox) {
        let names = known_toolboxes(workbench);
        if !names.is_empty() {
            toolbox.insert("enum".into(), names.into());
        }
    }
    RawJson::of(&json!({
        "name": MetaTool::SearchTools.name(),
        "title": "Search tools",
        "description": "Find tools of all toolboxes by what they do. Run hits with use_tool at once. Ask for one \
                        step at a time.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "query": { "type": "string", "description": "What the tool should do" },
                "toolbox": Value::Object(toolbox),
                "detail": detail_schema(Detail::Signature),
                "limit": { "type": "integer", "minimum": 1, "maximum": MAX_HITS, "default": DEFAULT_HITS },
            },
            "required": ["query"],
            "additionalProperties": false,
        },
        "annotations": read_only(),
        "_meta": hints(),
    }))
}

/// Runs the search that the arguments describe.
pub(super) async fn run(
    workbench: &Workbench,
    arguments: &RawJson,
    context: &CallContext,
) -> Result<RawJson, Failure> {
    let params = read(arguments)?;
    let toolbox = params.toolbox.as_ref();
    if let Some(toolbox) = toolbox.filter(|it| workbench.toolbox(it.as_str()).is_none()) {
        return Err(Failure::ToolboxUnknown {
            toolbox: toolbox.clone(),
            available: known_toolboxes(workbench),
        });
    }
    let query = Query {
        text: &params.query,
        toolbox,
        limit: params.limit,
    };
    let mut search = workbench.search(&query, &context.client).await;
    if hides_app_tools(context) {
        search.hits.retain(|hit| !hit.definition.is_app_only());
    }
    let mut text = found::text(&search, &params.query, params.detail);
    if !search.is_good && workbench.has(MetaTool::OpenToolbox) {
        text.push_str(" Or see what a toolbox has: open_toolbox with detail \"brief\".");
    }
    Ok(text_result(&text))
}

#[derive(Debug, PartialEq, Eq)]
struct SearchToolsParams {
    query: String,
    toolbox: Option<ToolboxName>,
    detail: Detail,
    limit: usize,
}

/// Reads the parameters; problems are in the order in which they are reported.
fn read(parameters: &RawJson) -> Result<SearchToolsParams, Failure> {
    let mut problems = Vec::new();
    let hint = |key: &str| other_name(key).or_else(|| near_key(key, &KEYS));
    let reader = ParameterReader::read(parameters, "", &KEYS, hint, &mut problems);
    let query = match parameters.kind() {
        Kind::Object => {
            reader.required(&QUERY, &mut problems);
            read_query(&reader, &mut problems)
        }
        _ => None,
    };
    let toolbox = reader.optional_name(&TOOLBOX, &mut problems);
    let detail = read_detail(&reader, &mut problems).unwrap_or(Detail::Signature);
    let limit = reader.integer(&LIMIT, 1..=MAX_HITS, &mut problems);
    match query {
        Some(query) if problems.is_empty() => Ok(SearchToolsParams {
            query,
            toolbox: toolbox.map(|it| ToolboxName::from(&*it)),
            detail,
            limit: limit.unwrap_or(DEFAULT_HITS),
        }),
        _ => Err(Failure::InvalidParameters {
            problems,
            available: None,
        }),
    }
}

/// Reads the query, if it is valid.
pub(super) fn read_query(
    reader: &ParameterReader,
    problems: &mut Vec<ParameterProblem>,
) -> Option<String> {
    let query = reader.optional_name(&QUERY, problems)?;
    let received = query.chars().count();
    if received > MAX_QUERY_CHARACTERS {
        problems.push(ParameterProblem::TooLong {
            path: QUERY.path,
            longest: MAX_QUERY_CHARACTERS,
            received,
        });
        return None;
    }
    Some(query.into_owned())
}

/// Suggests our key for the name that other search tools use.
fn other_name(key: &str) -> Option<String> {
    let name = match key {
        "toolbox_name" => "toolbox",
        "q" | "text" | "search" | "keywords" => "query",
        "max_results" | "top_k" | "count" | "n" => "limit",
        "detail_level" | "level" => "detail",
        _ => return None,
    };
    Some(format!("did you mean '{name}'?"))
}

#[cfg(test)]
mod tests;
