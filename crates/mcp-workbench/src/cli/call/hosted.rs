//! Calls a tool as a client of the host, so that the call uses the server that runs there.

use std::time::Duration;

use ident::ToolIdentifier;
use rawjson::{ObjectText, RawJson};
use serde_json::{Value, json};

use super::{CallOutcome, EndedCall, WantedCall, is_error};
use crate::{
    alarm::timeout,
    cli::{
        host::{CommandHost, HostEnded, HostSession, command_host},
        part::ServedPart,
        probe::{ProbeError, interruptible, wait_for_cancellation},
    },
    config::{Config, Environment, Loaded, MetaTool},
    host::Selection,
    meta,
    wire::Answer,
};

/// The words of `open_toolbox` about a server that is not up yet.
const STILL_STARTING: &str = "still starting";

/// Attaches the command to the host of the configuration, if one runs.
pub(super) fn find(
    loaded: &Loaded,
    environment: &Environment,
    part: &ServedPart,
    tool: &ToolIdentifier,
) -> Option<CommandHost> {
    let only = Selection {
        toolbox: Some(tool.toolbox.as_str().to_owned()),
        server: Some(tool.server.as_str().to_owned()),
    };
    command_host(loaded, environment, part, only)
}

/// Calls the tool in the host.
pub(super) fn call(
    host: CommandHost,
    wanted: WantedCall,
    config: &Config,
) -> Result<EndedCall, ProbeError> {
    let servers = config.toolboxes.values().flat_map(|it| it.servers.values());
    let start_limit = servers.map(|server| server.times.connect).max();
    interruptible(async {
        let progress = wanted.progress.clone();
        let limit = wanted.limit;
        let mut notices = Vec::new();
        let mut session = match HostSession::begin(host, wanted.shell.clone()).await {
            Ok(session) => session,
            Err(ended) => return ended_call(Err(ended), notices),
        };
        let call = open_and_call(&mut session, wanted, start_limit, &mut notices);
        let call = progress.during(call);
        let outcome = match limit {
            Some(limit) => timeout(limit, call).await.ok(),
            None => Some(call.await),
        };
        match outcome {
            Some(outcome) => ended_call(outcome, notices),
            None => {
                session.cancel().await;
                wait_for_cancellation().await;
                EndedCall {
                    outcome: None,
                    notices,
                }
            }
        }
    })
}

fn ended_call(outcome: Result<CallOutcome, HostEnded>, notices: Vec<String>) -> EndedCall {
    // The host may have passed the call on.
    let outcome = outcome.unwrap_or_else(|HostEnded| CallOutcome::Failure(meta::lost_call()));
    EndedCall {
        outcome: Some(outcome),
        notices,
    }
}

/// Opens the toolbox, which has only the server of the call, and calls the tool.
async fn open_and_call(
    session: &mut HostSession,
    wanted: WantedCall,
    start_limit: Option<Duration>,
    notices: &mut Vec<String>,
) -> Result<CallOutcome, HostEnded> {
    let WantedCall { tool, input, .. } = wanted;
    let opening = open(session, &tool);
    // `open_toolbox` stops waiting because clients give up; the shell waits for the whole start.
    let opened = match start_limit {
        Some(limit) => timeout(limit, opening).await,
        None => Ok(opening.await),
    };
    let opened = match opened {
        Ok(opened) => opened?,
        // The time is over. The answer to this says that the server is still starting.
        Err(_) => open_once(session, &tool).await?,
    };
    let opened = match opened {
        Answer::Result(result) if !is_error(&result) => result,
        other => return Ok(outcome(other)),
    };
    let document = document(&opened);
    let said = document["notices"].as_array().into_iter().flatten();
    notices.extend(said.filter_map(|it| Some(it.as_str()?.to_owned())));
    let arguments = match input.typed(&schema(&document, &tool)) {
        Ok(arguments) => arguments,
        Err(error) => return Ok(CallOutcome::Arguments(error)),
    };
    let place = json!({
        "toolbox": tool.toolbox.as_str(),
        "server": tool.server.as_str(),
        "tool": tool.tool.as_str(),
    });
    let params = ObjectText::new()
        .member("tool", &place)
        .raw("arguments", &arguments)
        .finish();
    Ok(outcome(session.call(MetaTool::UseTool, &params).await?))
}

/// Opens the toolbox. Waits until its server is up or has failed.
async fn open(session: &mut HostSession, tool: &ToolIdentifier) -> Result<Answer, HostEnded> {
    loop {
        let opened = open_once(session, tool).await?;
        let is_starting = matches!(
            &opened,
            Answer::Result(result) if is_error(result) && result.as_str().contains(STILL_STARTING)
        );
        if !is_starting {
            return Ok(opened);
        }
    }
}

async fn open_once(session: &mut HostSession, tool: &ToolIdentifier) -> Result<Answer, HostEnded> {
    let params = json!({ "toolbox": tool.toolbox.as_str(), "detail": "full" });
    session
        .call(MetaTool::OpenToolbox, &RawJson::of(&params))
        .await
}

/// Returns the JSON document in the text of a result.
fn document(result: &RawJson) -> Value {
    let result: Value = serde_json::from_str(result.as_str()).unwrap_or_default();
    let text = result["content"][0]["text"].as_str();
    text.and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_default()
}

/// Returns the schema of the tool's arguments; empty if it is unknown.
fn schema(opened: &Value, tool: &ToolIdentifier) -> Value {
    let mut tools = opened["tools"].as_array().into_iter().flatten();
    let found = tools.find(|it| it["name"] == tool.tool.as_str());
    found.map_or(Value::Null, |tool| tool["inputSchema"].clone())
}

/// Returns the outcome of a call. Failures of the workbench have a mark of their own.
fn outcome(answer: Answer) -> CallOutcome {
    match answer {
        Answer::Result(result) if meta::is_failure(&result) => CallOutcome::Failure(result),
        Answer::Result(result) => CallOutcome::Result(result),
        Answer::Error(error) => CallOutcome::Refused(error),
        Answer::Invalid => CallOutcome::Failure(meta::lost_call()),
    }
}
