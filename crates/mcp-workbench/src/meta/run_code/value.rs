//! The result of a tool as the value that a script gets.

use rawjson::{Kind, ObjectText, RawJson};
use script::Failure;
use serde_json::{Map, Value};

/// The largest result of one call, in bytes.
pub(super) const MAX_RESULT_BYTES: usize = 4 * 1024 * 1024;
/// The number of characters of an error of a tool that a script gets.
const MAX_MESSAGE_CHARACTERS: usize = 4000;

#[derive(Debug)]
pub(super) struct CallValue {
    /// On one line.
    pub(super) json: RawJson,
    /// The parts of the result that are not text, which the script can emit.
    pub(super) parts: Vec<Part>,
}

/// A part of a result that is not text.
#[derive(Debug)]
pub(super) struct Part {
    /// The name that scripts have for it. No two parts of a run have the same.
    pub(super) reference: String,
    /// The part as the server sent it.
    pub(super) block: RawJson,
}

impl From<RawJson> for CallValue {
    fn from(json: RawJson) -> Self {
        let parts = Vec::new();
        Self { json, parts }
    }
}

/// Returns the value of a result: `structuredContent` if there is any; otherwise the text, read as JSON if it is an object
/// or an array; otherwise the content with its binary parts described. An error of the tool fails. `call` is the number of
/// the call in its run.
pub(super) fn value_of(result: &RawJson, call: usize) -> Result<CallValue, Failure> {
    // Before the size counts: the message of an error is short, whatever is beside it.
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
    // `null` counts as absent.
    let structured = result.member("structuredContent");
    if let Some(structured) = structured.filter(|it| it.kind() != Kind::Null) {
        return Ok(structured.minified().into());
    }
    let content = result
        .member("content")
        .and_then(|it| it.elements())
        .unwrap_or_default();
    if content.is_empty() {
        return Ok(RawJson::of(&()).into());
    }
    if content.iter().all(is_text) {
        return Ok(parsed(&text_of(result)).into());
    }
    let mut parts = Vec::new();
    let mut shown = Vec::new();
    for block in &content {
        if is_text(block) {
            shown.push(block.minified());
            continue;
        }
        let reference = format!("{call}.{}", parts.len() + 1);
        shown.push(described(block, &reference));
        let block = block.minified();
        parts.push(Part { reference, block });
    }
    let content = RawJson::array(&shown);
    let json = ObjectText::new().raw("content", &content).finish();
    Ok(CallValue { json, parts })
}

/// Returns a text as the JSON object or array that it is, or as a string.
fn parsed(text: &str) -> RawJson {
    // Most texts are not JSON, and this spares them the parser.
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

fn text_of(result: &RawJson) -> String {
    let content = result
        .member("content")
        .and_then(|it| it.elements())
        .unwrap_or_default();
    let texts = content
        .iter()
        .filter(|it| is_text(it))
        .filter_map(|it| Some(it.member("text")?.as_text()?.into_owned()));
    texts.collect::<Vec<_>>().join("\n")
}

/// Returns a part of the content with its reference, and without its bytes, which a script cannot use.
fn described(block: &RawJson, reference: &str) -> RawJson {
    let binary = Binary::of(block).or_else(|| Binary::of(&block.member("resource")?));
    let Some(binary) = binary else {
        return block
            .minified()
            .with_member("ref", &RawJson::of(&reference));
    };
    let mut described = Map::new();
    let kind = block.member("type");
    let kind = kind.as_ref().and_then(RawJson::as_text);
    described.insert("type".into(), kind.into());
    if let Some(uri) = binary.uri {
        described.insert("uri".into(), uri.into());
    }
    described.insert("mimeType".into(), binary.mime_type.into());
    described.insert("bytes".into(), binary.bytes.into());
    described.insert("ref".into(), reference.into());
    RawJson::of(&Value::Object(described))
}

/// A description of bytes in a result.
struct Binary {
    uri: Option<String>,
    mime_type: Option<String>,
    bytes: usize,
}

impl Binary {
    /// Describes an image, a sound or the file of an embedded resource; `None` if there are no bytes.
    fn of(value: &RawJson) -> Option<Self> {
        let data = value.member("data").or_else(|| value.member("blob"))?;
        let data = data.as_text()?;
        let text = |name: &str| Some(value.member(name)?.as_text()?.into_owned());
        Some(Self {
            uri: text("uri"),
            mime_type: text("mimeType"),
            // Base64 has four characters for three bytes.
            bytes: data.trim_end_matches('=').len() * 3 / 4,
        })
    }
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
    use serde_json::json;

    use super::*;

    fn text(text: &str) -> Value {
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
                json!({"content": [text("x"), {"type": "image", "mimeType": "image/png", "bytes": 3, "ref": "4.1"}]}),
            ),
            (
                json!({"content": [
                    {"type": "resource", "resource": {"uri": "a:b", "mimeType": "x/y", "blob": "AAA="}},
                    text("x"),
                    {"type": "resource_link", "uri": "c:d", "name": "d"},
                ]}),
                json!({"content": [
                    {"type": "resource", "uri": "a:b", "mimeType": "x/y", "bytes": 2, "ref": "4.1"},
                    text("x"),
                    {"type": "resource_link", "uri": "c:d", "name": "d", "ref": "4.2"},
                ]}),
            ),
        ];
        for (result, expected) in cases {
            let value = value_of(&RawJson::of(&result), 4).unwrap();
            let value: Value = serde_json::from_str(value.json.as_str()).unwrap();
            assert_eq!(value, expected, "{result}");
        }
    }

    #[test]
    fn an_error_of_a_tool_fails() {
        let result = json!({"isError": true, "content": [text("not found: 42")]});
        let failure = value_of(&RawJson::of(&result), 1).unwrap_err();
        assert_eq!(
            (failure.code.as_str(), failure.message.as_str()),
            ("tool_error", "not found: 42")
        );
        let large = json!({"content": [text(&"x".repeat(MAX_RESULT_BYTES))]});
        assert_eq!(
            value_of(&RawJson::of(&large), 1).unwrap_err().code,
            "result_too_large"
        );
    }
}
