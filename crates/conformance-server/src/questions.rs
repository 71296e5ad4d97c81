//! Tools that ask the client back: its model (sampling), or its user (elicitation).
//!
//! A client that has not announced the capability is not asked: the tool fails and says so.

#![expect(
    deprecated,
    reason = "2025-11-25 has sampling; rmcp marks what 2026-07-28 dropped"
)]

use rmcp::{
    RoleServer,
    model::{
        CallToolResult, ClientCapabilities, ClientResult, ContentBlock, CreateMessageRequestParams,
        ElicitRequest, ElicitRequestParams, ElicitResult, Role, SamplingMessage,
        SamplingMessageContentBlock, ServerRequest,
    },
    service::{RequestContext, ServiceError},
};
use serde_json::{Value, json};

/// Asks the client's model.
pub(crate) async fn ask_model(
    context: &RequestContext<RoleServer>,
    prompt: &str,
) -> CallToolResult {
    if !client_has(context, |capabilities| capabilities.sampling.is_some()) {
        return failed("The client does not support sampling");
    }
    let question = SamplingMessage::new(Role::User, SamplingMessageContentBlock::text(prompt));
    let request = CreateMessageRequestParams::new(vec![question], 100);
    let answer = match context.peer.create_message(request).await {
        Ok(answer) => answer,
        Err(error) => return failed(&format!("Sampling failed: {error}")),
    };
    let text = answer
        .message
        .content
        .first()
        .and_then(SamplingMessageContentBlock::as_text)
        .map_or("no text", |content| content.text.as_str());
    answered(format!("LLM response: {text}"))
}

/// Asks the user for a name and an address.
pub(crate) async fn ask_contact(
    context: &RequestContext<RoleServer>,
    message: &str,
) -> CallToolResult {
    let schema = json!({
        "type": "object",
        "properties": {
            "username": { "type": "string", "description": "User's response" },
            "email": { "type": "string", "description": "User's email address" },
        },
        "required": ["username", "email"],
    });
    ask_user(context, message, schema, "User response").await
}

/// Asks the user with a default for every primitive type.
pub(crate) async fn ask_with_defaults(context: &RequestContext<RoleServer>) -> CallToolResult {
    let schema = json!({
        "type": "object",
        "properties": {
            "name": { "type": "string", "default": "John Doe" },
            "age": { "type": "integer", "default": 30 },
            "score": { "type": "number", "default": 95.5 },
            "status": {
                "type": "string",
                "enum": ["active", "inactive", "pending"],
                "default": "active",
            },
            "verified": { "type": "boolean", "default": true },
        },
    });
    ask_user(
        context,
        "Check these values",
        schema,
        "Elicitation completed",
    )
    .await
}

/// Asks the user to choose, in each of the five ways to write an enumeration.
pub(crate) async fn ask_to_choose(context: &RequestContext<RoleServer>) -> CallToolResult {
    let schema = json!({
        "type": "object",
        "properties": {
            "untitledSingle": { "type": "string", "enum": ["option1", "option2", "option3"] },
            "titledSingle": { "type": "string", "oneOf": titled("Option") },
            "legacyEnum": {
                "type": "string",
                "enum": ["opt1", "opt2", "opt3"],
                "enumNames": ["Option One", "Option Two", "Option Three"],
            },
            "untitledMulti": {
                "type": "array",
                "items": { "type": "string", "enum": ["option1", "option2", "option3"] },
            },
            "titledMulti": { "type": "array", "items": { "anyOf": titled("Choice") } },
        },
    });
    ask_user(context, "Choose", schema, "Elicitation completed").await
}

fn titled(noun: &str) -> Value {
    json!([
        { "const": "value1", "title": format!("First {noun}") },
        { "const": "value2", "title": format!("Second {noun}") },
        { "const": "value3", "title": format!("Third {noun}") },
    ])
}

async fn ask_user(
    context: &RequestContext<RoleServer>,
    message: &str,
    schema: Value,
    outcome: &str,
) -> CallToolResult {
    if !client_has(context, |capabilities| capabilities.elicitation.is_some()) {
        return failed("The client does not support elicitation");
    }
    let request = ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: message.to_owned(),
        requested_schema: serde_json::from_value(schema)
            .expect("the schemas above are what elicitation allows"),
    };
    match elicit(context, request).await {
        Ok(answer) => {
            let action = json!(answer.action);
            let action = action.as_str().unwrap_or_default();
            let content = json!(answer.content);
            answered(format!("{outcome}: action={action}, content={content}"))
        }
        Err(error) => failed(&format!("Elicitation failed: {error}")),
    }
}

async fn elicit(
    context: &RequestContext<RoleServer>,
    request: ElicitRequestParams,
) -> Result<ElicitResult, ServiceError> {
    let request = ServerRequest::ElicitRequest(ElicitRequest::new(request));
    match context.peer.send_request(request).await? {
        ClientResult::ElicitResult(answer) => Ok(answer),
        _ => Err(ServiceError::UnexpectedResponse),
    }
}

fn client_has(
    context: &RequestContext<RoleServer>,
    announced: impl Fn(&ClientCapabilities) -> bool,
) -> bool {
    context
        .client_capabilities()
        .is_some_and(|capabilities| announced(&capabilities))
}

fn answered(text: String) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(text)])
}

fn failed(words: &str) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(words)])
}
