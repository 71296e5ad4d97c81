use bytes::Bytes;
use pretty_assertions::assert_eq;
use proptest::{collection::vec, prelude::*, sample::select};

use super::*;

fn compact(schema: &str) -> String {
    let schema = RawJson::parse(&Bytes::copy_from_slice(schema.as_bytes())).unwrap();
    let mut text = Vec::new();
    write_input_schema(&mut text, &schema, "read_file");
    String::from_utf8(text).unwrap()
}

#[test]
fn white_space_dialects_and_repeated_titles_are_left_out() {
    let cases = [
        (
            "{ \"$schema\" : \"http://json-schema.org/draft-07/schema#\",\r\n\t\"type\" : \"object\" }",
            r#"{"type":"object"}"#,
        ),
        (r#"{"title":"read_fileArguments"}"#, "{}"),
        (r#"{"title":"Read File"}"#, "{}"),
        (r#"{"t\u0069tle":"Read File"}"#, "{}"),
        (
            r#"{"title":"Read one file"}"#,
            r#"{"title":"Read one file"}"#,
        ),
        (
            r#"{"properties":{"maxCount":{"title":"Max Count","type":"integer"},"c":{"title":"C++"}}}"#,
            r#"{"properties":{"maxCount":{"type":"integer"},"c":{"title":"C++"}}}"#,
        ),
        (
            r#"{"$defs":{"Point":{"title":"Point"}},"anyOf":[{"title":"Read file"}],"items":{"$schema":"x"}}"#,
            r#"{"$defs":{"Point":{}},"anyOf":[{"title":"Read file"}],"items":{}}"#,
        ),
    ];
    for (schema, expected) in cases {
        assert_eq!(compact(schema), expected, "{schema}");
    }
}

#[test]
fn properties_and_values_named_like_keywords_are_preserved() {
    for schema in [
        r#"{"properties":{"title":{"type":"string"},"$schema":{"type":"string"}}}"#,
        r#"{"properties":{"x":{"enum":[{"title":"x","$schema":"y"}],"const":{"title":"x"},"default":{"$schema":1},"examples":[{"title":"x"}]}}}"#,
        r#"{"properties":{"properties":{"properties":{"a":{"title":"properties"}}}}}"#,
        r#"{"x-note":{"$schema":1,"title":"read_file"},"required":["title","$schema"]}"#,
        r#"{"patternProperties":{"^x$":{"title":"^x$"}},"dependentSchemas":{"x":{"title":"x"}}}"#,
        r#"{"title":"other","title":"read_file"}"#,
        r#"{"title":["read_file"],"properties":{"title":{"title":{"title":1}}}}"#,
        r#"{"minimum":1.0,"maximum":1e400,"multipleOf":-0,"const":12345678901234567890123}"#,
        r#"{"properties":["title"],"items":true,"allOf":"title"}"#,
        "true",
        "[]",
    ] {
        assert_eq!(compact(schema), schema);
    }
}

#[test]
fn schemas_below_the_last_level_only_lose_white_space() {
    let nested = |levels: usize, inner: &str| {
        format!(
            "{}{inner}{}",
            r#"{"not":"#.repeat(levels),
            "}".repeat(levels)
        )
    };
    let last = MAX_LEVELS - 1;
    let inner = r#"{ "$schema" : 1 }"#;
    assert_eq!(compact(&nested(last, inner)), nested(last, "{}"));
    assert_eq!(
        compact(&nested(last + 1, inner)),
        nested(last + 1, r#"{"$schema":1}"#)
    );
}

/// A text as a server may write it, and what is left of it.
type Written = (String, String);

/// Values that must be copied, whatever they contain.
fn value() -> impl Strategy<Value = Written> {
    const ATOMS: &[&str] = &[
        "1.0",
        "1E+400",
        "-0",
        "0.10000000000000000000001",
        "null",
        "true",
        r#"" { \" title : } ""#,
        r#""title""#,
        r#""\ud83d\ude00 é""#,
        r#""\ud800""#,
    ];
    let atom = select(ATOMS).prop_map(|it| (it.to_owned(), it.to_owned()));
    atom.prop_recursive(3, 12, 3, |inner| {
        let member = (any_key(), inner.clone()).prop_map(|(key, value)| kept(key, &value));
        prop_oneof![
            vec(inner, 0..3).prop_map(|values| joined('[', values, ']')),
            vec(member, 0..4).prop_map(|members| joined('{', members, '}')),
        ]
    })
}

fn any_key() -> impl Strategy<Value = &'static str> {
    select(
        &[
            r#""title""#,
            r#""$schema""#,
            r#""t\u0069tle""#,
            r#""properties""#,
            r#""a b""#,
            r#""""#,
            r#""items""#,
        ][..],
    )
}

fn blank() -> impl Strategy<Value = &'static str> {
    select(&["", " ", "\n", "\t \r\n"][..])
}

fn kept(key: &str, (written, left): &Written) -> Written {
    (format!("{key} :\n{written}"), format!("{key}:{left}"))
}

/// Parts between brackets. A part of which nothing is left has no comma either.
fn joined(open: char, parts: Vec<Written>, close: char) -> Written {
    let (written, left): (Vec<String>, Vec<String>) = parts.into_iter().unzip();
    let left: Vec<String> = left.into_iter().filter(|it| !it.is_empty()).collect();
    (
        format!("{open} {} {close}", written.join(" ,\t")),
        format!("{open}{}{close}", left.join(",")),
    )
}

/// A title that repeats `name` in one of the usual ways.
fn repeated(name: &str) -> Vec<String> {
    let spaced = name.replace('_', " ");
    vec![name.to_owned(), spaced.to_uppercase(), spaced]
}

/// A schema, down to some depth, for the property `name` if it has one.
fn schema(name: Option<&str>, depth: u32) -> BoxedStrategy<Written> {
    let other = r#""title" : "something else""#.to_owned();
    let left = other.replace(" : ", ":");
    let mut titles = vec![
        Just((other, left)).boxed(),
        value()
            .prop_map(|it| kept(r#""title""#, &joined('[', vec![it], ']')))
            .boxed(),
    ];
    if let Some(name) = name {
        let keys = select(&[r#""title""#, r#""t\u0069tle" "#][..]);
        let title = (keys, select(repeated(name)));
        titles.push(
            title
                .prop_map(|(key, title)| (format!("{key}:\"{title}\""), String::new()))
                .boxed(),
        );
    }
    let title = proptest::strategy::Union::new(titles);
    let dialect = value().prop_map(|it| (format!(r#""$schema" : {}"#, it.0), String::new()));
    let data = select(&["enum", "const", "default", "examples", "x-y", "type"][..]);
    let data = (data, value()).prop_map(|(key, it)| kept(&format!(r#""{key}""#), &it));
    let mut members = vec![dialect.boxed(), data.boxed()];
    if depth > 0 {
        members.push(subschemas(depth - 1).boxed());
        members.push(properties(depth - 1).boxed());
    }
    let members = vec(proptest::strategy::Union::new(members), 0..5);
    (proptest::option::of(title), members, blank())
        .prop_map(|(title, mut members, blank)| {
            members.extend(title);
            let (written, left) = joined('{', members, '}');
            (format!("{blank}{written}{blank}"), left)
        })
        .boxed()
}

fn subschemas(depth: u32) -> impl Strategy<Value = Written> {
    let keys = select(&["items", "not", "additionalProperties", "if"][..]);
    let single =
        (keys, schema(None, depth)).prop_map(|(key, it)| kept(&format!(r#""{key}""#), &it));
    let keys = select(&["allOf", "anyOf", "oneOf", "prefixItems"][..]);
    let several = (keys, vec(schema(None, depth), 0..3))
        .prop_map(|(key, all)| kept(&format!(r#""{key}""#), &joined('[', all, ']')));
    prop_oneof![single, several]
}

fn properties(depth: u32) -> impl Strategy<Value = Written> {
    let names = select(&["title", "$schema", "max_count", "properties", "x"][..]);
    let property = names.prop_flat_map(move |name| {
        schema(Some(name), depth).prop_map(move |it| kept(&format!(r#""{name}""#), &it))
    });
    let keys = select(&["properties", "$defs", "definitions"][..]);
    (keys, vec(property, 0..4))
        .prop_map(|(key, all)| kept(&format!(r#""{key}""#), &joined('{', all, '}')))
}

proptest! {
    #[test]
    fn nothing_else_is_changed((written, left) in schema(Some("read_file"), 3)) {
        prop_assert_eq!(compact(&written), left);
    }

    #[test]
    fn any_value_stays_valid_and_is_not_changed_twice((written, _) in value()) {
        let once = compact(&written);
        prop_assert!(RawJson::parse(&once.clone().into()).is_ok());
        prop_assert_eq!(compact(&once), once);
    }
}
