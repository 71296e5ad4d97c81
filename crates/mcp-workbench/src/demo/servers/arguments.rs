//! Reads the arguments of a call; errors say what to fix.

use serde_json::{Map, Value};

/// The arguments of one call.
#[derive(Debug, Default)]
pub(super) struct Arguments(Map<String, Value>);

/// Reasons why an argument is refused.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum ArgumentError {
    /// `arguments` is not an object.
    #[error("`arguments` must be an object, not {found}")]
    NotAnObject { found: &'static str },
    /// A required argument is missing.
    #[error("argument `{name}` is required: it must be {expected}")]
    Missing {
        name: &'static str,
        expected: &'static str,
    },
    /// An argument has the wrong type.
    #[error("argument `{name}` must be {expected}, not {found}")]
    WrongType {
        name: &'static str,
        expected: &'static str,
        found: &'static str,
    },
    /// The tool has no such argument.
    #[error("unknown argument `{name}`: this tool takes {}", enumerate(known))]
    Unknown {
        name: String,
        /// The arguments of the tool.
        known: &'static [&'static str],
    },
}

const STRING: &str = "a string";
const INTEGER: &str = "a whole number from 0 on";

impl Arguments {
    /// Reads the `arguments` of a call; missing ones count as an empty object.
    pub(super) fn new(arguments: Option<Value>) -> Result<Self, ArgumentError> {
        match arguments {
            None => Ok(Self::default()),
            Some(Value::Object(members)) => Ok(Self(members)),
            Some(other) => Err(ArgumentError::NotAnObject {
                found: kind(&other),
            }),
        }
    }

    /// Refuses arguments that are not among `known`.
    pub(super) fn only(&self, known: &'static [&'static str]) -> Result<(), ArgumentError> {
        match self.0.keys().find(|name| !known.contains(&name.as_str())) {
            None => Ok(()),
            Some(name) => Err(ArgumentError::Unknown {
                name: name.clone(),
                known,
            }),
        }
    }

    /// Returns a required string.
    pub(super) fn string(&self, name: &'static str) -> Result<&str, ArgumentError> {
        self.optional_string(name)?.ok_or(ArgumentError::Missing {
            name,
            expected: STRING,
        })
    }

    /// Returns an optional string.
    pub(super) fn optional_string(
        &self,
        name: &'static str,
    ) -> Result<Option<&str>, ArgumentError> {
        match self.0.get(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(wrong_type(name, STRING, other)),
        }
    }

    /// Returns a required whole number that is not negative.
    pub(super) fn integer(&self, name: &'static str) -> Result<u64, ArgumentError> {
        let value = self.0.get(name).ok_or(ArgumentError::Missing {
            name,
            expected: INTEGER,
        })?;
        value
            .as_u64()
            .ok_or_else(|| wrong_type(name, INTEGER, value))
    }
}

fn wrong_type(name: &'static str, expected: &'static str, value: &Value) -> ArgumentError {
    ArgumentError::WrongType {
        name,
        expected,
        found: kind(value),
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(number) if number.as_i64().is_some_and(|number| number < 0) => {
            "a negative number"
        }
        Value::Number(number) if number.is_f64() => "a decimal number",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

fn enumerate(names: &[&str]) -> String {
    if names.is_empty() {
        return "no arguments".to_owned();
    }
    names
        .iter()
        .map(|name| format!("`{name}`"))
        .collect::<Vec<_>>()
        .join(", ")
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::json;

    use super::*;

    fn read(arguments: Value) -> Result<(String, Option<String>, u64), ArgumentError> {
        let arguments = Arguments::new(Some(arguments))?;
        arguments.only(&["text", "tag", "id"])?;
        let text = arguments.string("text")?.to_owned();
        let tag = arguments.optional_string("tag")?.map(str::to_owned);
        Ok((text, tag, arguments.integer("id")?))
    }

    #[test]
    fn arguments_that_fit_are_read() {
        assert_eq!(
            read(json!({"text": "t", "id": 3})),
            Ok(("t".to_owned(), None, 3))
        );
        assert_eq!(
            read(json!({"text": "", "tag": "x", "id": 0})),
            Ok((String::new(), Some("x".to_owned()), 0))
        );
        assert!(Arguments::new(None).unwrap().only(&[]).is_ok());
    }

    #[test]
    fn each_problem_says_what_to_fix() {
        let table = [
            (json!("text"), "`arguments` must be an object, not a string"),
            (json!(null), "`arguments` must be an object, not null"),
            (
                json!({"id": 1}),
                "argument `text` is required: it must be a string",
            ),
            (
                json!({"text": ["a"], "id": 1}),
                "argument `text` must be a string, not an array",
            ),
            (
                json!({"text": "t", "tag": null, "id": 1}),
                "argument `tag` must be a string, not null",
            ),
            (
                json!({"text": "t"}),
                "argument `id` is required: it must be a whole number from 0 on",
            ),
            (
                json!({"text": "t", "id": -1}),
                "argument `id` must be a whole number from 0 on, not a negative number",
            ),
            (
                json!({"text": "t", "id": 1.5}),
                "argument `id` must be a whole number from 0 on, not a decimal number",
            ),
            (
                json!({"text": "t", "id": 1, "more": 2}),
                "unknown argument `more`: this tool takes `text`, `tag`, `id`",
            ),
        ];
        for (arguments, expected) in table {
            assert_eq!(read(arguments).unwrap_err().to_string(), expected);
        }
        let error = Arguments::new(Some(json!({"a": 1})))
            .unwrap()
            .only(&[])
            .unwrap_err();
        assert_eq!(
            error.to_string(),
            "unknown argument `a`: this tool takes no arguments"
        );
    }
}
