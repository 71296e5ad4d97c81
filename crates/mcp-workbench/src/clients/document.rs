//! Parses a client's file of any format into a JSON value.

use serde_json::{Map, Value};
use toml_edit::{Item, Value as TomlValue};

use super::{client::Format, yaml};

/// A syntax error. It does not quote the text, which may contain secrets.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{line}:{column}: {what}")]
pub struct SyntaxError {
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1.
    pub column: usize,
    pub what: String,
}

/// Parses a text. An empty one is null.
pub(super) fn parse(text: &str, format: Format) -> Result<Value, SyntaxError> {
    // Editors on Windows write a byte order mark.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    match format {
        Format::Json => parse_json(text),
        Format::Toml => parse_toml(text),
        Format::Yaml => yaml::parse(text),
    }
}

fn parse_json(text: &str) -> Result<Value, SyntaxError> {
    let parsed = jsonc_parser::parse_to_serde_value::<Option<Value>>(
        text,
        &jsonc_parser::ParseOptions::default(),
    );
    let value = parsed.map_err(|error| SyntaxError {
        line: error.line_display(),
        column: error.column_display(),
        what: error.kind().to_string(),
    })?;
    Ok(value.unwrap_or(Value::Null))
}

fn parse_toml(text: &str) -> Result<Value, SyntaxError> {
    Ok(of_item(parse_toml_text(text)?.as_item()))
}

/// Parses a TOML text with its comments and layout.
pub(super) fn parse_toml_text(text: &str) -> Result<toml_edit::Document<&str>, SyntaxError> {
    toml_edit::Document::parse(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        // The parser reports a byte offset only.
        let before = text.get(..at).unwrap_or_default();
        SyntaxError {
            line: before.matches('\n').count() + 1,
            column: before.chars().rev().take_while(|it| *it != '\n').count() + 1,
            what: error.message().to_owned(),
        }
    })
}

fn of_item(item: &Item) -> Value {
    match item {
        Item::None => Value::Null,
        Item::Value(value) => of_value(value),
        Item::Table(table) => {
            let members = table.iter();
            Value::Object(
                members
                    .map(|(key, item)| (key.to_owned(), of_item(item)))
                    .collect(),
            )
        }
        Item::ArrayOfTables(tables) => {
            let tables = tables.iter();
            tables
                .map(|table| of_item(&Item::Table(table.clone())))
                .collect()
        }
    }
}

fn of_value(value: &TomlValue) -> Value {
    match value {
        TomlValue::String(text) => text.value().as_str().into(),
        TomlValue::Integer(number) => (*number.value()).into(),
        TomlValue::Float(number) => (*number.value()).into(),
        TomlValue::Boolean(flag) => (*flag.value()).into(),
        TomlValue::Datetime(time) => time.value().to_string().into(),
        TomlValue::Array(items) => items.iter().map(of_value).collect(),
        TomlValue::InlineTable(table) => {
            let members = table.iter();
            Value::Object(
                members
                    .map(|(key, value)| (key.to_owned(), of_value(value)))
                    .collect::<Map<_, _>>(),
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn the_same_content_is_the_same_value_in_every_format() {
        let expected = json!({"servers": {"b": {"args": ["x", "1"], "on": true, "n": 3}, "a": {"env": {"K": "v"}}}});
        let json = "\u{feff}{\n  // note\n  \"servers\": {\"b\": {\"args\": [\"x\", \"1\",], \"on\": true, \"n\": 3}, \"a\": {\"env\": {\"K\": \"v\"}}},\n}";
        let toml = "# note\n[servers.b]\nargs = [\"x\", \"1\"]\non = true\nn = 3\n[servers.a.env]\nK = \"v\"\n";
        let yaml = "# note\nservers:\n  b:\n    args: [x, \"1\"]\n    on: true\n    n: 3\n  a:\n    env:\n      K: v\n";
        for (text, format) in [
            (json, Format::Json),
            (toml, Format::Toml),
            (yaml, Format::Yaml),
        ] {
            let value = parse(text, format).expect("it is well formed");
            assert_eq!(value, expected, "{format:?}");
            let names: Vec<&String> = value["servers"].as_object().unwrap().keys().collect();
            assert_eq!(names, ["b", "a"], "{format:?}");
        }
    }

    #[test]
    fn a_list_of_tables_is_a_list() {
        let text = "[[s]]\nname = \"a\"\n[[s]]\nname = \"b\"\nenv = { K = \"v\" }\n";
        assert_eq!(
            parse(text, Format::Toml).expect("it is well formed"),
            json!({"s": [{"name": "a"}, {"name": "b", "env": {"K": "v"}}]})
        );
    }

    #[test]
    fn syntax_errors_have_a_position_and_do_not_quote_the_text() {
        let cases = [
            ("{\n  \"a\": hunter2\n}", Format::Json, 2),
            ("a = 1\nb = hunter2\n", Format::Toml, 2),
            ("a: b\nb: [hunter2\n", Format::Yaml, 2),
        ];
        for (text, format, line) in cases {
            let error = parse(text, format).expect_err("it is broken");
            assert!(error.line >= line, "{format:?}: {error}");
            assert!(!error.to_string().contains("hunter2"), "{error}");
        }
    }

    #[test]
    fn empty_files_are_empty_documents() {
        for format in [Format::Json, Format::Yaml] {
            assert_eq!(parse(" \n", format), Ok(Value::Null), "{format:?}");
        }
        assert_eq!(parse("", Format::Toml), Ok(json!({})));
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in r#"([ab:=#"'\[\]{},\n -]|\$\{|- |\u{feff}){0,40}"#) {
            for format in [Format::Json, Format::Toml, Format::Yaml] {
                let _ = parse(&text, format);
            }
        }
    }
}
