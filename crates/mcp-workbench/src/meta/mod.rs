//! The meta-tools: what a model sees instead of hundreds of definitions. One file a tool, each with its
//! definition, its parameters and its run.

mod failure;
mod fitting;
mod instructions;
mod open_toolbox;
mod parameters;
mod registered;
mod use_tool;

use std::sync::Arc;

use serde_json::{Value, json};

use crate::{
    call::CallContext,
    downstream::{CallError, ServerHandle},
    ident::ToolIdentifier,
    wire::RawJson,
    workbench::Workbench,
};

use failure::Failure;
pub use fitting::MAX_CHARACTERS;
pub use instructions::instructions;
pub use registered::call_registered;
pub use use_tool::ReadyCall;

/// Our own tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetaTool {
    /// Connects to the servers of a toolbox and returns their tools.
    OpenToolbox,
    /// Runs one of those tools.
    UseTool,
}

impl MetaTool {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::OpenToolbox, Self::UseTool];

    /// The tool of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tool| tool.name() == name)
    }

    /// The name that clients call it by.
    pub fn name(self) -> &'static str {
        match self {
            Self::OpenToolbox => open_toolbox::NAME,
            Self::UseTool => use_tool::NAME,
        }
    }

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
        };
        MetaReply::of(result)
    }
}

/// A call by a meta-tool that can be sent without waiting for anything: its server and its arguments.
pub fn ready(
    workbench: &Workbench,
    name: &str,
    arguments: &RawJson,
) -> Option<(Arc<ServerHandle>, RawJson, ReadyCall)> {
    match MetaTool::named(name)? {
        MetaTool::UseTool => use_tool::ready(workbench, arguments),
        MetaTool::OpenToolbox => None,
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
    let reply = use_tool::call(workbench, tool, arguments, context).await;
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

/// The definitions of all meta-tools, as `tools/list` shows them.
pub fn definitions(workbench: &Workbench) -> Vec<RawJson> {
    let definitions = MetaTool::ALL.into_iter().map(|tool| match tool {
        MetaTool::OpenToolbox => open_toolbox::definition(workbench),
        MetaTool::UseTool => use_tool::definition(),
    });
    definitions.collect()
}
