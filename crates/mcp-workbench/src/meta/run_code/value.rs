//! The result of a tool as the value that a script gets.

use rawjson::{Kind, ObjectText, RawJson};
use script::Failure;
use serde_json::json;

/// The largest result of one call, in bytes.
pub(super) const MAX_RESULT_BYTES: usize = 4 * 1024 * 1024;
/// The number of characters of an error of a tool that a script gets.
const MAX_MESSAGE_CHARACTERS: usize = 4000;

/// Returns the value of a result, as JSON on one line: `structuredContent` if there is any; otherwise the text, read as JSON
/// if it is an object or an array; otherwise the content with its binary parts described. An error of the tool fails.
pub(super) fn value_of(result: &RawJson) -> Result<RawJson, Failure> {
    if result.member("isError").is_some_and(|it| it.is_true()) {
        let message: String = text_of(result)
            .chars()
            .take(MAX_MESSAGE_CHARACTERS)
            .collect();
        return Err(failure("tool_error", message));
    }
    let bytes = result.as_bytes().len();
    if bytes > MAX_RESULT_BYTES {
        return Err(failure(
            "result_too_large",
            format!(
                "the result has {bytes} bytes, and a script takes {MAX_RESULT_BYTES}: ask for less"
            ),
        ));
    }
    let structured = result.member("structuredContent");
    if let Some(structured) = structured.filter(|it| it.kind() != Kind::Null) {
        return Ok(structured.minified());
    }
    let content = result.member("content").and_then(|it| it.elements());
    let content = content.unwrap_or_default();
    if content.is_empty() {
        return Ok(RawJson::of(&()));
    }
    if content.iter().all(is_text) {
        return Ok(parsed(&text_of(result)));
    }
    let content: Vec<RawJson> = content.iter().map(described).collect();
    let content = RawJson::array(&content);
    Ok(ObjectText::new().raw("content", &content).finish())
}

/// Returns a text as the JSON object or array that it is, or as a string.
fn parsed(text: &str) -> RawJson {
    let begins = text.trim_start().starts_with(['{', '[']);
    let json = begins.then(|| RawJson::parse(&text.to_owned().into()).ok());
    match json.flatten() {
        Some(json) if matches!(json.kind(), Kind::Object | Kind::Array) => json.minified(),
        _ => RawJson::of(&text),
    }
}

fn is_text(block: &RawJson) -> bool {
    let kind = block.member("type");
    kind.is_some_and(|it| it.as_text().as_deref() == Some("text"))
}

/// Returns the text of a result.
fn text_of(result: &RawJson) -> String {
    let content = result.member("content").and_then(|it| it.elements());
    let content = content.unwrap_or_default();
    let texts = content.iter().filter(|it| is_text(it));
    let texts = texts.filter_map(|it| Some(it.member("text")?.as_text()?.into_owned()));
    texts.collect::<Vec<_>>().join("\n")
}

/// Returns a part of the content without its bytes, which a script cannot use.
fn described(block: &RawJson) -> RawJson {
    let data = block.member("data");
    let Some(data) = data.as_ref().and_then(RawJson::as_text) else {
        return block.minified();
    };
    let text = |name: &str| Some(block.member(name)?.as_text()?.into_owned());
    RawJson::of(&json!({
        "type": text("type"),
        "mimeType": text("mimeType"),
        // Base64 has four characters for three bytes.
        "bytes": data.trim_end_matches('=').len() * 3 / 4,
    }))
}

fn failure(code: &str, message: String) -> Failure {
    Failure {
        code: code.to_owned(),
        outcome: None,
        message,
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    fn text(text: &str) -> serde_json::Value {
        json!({"type": "text", "text": text})
    }

    #[test]
    fn a_result_becomes_the_value_that_a_script_wants() {
        let cases = [
            (json!({"content": [text("{\"a\": 1}")]}), json!({"a": 1})),
            (json!({"content": [text("[1,\n 2]")]}), json!([1, 2])),
            (json!({"content": [text("7")]}), json!("7")),
            (json!({"content": [text("{broken")]}), json!("{broken")),
            (json!({"content": [text("a"), text("b")]}), json!("a\nb")),
            (json!({"content": []}), json!(null)),
            (json!({}), json!(null)),
            (
                json!({"content": [text("x")], "structuredContent": {"b": [1]}}),
                json!({"b": [1]}),
            ),
            (
                json!({"content": [text("x")], "structuredContent": null}),
                json!("x"),
            ),
            (
                json!({"content": [text("x"), {"type": "image", "mimeType": "image/png", "data": "AAAA"}]}),
                json!({"content": [text("x"), {"type": "image", "mimeType": "image/png", "bytes": 3}]}),
            ),
        ];
        for (result, expected) in cases {
            let value = value_of(&RawJson::of(&result)).unwrap();
            let value: serde_json::Value = serde_json::from_str(value.as_str()).unwrap();
            assert_eq!(value, expected, "{result}");
        }
    }

    #[test]
    fn an_error_of_a_tool_fails() {
        let result = json!({"isError": true, "content": [text("not found: 42")]});
        let failure = value_of(&RawJson::of(&result)).unwrap_err();
        assert_eq!(
            (failure.code.as_str(), failure.message.as_str()),
            ("tool_error", "not found: 42")
        );
        let large = json!({"content": [text(&"x".repeat(MAX_RESULT_BYTES))]});
        assert_eq!(
            value_of(&RawJson::of(&large)).unwrap_err().code,
            "result_too_large"
        );
    }
}
