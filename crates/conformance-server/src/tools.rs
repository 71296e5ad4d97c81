//! The tools of the suite: the list, and the result of each call.

use std::sync::Arc;

use rmcp::{
    ErrorData, RoleServer,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, JsonObject,
        ResourceContents, Tool,
    },
    service::{RequestContext, ServiceError},
};
use serde_json::{Value, json};

use crate::{
    changes::Change,
    fixture::Fixture,
    questions,
    samples::{PNG, PNG_TYPE, WAV, WAV_TYPE},
    schemas::{schema_2020_12, with_headers},
    talk, tasks,
};

/// The tool that is listed only at times.
const EXTRA: &str = "test_extra_tool";

/// Every tool that is there now.
pub(crate) fn list(fixture: &Fixture) -> Vec<Tool> {
    let mut tools = simple();
    tools.extend(questions::list());
    tools.extend(tasks::list());
    if fixture.changes().has_extra_tool() {
        tools.push(plain(EXTRA, "Comes and goes"));
    }
    tools
}

fn simple() -> Vec<Tool> {
    vec![
        plain("test_simple_text", "Returns a text"),
        plain("test_image_content", "Returns a picture"),
        plain("test_audio_content", "Returns a sound"),
        plain("test_embedded_resource", "Returns a resource"),
        plain(
            "test_multiple_content_types",
            "Returns a text, a picture and a resource",
        ),
        plain("test_error_handling", "Always fails"),
        plain(
            "test_tool_with_progress",
            "Reports its progress three times",
        ),
        plain("test_tool_with_logging", "Sends three log messages"),
        plain("test_logging_tool", "Sends three log messages"),
        plain("test_trigger_tool_change", "Changes the list of tools"),
        plain("test_trigger_prompt_change", "Changes the list of prompts"),
        plain(
            "test_reconnection",
            "Drops its response stream before it answers",
        ),
        plain(
            "test_update_watched_resource",
            "Tells a subscriber of an update",
        ),
        tool(
            "json_schema_2020_12_tool",
            "Has an input schema with the words of JSON Schema 2020-12",
            schema_2020_12(),
        ),
        tool(
            "test_custom_headers",
            "Has arguments that are repeated in headers",
            with_headers(),
        ),
    ]
}

pub(crate) async fn call(
    fixture: &Fixture,
    request: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    if let Some(response) = questions::call(fixture, request, context).await {
        return response;
    }
    if let Some(response) = tasks::call(fixture, request, context).await {
        return response;
    }
    Ok(call_simple(fixture, &request.name, context).await?.into())
}

async fn call_simple(
    fixture: &Fixture,
    name: &str,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResult, ErrorData> {
    if let Some(content) = content(name) {
        return Ok(CallToolResult::success(content));
    }
    delivered(match name {
        "test_tool_with_progress" => talk::report_progress(context).await,
        "test_tool_with_logging" | "test_logging_tool" => talk::log(fixture, context).await,
        "test_trigger_tool_change" => talk::change(fixture, Change::Tools, context).await,
        "test_trigger_prompt_change" => talk::change(fixture, Change::Prompts, context).await,
        "test_update_watched_resource" => talk::update_watched_resource(fixture, context).await,
        "test_reconnection" => Ok(talk::drop_stream(fixture, context).await),
        "test_error_handling" => Ok(CallToolResult::error(vec![ContentBlock::text(
            "This tool intentionally returns an error for testing",
        )])),
        unknown => {
            let words = format!("Unknown tool: {unknown}");
            return Err(ErrorData::invalid_params(words, None));
        }
    })
}

/// Returns the result of a tool with a constant result.
fn content(name: &str) -> Option<Vec<ContentBlock>> {
    Some(match name {
        "test_simple_text" => vec![ContentBlock::text(
            "This is a simple text response for testing.",
        )],
        "test_image_content" => vec![ContentBlock::image(PNG, PNG_TYPE)],
        "test_audio_content" => vec![ContentBlock::audio(WAV, WAV_TYPE)],
        "test_embedded_resource" => vec![embedded_resource()],
        "test_multiple_content_types" => vec![
            ContentBlock::text("Multiple content types test:"),
            ContentBlock::image(PNG, PNG_TYPE),
            mixed_content_resource(),
        ],
        "json_schema_2020_12_tool" | "test_custom_headers" | EXTRA => vec![ContentBlock::text(
            "How this tool is listed is all there is to it.",
        )],
        _ => return None,
    })
}

/// Returns the result of a tool, or the error if its notifications could not be sent.
fn delivered(outcome: Result<CallToolResult, ServiceError>) -> Result<CallToolResult, ErrorData> {
    outcome.map_err(|error| {
        ErrorData::internal_error(format!("A notification did not go out: {error}"), None)
    })
}

fn embedded_resource() -> ContentBlock {
    ContentBlock::resource(
        ResourceContents::text(
            "This is an embedded resource content.",
            "test://embedded-resource",
        )
        .with_mime_type("text/plain"),
    )
}

fn mixed_content_resource() -> ContentBlock {
    let text = json!({ "test": "data", "value": 123 }).to_string();
    ContentBlock::resource(
        ResourceContents::text(text, "test://mixed-content-resource")
            .with_mime_type("application/json"),
    )
}

/// An argument that must be a text.
pub(crate) fn text_argument<'a>(
    arguments: Option<&'a JsonObject>,
    name: &str,
) -> Result<&'a str, ErrorData> {
    arguments
        .and_then(|arguments| arguments.get(name))
        .and_then(Value::as_str)
        .ok_or_else(|| ErrorData::invalid_params(format!("Missing argument: {name}"), None))
}

pub(crate) fn plain(name: &'static str, description: &'static str) -> Tool {
    tool(
        name,
        description,
        json!({ "type": "object", "properties": {} }),
    )
}

/// A tool with one argument, a text.
pub(crate) fn with_text(name: &'static str, description: &'static str, argument: &str) -> Tool {
    let schema = json!({
        "type": "object",
        "properties": { argument: { "type": "string" } },
        "required": [argument],
    });
    tool(name, description, schema)
}

/// A tool with arguments of any kind.
pub(crate) fn tool(name: &'static str, description: &'static str, schema: Value) -> Tool {
    let Value::Object(schema) = schema else {
        unreachable!("the schemas above are objects")
    };
    Tool::new(name, description, Arc::new(schema))
}
