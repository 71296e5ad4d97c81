//! What arguments look like without what they say: their names and types, bounded.

use serde_json::{Map, Value};

use super::record::cut;
use crate::{
    config::Secrets,
    wire::{Kind, RawJson},
};

/// How deep and how wide a shape is.
const DEPTH: usize = 3;
const MEMBERS: usize = 50;
/// How many characters of a name are kept.
const NAME: usize = 64;
/// Stands for the members that are not named.
const MORE: &str = "…";

/// The shape of a value. Names are chosen by whoever calls, so that they are held against the secrets too.
pub(super) fn shape(value: &RawJson, secrets: &Secrets) -> Value {
    at_depth(value, secrets, 0)
}

fn at_depth(value: &RawJson, secrets: &Secrets, depth: usize) -> Value {
    if value.kind() != Kind::Object || depth == DEPTH {
        return value.kind().name().into();
    }
    let members = value.members().unwrap_or_default();
    let mut shapes = Map::new();
    for member in members.iter().take(MEMBERS) {
        let name = cut(&secrets.redact(&member.key), NAME);
        shapes.insert(name, at_depth(&member.value, secrets, depth + 1));
    }
    if let Some(more) = members.len().checked_sub(MEMBERS).filter(|more| *more > 0) {
        shapes.insert(MORE.to_owned(), more.into());
    }
    Value::Object(shapes)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_shape_has_names_and_types_and_no_values() {
        let arguments = json!({
            "path": "/etc/passwd", "n": 1, "yes": true, "nothing": null, "list": ["a", "b"],
            "deep": {"a": {"b": {"c": "secret"}}},
        });
        let shape = shape(&RawJson::of(&arguments), &Secrets::default());
        assert_eq!(
            shape,
            json!({
                "path": "string", "n": "number", "yes": "boolean", "nothing": "null", "list": "array",
                "deep": {"a": {"b": "object"}},
            })
        );
    }

    #[test]
    fn a_shape_is_bounded_and_holds_no_secrets() {
        let mut secrets = Secrets::default();
        secrets.add("TOKEN", "hunter2-hunter2");
        let names = (0..1000).map(|n| (format!("{n}-{}", "x".repeat(1000)), json!(n)));
        let many: Map<String, Value> = names.collect();
        let long = shape(&RawJson::of(&many), &secrets).to_string();
        assert!(long.len() < MEMBERS * (NAME + 20), "{}", long.len());
        assert!(long.contains(r#""…":950"#), "{long}");
        let told = shape(&RawJson::of(&json!({"hunter2-hunter2": 1})), &secrets);
        assert_eq!(told, json!({"[redacted]": "number"}));
        assert_eq!(shape(&RawJson::of(&json!("x")), &secrets), json!("string"));
    }
}
