//! Checks the arguments of a script against the schema of the tool, before they are sent. A script has no model that reads
//! the server's complaint and tries again, so the check is strict about misspelled names. It covers the part of JSON Schema
//! that tools use; anything else is left to the server.

use rawjson::RawJson;
use serde_json::{Map, Value};

use crate::{
    call::ToolRequest,
    downstream::{CallError, ServerHandle},
    near::nearest,
    visible::visible,
};

/// The depth to which values are checked.
const MAX_DEPTH: usize = 16;
/// The number of comparisons of a value with a schema. A schema with nested forms could require any number of them, so
/// the rest is left to the server.
const MAX_STEPS: usize = 200_000;
/// The number of problems that are reported.
const MAX_PROBLEMS: usize = 5;

/// Checks the arguments of a call against the definition that its server has listed.
pub(super) fn check(server: &ServerHandle, request: &ToolRequest) -> Result<(), CallError> {
    let tools = server.inspect(|status| status.tools.clone());
    let schema = tools.and_then(|tools| tools.input_schema(request.name.as_str()));
    let Some(schema) = schema else { return Ok(()) };
    match problems(&schema, &request.arguments) {
        Some(problem) => Err(CallError::InvalidArguments { problem }),
        None => Ok(()),
    }
}

/// Returns the problems of arguments as one text.
fn problems(schema: &Value, arguments: &RawJson) -> Option<String> {
    let arguments: Value = match serde_json::from_slice(arguments.as_bytes()) {
        Ok(arguments) => arguments,
        Err(error) => {
            let problem = error.to_string();
            // The position is in our own JSON, so it means nothing to the caller.
            return problem.split(" at line ").next().map(str::to_owned);
        }
    };
    let mut check = ArgumentCheck {
        root: schema,
        steps_left: MAX_STEPS,
        problems: Vec::new(),
    };
    check.value(schema, &arguments, "", 0);
    let more = check.problems.len().saturating_sub(MAX_PROBLEMS);
    check.problems.truncate(MAX_PROBLEMS);
    if more > 0 {
        check.problems.push(format!("{more} more"));
    }
    (!check.problems.is_empty()).then(|| check.problems.join("; "))
}

struct ArgumentCheck<'a> {
    /// The whole schema, for references into it.
    root: &'a Value,
    steps_left: usize,
    problems: Vec<String>,
}

impl<'a> ArgumentCheck<'a> {
    fn value(&mut self, schema: &'a Value, value: &Value, path: &str, depth: usize) {
        // `true`, `false` or a reference that leads nowhere: the server decides.
        let Some(rules) = self.resolved(schema).and_then(Value::as_object) else {
            return;
        };
        if depth > MAX_DEPTH || self.steps_left == 0 {
            return;
        }
        self.steps_left -= 1;
        // For `anyOf` and `oneOf` it is a problem only if no form fits. Whether several forms of `oneOf` fit is left to
        // the server.
        for (keyword, is_all) in [("anyOf", false), ("oneOf", false), ("allOf", true)] {
            let Some(parts) = rules.get(keyword).and_then(Value::as_array) else {
                continue;
            };
            if is_all {
                for part in parts {
                    self.value(part, value, path, depth + 1);
                }
            } else if !parts.iter().any(|part| self.fits(part, value, depth + 1)) {
                self.report(
                    path,
                    &format!("does not match any of its {} forms", parts.len()),
                );
            }
        }
        // Further problems would only follow from the wrong type.
        if !self.is_of_type(rules, value, path) {
            return;
        }
        self.words(rules, value, path);
        self.sizes(rules, value, path);
        match value {
            Value::Object(members) => self.object(rules, members, path, depth),
            Value::Array(items) => {
                if let Some(of_items) = rules.get("items") {
                    for (at, item) in items.iter().enumerate() {
                        self.value(of_items, item, &format!("{path}[{at}]"), depth + 1);
                    }
                }
            }
            _ => {}
        }
    }

    fn fits(&mut self, schema: &'a Value, value: &Value, depth: usize) -> bool {
        let mut check = ArgumentCheck {
            root: self.root,
            steps_left: self.steps_left,
            problems: Vec::new(),
        };
        check.value(schema, value, "", depth);
        // The steps of one form count for all, or nested forms would multiply them.
        self.steps_left = check.steps_left;
        check.problems.is_empty()
    }

    /// Follows a reference into the same schema.
    fn resolved(&self, schema: &'a Value) -> Option<&'a Value> {
        let mut schema = schema;
        for _ in 0..MAX_DEPTH {
            let Some(reference) = schema.get("$ref").and_then(Value::as_str) else {
                return Some(schema);
            };
            schema = self.root.pointer(reference.strip_prefix('#')?)?;
        }
        None
    }

    fn is_of_type(&mut self, rules: &Map<String, Value>, value: &Value, path: &str) -> bool {
        let types: Vec<&str> = match rules.get("type") {
            Some(Value::String(one)) => vec![one],
            Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).collect(),
            _ => return true,
        };
        let is = |name: &&str| match (*name, value) {
            ("null", Value::Null)
            | ("boolean", Value::Bool(_))
            | ("string", Value::String(_))
            | ("array", Value::Array(_))
            | ("object", Value::Object(_))
            | ("number", Value::Number(_)) => true,
            // JSON Schema counts `1.0` as an integer.
            ("integer", Value::Number(number)) => {
                number.as_f64().is_none_or(|number| number.fract() == 0.0)
            }
            ("null" | "boolean" | "string" | "array" | "object" | "number" | "integer", _) => false,
            // A word that JSON Schema does not have cannot be checked.
            _ => true,
        };
        let fits = types.iter().any(is);
        if !fits {
            let found = kind(value);
            self.report(
                path,
                &format!("expected {}, received {found}", types.join(" or ")),
            );
        }
        fits
    }

    /// Checks `enum` and `const`.
    fn words(&mut self, rules: &Map<String, Value>, value: &Value, path: &str) {
        let allowed = rules.get("enum").and_then(Value::as_array);
        if allowed.is_some_and(|allowed| !allowed.contains(value)) {
            let allowed: Vec<String> = allowed
                .iter()
                .flat_map(|it| it.iter())
                .map(ToString::to_string)
                .collect();
            self.report(
                path,
                &format!("expected one of {}, received {value}", allowed.join(", ")),
            );
        }
        if let Some(only) = rules.get("const").filter(|only| *only != value) {
            self.report(path, &format!("expected {only}, received {value}"));
        }
    }

    /// Checks the bounds of numbers, and of the lengths of texts and arrays.
    fn sizes(&mut self, rules: &Map<String, Value>, value: &Value, path: &str) {
        type Bound = (&'static str, &'static str, fn(f64, f64) -> bool);
        const NUMBER: [Bound; 4] = [
            ("minimum", "at least", |it, bound| it >= bound),
            ("maximum", "at most", |it, bound| it <= bound),
            ("exclusiveMinimum", "more than", |it, bound| it > bound),
            ("exclusiveMaximum", "less than", |it, bound| it < bound),
        ];
        const TEXT: [Bound; 2] = [
            ("minLength", "at least", |it, bound| it >= bound),
            ("maxLength", "at most", |it, bound| it <= bound),
        ];
        const ARRAY: [Bound; 2] = [
            ("minItems", "at least", |it, bound| it >= bound),
            ("maxItems", "at most", |it, bound| it <= bound),
        ];
        #[expect(clippy::cast_precision_loss, reason = "arguments are not that long")]
        let (size, bounds, unit): (_, &[Bound], _) = match value {
            Value::Number(number) => (number.as_f64(), &NUMBER, ""),
            Value::String(text) => (Some(text.chars().count() as f64), &TEXT, " characters"),
            Value::Array(items) => (Some(items.len() as f64), &ARRAY, " items"),
            _ => return,
        };
        let Some(size) = size else { return };
        for (keyword, word, holds) in bounds {
            let bound = rules.get(*keyword);
            let Some(bound) = bound.and_then(Value::as_f64) else {
                continue;
            };
            if !holds(size, bound) {
                self.report(
                    path,
                    &format!("expected {word} {bound}{unit}, received {size}"),
                );
            }
        }
    }

    fn object(
        &mut self,
        rules: &'a Map<String, Value>,
        members: &Map<String, Value>,
        path: &str,
        depth: usize,
    ) {
        let properties = rules.get("properties").and_then(Value::as_object);
        let required = rules.get("required").and_then(Value::as_array);
        for name in required.into_iter().flatten().filter_map(Value::as_str) {
            if !members.contains_key(name) {
                let of = properties
                    .and_then(|it| it.get(name))
                    .and_then(|it| it.get("type"))
                    .and_then(Value::as_str)
                    .map_or_else(String::new, |it| format!(" ({it})"));
                self.report(path, &format!("missing required \"{}\"{of}", visible(name)));
            }
        }
        // Keys that match a pattern are not additional, and patterns are left to the server.
        let others = rules.get("additionalProperties");
        let others = others.filter(|_| !rules.contains_key("patternProperties"));
        for (name, value) in members {
            let inside = if path.is_empty() {
                name.clone()
            } else {
                format!("{path}.{name}")
            };
            match (properties.and_then(|it| it.get(name)), others) {
                (Some(schema), _) => self.value(schema, value, &inside, depth + 1),
                (None, Some(schema @ Value::Object(_))) => {
                    self.value(schema, value, &inside, depth + 1);
                }
                (None, others) if is_closed(rules, others, depth) => {
                    let known = properties
                        .into_iter()
                        .flat_map(Map::keys)
                        .map(String::as_str);
                    let near = nearest(name, known)
                        .map(|it| format!(" (did you mean \"{}\"?)", visible(it)));
                    let near = near.unwrap_or_default();
                    self.report(path, &format!("unknown key \"{}\"{near}", visible(name)));
                }
                _ => {}
            }
        }
    }

    fn report(&mut self, path: &str, problem: &str) {
        let path = visible(path);
        self.problems.push(if path.is_empty() {
            problem.to_owned()
        } else {
            format!("{path}: {problem}")
        });
    }
}

/// Returns whether keys that the schema does not name are refused. Few schemas say so, but an argument that is not
/// among the parameters is a mistake.
fn is_closed(rules: &Map<String, Value>, others: Option<&Value>, depth: usize) -> bool {
    // These keywords may allow further keys.
    let elsewhere = ["patternProperties", "allOf", "anyOf", "oneOf", "if"];
    match others {
        Some(Value::Bool(others)) => !others,
        _ => {
            depth == 0
                && rules.contains_key("properties")
                && !elsewhere.iter().any(|it| rules.contains_key(*it))
        }
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::json;

    use super::*;

    fn schema() -> Value {
        json!({
            "type": "object",
            "properties": {
                "repo": {"type": "string"},
                "count": {"type": "integer"},
                "state": {"enum": ["open", "closed"]},
                "labels": {"type": "array", "items": {"type": "string"}},
                "when": {"anyOf": [{"type": "string"}, {"type": "null"}]},
                "where": {"$ref": "#/$defs/place"},
                "filter": {"type": "object", "properties": {"a": {"type": "number"}}},
                "size": {"type": "number", "minimum": 1, "maximum": 100},
                "share": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
                "key": {"type": "string", "minLength": 2},
                "pair": {"type": "array", "maxItems": 2},
            },
            "required": ["repo"],
            "$defs": {"place": {"type": "object", "properties": {"x": {"type": "number"}}, "additionalProperties": false}},
        })
    }

    #[test]
    fn arguments_are_checked_against_the_schema() {
        let cases = [
            (json!({"repo": "a"}), None),
            (
                json!({"repo": "a", "count": 2, "state": "open", "labels": ["x"], "when": null, "where": {"x": 1.5}}),
                None,
            ),
            (
                json!({"repo": "a", "count": 2.0, "filter": {"other": 1}}),
                None,
            ),
            (json!({}), Some("missing required \"repo\" (string)")),
            (
                json!({"repo": 1}),
                Some("repo: expected string, received number"),
            ),
            (
                json!({"repo": "a", "count": 1.5}),
                Some("count: expected integer, received number"),
            ),
            (
                json!({"repo": "a", "cuont": 1}),
                Some("unknown key \"cuont\" (did you mean \"count\"?)"),
            ),
            (
                json!({"repo": "a", "state": "opn"}),
                Some("state: expected one of \"open\", \"closed\", received \"opn\""),
            ),
            (
                json!({"repo": "a", "labels": ["x", 2]}),
                Some("labels[1]: expected string, received number"),
            ),
            (
                json!({"repo": "a", "when": 3}),
                Some("when: does not match any of its 2 forms"),
            ),
            (
                json!({"repo": "a", "where": {"y": 1}}),
                Some("where: unknown key \"y\""),
            ),
            (
                json!({"repo": "a", "filter": {"a": "b"}}),
                Some("filter.a: expected number, received string"),
            ),
            (
                json!({"repo": "a", "size": 0}),
                Some("size: expected at least 1, received 0"),
            ),
            (
                json!({"repo": "a", "size": 101.5}),
                Some("size: expected at most 100, received 101.5"),
            ),
            (
                json!({"repo": "a", "share": 1}),
                Some("share: expected less than 1, received 1"),
            ),
            (
                json!({"repo": "a", "key": "é"}),
                Some("key: expected at least 2 characters, received 1"),
            ),
            (
                json!({"repo": "a", "pair": [1, 2, 3]}),
                Some("pair: expected at most 2 items, received 3"),
            ),
            (
                json!({"repo": "a", "size": 100, "share": 0.5, "key": "éé", "pair": []}),
                None,
            ),
            (json!([]), Some("expected object, received array")),
            (
                json!({"repo": 1, "a": 1, "b": 1, "c": 1, "d": 1, "e": 1}),
                Some(
                    "repo: expected string, received number; unknown key \"a\"; unknown key \"b\"; unknown key \"c\"; unknown key \"d\"; 1 more",
                ),
            ),
        ];
        for (arguments, expected) in cases {
            let found = problems(&schema(), &RawJson::of(&arguments));
            assert_eq!(found.as_deref(), expected, "{arguments}");
        }
    }

    #[test]
    fn arguments_that_cannot_be_read_are_refused() {
        let deep = "[".repeat(200) + &"]".repeat(200);
        for (text, problem) in [
            (r#"{"repo":"\ud83d"}"#, "unexpected end of hex escape"),
            (&deep, "recursion limit exceeded"),
        ] {
            let arguments = RawJson::trusted(text.to_owned().into());
            assert_eq!(problems(&schema(), &arguments).as_deref(), Some(problem));
        }
    }

    /// Without a bound this would take longer than anybody waits.
    #[test]
    fn a_schema_that_refers_to_itself_in_many_forms_is_not_followed_for_ever() {
        let itself = vec![json!({"$ref": "#"}); 20];
        let schema = json!({"anyOf": itself, "oneOf": itself, "type": "array"});
        let found = problems(&schema, &RawJson::of(&json!({"b": 1})));
        assert_eq!(found.as_deref(), Some("expected array, received object"));
    }

    #[test]
    fn a_schema_that_is_open_or_odd_refuses_nothing() {
        let schemas = [
            json!({}),
            json!(true),
            json!({"type": "object"}),
            json!({"properties": {"a": {}}, "additionalProperties": true}),
            json!({"properties": {"a": {}}, "allOf": [{}]}),
            json!({"patternProperties": {"^b": {}}, "additionalProperties": false}),
            json!({"patternProperties": {"^b": {}}, "additionalProperties": {"type": "string"}}),
            json!({"properties": {"b": {"exclusiveMinimum": true, "minLength": 2, "maxItems": 0}}}),
            json!({"$ref": "#"}),
            json!({"$ref": "http://elsewhere"}),
            json!({"type": "imaginary"}),
            json!({"properties": {"b": {"$ref": "#/properties/b"}}}),
        ];
        for schema in schemas {
            let found = problems(&schema, &RawJson::of(&json!({"b": 1})));
            assert_eq!(found, None, "{schema}");
        }
    }
}
