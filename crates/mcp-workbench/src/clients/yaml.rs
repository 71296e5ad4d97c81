//! Parses YAML into a JSON value. A parser crate delivers events; this file builds the value, with bounds that a short
//! text with many aliases cannot get around.

use std::collections::HashMap;

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, Tag};
use serde_json::{Map, Value};

use super::document::SyntaxError;

/// Bounds what aliases can expand to. The largest file that is read has far fewer values.
const MAX_VALUES: usize = 100_000;
const MAX_DEPTH: usize = 128;

/// Parses a text that contains at most one document. An empty text is null.
pub(super) fn parse(text: &str) -> Result<Value, SyntaxError> {
    let mut builder = Builder::default();
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| invalid(error.marker()))?;
        builder.add(event).map_err(|Refused| invalid(&span.start))?;
    }
    Ok(builder.document.unwrap_or(Value::Null))
}

/// Returns the error for a position. The parser's own message is left out: it quotes the text, which may contain secrets.
fn invalid(at: &Marker) -> SyntaxError {
    SyntaxError {
        line: at.line().max(1),
        column: at.col() + 1,
        what: "invalid YAML".to_owned(),
    }
}

/// An event that cannot become JSON, or exceeds a bound.
struct Refused;

#[derive(Default)]
struct Builder {
    /// The collections that are not complete, from the outermost to the innermost.
    open: Vec<Collection>,
    anchors: HashMap<usize, Value>,
    document: Option<Value>,
    values: usize,
}

struct Collection {
    anchor: usize,
    kind: NodeKind,
}

enum NodeKind {
    Sequence(Vec<Value>),
    Mapping {
        members: Map<String, Value>,
        /// The members of `<<` entries. A mapping's own members win over them, wherever they are.
        merged: Vec<Map<String, Value>>,
        key: Option<YamlKey>,
    },
}

enum YamlKey {
    Name(String),
    Merge,
}

impl Builder {
    fn add(&mut self, event: Event<'_>) -> Result<(), Refused> {
        match event {
            Event::DocumentStart(_) if self.document.is_some() => Err(Refused),
            Event::Scalar(text, style, anchor, tag) => {
                self.scalar(&text, style, anchor, tag.as_deref())
            }
            Event::Alias(anchor) => {
                let value = self.anchors.get(&anchor).cloned().ok_or(Refused)?;
                // An alias counts with everything in it, so that aliases of aliases cannot expand without bound.
                self.values = self.values.saturating_add(count(&value));
                self.value(value)
            }
            Event::SequenceStart(anchor, _) => self.begin(anchor, NodeKind::Sequence(Vec::new())),
            Event::MappingStart(anchor, _) => self.begin(
                anchor,
                NodeKind::Mapping {
                    members: Map::new(),
                    merged: Vec::new(),
                    key: None,
                },
            ),
            Event::SequenceEnd | Event::MappingEnd => self.end(),
            _ => Ok(()),
        }
    }

    fn begin(&mut self, anchor: usize, kind: NodeKind) -> Result<(), Refused> {
        // JSON has no collections as keys.
        let is_key = matches!(
            self.open.last(),
            Some(Collection {
                kind: NodeKind::Mapping { key: None, .. },
                ..
            })
        );
        if is_key || self.open.len() == MAX_DEPTH {
            return Err(Refused);
        }
        self.open.push(Collection { anchor, kind });
        Ok(())
    }

    fn end(&mut self) -> Result<(), Refused> {
        let Collection { anchor, kind } = self.open.pop().ok_or(Refused)?;
        let value = match kind {
            NodeKind::Sequence(items) => Value::Array(items),
            NodeKind::Mapping {
                mut members,
                merged,
                ..
            } => {
                // The mapping's own member wins, and then that of the first merged mapping.
                for (name, value) in merged.into_iter().flatten() {
                    members.entry(name).or_insert(value);
                }
                Value::Object(members)
            }
        };
        self.anchored(anchor, value)
    }

    fn scalar(
        &mut self,
        text: &str,
        style: ScalarStyle,
        anchor: usize,
        tag: Option<&Tag>,
    ) -> Result<(), Refused> {
        let is_plain = style == ScalarStyle::Plain;
        if let Some(Collection {
            kind: NodeKind::Mapping { key, .. },
            ..
        }) = self.open.last_mut()
            && key.is_none()
        {
            *key = Some(if is_plain && text == "<<" {
                YamlKey::Merge
            } else {
                YamlKey::Name(text.to_owned())
            });
            return Ok(());
        }
        // The tag `!!str` makes text of everything.
        let is_text = tag.is_some_and(|tag| tag.is_yaml_core_schema() && tag.suffix == "str");
        let value = if is_plain && !is_text {
            plain(text)
        } else {
            text.into()
        };
        self.anchored(anchor, value)
    }

    fn anchored(&mut self, anchor: usize, value: Value) -> Result<(), Refused> {
        // The parser numbers anchors from 1.
        if anchor > 0 {
            self.anchors.insert(anchor, value.clone());
        }
        self.values += 1;
        self.value(value)
    }

    /// Puts a complete value where it belongs.
    fn value(&mut self, value: Value) -> Result<(), Refused> {
        if self.values > MAX_VALUES {
            return Err(Refused);
        }
        match self.open.last_mut().map(|it| &mut it.kind) {
            None => self.document = Some(value),
            Some(NodeKind::Sequence(items)) => items.push(value),
            Some(NodeKind::Mapping {
                members,
                merged,
                key,
            }) => match key.take().ok_or(Refused)? {
                YamlKey::Merge => merged.extend(mappings(value)?),
                // Parsers do not agree which of two equal keys counts.
                YamlKey::Name(name) if members.contains_key(&name) => return Err(Refused),
                YamlKey::Name(name) => {
                    members.insert(name, value);
                }
            },
        }
        Ok(())
    }
}

/// Returns the mappings that an entry `<<` names: one, or several of which the first wins.
fn mappings(value: Value) -> Result<Vec<Map<String, Value>>, Refused> {
    match value {
        Value::Object(members) => Ok(vec![members]),
        Value::Array(items) => items
            .into_iter()
            .map(|item| match item {
                Value::Object(members) => Ok(members),
                _ => Err(Refused),
            })
            .collect(),
        _ => Err(Refused),
    }
}

fn count(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(count).sum::<usize>(),
        Value::Object(members) => 1 + members.values().map(count).sum::<usize>(),
        _ => 1,
    }
}

/// Resolves a plain scalar by the core schema of YAML 1.2. Numbers that JSON cannot hold stay text, with every digit.
fn plain(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "true" | "True" | "TRUE" => return true.into(),
        "false" | "False" | "FALSE" => return false.into(),
        _ => {}
    }
    let radix = |prefix, radix| {
        let digits = text.strip_prefix(prefix)?;
        i64::from_str_radix(digits, radix).ok()
    };
    let integer = text
        .parse::<i64>()
        .ok()
        .or_else(|| radix("0o", 8))
        .or_else(|| radix("0x", 16));
    if let Some(integer) = integer {
        return integer.into();
    }
    // Rust would also parse `inf`, `nan` and `infinity`, which are text here.
    let looks_decimal = text.contains(['.', 'e', 'E'])
        && text.contains(|it: char| it.is_ascii_digit())
        && text
            .chars()
            .all(|it| matches!(it, '0'..='9' | '.' | 'e' | 'E' | '+' | '-'));
    let number = looks_decimal.then(|| text.parse::<f64>().ok()).flatten();
    number
        .and_then(serde_json::Number::from_f64)
        .map_or_else(|| text.into(), Value::Number)
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::json;

    use super::*;

    #[test]
    fn scalars_follow_the_core_schema() {
        let cases = [
            (
                "a: ~\nb: null\nc:",
                json!({"a": null, "b": null, "c": null}),
            ),
            ("[true, False, yes, on]", json!([true, false, "yes", "on"])),
            ("[1, -2, 0o17, 0x1F, 010]", json!([1, -2, 15, 31, 10])),
            (
                "[1.5, -2e3, .5, 1.2.3, e]",
                json!([1.5, -2000.0, 0.5, "1.2.3", "e"]),
            ),
            ("[.inf, .nan, 1e999]", json!([".inf", ".nan", "1e999"])),
            ("99999999999999999999", json!("99999999999999999999")),
            ("['1', \"true\", !!str 2]", json!(["1", "true", "2"])),
            ("a: |\n  one\n  two\n", json!({"a": "one\ntwo\n"})),
            ("a: >-\n  one\n  two\n", json!({"a": "one two"})),
            ("1: a\ntrue: b", json!({"1": "a", "true": "b"})),
        ];
        for (text, expected) in cases {
            assert_eq!(parse(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn aliases_and_merges_are_expanded_and_own_members_win() {
        let text = "base: &base {command: npx, env: {A: 1}}\n\
                    one: *base\n\
                    two: {<<: *base, command: uvx}\n\
                    three:\n  <<: [{command: first}, *base]\n";
        let base = json!({"command": "npx", "env": {"A": 1}});
        assert_eq!(
            parse(text),
            Ok(json!({
                "base": base,
                "one": base,
                "two": {"command": "uvx", "env": {"A": 1}},
                "three": {"command": "first", "env": {"A": 1}},
            }))
        );
    }

    #[test]
    fn texts_without_a_meaning_in_json_are_refused() {
        let nested = format!("{}x", "- ".repeat(MAX_DEPTH + 1));
        let mut laughs = "a0: &a0 [x, x]\n".to_owned();
        for level in 1..40 {
            let below = level - 1;
            laughs.push_str(&format!("a{level}: &a{level} [*a{below}, *a{below}]\n"));
        }
        let cases = [
            "a: 1\na: 2",
            "[a]: 1",
            "a: *missing",
            "<<: 1",
            "--- 1\n--- 2",
            "a: [1",
            &nested,
            &laughs,
        ];
        for text in cases {
            let error = parse(text).expect_err(text);
            assert_eq!(error.what, "invalid YAML", "{text}");
        }
    }
}
