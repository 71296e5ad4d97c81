//! The meta-tools: what a model sees instead of hundreds of definitions. One file a tool, each with its
//! definition, its parameters and its run.

mod cut_result;
mod detail;
mod failure;
mod fitting;
mod found;
mod found_places;
mod instructions;
mod open_toolbox;
mod parameters;
mod read_result;
mod registered;
mod search_tools;
mod use_tool;

use serde_json::{Value, json};

use crate::{
    call::CallContext, downstream::CallError, ident::ToolIdentifier, wire::RawJson,
    workbench::Workbench,
};

pub use crate::config::MetaTool;
pub use cut_result::{Origin, fit};
use failure::Failure;
pub use failure::{page_error_code, page_error_text};
pub use fitting::MAX_CHARACTERS;
pub use found::text as found_text;
pub use instructions::instructions;
pub use registered::call_registered;
pub use search_tools::{MOST_HITS, USUAL_HITS};
pub use use_tool::{ReadyCall, ended_call, ready_call};

impl MetaTool {
    /// Runs the tool.
    pub async fn run(
        self,
        workbench: &Workbench,
        arguments: &RawJson,
        context: CallContext,
    ) -> MetaReply {
        let result = match self {
            Self::OpenToolbox => open_toolbox::run(workbench, arguments, &context)
                .await
                .map(MetaReply::Result),
            Self::UseTool => use_tool::run(workbench, arguments, context).await,
            Self::SearchTools => search_tools::run(workbench, arguments, &context)
                .await
                .map(MetaReply::Result),
            Self::ReadResult => {
                read_result::run(workbench, arguments, &context).map(MetaReply::Result)
            }
        };
        MetaReply::of(result)
    }
}

/// What comes of running a meta-tool.
pub enum MetaReply {
    /// A result. It may be an error that a model can read; it is a result all the same.
    Result(RawJson),
    /// The error of a server that is about the exchange between client and server: for the client to act on,
    /// not for a model to read.
    Refused(RawJson),
}

impl MetaReply {
    /// A failure is a result too, for a model to read.
    fn of(reply: Result<Self, Failure>) -> Self {
        reply.unwrap_or_else(|failure| Self::Result(failure.to_result()))
    }
}

/// Runs a tool as `use_tool` does, for a caller that tells the answers of servers from failures of ours: those are
/// the error, in the form in which a model reads them.
pub async fn call_tool(
    workbench: &Workbench,
    tool: ToolIdentifier,
    arguments: RawJson,
    context: CallContext,
) -> Result<MetaReply, RawJson> {
    let reply = use_tool::call(workbench, &tool, arguments, context).await;
    reply.map_err(|failure| failure.to_result())
}

/// The result of a call that failed, for a model to read.
pub fn failed_call(tool: ToolIdentifier, error: CallError) -> RawJson {
    Failure::call_failed(tool, error).to_result()
}

/// The words for a call that failed.
pub fn failed_call_text(tool: ToolIdentifier, error: CallError) -> String {
    Failure::call_failed(tool, error).to_string()
}

/// What clients are told of a meta-tool besides: one that hides tools until its model searches for them must not
/// hide the way to all the others.
fn hints() -> Value {
    json!({ "anthropic/alwaysLoad": true })
}

/// The definitions of the meta-tools that are on, as `tools/list` shows them.
pub fn definitions(workbench: &Workbench) -> Vec<RawJson> {
    let config = workbench.config();
    let definitions = config.meta_tools.iter().map(|tool| match tool {
        MetaTool::OpenToolbox => open_toolbox::definition(workbench),
        MetaTool::UseTool => use_tool::definition(workbench),
        MetaTool::SearchTools => search_tools::definition(workbench),
        MetaTool::ReadResult => read_result::definition(),
    });
    definitions.collect()
}

/// The names of the toolboxes, in the order of the file.
fn known_toolboxes(workbench: &Workbench) -> Vec<String> {
    let names = workbench.toolbox_names();
    names.iter().map(ToString::to_string).collect()
}
