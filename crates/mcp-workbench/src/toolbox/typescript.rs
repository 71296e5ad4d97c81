//! JSON Schemas as TypeScript types, for scripts that call tools. Whatever a server sends as a schema, the output is one
//! line of bounded length without the end of a comment.

use std::fmt::Write;

use rawjson::RawJson;
use serde_json::{Map, Value};

use crate::{downstream::ToolDefinition, visible::visible};

/// The depth to which types are written.
const MAX_DEPTH: usize = 6;
/// The longest type; a longer one is `unknown`.
const MAX_CHARACTERS: usize = 1500;
/// The type of a value that cannot be described.
const UNKNOWN: &str = "unknown";

/// Returns the type of a tool's arguments.
pub(crate) fn arguments_type(definition: &RawJson) -> String {
    of_member(definition, "inputSchema").unwrap_or_else(|| "Record<string, unknown>".to_owned())
}

/// Returns the type of a tool's result: the one that its server declares, which few do, or the shape of earlier results.
pub(crate) fn result_type(tool: &ToolDefinition) -> String {
    declared_type(&tool.definition)
        .or_else(|| tool.shape.typescript())
        .unwrap_or_else(|| UNKNOWN.to_owned())
}

fn declared_type(definition: &RawJson) -> Option<String> {
    of_member(definition, "outputSchema")
}

fn of_member(definition: &RawJson, name: &str) -> Option<String> {
    let schema = definition.member(name)?;
    let schema: Value = serde_json::from_slice(schema.as_bytes()).ok()?;
    let types = Types { root: &schema };
    let text = types.of(&schema, 0);
    let fits = text.chars().take(MAX_CHARACTERS + 1).count() <= MAX_CHARACTERS;
    Some(if fits {
        text
    } else {
        "unknown /* too long: see the inputSchema of tools.describe */".to_owned()
    })
}

struct Types<'a> {
    /// The whole schema, for references into it.
    root: &'a Value,
}

impl Types<'_> {
    fn of(&self, schema: &Value, depth: usize) -> String {
        let Value::Object(rules) = schema else {
            return UNKNOWN.to_owned();
        };
        if depth > MAX_DEPTH {
            return UNKNOWN.to_owned();
        }
        // A reference or a literal says everything. Types matter only where there is neither.
        if let Some(reference) = rules.get("$ref").and_then(Value::as_str) {
            let target = reference
                .strip_prefix('#')
                .and_then(|pointer| self.root.pointer(pointer));
            // A recursive type ends at the greatest depth.
            return target.map_or_else(|| UNKNOWN.to_owned(), |it| self.of(it, depth + 1));
        }
        if let Some(only) = rules.get("const") {
            return literal(only);
        }
        if let Some(Value::Array(words)) = rules.get("enum") {
            return joined(words.iter().map(literal), " | ");
        }
        for (keyword, operator) in [("anyOf", " | "), ("oneOf", " | "), ("allOf", " & ")] {
            if let Some(Value::Array(parts)) = rules.get(keyword) {
                return joined(parts.iter().map(|it| self.of(it, depth + 1)), operator);
            }
        }
        match rules.get("type") {
            Some(Value::String(name)) => self.named(name, rules, depth),
            Some(Value::Array(names)) => {
                let names = names.iter().filter_map(Value::as_str);
                joined(names.map(|it| self.named(it, rules, depth)), " | ")
            }
            _ if rules.contains_key("properties") => self.object(rules, depth),
            _ => UNKNOWN.to_owned(),
        }
    }

    fn named(&self, name: &str, rules: &Map<String, Value>, depth: usize) -> String {
        match name {
            "string" | "boolean" | "null" | "number" => name.to_owned(),
            "integer" => "number".to_owned(),
            "array" => {
                let items = rules
                    .get("items")
                    .map_or_else(|| UNKNOWN.to_owned(), |it| self.of(it, depth + 1));
                // `A | B[]` would be an array of B only.
                if items.contains(' ') && !is_one_object(&items) {
                    format!("({items})[]")
                } else {
                    format!("{items}[]")
                }
            }
            "object" => self.object(rules, depth),
            _ => UNKNOWN.to_owned(),
        }
    }

    /// Writes an object, required members first.
    fn object(&self, rules: &Map<String, Value>, depth: usize) -> String {
        let nothing = Map::new();
        let properties = rules
            .get("properties")
            .and_then(Value::as_object)
            .unwrap_or(&nothing);
        let required = rules.get("required").and_then(Value::as_array);
        let is_required = |name: &str| {
            let mut names = required.into_iter().flatten();
            names.any(|it| it.as_str() == Some(name))
        };
        if properties.is_empty() {
            let others = rules.get("additionalProperties");
            return match others.filter(|it| it.is_object()) {
                Some(others) => format!("Record<string, {}>", self.of(others, depth + 1)),
                None => "Record<string, unknown>".to_owned(),
            };
        }
        let (mut first, mut second): (Vec<_>, Vec<_>) = (Vec::new(), Vec::new());
        for (name, schema) in properties {
            let key = key(name);
            let of = self.of(schema, depth + 1);
            if is_required(name) {
                first.push(format!("{key}: {of}"));
            } else {
                let default = schema.get("default").filter(|it| !it.is_null());
                let default =
                    default.map_or_else(String::new, |it| comment(&format!("default {it}")));
                second.push(format!("{key}?: {of}{default}"));
            }
        }
        first.append(&mut second);
        format!("{{ {} }}", first.join("; "))
    }
}

/// Returns whether a type is one object, and not the beginning of a union.
fn is_one_object(text: &str) -> bool {
    let mut depth = 0_usize;
    let end = text.find(|character| {
        match character {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0
    });
    end.is_some_and(|end| end > 0 && end + 1 == text.len())
}

/// Returns a key as it is written in a type.
pub(crate) fn key(name: &str) -> String {
    let mut characters = name.chars();
    let begins = characters
        .next()
        .is_some_and(|it| it.is_ascii_alphabetic() || it == '_' || it == '$');
    if begins && characters.all(|it| it.is_ascii_alphanumeric() || it == '_' || it == '$') {
        return name.to_owned();
    }
    literal(&Value::from(name))
}

/// Returns a text as a comment that it cannot leave.
fn comment(text: &str) -> String {
    format!(" /* {} */", visible(text).replace("*/", "* /"))
}

/// Returns a value as a literal type, without characters that could disguise it.
fn literal(value: &Value) -> String {
    match value {
        Value::Array(_) | Value::Object(_) => UNKNOWN.to_owned(),
        value => visible(&value.to_string()).replace("*/", "*\\/"),
    }
}

fn joined(parts: impl Iterator<Item = String>, operator: &str) -> String {
    let mut text = String::new();
    let mut seen: Vec<String> = Vec::new();
    for part in parts {
        if seen.contains(&part) {
            continue;
        }
        if !text.is_empty() {
            text.push_str(operator);
        }
        // Writing to a string cannot fail.
        let _ = write!(text, "{part}");
        seen.push(part);
    }
    if text.is_empty() {
        UNKNOWN.to_owned()
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::json;

    use super::*;

    #[test]
    fn schemas_become_types() {
        let cases = [
            (json!({"type": "object"}), "Record<string, unknown>"),
            (
                json!({"type": "object", "properties": {
                    "state": {"enum": ["open", "closed"], "default": "open"},
                    "owner": {"type": "string"},
                    "my-key": {"type": "integer"}}, "required": ["owner"]}),
                r#"{ owner: string; state?: "open" | "closed" /* default "open" */; "my-key"?: number }"#,
            ),
            (
                json!({"type": "array", "items": {"type": ["string", "null"]}}),
                "(string | null)[]",
            ),
            (
                json!({"type": "array", "items": {"type": "object", "properties": {"a": {"const": 1}}}}),
                "{ a?: 1 }[]",
            ),
            (
                json!({"type": "array", "items": {"anyOf": [
                    {"type": "object", "properties": {"a": {"const": 1}}},
                    {"type": "object", "properties": {"b": {"const": 2}}}]}}),
                "({ a?: 1 } | { b?: 2 })[]",
            ),
            (
                json!({"anyOf": [{"type": "string"}, {"type": "string"}, {"type": "number"}]}),
                "string | number",
            ),
            (
                json!({"allOf": [{"$ref": "#/$defs/a"}, {"type": "object"}], "$defs": {"a": {"type": "boolean"}}}),
                "boolean & Record<string, unknown>",
            ),
            (
                json!({"type": "object", "additionalProperties": {"type": "number"}}),
                "Record<string, number>",
            ),
            (json!({"$ref": "#"}), "unknown"),
            (json!({"$ref": "http://elsewhere"}), "unknown"),
            (json!({"enum": ["a*/b"]}), r#""a*\/b""#),
            (json!(true), "unknown"),
        ];
        for (schema, expected) in cases {
            let definition = RawJson::of(&json!({"name": "t", "outputSchema": schema}));
            assert_eq!(
                declared_type(&definition).as_deref(),
                Some(expected),
                "{schema}"
            );
        }
        assert_eq!(declared_type(&RawJson::of(&json!({"name": "t"}))), None);
        let long = json!({"inputSchema": {"enum": (0..500).collect::<Vec<_>>()}});
        assert!(arguments_type(&RawJson::of(&long)).starts_with("unknown /*"));
    }
}
