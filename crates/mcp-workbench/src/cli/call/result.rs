//! Formats the result of a call: text as text, data as indented JSON, everything else as a description.

use rawjson::RawJson;
use serde_json::Value;

use crate::{cli::terminal::grouped, visible::visible};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ResultReader {
    /// A user at a terminal, which must not interpret control characters of a server.
    Person,
    /// A program behind a pipe, which gets the text unchanged.
    Program,
}

/// Renders a result in words. Data that a result has both as text and as structured content is shown once.
pub(super) fn render(result: &RawJson, reader: ResultReader) -> String {
    let structured = result.member("structuredContent").and_then(|it| value(&it));
    let mut content = result
        .member("content")
        .and_then(|it| it.elements())
        .unwrap_or_default();
    let structured = structured.filter(|it| !is_wrapped_content(it, &content));
    if let Some(structured) = &structured {
        content.retain(|item| !repeats(item, structured));
    }
    let mut text = String::new();
    for item in content {
        push(&mut text, &described(&item, reader));
    }
    if let Some(structured) = structured {
        let pretty = serde_json::to_string_pretty(&structured);
        push(&mut text, &shown(&pretty.unwrap_or_default(), reader));
    }
    text
}

/// Returns true if structured content is an object whose only member is the content: as one value, or as a list with
/// one value per item. SDKs wrap results that are not objects (`{"result": "…"}`), because structured content must be one.
fn is_wrapped_content(structured: &Value, content: &[RawJson]) -> bool {
    let Some(members) = structured.as_object().filter(|it| it.len() == 1) else {
        return false;
    };
    members.values().any(|wrapped| match (wrapped, content) {
        (wrapped, [item]) if repeats(item, wrapped) => true,
        (Value::Array(values), [_, ..]) if values.len() == content.len() => {
            let mut pairs = content.iter().zip(values);
            pairs.all(|(item, value)| repeats(item, value))
        }
        _ => false,
    })
}

/// Returns true if a content item has the same data as a value: its text is the value, as it is or as JSON, or the
/// whole item is.
fn repeats(item: &RawJson, data: &Value) -> bool {
    let text = item.member("text");
    match text.as_ref().and_then(RawJson::as_text) {
        Some(text) if data.as_str() == Some(&*text) => true,
        Some(text) if serde_json::from_str(&text).is_ok_and(|it: Value| it == *data) => true,
        _ => value(item).is_some_and(|item| item == *data),
    }
}

fn value(json: &RawJson) -> Option<Value> {
    serde_json::from_str(json.as_str()).ok()
}

fn push(text: &mut String, part: &str) {
    text.push_str(part);
    if !part.is_empty() && !part.ends_with('\n') {
        text.push('\n');
    }
}

fn described(item: &RawJson, reader: ResultReader) -> String {
    let text = |of: &RawJson, key: &str| {
        let member = of.member(key);
        member
            .as_ref()
            .and_then(RawJson::as_text)
            .map(|it| visible(&it).into_owned())
    };
    let kind = text(item, "type").unwrap_or_default();
    let mime = |of: &RawJson| text(of, "mimeType").unwrap_or_else(|| "unknown type".to_owned());
    match kind.as_str() {
        "text" => {
            let member = item.member("text");
            let member = member.as_ref().and_then(RawJson::as_text);
            shown(&member.unwrap_or_default(), reader)
        }
        "image" | "audio" => format!("[{kind}: {}, {}]", mime(item), size(item, "data")),
        "resource_link" => {
            let uri = text(item, "uri").unwrap_or_default();
            let name = text(item, "title").or_else(|| text(item, "name"));
            let name = name.map_or_else(String::new, |name| format!(" ({name})"));
            format!("[link: {uri}{name}]")
        }
        "resource" => {
            let resource = item.member("resource").unwrap_or_else(|| item.clone());
            let uri = text(&resource, "uri").unwrap_or_default();
            let body = resource.member("text");
            match body.as_ref().and_then(RawJson::as_text) {
                Some(body) => format!("[resource: {uri}]\n{}", shown(&body, reader)),
                None => format!(
                    "[resource: {uri}, {}, {}]",
                    mime(&resource),
                    size(&resource, "blob")
                ),
            }
        }
        _ => shown(item.as_str(), reader),
    }
}

/// Returns the decoded size of a base64 value.
fn size(of: &RawJson, key: &str) -> String {
    let encoded = of.member(key);
    let encoded = encoded
        .as_ref()
        .and_then(RawJson::as_text)
        .unwrap_or_default();
    // Four base64 characters are three bytes; padding carries no data.
    let digits = encoded.trim_end_matches('=').len();
    format!("{} bytes", grouped(digits * 3 / 4))
}

/// Makes a text visible for a terminal; leaves it unchanged for a program.
fn shown(text: &str, reader: ResultReader) -> String {
    match reader {
        ResultReader::Program => text.to_owned(),
        ResultReader::Person => {
            let line = |line: &str| {
                let parts: Vec<_> = line.split('\t').map(visible).collect();
                parts.join("\t")
            };
            let lines: Vec<String> = text.lines().map(line).collect();
            lines.join("\n")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rendered(result: &str, reader: ResultReader) -> String {
        render(&RawJson::parse(&result.to_owned().into()).unwrap(), reader)
    }

    #[test]
    fn each_kind_of_content_is_printed() {
        let result = r#"{"content":[
            {"type":"text","text":"one\n\ttwo"},
            {"type":"image","data":"AAAAAA==","mimeType":"image/png"},
            {"type":"audio","data":"AAAA"},
            {"type":"resource_link","uri":"file:///a","name":"a","title":"The a"},
            {"type":"resource","resource":{"uri":"file:///b","text":"b"}},
            {"type":"resource","resource":{"uri":"file:///c","blob":"AAAA","mimeType":"x/y"}},
            {"type":"new","x":1}
        ],"structuredContent":{"a":[1]}}"#;
        assert_eq!(
            rendered(result, ResultReader::Person),
            "one\n\ttwo\n\
             [image: image/png, 4 bytes]\n\
             [audio: unknown type, 3 bytes]\n\
             [link: file:///a (The a)]\n\
             [resource: file:///b]\nb\n\
             [resource: file:///c, x/y, 3 bytes]\n\
             {\"type\":\"new\",\"x\":1}\n\
             {\n  \"a\": [\n    1\n  ]\n}\n"
        );
    }

    #[test]
    fn structured_content_equal_to_the_text_is_printed_once() {
        let result =
            r#"{"content":[{"type":"text","text":"{\"a\": 1}"}],"structuredContent":{"a":1}}"#;
        assert_eq!(rendered(result, ResultReader::Person), "{\n  \"a\": 1\n}\n");
    }

    #[test]
    fn text_that_structured_content_wraps_is_shown_once() {
        let cases = [
            (
                r#"{"content":[{"type":"text","text":"a\nb"}],"structuredContent":{"result":"a\nb"}}"#,
                "a\nb\n",
            ),
            (
                r#"{"content":[{"type":"text","text":"42"}],"structuredContent":{"result":42}}"#,
                "42\n",
            ),
            (
                r#"{"content":[{"type":"text","text":"a"},{"type":"text","text":"{\"b\": 1}"}],"structuredContent":{"result":["a",{"b":1}]}}"#,
                "a\n{\"b\": 1}\n",
            ),
            (
                r#"{"content":[{"type":"image","data":"AAAA","mimeType":"image/png"}],"structuredContent":{"content":[{"type":"image","data":"AAAA","mimeType":"image/png"}]}}"#,
                "[image: image/png, 3 bytes]\n",
            ),
            (
                r#"{"content":[{"type":"text","text":"a"}],"structuredContent":{"result":"b"}}"#,
                "a\n{\n  \"result\": \"b\"\n}\n",
            ),
            (
                r#"{"content":[{"type":"text","text":"a"}],"structuredContent":{"result":"a","more":1}}"#,
                "a\n{\n  \"result\": \"a\",\n  \"more\": 1\n}\n",
            ),
            (
                r#"{"content":[],"structuredContent":{"result":[]}}"#,
                "{\n  \"result\": []\n}\n",
            ),
        ];
        for (result, words) in cases {
            assert_eq!(rendered(result, ResultReader::Person), words, "{result}");
        }
    }

    #[test]
    fn control_characters_of_a_server_are_escaped() {
        let result = r#"{"content":[{"type":"text","text":"\u001b[2Jx\r\ny"}]}"#;
        assert_eq!(rendered(result, ResultReader::Person), "⟦U+001B⟧[2Jx\ny\n");
        assert_eq!(rendered(result, ResultReader::Program), "\u{1b}[2Jx\r\ny\n");
        let described = r#"{"content":[{"type":"resource_link","uri":"\u001b]0;x"}]}"#;
        assert_eq!(
            rendered(described, ResultReader::Program),
            "[link: ⟦U+001B⟧]0;x]\n"
        );
    }

    #[test]
    fn a_value_of_zero_has_no_bar() {
        assert_eq!(rendered("{}", ResultReader::Person), "");
        assert_eq!(rendered(r#"{"content":[]}"#, ResultReader::Person), "");
    }
}
