//! The result of a call as it is read in a shell: text as text, data as indented JSON, everything else described.

use serde_json::Value;

use crate::{cli::terminal::grouped, visible::visible, wire::RawJson};

/// Who reads a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reader {
    /// Somebody at a terminal, which must not obey what a server writes.
    Person,
    /// What is behind a pipe: text goes there as it is.
    Program,
}

/// The result in words.
pub(super) fn render(result: &RawJson, reader: Reader) -> String {
    let structured = result.member("structuredContent").and_then(|it| value(&it));
    let content = result.member("content").and_then(|it| it.elements());
    let mut text = String::new();
    for item in content.unwrap_or_default() {
        // Servers repeat their data as text for clients that know no better.
        if structured.is_none() || !repeats(&item, structured.as_ref()) {
            push(&mut text, &described(&item, reader));
        }
    }
    if let Some(structured) = structured {
        let pretty = serde_json::to_string_pretty(&structured);
        push(&mut text, &shown(&pretty.unwrap_or_default(), reader));
    }
    text
}

/// Whether a content says in text what the structured content says.
fn repeats(item: &RawJson, structured: Option<&Value>) -> bool {
    let text = item.member("text");
    let text = text.as_ref().and_then(RawJson::as_text);
    let said = text.and_then(|text| serde_json::from_str::<Value>(&text).ok());
    said.is_some() && said.as_ref() == structured
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

/// One content.
fn described(item: &RawJson, reader: Reader) -> String {
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

/// How large what stands there in base64 is.
fn size(of: &RawJson, key: &str) -> String {
    let encoded = of.member(key);
    let encoded = encoded
        .as_ref()
        .and_then(RawJson::as_text)
        .unwrap_or_default();
    let digits = encoded.trim_end_matches('=').len();
    format!("{} bytes", grouped(digits * 3 / 4))
}

/// A text as the reader may have it.
fn shown(text: &str, reader: Reader) -> String {
    match reader {
        Reader::Program => text.to_owned(),
        Reader::Person => {
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

    fn rendered(result: &str, reader: Reader) -> String {
        render(&RawJson::parse(&result.to_owned().into()).unwrap(), reader)
    }

    #[test]
    fn contents_are_shown_each_in_its_way() {
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
            rendered(result, Reader::Person),
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
    fn data_that_stands_there_as_text_too_is_shown_once() {
        let result =
            r#"{"content":[{"type":"text","text":"{\"a\": 1}"}],"structuredContent":{"a":1}}"#;
        assert_eq!(rendered(result, Reader::Person), "{\n  \"a\": 1\n}\n");
    }

    #[test]
    fn a_terminal_does_not_obey_a_server() {
        let result = r#"{"content":[{"type":"text","text":"\u001b[2Jx\r\ny"}]}"#;
        assert_eq!(rendered(result, Reader::Person), "⟦U+001B⟧[2Jx\ny\n");
        assert_eq!(rendered(result, Reader::Program), "\u{1b}[2Jx\r\ny\n");
        let described = r#"{"content":[{"type":"resource_link","uri":"\u001b]0;x"}]}"#;
        assert_eq!(
            rendered(described, Reader::Program),
            "[link: ⟦U+001B⟧]0;x]\n"
        );
    }

    #[test]
    fn nothing_is_shown_as_nothing() {
        assert_eq!(rendered("{}", Reader::Person), "");
        assert_eq!(rendered(r#"{"content":[]}"#, Reader::Person), "");
    }
}
