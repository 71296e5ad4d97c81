//! Converts a word of the command line to the type that a JSON Schema asks for. Without a type in the schema it
//! stays a string.

use rawjson::{Kind, RawJson};
use serde_json::Value;
use thiserror::Error;

use crate::visible::visible;

/// How deep nested alternatives (`anyOf`, `oneOf`) are searched for types.
const MAX_DEPTH: usize = 8;

/// A word that does not have the type of the schema.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("expected {}, found `{}`", .expected.join(" or "), visible(.found))]
pub(super) struct WrongType {
    expected: Vec<&'static str>,
    found: String,
}

/// A type of JSON Schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SchemaType {
    String,
    Integer,
    Number,
    Boolean,
    Array,
    Object,
    Null,
}

impl SchemaType {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "string" => Self::String,
            "integer" => Self::Integer,
            "number" => Self::Number,
            "boolean" => Self::Boolean,
            "array" => Self::Array,
            "object" => Self::Object,
            "null" => Self::Null,
            _ => return None,
        })
    }

    fn of(value: &Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(_) => Self::Boolean,
            Value::Number(_) => Self::Number,
            Value::String(_) => Self::String,
            Value::Array(_) => Self::Array,
            Value::Object(_) => Self::Object,
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::String => "text",
            Self::Integer => "a whole number",
            Self::Number => "a number",
            Self::Boolean => "true or false",
            Self::Array => "a JSON array",
            Self::Object => "a JSON object",
            Self::Null => "null",
        }
    }

    /// Returns true if a JSON value has this type.
    fn takes(self, value: &RawJson) -> bool {
        match (self, value.kind()) {
            (Self::Integer, Kind::Number) => {
                let digits = value.as_str().strip_prefix('-').unwrap_or(value.as_str());
                digits.bytes().all(|byte| byte.is_ascii_digit())
            }
            (Self::Number, Kind::Number)
            | (Self::Boolean, Kind::Boolean)
            | (Self::Array, Kind::Array)
            | (Self::Object, Kind::Object)
            | (Self::Null, Kind::Null) => true,
            _ => false,
        }
    }
}

/// Returns the types that a schema allows; empty if it names none.
pub(super) fn types(schema: &Value) -> Vec<SchemaType> {
    let mut found = Vec::new();
    collect(schema, MAX_DEPTH, &mut found);
    found
}

fn collect(schema: &Value, depth: usize, found: &mut Vec<SchemaType>) {
    let named = match &schema["type"] {
        Value::String(name) => vec![name.as_str()],
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    // Without `type`, the listed values show the type.
    let mut types: Vec<SchemaType> = named.into_iter().filter_map(SchemaType::named).collect();
    if types.is_empty() {
        let values = schema["enum"].as_array().into_iter().flatten();
        types.extend(values.chain(schema.get("const")).map(SchemaType::of));
    }
    for kind in types {
        if !found.contains(&kind) {
            found.push(kind);
        }
    }
    if depth > 0 {
        for key in ["anyOf", "oneOf"] {
            for schema in schema[key].as_array().into_iter().flatten() {
                collect(schema, depth - 1, found);
            }
        }
    }
}

/// Converts a word to a value. If the schema allows strings, the word stays a string.
pub(super) fn typed(word: &str, schema: &Value) -> Result<RawJson, WrongType> {
    let types = types(schema);
    if types.is_empty() || types.contains(&SchemaType::String) {
        return Ok(RawJson::of(&word));
    }
    // Only where a boolean is allowed: `on` may be plain text elsewhere.
    let spelt = if types.contains(&SchemaType::Boolean) {
        boolean(word).unwrap_or(word)
    } else {
        word
    };
    let value = RawJson::parse(&spelt.trim().to_owned().into()).ok();
    // A message must not contain line breaks.
    let value = value.map(|value| value.minified());
    if let Some(value) = value.filter(|value| types.iter().any(|it| it.takes(value))) {
        return Ok(value);
    }
    // A single value for a list is a list of one element.
    if types.contains(&SchemaType::Array) {
        return Ok(RawJson::array(&[typed(word, &schema["items"])?]));
    }
    Err(WrongType {
        expected: types.iter().map(|it| it.words()).collect(),
        found: word.to_owned(),
    })
}

/// Maps the words that people write for booleans to `true` and `false`.
fn boolean(word: &str) -> Option<&'static str> {
    match word.trim().to_ascii_lowercase().as_str() {
        "true" | "yes" | "y" | "on" => Some("true"),
        "false" | "no" | "n" | "off" => Some("false"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_word_becomes_what_the_schema_asks_for() {
        let optional = json!({"anyOf": [{"type": "integer"}, {"type": "null"}]});
        let list = json!({"type": "array", "items": {"type": "integer"}});
        let cases = [
            ("5", json!({"type": "string"}), "\"5\""),
            ("5", json!({}), "\"5\""),
            ("5", json!(true), "\"5\""),
            ("5", json!({"type": "integer"}), "5"),
            (
                "12345678901234567890123",
                json!({"type": "integer"}),
                "12345678901234567890123",
            ),
            ("1.50", json!({"type": "number"}), "1.50"),
            ("yes", json!({"type": "boolean"}), "true"),
            ("null", optional.clone(), "null"),
            ("7", optional, "7"),
            ("[1, 2]", list.clone(), "[1,2]"),
            ("3", list, "[3]"),
            ("a", json!({"type": ["array", "null"]}), "[\"a\"]"),
            ("{\"a\": [1]}", json!({"type": "object"}), "{\"a\":[1]}"),
            ("2", json!({"enum": [1, 2]}), "2"),
            ("b", json!({"enum": ["a", "b"]}), "\"b\""),
            ("5", json!({"type": ["string", "integer"]}), "\"5\""),
        ];
        for (word, schema, value) in cases {
            assert_eq!(typed(word, &schema).unwrap().as_str(), value, "{schema}");
        }
    }

    #[test]
    fn an_invalid_word_is_refused_with_the_expected_type() {
        let cases = [
            (
                "x",
                json!({"type": "integer"}),
                "expected a whole number, found `x`",
            ),
            (
                "1.5",
                json!({"type": "integer"}),
                "expected a whole number, found `1.5`",
            ),
            (
                "1",
                json!({"type": ["boolean", "null"]}),
                "expected true or false or null, found `1`",
            ),
            (
                "[1]",
                json!({"type": "object"}),
                "expected a JSON object, found `[1]`",
            ),
            ("", json!({"type": "number"}), "expected a number, found ``"),
        ];
        for (word, schema, words) in cases {
            assert_eq!(typed(word, &schema).unwrap_err().to_string(), words);
        }
    }
}
