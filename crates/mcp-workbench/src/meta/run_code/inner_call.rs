//! One call of a script: a tool, by the pipeline that every call takes, or one of the functions of the workbench.

use std::sync::Arc;

use ident::{ToolIdentifier, ToolboxName};
use rawjson::{Kind, RawJson};
use script::{Called, Failure, tool_name};
use search::Query;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    names,
    value::{CallValue, value_of},
};
use crate::{
    budget::Address,
    call::{CallContext, Outcome},
    downstream::{CallError, ToolDefinition},
    meta::{
        DEFAULT_HITS, MAX_HITS, failure::Failure as CallFailed, page_error_code, page_error_text,
    },
    offload::offload,
    policy::permissions::Hints,
    toolbox::{arguments_type, result_type, sentence},
    visible::visible,
    workbench::{
        CallFailure, CallReply, LookupError, Mode, PageError, Select, StoredResult, ToolCall,
        ToolNames, Workbench, find_result,
    },
};

/// The call of a script, with the tool that it means.
pub(super) struct InnerCall {
    pub(super) target: CalledFunction,
    pub(super) arguments: RawJson,
}

#[derive(Clone)]
pub(super) enum CalledFunction {
    Tool(ToolIdentifier),
    Search,
    Describe,
    ReadResult,
}

impl InnerCall {
    /// Finds the tool that a call means.
    pub(super) fn new(
        workbench: &Workbench,
        called: &Called,
        arguments: RawJson,
    ) -> Result<Self, Failure> {
        if arguments.kind() != Kind::Object {
            return Err(invalid("the arguments of a call are one object"));
        }
        let target = match called {
            Called::Tool { server, tool } => {
                CalledFunction::Tool(names::find(workbench, server, tool)?)
            }
            Called::Search => CalledFunction::Search,
            Called::Describe => CalledFunction::Describe,
            Called::ReadResult => CalledFunction::ReadResult,
        };
        Ok(Self { target, arguments })
    }

    /// Makes the call, the one of this number in its run. Dropping the future cancels it.
    pub(super) async fn make(
        self,
        number: usize,
        workbench: Arc<Workbench>,
        context: CallContext,
    ) -> Result<CallValue, Failure> {
        let arguments = self.arguments;
        match self.target {
            CalledFunction::Tool(tool) => {
                let result = call(&workbench, tool, arguments, context).await?;
                let bytes = result.as_bytes().len();
                offload(bytes, move || value_of(&result, number)).await
            }
            CalledFunction::Search => {
                let found = search(&workbench, &arguments, &context).await?;
                Ok(found.into())
            }
            CalledFunction::Describe => {
                let described = describe(&workbench, &arguments, &context).await?;
                Ok(described.into())
            }
            CalledFunction::ReadResult => {
                let stored = stored_result(&workbench, &arguments, &context).await?;
                let bytes = stored.json().len();
                offload(bytes, move || {
                    let result = RawJson::parse(&stored.json().to_owned().into());
                    let text = || Ok(RawJson::of(&stored.text()).into());
                    result.map_or_else(|_| text(), |it| value_of(&it, number))
                })
                .await
            }
        }
    }
}

impl CalledFunction {
    /// Returns whether the call may change something, as far as its server says. One that was not up has not said yet.
    pub(super) fn writes(&self, workbench: &Workbench) -> bool {
        match self {
            Self::Tool(tool) => {
                let definition = definition(workbench, tool);
                // A tool that is not known may write.
                definition.is_none_or(|it| !Hints::of(&it.definition).read_only)
            }
            Self::Search | Self::Describe | Self::ReadResult => false,
        }
    }
}

/// Calls a tool. Returns its result.
async fn call(
    workbench: &Arc<Workbench>,
    mut tool: ToolIdentifier,
    arguments: RawJson,
    context: CallContext,
) -> Result<RawJson, Failure> {
    let start = |tool: &ToolIdentifier| {
        workbench.start_call(ToolCall {
            mode: Mode::Script,
            names: ToolNames::from(tool),
            arguments: arguments.clone(),
            params: None,
            request: None,
            // A script filters for itself.
            select: Select::Whole,
            context: context.clone(),
        })
    };
    let mut reply = start(&tool).run().await;
    if is_unknown(&reply) {
        // The server had not listed its tools when the script named this one. Nothing was sent.
        let found = names::find_again(workbench, tool.clone())?;
        if found != tool {
            reply = start(&found).run().await;
            tool = found;
        }
    }
    match reply {
        CallReply::Failed {
            failure: CallFailure::Failed(CallError::InvalidArguments { problem }),
            ..
        } => Err(invalid(&format!(
            "Invalid arguments for {}: {problem}",
            visible(&tool_name(tool.server.as_str(), tool.tool.as_str()))
        ))),
        CallReply::Result(result) => Ok(result.to_json()),
        CallReply::Refused(error) => {
            let message = error.member("message");
            let message = message.as_ref().and_then(RawJson::as_text);
            Err(Failure {
                code: "server_error".to_owned(),
                outcome: None,
                message: message.unwrap_or_default().into_owned(),
            })
        }
        CallReply::Failed { tool, failure, .. } => {
            let failed = CallFailed::of_call(tool, failure);
            let outcome = failed.outcome().map(outcome_word);
            Err(Failure {
                code: failed.code().to_owned(),
                outcome: outcome.map(str::to_owned),
                message: failed.to_string(),
            })
        }
    }
}

/// Returns whether a call failed because its server has no such tool.
fn is_unknown(reply: &CallReply) -> bool {
    let CallReply::Failed { failure, .. } = reply else {
        return false;
    };
    let CallFailure::NotFound { error, .. } = failure else {
        return false;
    };
    matches!(error, LookupError::ToolUnknown)
}

fn outcome_word(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::NotSent => "not_sent",
        Outcome::Rejected => "rejected",
        Outcome::Unknown => "unknown",
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SearchParams {
    query: String,
    limit: Option<usize>,
    toolbox: Option<String>,
}

/// Answers `tools.search(query, {limit, toolbox})`: the best tools, with what a script needs to call them.
async fn search(
    workbench: &Workbench,
    arguments: &RawJson,
    context: &CallContext,
) -> Result<RawJson, Failure> {
    let SearchParams {
        query,
        limit,
        toolbox,
    } = serde_json::from_slice(arguments.as_bytes()).map_err(|error| {
        let problem = error.to_string();
        // The place in our own JSON says nothing.
        let problem = problem.split(" at line ").next().unwrap_or_default();
        invalid(&format!(
            "tools.search takes (query, {{limit, toolbox}}): {}",
            visible(problem)
        ))
    })?;
    let toolbox = toolbox.map(|it| ToolboxName::from(it.as_str()));
    let query = Query {
        text: &query,
        toolbox: toolbox.as_ref(),
        limit: limit.unwrap_or(DEFAULT_HITS).clamp(1, MAX_HITS),
    };
    let found = workbench.search(&query, &context.client).await;
    let servers = names::servers(workbench);
    let tools = found.shown().iter().map(|hit| {
        let server = servers
            .iter()
            .find(|it| it.toolbox == hit.tool.toolbox && it.server == hit.tool.server);
        let server = server.map_or(hit.tool.server.as_str(), |it| it.name.as_str());
        described(server, &hit.definition)
    });
    Ok(RawJson::of(&tools.collect::<Vec<Value>>()))
}

/// Answers `tools.describe(name)`: one tool with its types and its schema.
async fn describe(
    workbench: &Workbench,
    arguments: &RawJson,
    context: &CallContext,
) -> Result<RawJson, Failure> {
    let member = arguments.member("name");
    let name = member
        .as_ref()
        .and_then(RawJson::as_text)
        .ok_or_else(|| invalid("tools.describe takes the name of a tool"))?;
    if let Some(described) = describe_known(workbench, &name) {
        return Ok(described);
    }
    // A search lets the servers that have not listed their tools do so.
    let query = Query {
        text: &name,
        toolbox: None,
        limit: 1,
    };
    workbench.search(&query, &context.client).await;
    describe_known(workbench, &name).ok_or_else(|| {
        invalid(
            "there is no such tool: name it as tools.search does, for example \"tools.server.tool\"",
        )
    })
}

/// Describes a tool that its server has listed.
fn describe_known(workbench: &Workbench, name: &str) -> Option<RawJson> {
    for server in names::servers(workbench) {
        let list = server.handle.status().tools.unwrap_or_default();
        let mut tools = list.tools().iter();
        let found = tools.find(|tool| {
            // A model writes the name as it calls the tool, or without `tools.`.
            let whole = tool_name(&server.name, tool.name.as_str());
            whole == name
                || whole.strip_prefix("tools.") == Some(name)
                || format!("{}.{}", server.name, tool.name) == name
        });
        if let Some(tool) = found {
            let mut described = described(&server.name, tool);
            for part in ["description", "inputSchema", "outputSchema", "annotations"] {
                if let Some(value) = tool.definition.member(part) {
                    described[part] = serde_json::from_str(value.as_str()).unwrap_or_default();
                }
            }
            return Some(RawJson::of(&described));
        }
    }
    None
}

/// Returns what a script has to know about a tool.
fn described(server: &str, tool: &ToolDefinition) -> Value {
    json!({
        "tool": tool_name(server, tool.name.as_str()),
        "description": sentence(&tool.definition),
        "signature": format!(
            "(args: {}): Promise<{}>",
            arguments_type(&tool.definition),
            result_type(tool)
        ),
    })
}

/// Finds the result for `results.read(handle)`: the whole of one that was too large for the client.
async fn stored_result(
    workbench: &Workbench,
    arguments: &RawJson,
    context: &CallContext,
) -> Result<Arc<StoredResult>, Failure> {
    let handle = arguments.member("handle");
    let handle = handle
        .as_ref()
        .and_then(RawJson::as_text)
        .unwrap_or_default()
        .into_owned();
    let owner = context.client.recipient().owner;
    let stored = match Address::parse_loosely(&handle) {
        Some(address) => find_result(workbench, &address, owner).await,
        None => Err(PageError::Gone),
    };
    stored.map_err(|error| Failure {
        code: page_error_code(error).to_owned(),
        outcome: Some("not_sent".to_owned()),
        message: page_error_text(&handle, 1, error),
    })
}

/// Returns the definition of a tool, if its server has listed it.
fn definition(workbench: &Workbench, tool: &ToolIdentifier) -> Option<ToolDefinition> {
    let toolbox = workbench.toolbox(tool.toolbox.as_str())?;
    let server = toolbox.server(&tool.server)?;
    let tools = server.inspect(|status| status.tools.clone())?;
    names::find_tool(&tools, tool.tool.as_str()).cloned()
}

pub(super) fn invalid(message: &str) -> Failure {
    Failure {
        code: "invalid_arguments".to_owned(),
        outcome: Some("not_sent".to_owned()),
        message: message.to_owned(),
    }
}
