//! The headers of a modern request, which must match its body.

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::Value;

use super::incoming::Incoming;
use crate::{message::Request, server::Server};

/// The header that names the revision.
pub(super) const VERSION: &str = "mcp-protocol-version";

/// Returns the problem with the headers.
pub(super) fn problem(incoming: &Incoming, request: &Request, server: &Server) -> Option<String> {
    let version = request
        .known
        .meta
        .version
        .as_deref()
        .and_then(|raw| serde_json::from_str::<String>(raw.get()).ok());
    let accept = incoming.header("accept").unwrap_or_default();
    if !accept.contains("application/json") || !accept.contains("text/event-stream") {
        return Some("Accept must list both types".to_owned());
    }
    // A body without a version is refused for that.
    if version.is_some() && incoming.header(VERSION) != version.as_deref() {
        return Some("MCP-Protocol-Version does not say what the body says".to_owned());
    }
    if incoming.header("mcp-method") != Some(&request.method) {
        return Some("Mcp-Method does not say what the body says".to_owned());
    }
    let known = &request.known;
    let name = match request.method.as_str() {
        "tools/call" | "prompts/get" => known.name.as_ref(),
        "resources/read" => known.uri.as_ref(),
        "tasks/get" | "tasks/update" | "tasks/cancel" => known.task_id.as_ref(),
        _ => None,
    };
    if name.is_some() && decoded(incoming, "mcp-name").as_ref() != name {
        return Some("Mcp-Name does not say what the body says".to_owned());
    }
    parameter_problem(incoming, request, server)
}

/// Returns the problem with the headers of arguments that the tool's schema marks at its top level.
fn parameter_problem(incoming: &Incoming, request: &Request, server: &Server) -> Option<String> {
    if request.method != "tools/call" {
        return None;
    }
    let tool = server.definition(request.known.name.as_deref()?)?;
    let arguments: Value = request
        .known
        .arguments
        .as_deref()
        .and_then(|raw| serde_json::from_str(raw.get()).ok())
        .unwrap_or_default();
    let properties = tool["inputSchema"]["properties"].as_object()?;
    let mut marked = properties
        .iter()
        .filter_map(|(name, property)| Some((name, property["x-mcp-header"].as_str()?)));
    marked.find_map(|(name, header)| {
        let said = match arguments.get(name) {
            None | Some(Value::Null) => None,
            Some(Value::String(text)) => Some(text.clone()),
            Some(value) => Some(value.to_string()),
        };
        let header = format!("mcp-param-{}", header.to_ascii_lowercase());
        let agrees = decoded(incoming, &header) == said;
        (!agrees).then(|| format!("{header} does not say what the body says"))
    })
}

/// Decodes the text of a header.
fn decoded(incoming: &Incoming, name: &str) -> Option<String> {
    let value = incoming.header(name)?;
    let encoded = value
        .strip_prefix("=?base64?")
        .and_then(|rest| rest.strip_suffix("?="));
    match encoded {
        None => Some(value.to_owned()),
        Some(encoded) => String::from_utf8(BASE64_STANDARD.decode(encoded).ok()?).ok(),
    }
}
