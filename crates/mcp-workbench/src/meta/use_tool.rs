//! `use_tool`: its definition and its parameters. The pipeline makes the call.

use std::borrow::Cow;

use rawjson::{Kind, ObjectText, RawJson};
use serde_json::json;

use super::{
    failure::Failure,
    hints,
    parameters::{Key, ParameterProblem, ParameterReader},
};
use crate::{
    config::{MetaTool, Selecting},
    jq::Filter,
    wire::{CallOutline, Level, Outlined},
    workbench::{ToolNames, Workbench},
};

const TOOL: Key = Key {
    name: "tool",
    path: "tool",
};
const ARGUMENTS: Key = Key {
    name: "arguments",
    path: "arguments",
};
const SELECT: Key = Key {
    name: "select",
    path: "select",
};
const TOOLBOX_PART: Key = Key {
    name: "toolbox",
    path: "tool.toolbox",
};
const SERVER_PART: Key = Key {
    name: "server",
    path: "tool.server",
};
const TOOL_PART: Key = Key {
    name: "tool",
    path: "tool.tool",
};

/// The hint for callers that use the old form.
const NEW_FORM: &str = "name the tool as \"tool\": {\"toolbox\", \"server\", \"tool\"}";

/// The description of `select`, in the definitions of the tools that have it.
pub(super) const SELECT_HINT: &str = "jq filter for a JSON result";

/// Returns the definition, which names the meta-tools that list tools.
pub(super) fn definition(workbench: &Workbench) -> RawJson {
    let sources: Vec<&str> = [MetaTool::OpenToolbox, MetaTool::SearchTools]
        .into_iter()
        .filter(|tool| workbench.has(*tool))
        .map(MetaTool::name)
        .collect();
    let sources = sources.join(" or ");
    let mut definition = json!({
        "name": MetaTool::UseTool.name(),
        "title": "Use tool",
        "description": format!(
            "Run a tool of an open toolbox, named as in the result of {sources}, with arguments that match its \
             inputSchema."
        ),
        "inputSchema": {
            "type": "object",
            "properties": {
                "tool": {
                    "type": "object",
                    "properties": {
                        "toolbox": { "type": "string", "description": "Open toolbox", "minLength": 1 },
                        "server": { "type": "string", "description": "Its server", "minLength": 1 },
                        "tool": { "type": "string", "description": "The server's tool", "minLength": 1 },
                    },
                    "required": ["toolbox", "server", "tool"],
                    "additionalProperties": false,
                },
                "arguments": { "type": "object" },
            },
            "required": ["tool"],
            "additionalProperties": false,
        },
        "_meta": hints(),
    });
    if workbench.config().select == Selecting::On {
        let select = json!({ "type": "string", "description": SELECT_HINT });
        definition["inputSchema"]["properties"]["select"] = select;
    }
    RawJson::of(&definition)
}

pub(crate) struct UseToolParams<'a> {
    pub tool: UsedTool<'a>,
    /// The arguments of the tool, an object.
    pub arguments: RawJson,
    /// The filter for the result.
    pub select: Option<Filter>,
}

/// The tool that `use_tool` runs.
pub(crate) struct UsedTool<'a> {
    toolbox: Cow<'a, str>,
    server: Cow<'a, str>,
    tool: Cow<'a, str>,
}

impl UsedTool<'_> {
    pub(crate) fn names(&self) -> ToolNames<'_> {
        ToolNames {
            toolbox: &self.toolbox,
            server: &self.server,
            tool: &self.tool,
        }
    }
}

impl<'a> UseToolParams<'a> {
    /// Reads the parameters; `call` are those of `tools/call`, with their outline, and `parameters` returns the arguments
    /// in them. A failure is a result that a model can read.
    pub(crate) fn read(
        call: Option<(&'a RawJson, &CallOutline)>,
        parameters: impl FnOnce() -> RawJson,
        workbench: &Workbench,
    ) -> Result<Self, RawJson> {
        // The usual form first: it was outlined with the message, and needs no values.
        match call.and_then(|(params, outline)| Self::read_outlined(params, outline)) {
            Some(read) => Ok(read),
            None => {
                let keys: &[Key] = match workbench.config().select {
                    Selecting::On => &[TOOL, ARGUMENTS, SELECT],
                    Selecting::Off => &[TOOL, ARGUMENTS],
                };
                Self::read_any(&parameters(), keys).map_err(|failure| failure.to_result())
            }
        }
    }

    /// Reads parameters in their usual form without building values.
    fn read_outlined(params: &'a RawJson, outline: &CallOutline) -> Option<Self> {
        if outline.has_others(Level::Arguments) || outline.has_others(Level::Tool) {
            return None;
        }
        let parts = [
            Outlined::UsedToolbox,
            Outlined::UsedServer,
            Outlined::UsedName,
        ];
        let names = outline.texts_in(params, Outlined::UsedTool, parts)?;
        // A name that starts with white space may be nothing but white space, which the general path checks.
        if names
            .iter()
            .any(|name| name.is_empty() || name.starts_with(char::is_whitespace))
        {
            return None;
        }
        let [toolbox, server, tool] = names.map(Cow::Borrowed);
        Some(Self {
            tool: UsedTool {
                toolbox,
                server,
                tool,
            },
            arguments: match outline.get(params, Outlined::UsedArguments) {
                Some(arguments) if arguments.kind() == Kind::Object => arguments,
                Some(_) => return None,
                None => ObjectText::new().finish(),
            },
            select: None,
        })
    }

    /// Reads any parameters with these keys; problems are in the order in which they are reported.
    fn read_any(parameters: &RawJson, keys: &[Key]) -> Result<Self, Failure> {
        let mut unrecognized = Vec::new();
        let mut problems = Vec::new();
        let outer = ParameterReader::read(parameters, "", keys, old_form, &mut unrecognized);
        let tool = match parameters.kind() {
            Kind::Object => outer.required(&TOOL, &mut problems),
            _ => None,
        };
        let used = tool.and_then(|tool| {
            let keys = [TOOLBOX_PART, SERVER_PART, TOOL_PART];
            let inner = ParameterReader::read(tool, "tool", &keys, old_form, &mut unrecognized);
            if tool.kind() != Kind::Object {
                return None;
            }
            let mut part = |key: &Key| Some(inner.name(key, &mut problems)?.into_owned());
            let (toolbox, server, name) =
                (part(&TOOLBOX_PART), part(&SERVER_PART), part(&TOOL_PART));
            Some(UsedTool {
                toolbox: toolbox?.into(),
                server: server?.into(),
                tool: name?.into(),
            })
        });
        let arguments = read_arguments(outer.get(&ARGUMENTS), &mut problems);
        let select = outer.filter(&SELECT, &mut problems);
        // The contract fixes the order: unrecognized keys first, then the parts, then the arguments.
        unrecognized.append(&mut problems);
        match (used, arguments) {
            (Some(tool), Some(arguments)) if unrecognized.is_empty() => Ok(Self {
                tool,
                arguments,
                select,
            }),
            _ => Err(Failure::InvalidParameters {
                problems: unrecognized,
                available: None,
            }),
        }
    }
}

/// Returns the arguments as an object. Some models send the object as a string, which is parsed.
fn read_arguments(
    arguments: Option<&RawJson>,
    problems: &mut Vec<ParameterProblem>,
) -> Option<RawJson> {
    let Some(arguments) = arguments else {
        return Some(ObjectText::new().finish());
    };
    if arguments.kind() == Kind::Object {
        return Some(arguments.clone());
    }
    let held = arguments
        .as_text()
        .and_then(|text| RawJson::parse(&text.into_owned().into()).ok());
    // Minified, because line breaks between tokens would end the message that the object is spliced into.
    let held = held
        .filter(|held| held.kind() == Kind::Object)
        .map(|held| held.minified());
    if held.is_none() {
        problems.push(ParameterProblem::Expected {
            path: ARGUMENTS.path,
            expected: Kind::Object,
            received: arguments.kind(),
        });
    }
    held
}

fn old_form(key: &str) -> Option<&'static str> {
    match key {
        "toolbox_name" | "tool_name" | "server_name" | "source_server" => Some(NEW_FORM),
        "name" => Some("did you mean 'tool'?"),
        _ => None,
    }
}
