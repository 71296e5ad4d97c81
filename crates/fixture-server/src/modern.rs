//! The modern era: the required members of requests and results.

use std::collections::BTreeMap;

use serde_json::{Value, json, value::RawValue};

use crate::{
    message::{Meta, Request},
    script::Script,
};

/// The revision of the era.
pub(crate) const REVISION: &str = "2026-07-28";

/// The extension for calls that outlive their request.
const TASKS: &str = "io.modelcontextprotocol/tasks";

/// The levels of log messages, least urgent first.
const LEVELS: [&str; 8] = [
    "debug",
    "info",
    "notice",
    "warning",
    "error",
    "critical",
    "alert",
    "emergency",
];

/// Returns the problem with a modern request, as a raw error.
pub(crate) fn problem(request: &Request) -> Option<String> {
    if request.method == "initialize" {
        let requested = request.known.protocol_version.as_deref();
        return Some(unsupported(requested.unwrap_or_default()));
    }
    let meta = &request.known.meta;
    let invalid = |what: &str| Some(json!({"code": -32602, "message": what}).to_string());
    let Some(version) = text(meta.version.as_deref()) else {
        return invalid("_meta: protocolVersion is required");
    };
    let capabilities = meta.capabilities.as_deref();
    if !capabilities.is_some_and(|it| it.get().starts_with('{')) {
        return invalid("_meta: clientCapabilities is required");
    }
    if meta.log_level.is_some() && wanted_level(meta).is_none() {
        return invalid("_meta: unknown logLevel");
    }
    (version != REVISION).then(|| unsupported(&version))
}

fn unsupported(requested: &str) -> String {
    json!({
        "code": -32022,
        "message": "Unsupported protocol version",
        "data": {"supported": [REVISION], "requested": requested},
    })
    .to_string()
}

/// Returns the error for a client that lacks a required capability.
pub(crate) fn missing_capability(required: &str) -> String {
    format!(
        r#"{{"code":-32021,"message":"Missing required client capability","data":{{"requiredCapabilities":{required}}}}}"#
    )
}

/// Returns true if the client of a request has declared all of these capabilities.
pub(crate) fn declares(request: &Request, required: &str) -> bool {
    let declared = request
        .known
        .meta
        .capabilities
        .as_deref()
        .map_or("{}", RawValue::get);
    let read = |raw: &str| serde_json::from_str::<Value>(raw).unwrap_or_default();
    holds(&read(declared), &read(required))
}

/// The declaration of the tasks extension.
pub(crate) fn tasks_capability() -> String {
    json!({"extensions": {TASKS: {}}}).to_string()
}

fn holds(declared: &Value, required: &Value) -> bool {
    match required {
        Value::Object(members) => members.iter().all(|(name, value)| {
            declared
                .get(name)
                .is_some_and(|declared| holds(declared, value))
        }),
        _ => declared == required,
    }
}

/// Returns the rank of a log level, or `None` if it is unknown.
pub(crate) fn level(name: &str) -> Option<usize> {
    LEVELS.iter().position(|level| *level == name)
}

/// The least urgent level that a request wants log messages of.
pub(crate) fn wanted_level(meta: &Meta) -> Option<usize> {
    level(&text(meta.log_level.as_deref())?)
}

fn text(raw: Option<&RawValue>) -> Option<String> {
    serde_json::from_str(raw?.get()).ok()
}

/// Adds the members that the era requires of every result, and of cacheable ones.
pub(crate) fn complete(script: &Script, method: &str, result: &str) -> String {
    let Ok(members) = serde_json::from_str::<BTreeMap<String, &RawValue>>(result) else {
        return result.to_owned();
    };
    let mut added = Vec::new();
    // A result that asks or names a task has its own type.
    if !members.contains_key("resultType") {
        added.push(r#""resultType":"complete""#.to_owned());
        if is_cacheable(method) && !members.contains_key("ttlMs") {
            added.push(format!(r#""ttlMs":{}"#, script.ttl_ms.unwrap_or(60_000)));
            let scope = script.cache_scope.as_deref().unwrap_or("public");
            added.push(format!(r#""cacheScope":"{scope}""#));
        }
    }
    with_members(result, &added)
}

/// A raw object with more raw members before its own.
pub(crate) fn with_members(object: &str, added: &[String]) -> String {
    let rest = object.trim_start().trim_start_matches('{').trim_start();
    match (added, rest) {
        ([], _) => object.to_owned(),
        (added, rest) if rest.starts_with('}') => format!("{{{}{rest}", added.join(",")),
        (added, rest) => format!("{{{},{rest}", added.join(",")),
    }
}

fn is_cacheable(method: &str) -> bool {
    matches!(
        method,
        "server/discover"
            | "tools/list"
            | "prompts/list"
            | "resources/list"
            | "resources/templates/list"
            | "resources/read"
    )
}
