//! The arguments of a call on the command line: one JSON object, or `key=value` words.

use rawjson::{Kind, ObjectText, RawJson};
use serde_json::Value;
use thiserror::Error;

use crate::{
    cli::typed::{self, SchemaType, WrongType},
    near::nearest,
    visible::visible,
};

/// Reasons why arguments are refused.
#[derive(Debug, PartialEq, Eq, Error)]
pub(in crate::cli) enum ArgumentError {
    /// The text is not JSON.
    #[error(
        "the arguments are not valid JSON\n  hint: write one object, such as '{{\"path\": \"a.txt\"}}'"
    )]
    NotJson,
    /// The value is JSON, but not an object.
    #[error(
        "the arguments are a JSON {}, not an object\n  hint: write one object, such as '{{\"path\": \"a.txt\"}}'",
        .0.name()
    )]
    NotAnObject(Kind),
    /// A word without a key or value.
    #[error(
        "`{}` is not an argument\n  hint: write key=value, key:=JSON, one JSON object, or - to read one from stdin",
        visible(.0)
    )]
    NotAWord(String),
    /// The text after `:=` is not JSON.
    #[error("{}: `{}` is not valid JSON\n  hint: write key=value for plain text", visible(.0), visible(.1))]
    NotJsonValue(String, String),
    /// A duplicate key that is not a list.
    #[error("duplicate argument {}\n  hint: only a list can have several values", visible(.0))]
    Duplicate(String),
    /// A key that is not in the schema.
    #[error(
        "the tool has no argument `{}`\n  hint: {}",
        visible(.key),
        instead(.near.as_deref(), .known)
    )]
    Unknown {
        key: String,
        near: Option<String>,
        known: Vec<String>,
    },
    /// A value that does not have the type of the schema.
    #[error("{}: {error}{}", visible(.key), meant(.near.as_deref()))]
    WrongType {
        key: String,
        error: WrongType,
        near: Option<String>,
    },
}

fn meant(near: Option<&str>) -> String {
    near.map_or_else(String::new, |near| {
        format!("\n  hint: did you mean `{}`?", visible(near))
    })
}

fn instead(near: Option<&str>, known: &[String]) -> String {
    match near {
        Some(near) => format!(
            "did you mean `{}`? To pass the key as it is, use :=",
            visible(near)
        ),
        None if known.is_empty() => "it takes no arguments".to_owned(),
        None => format!("it takes {}", visible(&known.join(", "))),
    }
}

/// The arguments of the command line.
#[derive(Debug)]
pub(super) enum ArgumentInput {
    Object {
        object: RawJson,
        /// True if the object came from stdin.
        from_stdin: bool,
    },
    Words(Vec<Word>),
}

/// One `key=value` or `key:=JSON`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Word {
    key: String,
    value: WordValue,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum WordValue {
    /// A value to convert by the schema.
    Text(String),
    Json(RawJson),
}

impl ArgumentInput {
    /// Parses the words of the command line. Calls `read_stdin` if the only word is `-`.
    pub(super) fn read<E>(
        words: &[String],
        read_stdin: impl FnOnce() -> Result<Vec<u8>, E>,
    ) -> Result<Result<Self, E>, ArgumentError> {
        match words {
            [word] if word == "-" => {
                let bytes = match read_stdin() {
                    Ok(bytes) => bytes,
                    Err(error) => return Ok(Err(error)),
                };
                let object = object(bytes)?;
                Ok(Ok(Self::Object {
                    object,
                    from_stdin: true,
                }))
            }
            // `[` and `"` are read as JSON too, to report a wrong type rather than a missing `=`.
            [word] if word.trim_start().starts_with(['{', '[', '"']) => {
                let object = object(word.clone().into_bytes())?;
                Ok(Ok(Self::Object {
                    object,
                    from_stdin: false,
                }))
            }
            words => {
                let words: Result<_, _> = words.iter().map(|word| Word::read(word)).collect();
                Ok(Ok(Self::Words(words?)))
            }
        }
    }

    /// Returns true if stdin was read for the arguments.
    pub(super) fn took_stdin(&self) -> bool {
        matches!(
            self,
            Self::Object {
                from_stdin: true,
                ..
            }
        )
    }

    /// Returns the object for the tool; `schema` is the schema of its arguments.
    pub(super) fn typed(self, schema: &Value) -> Result<RawJson, ArgumentError> {
        match self {
            Self::Object { object, .. } => Ok(object),
            Self::Words(words) => assembled(&words, schema),
        }
    }
}

/// Parses a JSON object. An empty text is an empty object.
fn object(bytes: Vec<u8>) -> Result<RawJson, ArgumentError> {
    if bytes.trim_ascii().is_empty() {
        return Ok(ObjectText::new().finish());
    }
    let value = RawJson::parse(&bytes.into()).map_err(|_| ArgumentError::NotJson)?;
    if value.kind() != Kind::Object {
        return Err(ArgumentError::NotAnObject(value.kind()));
    }
    // The object becomes part of a message, which must not contain line breaks.
    Ok(value.minified())
}

impl Word {
    fn read(word: &str) -> Result<Self, ArgumentError> {
        let refused = || ArgumentError::NotAWord(word.to_owned());
        let (key, value) = word.split_once('=').ok_or_else(refused)?;
        // `key:=value` splits at `=`, which leaves the colon on the key.
        let (key, value) = match key.strip_suffix(':') {
            None => (key, WordValue::Text(value.to_owned())),
            Some(key) => {
                let json = RawJson::parse(&value.to_owned().into())
                    .map_err(|_| ArgumentError::NotJsonValue(key.to_owned(), value.to_owned()))?;
                (key, WordValue::Json(json.minified()))
            }
        };
        if key.is_empty() {
            return Err(refused());
        }
        Ok(Self {
            key: key.to_owned(),
            value,
        })
    }

    /// Refuses a key that is probably misspelt, or that the schema excludes. A key with `:=` is always accepted.
    fn is_known(&self, schema: &Value) -> Result<(), ArgumentError> {
        let known: Vec<&str> = schema["properties"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|it| it.0.as_str())
            .collect();
        if known.contains(&self.key.as_str()) || matches!(self.value, WordValue::Json(_)) {
            return Ok(());
        }
        let near = nearest(&self.key, known.iter().copied()).map(str::to_owned);
        // A key that is not listed is allowed unless the schema is closed.
        let open = schema["additionalProperties"] != Value::Bool(false)
            || schema["patternProperties"].is_object();
        if near.is_none() && open {
            return Ok(());
        }
        Err(ArgumentError::Unknown {
            key: self.key.clone(),
            near,
            known: known.into_iter().map(str::to_owned).collect(),
        })
    }

    fn typed(&self, properties: &Value) -> Result<RawJson, ArgumentError> {
        let text = match &self.value {
            WordValue::Json(json) => return Ok(json.clone()),
            WordValue::Text(text) => text,
        };
        typed::typed(text, &properties[&self.key]).map_err(|error| {
            let known = properties
                .as_object()
                .into_iter()
                .flatten()
                .map(|(key, _)| key.as_str());
            ArgumentError::WrongType {
                near: nearest(&self.key, known).map(str::to_owned),
                key: self.key.clone(),
                error,
            }
        })
    }
}

/// Builds the object from words.
fn assembled(words: &[Word], schema: &Value) -> Result<RawJson, ArgumentError> {
    let properties = &schema["properties"];
    let mut members: Vec<(&str, Vec<RawJson>)> = Vec::new();
    for word in words {
        word.is_known(schema)?;
        let value = word.typed(properties)?;
        match members.iter_mut().find(|(key, _)| *key == word.key) {
            Some((_, values)) => values.push(value),
            None => members.push((&word.key, vec![value])),
        }
    }
    let mut text = ObjectText::new();
    for (key, values) in members {
        let value = match &values[..] {
            [value] => value.clone(),
            values => joined(key, values, &properties[key])?,
        };
        text = text.raw(key, &value);
    }
    Ok(text.finish())
}

/// Joins the values of a repeated key into a list, if the schema allows one.
fn joined(key: &str, values: &[RawJson], schema: &Value) -> Result<RawJson, ArgumentError> {
    if !typed::types(schema).contains(&SchemaType::Array) {
        return Err(ArgumentError::Duplicate(key.to_owned()));
    }
    // Each value may be a single element or a list itself.
    let elements = values.iter().flat_map(|value| match value.elements() {
        Some(elements) => elements,
        None => vec![value.clone()],
    });
    Ok(RawJson::array(&elements.collect::<Vec<_>>()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(words: &[&str], stdin: &str, schema: &Value) -> Result<String, ArgumentError> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let given =
            ArgumentInput::read(&words, || Ok::<_, ()>(stdin.as_bytes().to_vec()))?.unwrap();
        Ok(given.typed(schema)?.as_str().to_owned())
    }

    fn schema() -> Value {
        json!({"type": "object", "properties": {
            "path": {"type": "string"},
            "limit": {"type": "integer"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "deep": {"type": "object"},
        }})
    }

    #[test]
    fn arguments_are_read_in_every_form() {
        let cases: [(&[&str], &str, &str); 11] = [
            (&[], "", "{}"),
            (&["{}"], "", "{}"),
            (&[" {\"a\":\n 1e400} "], "", "{\"a\":1e400}"),
            (&["-"], "{\"a\": [1]}\n", "{\"a\":[1]}"),
            (&["-"], "", "{}"),
            (
                &["path=a=b", "limit=5"],
                "",
                "{\"path\":\"a=b\",\"limit\":5}",
            ),
            (&["other=5"], "", "{\"other\":\"5\"}"),
            (&["other:={\"a\": 1}"], "", "{\"other\":{\"a\":1}}"),
            (
                &["tags=a", "limit:=\"x\"", "tags=b"],
                "",
                "{\"tags\":[\"a\",\"b\"],\"limit\":\"x\"}",
            ),
            (&["tags=[\"a\", \"b\"]"], "", "{\"tags\":[\"a\",\"b\"]}"),
            (&["path="], "", "{\"path\":\"\"}"),
        ];
        for (words, stdin, object) in cases {
            assert_eq!(read(words, stdin, &schema()).unwrap(), object, "{words:?}");
        }
    }

    #[test]
    fn invalid_arguments_are_named() {
        let cases: [(&[&str], &str); 10] = [
            (&["{\"a\""], "not valid JSON"),
            (&["[1]"], "a JSON array, not an object"),
            (&["word"], "`word` is not an argument"),
            (&["=x"], "`=x` is not an argument"),
            (&["a:={"], "a: `{` is not valid JSON"),
            (&["path=a", "path=b"], "duplicate argument path"),
            (
                &["limit=many"],
                "limit: expected a whole number, found `many`",
            ),
            (&["deep=x"], "deep: expected a JSON object"),
            (&["{}", "a=b"], "`{}` is not an argument"),
            (
                &["pth=x"],
                "the tool has no argument `pth`\n  hint: did you mean `path`?",
            ),
        ];
        for (words, problem) in cases {
            let error = read(words, "", &schema()).unwrap_err().to_string();
            assert!(error.contains(problem), "{error}");
        }
    }

    #[test]
    fn keys_that_the_schema_rules_out_are_refused() {
        let mut schema = schema();
        schema["additionalProperties"] = json!(false);
        let error = read(&["other=5"], "", &schema).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the tool has no argument `other`\n  hint: it takes path, limit, tags, deep"
        );
        assert_eq!(read(&["other:=5"], "", &schema).unwrap(), "{\"other\":5}");
        schema["patternProperties"] = json!({"^o": {}});
        assert_eq!(
            read(&["other=5"], "", &schema).unwrap(),
            "{\"other\":\"5\"}"
        );
    }
}
