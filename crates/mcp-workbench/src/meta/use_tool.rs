//! `use_tool`: runs one tool of an open toolbox and returns what its server answered, as it answered.

use std::sync::Arc;

use serde_json::json;

use super::{
    MetaReply,
    cut_result::{Origin, fit},
    failure::Failure,
    hints,
    parameters::{Key, ParameterProblem, ParameterReader},
};
use crate::{
    audit::Ended,
    budget::Structured,
    call::{Call, CallContext, CallRequest, Recipient},
    config::MetaTool,
    downstream::{CallError, ServerHandle},
    era::{self, Era},
    ident::{ServerName, ToolIdentifier, ToolName, ToolboxName},
    wire::{Cursor, Kind, ObjectText, RawJson, once},
    workbench::Workbench,
};

const TOOL: Key = Key {
    name: "tool",
    path: "tool",
};
const ARGUMENTS: Key = Key {
    name: "arguments",
    path: "arguments",
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

/// What a caller of the old form is told.
const NEW_FORM: &str = "name the tool as \"tool\": {\"toolbox\", \"server\", \"tool\"}";

/// The definition, which names the meta-tools that tell of tools.
pub(super) fn definition(workbench: &Workbench) -> RawJson {
    let sources = [MetaTool::OpenToolbox, MetaTool::SearchTools].into_iter();
    let sources = sources.filter(|tool| workbench.has(*tool));
    let sources: Vec<&str> = sources.map(MetaTool::name).collect();
    let sources = sources.join(" or ");
    RawJson::of(&json!({
        "name": MetaTool::UseTool.name(),
        "title": "Use tool",
        "description": format!(
            "Run a tool of an open toolbox. Take toolbox, server and tool name from the result of {sources}, and \
             arguments that match the tool's inputSchema."
        ),
        "inputSchema": {
            "type": "object",
            "properties": {
                "tool": {
                    "type": "object",
                    "properties": {
                        "toolbox": { "type": "string" },
                        "server": { "type": "string" },
                        "tool": { "type": "string" },
                    },
                    "required": ["toolbox", "server", "tool"],
                    "additionalProperties": false,
                },
                "arguments": { "type": "object", "description": "Arguments of the tool" },
            },
            "required": ["tool"],
            "additionalProperties": false,
        },
        "_meta": hints(),
    }))
}

/// Runs the tool that the arguments name.
pub(super) async fn run(
    workbench: &Workbench,
    arguments: &RawJson,
    context: CallContext,
) -> Result<MetaReply, Failure> {
    let (tool, arguments) = read(arguments)?;
    call_within_budget(workbench, tool, arguments, context, Structured::MayGo).await
}

/// Finds a tool and runs it, for a client that gets no more of the result than the budget of its server.
pub(super) async fn call_within_budget(
    workbench: &Workbench,
    tool: ToolIdentifier,
    arguments: RawJson,
    context: CallContext,
    structured: Structured,
) -> Result<MetaReply, Failure> {
    let client = Arc::clone(&context.client);
    let reply = call(workbench, &tool, arguments, context).await?;
    Ok(match reply {
        MetaReply::Result(result) if workbench.results().could_be_over(&result) => {
            let origin = Origin {
                server: &tool.server_identifier(),
                tool: Some(&tool.tool),
                structured,
            };
            let recipient = || client.recipient();
            MetaReply::Result(fit(workbench, &origin, recipient, result))
        }
        reply => reply,
    })
}

/// Finds a tool and runs it, and notes that where calls are noted.
pub(super) async fn call(
    workbench: &Workbench,
    tool: &ToolIdentifier,
    arguments: RawJson,
    context: CallContext,
) -> Result<MetaReply, Failure> {
    let noted = workbench.audit().begin(tool, &arguments, &*context.client);
    let reply = find_and_call(workbench, tool, arguments, context).await;
    if let Some(noted) = noted {
        noted.end(match &reply {
            Ok(MetaReply::Result(result)) => Ended::with(result),
            Ok(MetaReply::Refused(_)) => Ended::failed("server_error"),
            Err(failure) => Ended::failed(failure.code()),
        });
    }
    reply
}

async fn find_and_call(
    workbench: &Workbench,
    tool: &ToolIdentifier,
    arguments: RawJson,
    context: CallContext,
) -> Result<MetaReply, Failure> {
    let server = match workbench.find_signing_in(tool, &context.client).await {
        Ok(server) => server,
        Err(error) => {
            return Err(Failure::NotFound {
                known: workbench.known_names(tool, &error),
                tool: tool.clone(),
                error,
            });
        }
    };
    let permitted = server.permit(tool.tool.as_str(), &arguments, &context);
    let consent = match permitted.await {
        Ok(consent) => consent,
        Err(refusal) => return Err(Failure::call_failed(tool.clone(), refusal)),
    };
    let is_modern = context.client.era() == Era::Modern;
    let retry = context.retry.as_ref();
    let goes_on = retry.is_some_and(|retry| retry.state.is_some());
    let call = Call {
        request: CallRequest::Tool {
            name: tool.tool.clone(),
            arguments,
        },
        context,
    };
    let result = Workbench::call_signing_in(&server, call).await;
    if let (Some(consent), Ok(result)) = (&consent, &result) {
        server.note_round(consent, result);
    }
    match result {
        // What a client can act on is not turned into words for a model: that it lacks a capability, or
        // that what it goes on with is not accepted.
        Err(CallError::Refused { error, .. })
            if is_modern && (goes_on || era::is_modern_code(&error)) =>
        {
            Ok(MetaReply::Refused(error))
        }
        result => ended(workbench, tool, result),
    }
}

/// What has come of a call.
fn ended(
    workbench: &Workbench,
    tool: &ToolIdentifier,
    result: Result<RawJson, CallError>,
) -> Result<MetaReply, Failure> {
    match result {
        Ok(result) => {
            workbench.links().note(tool, &result);
            Ok(MetaReply::Result(result))
        }
        Err(error) => Err(Failure::call_failed(tool.clone(), error)),
    }
}

/// A call of a tool that is known.
pub struct ReadyCall {
    /// The server that has the tool.
    pub server: Arc<ServerHandle>,
    /// What is asked of it.
    pub request: CallRequest,
    /// The `_meta` of the client's request.
    pub meta: Option<RawJson>,
    /// What the client has named.
    pub tool: ToolIdentifier,
}

/// The answer to a call that has ended, for a client of the legacy era.
pub fn ended_call(
    workbench: &Workbench,
    tool: ToolIdentifier,
    recipient: impl FnOnce() -> Recipient,
    result: Result<RawJson, CallError>,
) -> MetaReply {
    let result = result.map(|result| {
        workbench.links().note(&tool, &result);
        if !workbench.results().could_be_over(&result) {
            return result;
        }
        let origin = Origin {
            server: &tool.server_identifier(),
            tool: Some(&tool.tool),
            structured: Structured::MayGo,
        };
        fit(workbench, &origin, recipient, result)
    });
    let result = result.map(MetaReply::Result);
    MetaReply::of(result.map_err(|error| Failure::call_failed(tool, error)))
}

/// The call that parameters of `tools/call` ask for, if it is one by this tool, has nothing special about it and can
/// be sent without waiting for anything. They are read in one go.
pub fn ready_call(workbench: &Workbench, parameters: &RawJson) -> Option<ReadyCall> {
    let mut written = Written::default();
    let (mut name, mut meta, mut arguments) = (None, None, None);
    Cursor::new(parameters).members(|cursor, key| match key {
        b"name" => once(&mut name, cursor.text()?),
        b"_meta" => once(&mut meta, cursor.value()?),
        b"arguments" => once(&mut arguments, written.read(cursor)?),
        _ => cursor.value().map(drop),
    })?;
    if name? != MetaTool::UseTool.name() {
        return None;
    }
    let (tool, server) = workbench.find_known(written.toolbox?, written.server?, written.tool?)?;
    let arguments = match written.arguments {
        Some(arguments) if arguments.kind() == Kind::Object => arguments,
        Some(_) => return None,
        None => ObjectText::new().finish(),
    };
    Some(ReadyCall {
        server,
        request: CallRequest::Tool {
            name: tool.tool.clone(),
            arguments,
        },
        meta,
        tool,
    })
}

/// The parameters of this tool, as they are almost always written.
#[derive(Default)]
struct Written<'a> {
    toolbox: Option<&'a str>,
    server: Option<&'a str>,
    tool: Option<&'a str>,
    arguments: Option<RawJson>,
}

impl<'a> Written<'a> {
    fn read(&mut self, cursor: &mut Cursor<'a>) -> Option<()> {
        let mut named = None;
        cursor.members(|cursor, key| match key {
            b"tool" => {
                let read = cursor.members(|cursor, key| match key {
                    b"toolbox" => once(&mut self.toolbox, cursor.text()?),
                    b"server" => once(&mut self.server, cursor.text()?),
                    b"tool" => once(&mut self.tool, cursor.text()?),
                    _ => None,
                });
                once(&mut named, read?)
            }
            b"arguments" => once(&mut self.arguments, cursor.value()?),
            _ => None,
        })
    }
}

/// The identifier and the arguments; problems in the order in which they are told.
fn read(parameters: &RawJson) -> Result<(ToolIdentifier, RawJson), Failure> {
    let mut unrecognized = Vec::new();
    let mut problems = Vec::new();
    let outer = ParameterReader::read(
        parameters,
        "",
        &[TOOL, ARGUMENTS],
        old_form,
        &mut unrecognized,
    );
    let tool = match parameters.kind() {
        Kind::Object => outer.required(&TOOL, &mut problems),
        _ => None,
    };
    let identifier = tool.and_then(|tool| {
        let keys = [TOOLBOX_PART, SERVER_PART, TOOL_PART];
        let inner = ParameterReader::read(tool, "tool", &keys, old_form, &mut unrecognized);
        if tool.kind() != Kind::Object {
            return None;
        }
        let mut part = |key: &Key| inner.name(key, &mut problems);
        let (toolbox, server, name) = (part(&TOOLBOX_PART), part(&SERVER_PART), part(&TOOL_PART));
        Some(ToolIdentifier {
            toolbox: ToolboxName::from(&*toolbox?),
            server: ServerName::from(&*server?),
            tool: ToolName::from(&*name?),
        })
    });
    let arguments = read_arguments(outer.get(&ARGUMENTS), &mut problems);
    unrecognized.append(&mut problems);
    match (identifier, arguments) {
        (Some(identifier), Some(arguments)) if unrecognized.is_empty() => {
            Ok((identifier, arguments))
        }
        _ => Err(Failure::InvalidParameters {
            problems: unrecognized,
            available: None,
        }),
    }
}

/// The arguments as an object. Some models send the object as a string, which is taken as what it
/// holds.
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
    // Line breaks between the tokens would end the message that the object is spliced into.
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
