//! One call of a script: a tool, by the pipeline that every call takes, or one of the functions of the workbench.

use std::sync::Arc;

use ident::{ToolIdentifier, ToolboxName};
use rawjson::{Kind, RawJson};
use script::{Called, Failure, tool_name};
use search::Query;
use serde_json::{Value, json};

use super::{names, value::value_of};
use crate::{
    budget::Address,
    call::{CallContext, Outcome},
    downstream::ToolDefinition,
    meta::{DEFAULT_HITS, MAX_HITS, failure::Failure as CallFailed, page_error_text},
    offload::offload,
    policy::permissions::Hints,
    toolbox::{arguments_type, result_type, sentence},
    workbench::{CallReply, Mode, PageError, Select, ToolCall, ToolNames, Workbench},
};

/// The call of a script, with the tool that it means.
pub(super) struct InnerCall {
    pub(super) target: Target,
    pub(super) arguments: RawJson,
}

pub(super) enum Target {
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
            Called::Tool { server, tool } => Target::Tool(names::find(workbench, server, tool)?),
            Called::Search => Target::Search,
            Called::Describe => Target::Describe,
            Called::ReadResult => Target::ReadResult,
        };
        Ok(Self { target, arguments })
    }

    /// Returns whether the call may change something, as far as its server says.
    pub(super) fn writes(&self, workbench: &Workbench) -> bool {
        match &self.target {
            Target::Tool(tool) => {
                let definition = definition(workbench, tool);
                definition.is_none_or(|it| !Hints::of(&it.definition).read_only)
            }
            Target::Search | Target::Describe | Target::ReadResult => false,
        }
    }

    /// Makes the call. Dropping the future cancels it.
    pub(super) async fn make(
        self,
        workbench: Arc<Workbench>,
        context: CallContext,
    ) -> Result<RawJson, Failure> {
        match self.target {
            Target::Tool(tool) => call(&workbench, &tool, self.arguments, context).await,
            Target::Search => search(&workbench, &self.arguments, &context).await,
            Target::Describe => describe(&workbench, &self.arguments),
            Target::ReadResult => read_result(&workbench, &self.arguments, &context).await,
        }
    }
}

async fn call(
    workbench: &Arc<Workbench>,
    tool: &ToolIdentifier,
    arguments: RawJson,
    context: CallContext,
) -> Result<RawJson, Failure> {
    let call = workbench.start_call(ToolCall {
        mode: Mode::Script,
        names: ToolNames::from(tool),
        arguments,
        params: None,
        request: None,
        select: Select::Whole,
        context,
    });
    match call.run().await {
        CallReply::Result(result) => {
            let result = result.to_json();
            offload(result.as_bytes().len(), move || value_of(&result)).await
        }
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

fn outcome_word(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::NotSent => "not_sent",
        Outcome::Rejected => "rejected",
        Outcome::Unknown => "unknown",
    }
}

/// Answers `tools.search(query, {limit, toolbox})`: the best tools, with what a script needs to call them.
async fn search(
    workbench: &Workbench,
    arguments: &RawJson,
    context: &CallContext,
) -> Result<RawJson, Failure> {
    let text = |name: &str| Some(arguments.member(name)?.as_text()?.into_owned());
    let query = text("query").ok_or_else(|| invalid("tools.search takes a text to search for"))?;
    let toolbox = text("toolbox").map(|it| ToolboxName::from(it.as_str()));
    let limit = arguments.member("limit");
    let limit = limit.and_then(|it| it.as_str().parse().ok());
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
fn describe(workbench: &Workbench, arguments: &RawJson) -> Result<RawJson, Failure> {
    let name = arguments.member("name");
    let name = name.as_ref().and_then(RawJson::as_text);
    let name = name.ok_or_else(|| invalid("tools.describe takes the name of a tool"))?;
    for server in names::servers(workbench) {
        let tools = server.handle.status().tools.unwrap_or_default();
        let mut tools = tools.tools().iter();
        let found = tools.find(|tool| {
            let whole = tool_name(&server.name, tool.name.as_str());
            whole == *name
                || whole.strip_prefix("tools.") == Some(&*name)
                || format!("{}.{}", server.name, tool.name) == *name
        });
        if let Some(tool) = found {
            let mut described = described(&server.name, tool);
            for part in ["description", "inputSchema", "outputSchema", "annotations"] {
                if let Some(value) = tool.definition.member(part) {
                    described[part] = serde_json::from_str(value.as_str()).unwrap_or_default();
                }
            }
            return Ok(RawJson::of(&described));
        }
    }
    Err(invalid(
        "no open toolbox has this tool: name it as tools.search does, for example \"tools.server.tool\"",
    ))
}

/// Returns what a script has to know about a tool.
fn described(server: &str, tool: &ToolDefinition) -> Value {
    json!({
        "tool": tool_name(server, tool.name.as_str()),
        "description": sentence(&tool.definition),
        "signature": format!(
            "(args: {}): Promise<{}>",
            arguments_type(&tool.definition),
            result_type(&tool.definition)
        ),
    })
}

/// Answers `results.read(handle)`: the whole of a result that was too large for the client.
async fn read_result(
    workbench: &Workbench,
    arguments: &RawJson,
    context: &CallContext,
) -> Result<RawJson, Failure> {
    let handle = arguments.member("handle");
    let handle = handle.as_ref().and_then(RawJson::as_text);
    let handle = handle.unwrap_or_default().into_owned();
    let owner = context.client.recipient().owner;
    let stored = Address::parse_loosely(&handle)
        .ok_or(PageError::Gone)
        .and_then(|address| workbench.results().find(&address, owner));
    let stored = stored.map_err(|error| Failure {
        code: "result_gone".to_owned(),
        outcome: Some("not_sent".to_owned()),
        message: page_error_text(&handle, 1, error),
    })?;
    let bytes = stored.json().len();
    offload(bytes, move || {
        let result = RawJson::parse(&stored.json().to_owned().into());
        result.map_or_else(|_| Ok(RawJson::of(&stored.text())), |it| value_of(&it))
    })
    .await
}

/// Returns the definition of a tool, if its server has listed it.
fn definition(workbench: &Workbench, tool: &ToolIdentifier) -> Option<ToolDefinition> {
    let toolbox = workbench.toolbox(tool.toolbox.as_str())?;
    let server = toolbox.server(&tool.server)?;
    server.inspect(|status| status.tools.as_ref()?.get(tool.tool.as_str()).cloned())
}

fn invalid(message: &str) -> Failure {
    Failure {
        code: "invalid_arguments".to_owned(),
        outcome: Some("not_sent".to_owned()),
        message: message.to_owned(),
    }
}
