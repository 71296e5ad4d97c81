//! Calls by a registered name, in dynamic mode. The name is looked up, never parsed.

use super::{MetaReply, failure::Failure, use_tool};
use crate::{call::CallContext, wire::RawJson, workbench::Workbench};

/// Runs the tool that is registered under `name`.
pub async fn call_registered(
    workbench: &Workbench,
    name: &str,
    arguments: RawJson,
    context: CallContext,
) -> MetaReply {
    let result = match workbench.registered(name) {
        Some(tool) => use_tool::call(workbench, tool, arguments, context).await,
        None => Err(Failure::NotRegistered {
            name: name.to_owned(),
        }),
    };
    MetaReply::of(result)
}
