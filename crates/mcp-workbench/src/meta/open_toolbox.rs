//! `open_toolbox`: connects to all servers of one toolbox and returns their tools.

use serde_json::{Map, Value, json};

use super::{
    failure::Failure,
    fitting::{MAX_CHARACTERS, size},
    hints,
    parameters::{Key, ParameterProblem, ParameterReader},
};
use crate::{
    call::CallContext,
    ident::ToolboxName,
    wire::{Kind, RawJson},
    workbench::Workbench,
};

/// The name under which a model calls it.
pub(super) const NAME: &str = "open_toolbox";

const TOOLBOX: Key = Key {
    name: "toolbox",
    path: "toolbox",
};

/// The description, up to the list of toolboxes.
const DESCRIPTION: &str = "Open a toolbox: connect to its MCP servers and get their tools, to be run with use_tool. \
                           Toolboxes: ";

/// The definition, with the toolboxes of this configuration.
pub(super) fn definition(workbench: &Workbench) -> RawJson {
    let names = workbench.toolbox_names();
    let names: Vec<&str> = names.iter().map(ToolboxName::as_str).collect();
    let mut toolbox = Map::new();
    toolbox.insert("type".into(), "string".into());
    toolbox.insert("description".into(), "Name of the toolbox".into());
    if !names.is_empty() {
        toolbox.insert("enum".into(), names.clone().into());
    }
    RawJson::of(&json!({
        "name": NAME,
        "title": "Open toolbox",
        "description": description(&names),
        "inputSchema": {
            "type": "object",
            "properties": { "toolbox": Value::Object(toolbox) },
            "required": ["toolbox"],
            "additionalProperties": false,
        },
        "_meta": hints(),
    }))
}

/// Opens the toolbox that the arguments name.
pub(super) async fn run(
    workbench: &Workbench,
    arguments: &RawJson,
    context: &CallContext,
) -> Result<RawJson, Failure> {
    let available = || {
        let names = workbench.toolbox_names();
        names.iter().map(ToString::to_string).collect()
    };
    let mut problems = Vec::new();
    let reader = ParameterReader::read(arguments, "", &[TOOLBOX], old_name, &mut problems);
    let toolbox = match arguments.kind() {
        Kind::Object => reader.name(&TOOLBOX, &mut problems),
        _ => None,
    };
    let Some(toolbox) = toolbox.filter(|_| problems.is_empty()) else {
        return Err(Failure::InvalidParameters {
            available: problems.iter().any(asks_for_a_name).then(available),
            problems,
        });
    };
    let Some(found) = workbench.toolbox(&toolbox) else {
        return Err(Failure::ToolboxUnknown {
            toolbox: ToolboxName::from(&*toolbox),
            available: available(),
        });
    };
    match workbench.open(&found, &context.client).await {
        Ok(opened) => {
            workbench.told(&found).await;
            Ok(opened.result.clone())
        }
        Err(error) => Err(Failure::NotOpened {
            toolbox: found.name().clone(),
            error,
        }),
    }
}

fn old_name(key: &str) -> Option<&'static str> {
    (key == "toolbox_name").then_some("did you mean 'toolbox'?")
}

fn asks_for_a_name(problem: &ParameterProblem) -> bool {
    matches!(
        problem,
        ParameterProblem::Required { .. } | ParameterProblem::Empty { .. }
    )
}

/// The description with the names of the toolboxes, as many as fit. The schema has all of them.
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
