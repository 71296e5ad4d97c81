//! The tools of the suite: the list, and what each call returns.

use std::sync::Arc;

use rmcp::{
    ErrorData, RoleServer,
    model::{
        CallToolRequestParams, CallToolResult, ContentBlock, JsonObject, ListToolsResult,
        ResourceContents, Tool,
    },
    service::{RequestContext, ServiceError},
};
use serde_json::{Value, json};

use crate::{
    fixture::Fixture,
    questions,
    samples::{PNG, PNG_TYPE, WAV, WAV_TYPE},
    talk,
};

/// Answers `tools/list`.
pub(crate) fn list() -> ListToolsResult {
    ListToolsResult::with_all_items(vec![
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
        plain(
            "test_reconnection",
            "Drops its response stream before it answers",
        ),
        plain(
            "test_update_watched_resource",
            "Tells a subscriber of an update",
        ),
        with_text("test_sampling", "Asks the client's model", "prompt"),
        with_text(
            "test_elicitation",
            "Asks the user for name and address",
            "message",
        ),
        plain(
            "test_elicitation_sep1034_defaults",
            "Asks the user, with a default for every answer",
        ),
        plain(
            "test_elicitation_sep1330_enums",
            "Asks the user to choose, in every way to ask it",
        ),
        tool(
            "json_schema_2020_12_tool",
            "Has an input schema with the words of JSON Schema 2020-12",
            schema_2020_12(),
        ),
    ])
}

/// Answers `tools/call`.
pub(crate) async fn call(
    fixture: &Fixture,
    request: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResult, ErrorData> {
    let text = |name| text_argument(request.arguments.as_ref(), name);
    Ok(match request.name.as_ref() {
        "test_simple_text" => returns([ContentBlock::text(
            "This is a simple text response for testing.",
        )]),
        "test_image_content" => returns([ContentBlock::image(PNG, PNG_TYPE)]),
        "test_audio_content" => returns([ContentBlock::audio(WAV, WAV_TYPE)]),
        "test_embedded_resource" => returns([embedded_resource()]),
        "test_multiple_content_types" => returns([
            ContentBlock::text("Multiple content types test:"),
            ContentBlock::image(PNG, PNG_TYPE),
            mixed_content_resource(),
        ]),
        "test_error_handling" => CallToolResult::error(vec![ContentBlock::text(
            "This tool intentionally returns an error for testing",
        )]),
        "test_tool_with_progress" => delivered(talk::report_progress(context).await)?,
        "test_tool_with_logging" => delivered(talk::log(fixture, context).await)?,
        "test_update_watched_resource" => {
            delivered(talk::update_watched_resource(fixture, context).await)?
        }
        "test_reconnection" => talk::drop_stream(fixture, context).await,
        "test_sampling" => questions::ask_model(context, text("prompt")?).await,
        "test_elicitation" => questions::ask_contact(context, text("message")?).await,
        "test_elicitation_sep1034_defaults" => questions::ask_with_defaults(context).await,
        "test_elicitation_sep1330_enums" => questions::ask_to_choose(context).await,
        "json_schema_2020_12_tool" => returns([ContentBlock::text(
            "The schema of this tool is all there is to it.",
        )]),
        unknown => {
            let words = format!("Unknown tool: {unknown}");
            return Err(ErrorData::invalid_params(words, None));
        }
    })
}

fn returns<const COUNT: usize>(content: [ContentBlock; COUNT]) -> CallToolResult {
    CallToolResult::success(content.into())
}

/// What the tool returns, or the error for a client that its notifications did not reach.
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

fn text_argument<'a>(arguments: Option<&'a JsonObject>, name: &str) -> Result<&'a str, ErrorData> {
    arguments
        .and_then(|arguments| arguments.get(name))
        .and_then(Value::as_str)
        .ok_or_else(|| ErrorData::invalid_params(format!("Missing argument: {name}"), None))
}

fn plain(name: &'static str, description: &'static str) -> Tool {
    tool(
        name,
        description,
        json!({ "type": "object", "properties": {} }),
    )
}

fn with_text(name: &'static str, description: &'static str, argument: &str) -> Tool {
    let schema = json!({
        "type": "object",
        "properties": { argument: { "type": "string" } },
        "required": [argument],
    });
    tool(name, description, schema)
}

fn tool(name: &'static str, description: &'static str, schema: Value) -> Tool {
    let Value::Object(schema) = schema else {
        unreachable!("the schemas above are objects")
    };
    Tool::new(name, description, Arc::new(schema))
}

/// As the suite words it: it looks for each of these members.
fn schema_2020_12() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": { "street": { "type": "string" }, "city": { "type": "string" } },
            },
        },
        "properties": {
            "name": { "type": "string" },
            "address": { "$ref": "#/$defs/address" },
            "contactMethod": { "type": "string", "enum": ["phone", "email"] },
            "phone": { "type": "string" },
            "email": { "type": "string" },
        },
        "allOf": [{ "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }],
        "if": {
            "properties": { "contactMethod": { "const": "phone" } },
            "required": ["contactMethod"],
        },
        "then": { "required": ["phone"] },
        "else": { "required": ["email"] },
        "additionalProperties": false,
    })
}
