//! The shape of arguments: names and types without values, limited in size.

use std::borrow::Cow;

use rawjson::{Cursor, Kind, RawJson, write_json};

use super::line::{redact_and_cut, separate, write_text};
use crate::config::Secrets;

/// The maximum depth and number of members.
const DEPTH: usize = 3;
const MEMBERS: usize = 50;
/// The number of characters of a name that are recorded.
const NAME: usize = 64;
/// The name under which the members beyond [`MEMBERS`] are counted.
const MORE: &str = "…";

/// The shape of a value.
enum ArgumentShape<'a> {
    Kind(Kind),
    /// The shapes of its members.
    Members(Vec<(Cow<'a, str>, Self)>),
    /// The number of omitted members.
    More(usize),
}

/// Appends the shape of a value. Callers choose names, so secrets are replaced in them too.
pub(super) fn write_shape(line: &mut Vec<u8>, value: &RawJson, secrets: &Secrets) {
    let shape = ArgumentShape::read(&mut Cursor::new(value), secrets, 0);
    shape
        .unwrap_or(ArgumentShape::Kind(value.kind()))
        .write(line);
}

impl<'a> ArgumentShape<'a> {
    fn read(cursor: &mut Cursor<'a>, secrets: &Secrets, depth: usize) -> Option<Self> {
        let kind = cursor.kind()?;
        if kind != Kind::Object || depth == DEPTH {
            cursor.written()?;
            return Some(Self::Kind(kind));
        }
        let mut members = Vec::new();
        let mut count = 0;
        cursor.members_with_any_keys(|cursor, key| {
            count += 1;
            if count > MEMBERS {
                // Skips the value, so that the cursor reaches the next member.
                return cursor.written().map(drop);
            }
            let name = redact_and_cut(key, secrets, NAME);
            put(&mut members, name, Self::read(cursor, secrets, depth + 1)?);
            Some(())
        })?;
        if count > MEMBERS {
            put(&mut members, MORE.into(), Self::More(count - MEMBERS));
        }
        Some(Self::Members(members))
    }

    fn write(&self, line: &mut Vec<u8>) {
        match self {
            Self::Kind(kind) => write_text(line, kind.name()),
            Self::More(count) => write_json(line, count),
            Self::Members(members) => {
                let mut is_first = true;
                line.push(b'{');
                for (name, shape) in members {
                    separate(line, &mut is_first);
                    write_text(line, name);
                    line.push(b':');
                    shape.write(line);
                }
                line.push(b'}');
            }
        }
    }
}

/// Adds a member. Names may become equal when they are redacted and cut; the last one wins, so that no line has a
/// duplicate key.
fn put<'a>(
    members: &mut Vec<(Cow<'a, str>, ArgumentShape<'a>)>,
    name: Cow<'a, str>,
    shape: ArgumentShape<'a>,
) {
    match members.iter_mut().find(|(known, _)| *known == name) {
        Some((_, known)) => *known = shape,
        None => members.push((name, shape)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, Value, json};

    use super::*;

    fn shape(value: &RawJson, secrets: &Secrets) -> String {
        let mut line = Vec::new();
        write_shape(&mut line, value, secrets);
        String::from_utf8(line).unwrap()
    }

    #[test]
    fn a_shape_has_names_and_types_and_no_values() {
        let arguments = json!({
            "path": "/etc/passwd", "n": 1, "yes": true, "nothing": null, "list": ["a", "b"],
            "deep": {"a": {"b": {"c": "secret"}}}, "empty": {}, "a\n\"b": 1,
        });
        let expected = concat!(
            r#"{"path":"string","n":"number","yes":"boolean","nothing":"null","list":"array","#,
            r#""deep":{"a":{"b":"object"}},"empty":{},"a\n\"b":"number"}"#
        );
        assert_eq!(
            shape(&RawJson::of(&arguments), &Secrets::default()),
            expected
        );
    }

    #[test]
    fn a_shape_is_bounded_and_contains_no_secrets() {
        let mut secrets = Secrets::default();
        secrets.add("TOKEN", "hunter2-hunter2");
        let names = (0..1000).map(|n| (format!("{n}-{}", "x".repeat(1000)), json!(n)));
        let many: Map<String, Value> = names.collect();
        let long = shape(&RawJson::of(&many), &secrets);
        assert!(long.len() < MEMBERS * (NAME + 20), "{}", long.len());
        assert!(long.ends_with(r#""…":950}"#), "{long}");
        assert_eq!(shape(&RawJson::of(&json!("x")), &secrets), r#""string""#);
    }

    #[test]
    fn names_that_become_equal_are_written_once() {
        let mut secrets = Secrets::default();
        secrets.add("TOKEN", "hunter2-hunter2");
        secrets.add("OTHER", "swordfish");
        let text = r#"{"hunter2-hunter2":1,"a":{},"swordfish":"x","a":null}"#;
        let value = RawJson::parse(&text.to_owned().into()).unwrap();
        let expected = r#"{"[redacted]":"string","a":"null"}"#;
        assert_eq!(shape(&value, &secrets), expected);
    }
}
