//! The meta-tools that a model sees instead of hundreds of definitions. Each tool has one file with its definition,
//! its parameters and its implementation.

mod detail;
mod failure;
mod fitting;
mod found;
mod instructions;
mod open_toolbox;
mod parameters;
mod read_result;
mod run_code;
mod search_tools;
mod text_matches;
mod use_tool;

use std::sync::Arc;

use ident::{ServerIdentifier, ToolIdentifier};
use rawjson::RawJson;
use serde_json::{Value, json};

use crate::{
    call::{CallContext, ClientIdentity},
    clients::has_own_code_mode,
    downstream::CallError,
    era::UI_EXTENSION,
    visible::visible,
    workbench::{CallFailure, Workbench},
};

pub(crate) use crate::config::MetaTool;
use failure::Failure;
pub(crate) use failure::{REPLICA_GONE, page_error_code, page_error_text};
pub use fitting::MAX_CHARACTERS;
pub use instructions::instructions;
pub(crate) use run_code::{
    DEFAULT_TIMEOUT_S, MAX_CODE_CHARACTERS, MAX_TIMEOUT_S, declarations, run_script,
};
pub(crate) use search_tools::{DEFAULT_HITS, MAX_HITS};
pub(crate) use use_tool::UseToolParams;

/// Runs a meta-tool that is not a call: `use_tool` goes through the call pipeline. A failure is a result that a
/// model can read.
pub(crate) async fn run(
    tool: MetaTool,
    workbench: &Arc<Workbench>,
    arguments: &RawJson,
    context: &CallContext,
) -> RawJson {
    let result = match tool {
        MetaTool::OpenToolbox => open_toolbox::run(workbench, arguments, context).await,
        MetaTool::SearchTools => search_tools::run(workbench, arguments, context).await,
        MetaTool::ReadResult => read_result::run(workbench, arguments, context).await,
        MetaTool::RunCode => run_code::run(workbench, arguments, context).await,
        // Not reached: the pipeline takes every call of `use_tool`.
        MetaTool::UseTool => Err(Failure::NotRegistered {
            name: tool.name().to_owned(),
        }),
    };
    result.unwrap_or_else(|failure| failure.to_result())
}

/// Returns the result of a call during which the shared process ended, for a model to read.
pub(crate) fn lost_call() -> RawJson {
    Failure::HostExited.to_result()
}

/// Returns the result of a call that is parked in a process that cannot be reached.
pub(crate) fn replica_gone() -> RawJson {
    Failure::ReplicaGone.to_result()
}

/// Returns the details of the same failure for programs.
pub(crate) fn replica_gone_data() -> RawJson {
    let result = replica_gone();
    let meta = result.member("_meta");
    let details = meta.and_then(|meta| meta.member(failure::ERROR_KEY));
    details.expect("a failure has its details")
}

/// Returns whether a result says that the workbench failed, and not the tool.
pub(crate) fn is_failure(result: &RawJson) -> bool {
    let meta = result.member("_meta");
    meta.is_some_and(|meta| meta.member(failure::ERROR_KEY).is_some())
}

/// Returns the result of a call that failed, for a model to read.
pub(crate) fn failed_call(tool: ToolIdentifier, failure: CallFailure) -> RawJson {
    Failure::of_call(tool, failure).to_result()
}

/// Returns the result of a call by a name that nothing is registered under.
pub(crate) fn not_registered(name: &str) -> RawJson {
    let name = name.to_owned();
    Failure::NotRegistered { name }.to_result()
}

/// Returns the message for a request other than `tools/call` that did not reach its server or got no answer. `subject` is the
/// prompt or the URI.
pub(crate) fn failed_request_text(
    method: &str,
    subject: &str,
    server: &ServerIdentifier,
    error: &CallError,
) -> String {
    format!(
        "Error executing {method} of '{}' in server '{}' (toolbox '{}'): {error}",
        visible(subject),
        server.server,
        server.toolbox
    )
}

/// Returns the hints for clients that hide tools until their model searches for them: a meta-tool must not be hidden,
/// because it leads to all other tools.
fn hints() -> Value {
    json!({ "anthropic/alwaysLoad": true })
}

/// Returns the annotations of meta-tools that change nothing on the servers.
fn read_only() -> Value {
    json!({ "readOnlyHint": true, "idempotentHint": true, "destructiveHint": false })
}

/// Returns the definitions of the enabled meta-tools, as `tools/list` has them for a client.
pub(crate) fn definitions(workbench: &Workbench, client: &ClientIdentity) -> Vec<RawJson> {
    let config = workbench.config();
    // A client that lets its model write scripts itself needs no second way.
    let has_own = has_own_code_mode(client.name.as_deref());
    let offered = config.meta_tools.iter();
    let has_code = script::IS_SUPPORTED && !has_own;
    let offered = offered.filter(|tool| has_code || **tool != MetaTool::RunCode);
    let definitions = offered.map(|tool| match tool {
        MetaTool::OpenToolbox => open_toolbox::definition(workbench),
        MetaTool::UseTool => use_tool::definition(workbench),
        MetaTool::SearchTools => search_tools::definition(workbench),
        MetaTool::ReadResult => read_result::definition(workbench),
        MetaTool::RunCode => run_code::definition(workbench),
    });
    definitions.collect()
}

/// Returns true if the model of a client must not see the tools that are for user interfaces only. A client that shows no
/// interfaces has no other use for them.
fn hides_app_tools(context: &CallContext) -> bool {
    context.client.capabilities().has_extension(UI_EXTENSION)
}

/// Returns the names of the toolboxes, in the order of the file.
fn known_toolboxes(workbench: &Workbench) -> Vec<String> {
    let names = workbench.toolbox_names();
    names.iter().map(ToString::to_string).collect()
}
