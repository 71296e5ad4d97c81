//! The description of the server, and its lists beside tools: resources, their templates and prompts.

use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};

use crate::{
    message::{Era, Request},
    modern::REVISION,
    script::{Raw, Script},
};

const DEFAULT_SERVER_INFO: &str = r#"{"name":"fixture-server","version":"1.0.0"}"#;
const DEFAULT_VERSION: &str = "2025-11-25";

/// The part of a definition by which it is asked for.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Known {
    uri: Option<String>,
    name: Option<String>,
}

/// The raw result of `initialize`.
pub(crate) fn initialize_result(script: &Script, request: &Request) -> String {
    let version = script
        .protocol_version
        .as_deref()
        .or(request.known.protocol_version.as_deref())
        .unwrap_or(DEFAULT_VERSION);
    let version = Value::from(version);
    let capabilities = capabilities(script);
    let info = server_info(script);
    let instructions = instructions(script);
    format!(
        r#"{{"protocolVersion":{version},"capabilities":{capabilities},"serverInfo":{info}{instructions}}}"#
    )
}

/// Returns the raw result of `server/discover`, without the members that all results have.
pub(crate) fn discover_result(script: &Script) -> String {
    let capabilities = capabilities(script);
    let info = server_info(script);
    let instructions = instructions(script);
    format!(
        r#"{{"supportedVersions":["{REVISION}"],"capabilities":{capabilities}{instructions},"_meta":{{"io.modelcontextprotocol/serverInfo":{info}}}}}"#
    )
}

fn capabilities(script: &Script) -> String {
    if let Some(capabilities) = &script.capabilities {
        return capabilities.get().to_owned();
    }
    let mut capabilities = json!({"tools": {"listChanged": true}});
    if script.has_resources() {
        capabilities["resources"] = json!({"subscribe": true, "listChanged": true});
    }
    if script.prompts.is_some() {
        capabilities["prompts"] = json!({"listChanged": true});
    }
    capabilities.to_string()
}

fn server_info(script: &Script) -> &str {
    let info = script.server_info.as_deref();
    info.map_or(DEFAULT_SERVER_INFO, RawValue::get)
}

fn instructions(script: &Script) -> String {
    let instructions = script.instructions.as_deref();
    instructions.map_or_else(String::new, |text| format!(r#","instructions":{text}"#))
}

impl Script {
    /// Returns true if the server knows the methods of resources.
    pub(crate) fn has_resources(&self) -> bool {
        self.resources.is_some() || self.resource_templates.is_some() || !self.on_read.is_empty()
    }
}

/// Returns the raw result or error of a request about resources or prompts, or `None` if the server does not know the
/// method.
pub(crate) fn answer(script: &Script, request: &Request) -> Option<Result<String, String>> {
    let list = |name: &str, items: Option<&Vec<Raw>>| {
        let items: Vec<&str> = items.into_iter().flatten().map(|raw| raw.get()).collect();
        Some(Ok(format!(r#"{{"{name}":[{}]}}"#, items.join(","))))
    };
    let legacy = request.era == Era::Legacy;
    match request.method.as_str() {
        "prompts/list" if script.prompts.is_some() => list("prompts", script.prompts.as_ref()),
        "prompts/get" if script.prompts.is_some() => Some(prompt(script, request)),
        _ if !script.has_resources() => None,
        "resources/list" => list("resources", script.resources.as_ref()),
        "resources/templates/list" => list("resourceTemplates", script.resource_templates.as_ref()),
        "resources/read" => Some(resource(script, request)),
        "resources/subscribe" | "resources/unsubscribe" if legacy => Some(Ok("{}".to_owned())),
        _ => None,
    }
}

fn known(items: Option<&Vec<Raw>>) -> impl Iterator<Item = Known> {
    let items = items.into_iter().flatten();
    items.map(|raw| serde_json::from_str(raw.get()).unwrap_or_default())
}

fn prompt(script: &Script, request: &Request) -> Result<String, String> {
    let name = request.known.name.as_deref();
    if known(script.prompts.as_ref()).any(|prompt| prompt.name.as_deref() == name) {
        return Ok(echo(request, request.params.get()));
    }
    let message = format!("Unknown prompt: {}", name.unwrap_or_default());
    Err(json!({"code": -32602, "message": message}).to_string())
}

fn resource(script: &Script, request: &Request) -> Result<String, String> {
    let uri = request.known.uri.as_deref();
    if known(script.resources.as_ref()).any(|resource| resource.uri.as_deref() == uri) {
        let text = format!("The text of {}", uri.unwrap_or_default());
        return Ok(json!({"contents": [{"uri": uri, "text": text}]}).to_string());
    }
    let code = match request.era {
        Era::Legacy => -32002,
        Era::Modern => -32602,
    };
    let data = json!({"uri": uri});
    Err(json!({"code": code, "message": "Resource not found", "data": data}).to_string())
}

/// The raw result that gives back a raw object, in the shape that the method has.
pub(crate) fn echo(request: &Request, object: &str) -> String {
    let text = Value::from(object);
    let uri = Value::from(request.known.uri.as_deref());
    match request.method.as_str() {
        "prompts/get" => format!(
            r#"{{"messages":[{{"role":"user","content":{{"type":"text","text":{text}}}}}]}}"#
        ),
        "resources/read" => format!(r#"{{"contents":[{{"uri":{uri},"text":{text}}}]}}"#),
        _ => format!(
            r#"{{"content":[{{"type":"text","text":{text}}}],"structuredContent":{object}}}"#
        ),
    }
}
