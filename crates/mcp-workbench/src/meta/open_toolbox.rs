//! `open_toolbox`: connects to all servers of one toolbox and returns their tools.

use std::sync::Arc;

use ident::{ToolIdentifier, ToolboxName};
use rawjson::{Kind, RawJson};
use search::{Explanation, Field, Query};
use serde_json::{Map, Value, json};

use super::{
    detail::{DETAIL, detail_schema, read_detail},
    failure::Failure,
    fitting::{MAX_CHARACTERS, size},
    hides_app_tools, hints, known_toolboxes,
    parameters::{Key, ParameterReader, near_key},
    read_only,
    search_tools::{QUERY, read_query},
};
use crate::{
    call::CallContext,
    config::{Detail, MetaTool},
    offload::offload,
    toolbox::{Matching, Opened, render_matching, render_opened},
    workbench::{Search, Workbench},
};

const TOOLBOX: Key = Key {
    name: "toolbox",
    path: "toolbox",
};
const KEYS: [Key; 3] = [TOOLBOX, DETAIL, QUERY];

/// The description, up to the list of toolboxes.
const DESCRIPTION: &str = "Open a toolbox: connect to its MCP servers and get their tools, to be run with use_tool. \
                           Toolboxes: ";

/// Returns the definition, with the toolboxes of this configuration.
pub(super) fn definition(workbench: &Workbench) -> RawJson {
    let names = workbench.toolbox_names();
    let names: Vec<&str> = names.iter().map(ToolboxName::as_str).collect();
    let mut toolbox = Map::new();
    toolbox.insert("type".into(), "string".into());
    toolbox.insert("description".into(), "Toolbox to open".into());
    toolbox.insert("minLength".into(), 1.into());
    if !names.is_empty() {
        // Clients that constrain their models to the schema cannot misspell a name then.
        toolbox.insert("enum".into(), names.clone().into());
    }
    RawJson::of(&json!({
        "name": MetaTool::OpenToolbox.name(),
        "title": "Open toolbox",
        "description": description(&names),
        "inputSchema": {
            "type": "object",
            "properties": {
                "toolbox": Value::Object(toolbox),
                "detail": detail_schema(workbench.config().open_detail),
                "query": { "type": "string", "description": "Only matching tools, best first" },
            },
            "required": ["toolbox"],
            "additionalProperties": false,
        },
        "annotations": read_only(),
        "_meta": hints(),
    }))
}

/// Opens the toolbox that the arguments name.
pub(super) async fn run(
    workbench: &Workbench,
    arguments: &RawJson,
    context: &CallContext,
) -> Result<RawJson, Failure> {
    let available = || known_toolboxes(workbench);
    let mut problems = Vec::new();
    let reader = ParameterReader::read(arguments, "", &KEYS, hint, &mut problems);
    let toolbox = match arguments.kind() {
        Kind::Object => reader.name(&TOOLBOX, &mut problems),
        _ => None,
    };
    let detail = read_detail(&reader, &mut problems);
    let query = read_query(&reader, &mut problems);
    let found = toolbox.as_deref().and_then(|it| workbench.toolbox(it));
    let (toolbox, found) = match (toolbox, found) {
        (Some(toolbox), found) if problems.is_empty() => (toolbox, found),
        (_, found) => {
            return Err(Failure::InvalidParameters {
                // Listed only if the toolbox is one of the mistakes.
                available: found.is_none().then(available),
                problems,
            });
        }
    };
    let Some(found) = found else {
        return Err(Failure::ToolboxUnknown {
            toolbox: ToolboxName::from(&*toolbox),
            available: available(),
        });
    };
    let detail = detail.unwrap_or_else(|| workbench.config().open_detail);
    match workbench.open_with_sign_in(&found, &context.client).await {
        Ok(opened) => {
            let opened = if hides_app_tools(context) && opened.has_app_only() {
                offload(opened.bytes(), move || opened.for_model()).await
            } else {
                opened
            };
            let result = match query {
                Some(query) => matching(workbench, opened, &query, detail, context).await,
                None => {
                    // Rendering thousands of definitions takes long enough to block the event loop.
                    let bytes = opened.unrendered_bytes(detail);
                    offload(bytes, move || render_opened(&opened, detail)).await
                }
            };
            // Only now, because the notices are in the result.
            workbench.mark_reported(&found);
            Ok(result)
        }
        Err(error) => Err(Failure::NotOpened {
            toolbox: found.name().clone(),
            error,
        }),
    }
}

/// Returns the tools of an open toolbox that match a query.
async fn matching(
    workbench: &Workbench,
    opened: Arc<Opened>,
    query: &str,
    detail: Detail,
    context: &CallContext,
) -> RawJson {
    let wanted = Query {
        text: query,
        toolbox: Some(opened.name()),
        limit: usize::MAX,
    };
    let search = workbench.search(&wanted, &context.client).await;
    let is_good = search.is_good;
    let hits = workbench.explain(&wanted, listed(search)).await;
    // Matches in the description of the toolbox or server fit all of its tools, so they count only if no tool matches
    // otherwise.
    let any_speaks = hits
        .iter()
        .any(|(_, explanation)| speaks_for_itself(explanation.as_ref()));
    let query = query.to_owned();
    offload(opened.bytes(), move || {
        let hits = hits
            .iter()
            .filter(|(_, explanation)| !any_speaks || speaks_for_itself(explanation.as_ref()));
        let tools = hits.filter_map(|(tool, _)| {
            let definition = opened.tool(&tool.server, tool.tool.as_str())?;
            Some((tool.server.clone(), definition))
        });
        let matching = Matching {
            query: &query,
            tools: tools.collect(),
            is_good,
        };
        render_matching(&opened, &matching, detail)
    })
    .await
}

/// Returns the tools to list: all matches with their near-duplicates, because the caller asked for the whole list, or
/// without a good match only the nearest ones.
fn listed(search: Search) -> Vec<ToolIdentifier> {
    if !search.is_good {
        let nearest = search.shown().iter();
        return nearest.map(|hit| hit.tool.clone()).collect();
    }
    let hits = search.hits.into_iter();
    hits.flat_map(|hit| std::iter::once(hit.tool).chain(hit.alike))
        .collect()
}

/// Returns whether a tool matches by more than the description of its server.
fn speaks_for_itself(explanation: Option<&Explanation>) -> bool {
    explanation.is_some_and(|it| {
        let mut fields = it.words.iter().flat_map(|word| &word.fields);
        it.exact.is_some() || fields.any(|field| *field != Field::About)
    })
}

fn hint(key: &str) -> Option<String> {
    if key == "toolbox_name" {
        return Some("did you mean 'toolbox'?".to_owned());
    }
    near_key(key, &KEYS)
}

/// Returns the description with as many names of toolboxes as fit. The schema has all of them.
fn description(names: &[&str]) -> String {
    if names.is_empty() {
        return format!("{DESCRIPTION}none is configured.");
    }
    let whole = format!("{DESCRIPTION}{}.", names.join(", "));
    if size(&whole) <= MAX_CHARACTERS {
        return whole;
    }
    let mut text = DESCRIPTION.to_owned();
    for (index, name) in names.iter().enumerate() {
        let rest = format!("… and {} more.", names.len() - index);
        let with_next = format!("{text}{name}, ");
        if size(&with_next) + size(&rest) > MAX_CHARACTERS {
            return text + &rest;
        }
        text = with_next;
    }
    text
}

#[cfg(test)]
mod tests;
