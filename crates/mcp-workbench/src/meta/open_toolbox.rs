//! `open_toolbox`: connects to all servers of one toolbox and returns their tools.

use serde_json::{Map, Value, json};

use super::{
    failure::Failure,
    parameters::{Key, ParameterProblem, ParameterReader},
};
use crate::{call::CallContext, ident::ToolboxName, wire::RawJson, workbench::Workbench};

/// The name under which a model calls it.
pub(super) const NAME: &str = "open_toolbox";

const TOOLBOX: Key = Key {
    name: "toolbox",
    path: "toolbox",
};

/// How long the list of names in the description may be; clients cut descriptions at 2,048 characters.
const NAMES_CHARACTERS: usize = 1500;

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
        "description": format!(
            "Open a toolbox: connect to its MCP servers and get their tools, to be run with use_tool. \
             Toolboxes: {}.",
            list_names(&names)
        ),
        "inputSchema": {
            "type": "object",
            "properties": { "toolbox": Value::Object(toolbox) },
            "required": ["toolbox"],
            "additionalProperties": false,
        },
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
    let toolbox = match arguments.members() {
        Some(_) => reader.name(&TOOLBOX, &mut problems),
        None => None,
    };
    let Some(toolbox) = toolbox.filter(|_| problems.is_empty()) else {
        return Err(Failure::InvalidParameters {
            available: problems.iter().any(asks_for_a_name).then(available),
            problems,
        });
    };
    let Some(found) = workbench.toolbox(&toolbox) else {
        return Err(Failure::ToolboxUnknown {
            toolbox: ToolboxName::from(toolbox.as_str()),
            available: available(),
        });
    };
    match workbench.open(&found, &context.client).await {
        Ok(opened) => Ok(opened.result.clone()),
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

/// The names, as many as fit.
fn list_names(names: &[&str]) -> String {
    if names.is_empty() {
        return "none is configured".to_owned();
    }
    let mut list = String::new();
    for (index, name) in names.iter().enumerate() {
        if list.chars().count() + name.chars().count() > NAMES_CHARACTERS {
            return format!("{list}, … and {} more", names.len() - index);
        }
        if index > 0 {
            list.push_str(", ");
        }
        list.push_str(name);
    }
    list
}
