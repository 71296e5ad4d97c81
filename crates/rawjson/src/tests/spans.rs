//! Looking into values: members, elements, texts, and the compact form.

use bytes::Bytes;
use proptest::prelude::*;
use serde_json::Value;

use crate::{Kind, RawJson};

use super::generate::{clean_string, clean_tokens, gaps, members, odd_tokens, spaced};

fn json(text: &str) -> RawJson {
    RawJson::parse(&Bytes::from(text.to_owned())).unwrap()
}

fn minified(value: &RawJson) -> String {
    let mut out = b"before ".to_vec();
    value.minify_into(&mut out);
    let out = String::from_utf8(out).unwrap();
    out.strip_prefix("before ").unwrap().to_owned()
}

/// Values that serde writes and reads without a loss.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((any::<String>(), inner), 0..5)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn members_come_byte_for_byte_and_in_order(members in members(), gaps in gaps()) {
        let mut tokens = vec!["{".to_owned()];
        for (index, (key, value)) in members.iter().enumerate() {
            if index > 0 {
                tokens.push(",".to_owned());
            }
            tokens.extend([key.clone(), ":".to_owned(), value.clone()]);
        }
        tokens.push("}".to_owned());
        let object = json(&spaced(&tokens, &gaps));
        let found = object.members().unwrap();
        let sent: Vec<(String, String)> = found
            .iter()
            .map(|it| (String::from_utf8(it.key_as_sent.to_vec()).unwrap(), it.value.as_str().to_owned()))
            .collect();
        prop_assert_eq!(&sent, &members);
        for member in &found {
            let key: String = serde_json::from_slice(member.key_as_sent).unwrap();
            prop_assert_eq!(&member.key, &key);
            let first = found.iter().find(|it| it.key == member.key).unwrap();
            prop_assert_eq!(object.member(&member.key).unwrap(), first.value.clone());
        }
    }

    #[test]
    fn elements_come_byte_for_byte_and_in_order(
        elements in prop::collection::vec(clean_tokens(), 0..6),
        gaps in gaps(),
    ) {
        let elements: Vec<String> = elements.iter().map(|it| it.concat()).collect();
        let mut tokens = vec!["[".to_owned()];
        for (index, element) in elements.iter().enumerate() {
            if index > 0 {
                tokens.push(",".to_owned());
            }
            tokens.push(element.clone());
        }
        tokens.push("]".to_owned());
        let array = json(&spaced(&tokens, &gaps));
        let found: Vec<String> = array
            .elements()
            .unwrap()
            .iter()
            .map(|it| it.as_str().to_owned())
            .collect();
        prop_assert_eq!(found, elements);
    }

    #[test]
    fn the_compact_form_has_every_token_and_nothing_between(
        tokens in odd_tokens(),
        gaps in gaps(),
    ) {
        let compact = minified(&json(&spaced(&tokens, &gaps)));
        prop_assert_eq!(&compact, &tokens.concat());
        prop_assert_eq!(minified(&json(&compact)), compact);
    }

    #[test]
    fn the_compact_form_is_that_of_serde(value in value()) {
        let pretty = serde_json::to_string_pretty(&value).unwrap();
        prop_assert_eq!(minified(&json(&pretty)), value.to_string());
    }

    #[test]
    fn the_text_of_a_string_is_what_serde_reads(quoted in clean_string()) {
        let expected: String = serde_json::from_str(&quoted).unwrap();
        let value = json(&quoted);
        prop_assert_eq!(value.as_text().unwrap(), expected);
    }

    #[test]
    fn composed_values_are_read_back(value in value()) {
        let raw = RawJson::of(&value);
        prop_assert_eq!(&serde_json::from_slice::<Value>(raw.as_bytes()).unwrap(), &value);
        prop_assert_eq!(json(raw.as_str()), raw);
    }
}

#[test]
fn the_kind_follows_from_the_value() {
    let cases = [
        ("null", Kind::Null, "null"),
        ("true", Kind::Boolean, "boolean"),
        ("false", Kind::Boolean, "boolean"),
        ("-1", Kind::Number, "number"),
        ("1e400", Kind::Number, "number"),
        (r#""""#, Kind::String, "string"),
        (" [ ] ", Kind::Array, "array"),
        (" { } ", Kind::Object, "object"),
    ];
    for (text, kind, name) in cases {
        let value = json(text);
        assert_eq!((value.kind(), kind.name()), (kind, name), "{text}");
        assert_eq!(value.members().is_some(), kind == Kind::Object, "{text}");
        assert_eq!(value.elements().is_some(), kind == Kind::Array, "{text}");
        assert_eq!(value.as_text().is_some(), kind == Kind::String, "{text}");
        assert_eq!(value.is_true(), text == "true", "{text}");
    }
}

#[test]
fn keys_are_compared_after_unescaping() {
    let cases = [
        (r#"{"id":1}"#, "id", Some("1")),
        (r#"{"\u0069d":1}"#, "id", Some("1")),
        (r#"{"\u0069\u0064":1}"#, "id", Some("1")),
        (r#"{"Id":1,"ID":2}"#, "id", None),
        (r#"{"id ":1}"#, "id", None),
        (r#"{"":1}"#, "", Some("1")),
        (r#"{"\"":1}"#, "\"", Some("1")),
        (r#"{"\\u0069d":1}"#, "id", None),
        (r#"{"\/":1}"#, "/", Some("1")),
        (r#"{"\ud83d\ude00":1}"#, "\u{1f600}", Some("1")),
        (r#"{"\ud83d":1}"#, "\u{fffd}", Some("1")),
        (r#"{"a":1,"a":2}"#, "a", Some("1")),
        (r#"{"x":{"a":1}}"#, "a", None),
        (
            r#"{"x":["}","a"],"a":[{"a":2}]}"#,
            "a",
            Some(r#"[{"a":2}]"#),
        ),
    ];
    for (text, key, expected) in cases {
        let found = json(text).member(key);
        assert_eq!(found.as_ref().map(RawJson::as_str), expected, "{text}");
    }
    assert_eq!(json(r#"{"a":1,"\u0061":2}"#).members().unwrap().len(), 2);
}

#[test]
fn lone_surrogates_are_replaced_in_texts() {
    let cases = [
        (r#""\ud800""#, "\u{fffd}"),
        (r#""\udc00\ud800""#, "\u{fffd}\u{fffd}"),
        (r#""\ud800\ud83d\ude00""#, "\u{fffd}\u{1f600}"),
        (r#""\ud83d\ude00\ude00""#, "\u{1f600}\u{fffd}"),
        (r#""\ud800\u0041""#, "\u{fffd}A"),
        (r#""\ud800\n""#, "\u{fffd}\n"),
        (r#""\\ud800""#, r"\ud800"),
        (r#""\uD83D\uDE00""#, "\u{1f600}"),
    ];
    for (text, expected) in cases {
        assert_eq!(json(text).as_text().unwrap(), expected, "{text}");
    }
}

#[test]
fn one_member_is_replaced_and_the_others_are_preserved() {
    let cases = [
        ("{}", r#"{"a":[1]}"#),
        (r#"{"a":1}"#, r#"{"a":[1]}"#),
        (
            r#"{"b": 1e400 , "\u0061" : 2,"c":{ }}"#,
            r#"{"b":1e400,"a":[1],"c":{ }}"#,
        ),
        (r#"{"b":{"a":1}}"#, r#"{"b":{"a":1},"a":[1]}"#),
        (r#"{"A":1}"#, r#"{"A":1,"a":[1]}"#),
    ];
    for (object, expected) in cases {
        assert_eq!(
            json(object).with_member("a", &json("[1]")).as_str(),
            expected
        );
    }
}

#[test]
fn an_array_has_its_elements_unchanged() {
    let elements = ["1.0", r#"{ "a" : 1 }"#, "[]"].map(json);
    let array = RawJson::array(&elements);
    assert_eq!(array.as_str(), r#"[1.0,{ "a" : 1 },[]]"#);
    assert_eq!(array.elements().unwrap(), elements);
    assert_eq!(array.minified().as_str(), r#"[1.0,{"a":1},[]]"#);
    assert_eq!(RawJson::array(&[]).as_str(), "[]");
}

#[test]
fn the_compact_form_keeps_white_space_in_strings_of_any_length() {
    for length in [1, 100, 4096, 100_000] {
        let text = " \\\" ".repeat(length);
        let value = json(&format!("[ \"{text}\" , {{ \"{text}\" : 1 }} ]"));
        assert_eq!(
            minified(&value),
            format!("[\"{text}\",{{\"{text}\":1}}]"),
            "{length}"
        );
    }
}
