//! Tools that ask the client back: its model (sampling), its user (elicitation) or its folders (roots).

#![expect(
    deprecated,
    reason = "sampling and roots are what the suite asks for; rmcp marks what 2026-07-28 advises against"
)]

use rmcp::{
    ErrorData, RoleServer,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities, ContentBlock,
        CreateMessageRequest, CreateMessageRequestParams, ElicitRequest, ElicitRequestParams,
        InputRequest, InputRequests, InputResponses, ListRootsRequest, Role, SamplingMessage,
        SamplingMessageContentBlock, Tool,
    },
    service::RequestContext,
};
use serde_json::{Value, json};

use crate::{
    fixture::Fixture,
    interview::{Interview, Outcome, Retry, State, can_answer},
    schemas::{choices, contact, defaults},
    tools::{plain, text_argument, with_text},
};

/// The key of the only question of a tool, if the suite does not name one.
const ANSWER: &str = "answer";

/// The tools of this module that have no arguments.
const WITHOUT_ARGUMENTS: [(&str, &str); 12] = [
    (
        "test_elicitation_sep1034_defaults",
        "Asks the user, with a default for every answer",
    ),
    (
        "test_elicitation_sep1330_enums",
        "Asks the user to choose, in every way to ask it",
    ),
    (
        "test_missing_capability",
        "Asks the client's model, which it must have announced",
    ),
    (
        "test_streaming_elicitation",
        "Asks the user for a name, on its response stream",
    ),
    (
        "test_input_required_result_elicitation",
        "Asks the user for a name",
    ),
    (
        "test_input_required_result_sampling",
        "Asks the client's model for a capital",
    ),
    (
        "test_input_required_result_list_roots",
        "Asks the client for its roots",
    ),
    (
        "test_input_required_result_request_state",
        "Asks the user, and has its state brought back",
    ),
    (
        "test_input_required_result_multiple_inputs",
        "Asks the user, the model and for roots at once",
    ),
    (
        "test_input_required_result_multi_round",
        "Asks the user twice, one after the other",
    ),
    (
        "test_input_required_result_tampered_state",
        "Asks the user, and checks the state that comes back",
    ),
    (
        "test_input_required_result_capabilities",
        "Asks whatever the client can answer",
    ),
];

/// The tools of this module.
pub(crate) fn list() -> Vec<Tool> {
    let mut tools = vec![
        with_text("test_sampling", "Asks the client's model", "prompt"),
        with_text(
            "test_elicitation",
            "Asks the user for name and address",
            "message",
        ),
    ];
    tools.extend(WITHOUT_ARGUMENTS.map(|(name, description)| plain(name, description)));
    tools
}

/// Asks the questions of a tool of this module, and returns its result. `None` for other tools.
pub(crate) async fn call(
    fixture: &Fixture,
    request: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Option<Result<CallToolResponse, ErrorData>> {
    let interview = interview(request, context).transpose()?;
    Some(match interview {
        Ok(interview) => hold(fixture, &interview, request, context).await,
        Err(error) => Err(error),
    })
}

/// The user's name, which more than one tool asks for.
pub(crate) fn user_name() -> Interview {
    Interview::once(questions([(
        "user_name",
        ask_text("What is your name?", "name"),
    )]))
}

/// Asks the user for one text.
pub(crate) fn ask_text(message: &str, property: &str) -> InputRequest {
    let schema = json!({
        "type": "object",
        "properties": { property: { "type": "string" } },
        "required": [property],
    });
    ask_user(message, schema)
}

/// Asks the user to say yes or no.
pub(crate) fn ask_whether(message: &str, property: &str) -> InputRequest {
    let schema = json!({
        "type": "object",
        "properties": { property: { "type": "boolean" } },
        "required": [property],
    });
    ask_user(message, schema)
}

async fn hold(
    fixture: &Fixture,
    interview: &Interview,
    request: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let retry = Retry {
        name: &request.name,
        responses: request.input_responses.as_ref(),
        state: request.request_state.as_deref(),
    };
    Ok(
        match interview.hold(retry, fixture.seals(), context).await? {
            Outcome::Answered(responses) => says(&words(&request.name, &responses)).into(),
            Outcome::Asks(questions) => questions.into(),
            Outcome::Failed(words) => CallToolResult::error(vec![ContentBlock::text(words)]).into(),
        },
    )
}

/// Returns the questions of a tool. `None` for a tool without questions.
fn interview(
    request: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<Option<Interview>, ErrorData> {
    let text = |name| text_argument(request.arguments.as_ref(), name);
    let one = |question| Interview::once(questions([(ANSWER, question)]));
    Ok(Some(match request.name.as_ref() {
        "test_sampling" => one(ask_model(text("prompt")?, 100)),
        "test_elicitation" => one(ask_user(text("message")?, contact())),
        "test_elicitation_sep1034_defaults" => one(ask_user("Check these values", defaults())),
        "test_elicitation_sep1330_enums" => one(ask_user("Choose", choices())),
        "test_missing_capability" => one(ask_model("Say something", 100)),
        "test_input_required_result_elicitation" | "test_streaming_elicitation" => user_name(),
        "test_input_required_result_sampling" => Interview::once(questions([capital()])),
        "test_input_required_result_list_roots" => Interview::once(questions([roots()])),
        "test_input_required_result_request_state"
        | "test_input_required_result_tampered_state" => sealed([questions([(
            "confirm",
            ask_whether("Please confirm", "ok"),
        )])]),
        "test_input_required_result_multiple_inputs" => sealed([questions([
            ("user_name", ask_text("What is your name?", "name")),
            ("greeting", ask_model("Generate a greeting", 50)),
            roots(),
        ])]),
        "test_input_required_result_multi_round" => sealed([
            questions([("step1", ask_text("Step 1: What is your name?", "name"))]),
            questions([(
                "step2",
                ask_text("Step 2: What is your favorite color?", "color"),
            )]),
        ]),
        "test_input_required_result_capabilities" => {
            let capabilities = context.client_capabilities().unwrap_or_default();
            Interview::once(answerable(&capabilities))
        }
        _ => return Ok(None),
    }))
}

fn sealed<const COUNT: usize>(rounds: [InputRequests; COUNT]) -> Interview {
    Interview {
        rounds: rounds.into(),
        state: State::Sealed,
    }
}

/// One question of each kind that the client can answer.
fn answerable(capabilities: &ClientCapabilities) -> InputRequests {
    let mut questions = questions([
        ("user_name", ask_text("What is your name?", "name")),
        capital(),
        roots(),
    ]);
    // A client that can answer none of them is asked all, so that the refusal names the missing capabilities.
    if questions
        .values()
        .any(|question| can_answer(capabilities, question))
    {
        questions.retain(|_, question| can_answer(capabilities, question));
    }
    questions
}

fn questions<const COUNT: usize>(questions: [(&str, InputRequest); COUNT]) -> InputRequests {
    questions
        .into_iter()
        .map(|(key, question)| (key.to_owned(), question))
        .collect()
}

fn capital() -> (&'static str, InputRequest) {
    (
        "capital_question",
        ask_model("What is the capital of France?", 100),
    )
}

fn roots() -> (&'static str, InputRequest) {
    (
        "client_roots",
        InputRequest::ListRoots(ListRootsRequest::default()),
    )
}

fn ask_model(prompt: &str, most_tokens: u32) -> InputRequest {
    let question = SamplingMessage::new(Role::User, SamplingMessageContentBlock::text(prompt));
    let request = CreateMessageRequestParams::new(vec![question], most_tokens);
    InputRequest::CreateMessage(CreateMessageRequest::new(request))
}

fn ask_user(message: &str, schema: Value) -> InputRequest {
    let request = ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: message.to_owned(),
        requested_schema: serde_json::from_value(schema)
            .expect("the schemas of the fixture are what elicitation allows"),
    };
    InputRequest::Elicitation(ElicitRequest::new(request))
}

/// Returns the text of a tool about the answers. The suite checks the first words of some.
fn words(tool: &str, responses: &InputResponses) -> String {
    let answer = responses.get(ANSWER).unwrap_or(&Value::Null);
    let name = responses
        .get("user_name")
        .and_then(|answer| answer["content"]["name"].as_str());
    match (tool, name) {
        ("test_sampling", _) => format!("LLM response: {}", text_of(answer)),
        ("test_elicitation", _) => format!("User response: {}", decision(answer)),
        (_, _) if tool.starts_with("test_elicitation_") => {
            format!("Elicitation completed: {}", decision(answer))
        }
        ("test_input_required_result_request_state", _) => "state-ok".to_owned(),
        (_, Some(name)) => format!("Hello, {name}!"),
        (_, None) => format!("The client answered: {}", json!(responses)),
    }
}

/// Returns the text of a message, whose content is one block or a list of them.
fn text_of(message: &Value) -> &str {
    let content = &message["content"];
    let first = content.get(0).unwrap_or(content);
    first["text"].as_str().unwrap_or("no text")
}

fn decision(answer: &Value) -> String {
    let action = answer["action"].as_str().unwrap_or_default();
    format!("action={action}, content={}", answer["content"])
}

fn says(text: &str) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(text)])
}
