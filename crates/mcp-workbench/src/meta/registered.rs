//! Calls by a registered name, in dynamic mode. The name is looked up, never parsed.

use super::{MetaReply, failure::Failure, use_tool};
use crate::{budget::Structured, call::CallContext, wire::RawJson, workbench::Workbench};

/// Runs the tool that is registered under `name`.
pub async fn call_registered(
    workbench: &Workbench,
    name: &str,
    arguments: RawJson,
    context: CallContext,
) -> MetaReply {
    let result = match workbench.registered(name) {
        Some(tool) => {
            // The client has been shown the tool's `outputSchema`, if it has one.
            let structured = Structured::Stays;
            use_tool::call_within_budget(workbench, tool, arguments, context, structured).await
        }
        None => Err(Failure::NotRegistered {
            name: name.to_owned(),
        }),
    };
    MetaReply::of(result)
}
