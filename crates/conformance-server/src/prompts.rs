//! The prompts of the suite.

use rmcp::{
    ErrorData,
    model::{
        ContentBlock, GetPromptResult, JsonObject, ListPromptsResult, Prompt, PromptArgument,
        PromptMessage, ResourceContents, Role,
    },
};
use serde_json::Value;

use crate::samples::{PNG, PNG_TYPE};

/// The prompt whose arguments can be completed.
pub(crate) const WITH_ARGUMENTS: &str = "test_prompt_with_arguments";

const SIMPLE: &str = "test_simple_prompt";
const WITH_EMBEDDED_RESOURCE: &str = "test_prompt_with_embedded_resource";
const WITH_IMAGE: &str = "test_prompt_with_image";

/// Answers `prompts/list`.
pub(crate) fn list() -> ListPromptsResult {
    ListPromptsResult::with_all_items(vec![
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
    ])
}

/// Answers `prompts/get`.
pub(crate) fn get(name: &str, arguments: &JsonObject) -> Result<GetPromptResult, ErrorData> {
    let contents = match name {
        SIMPLE => vec![ContentBlock::text("This is a simple prompt for testing.")],
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
    };
    let messages = contents
        .into_iter()
        .map(|content| PromptMessage::new(Role::User, content))
        .collect();
    Ok(GetPromptResult::new(messages))
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
