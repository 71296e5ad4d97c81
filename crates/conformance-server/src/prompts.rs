//! The prompts of the suite.

use rmcp::{
    ErrorData, RoleServer,
    model::{
        ContentBlock, GetPromptRequestParams, GetPromptResponse, GetPromptResult, JsonObject,
        ListPromptsResult, Prompt, PromptArgument, PromptMessage, ResourceContents, Role,
    },
    service::RequestContext,
};
use serde_json::Value;

use crate::{
    fixture::Fixture,
    interview::{Interview, Outcome, Retry},
    questions::ask_text,
    samples::{PNG, PNG_TYPE},
};

/// The prompt whose arguments can be completed.
pub(crate) const WITH_ARGUMENTS: &str = "test_prompt_with_arguments";

const SIMPLE: &str = "test_simple_prompt";
const WITH_EMBEDDED_RESOURCE: &str = "test_prompt_with_embedded_resource";
const WITH_IMAGE: &str = "test_prompt_with_image";

const WITH_QUESTION: &str = "test_input_required_result_prompt";

/// The prompt that is listed only at times.
const EXTRA: &str = "test_extra_prompt";

/// The key of the question.
const USER_CONTEXT: &str = "user_context";

pub(crate) fn list(fixture: &Fixture) -> ListPromptsResult {
    let mut prompts = vec![
        Prompt::new(SIMPLE, Some("A text without arguments"), None),
        Prompt::new(
            WITH_ARGUMENTS,
            Some("A text that repeats its two arguments"),
            Some(vec![
                required("arg1", "First test argument"),
                required("arg2", "Second test argument"),
            ]),
        ),
        Prompt::new(
            WITH_EMBEDDED_RESOURCE,
            Some("A resource and a text about it"),
            Some(vec![required(
                "resourceUri",
                "URI of the resource to embed",
            )]),
        ),
        Prompt::new(WITH_IMAGE, Some("A picture and a text about it"), None),
        Prompt::new(
            WITH_QUESTION,
            Some("A text that the user is asked for"),
            None,
        ),
    ];
    if fixture.changes().has_extra_prompt() {
        prompts.push(Prompt::new(EXTRA, Some("Comes and goes"), None));
    }
    ListPromptsResult::with_all_items(prompts)
}

pub(crate) async fn get(
    fixture: &Fixture,
    request: &GetPromptRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<GetPromptResponse, ErrorData> {
    if request.name == WITH_QUESTION {
        return ask_first(fixture, request, context).await;
    }
    let arguments = request.arguments.clone().unwrap_or_default();
    let contents = contents(&request.name, &arguments)?;
    Ok(prompt(contents).into())
}

async fn ask_first(
    fixture: &Fixture,
    request: &GetPromptRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<GetPromptResponse, ErrorData> {
    let question = ask_text("What context should the prompt use?", "context");
    let interview = Interview::once([(USER_CONTEXT.to_owned(), question)].into());
    let retry = Retry {
        name: &request.name,
        responses: request.input_responses.as_ref(),
        state: request.request_state.as_deref(),
    };
    match interview.hold(retry, fixture.seals(), context).await? {
        Outcome::Answered(responses) => {
            let answer = &responses[USER_CONTEXT]["content"]["context"];
            let text = format!("Use this context: {answer}");
            Ok(prompt(vec![ContentBlock::text(text)]).into())
        }
        Outcome::Asks(questions) => Ok(questions.into()),
        Outcome::Failed(words) => Err(ErrorData::invalid_request(words, None)),
    }
}

fn contents(name: &str, arguments: &JsonObject) -> Result<Vec<ContentBlock>, ErrorData> {
    Ok(match name {
        SIMPLE | EXTRA => vec![ContentBlock::text("This is a simple prompt for testing.")],
        WITH_ARGUMENTS => {
            let arg1 = argument(arguments, "arg1")?;
            let arg2 = argument(arguments, "arg2")?;
            vec![ContentBlock::text(format!(
                "Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"
            ))]
        }
        WITH_EMBEDDED_RESOURCE => {
            let uri = argument(arguments, "resourceUri")?;
            let resource = ResourceContents::text("Embedded resource content for testing.", uri);
            vec![
                ContentBlock::resource(resource.with_mime_type("text/plain")),
                ContentBlock::text("Please process the embedded resource above."),
            ]
        }
        WITH_IMAGE => vec![
            ContentBlock::image(PNG, PNG_TYPE),
            ContentBlock::text("Please analyze the image above."),
        ],
        _ => {
            let words = format!("Unknown prompt: {name}");
            return Err(ErrorData::invalid_params(words, None));
        }
    })
}

fn prompt(contents: Vec<ContentBlock>) -> GetPromptResult {
    let messages = contents
        .into_iter()
        .map(|content| PromptMessage::new(Role::User, content))
        .collect();
    GetPromptResult::new(messages)
}

fn required(name: &str, description: &str) -> PromptArgument {
    PromptArgument::new(name)
        .with_description(description)
        .with_required(true)
}

fn argument<'a>(arguments: &'a JsonObject, name: &str) -> Result<&'a str, ErrorData> {
    arguments
        .get(name)
        .and_then(Value::as_str)
        .ok_or_else(|| ErrorData::invalid_params(format!("Missing argument: {name}"), None))
}
