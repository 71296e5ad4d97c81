//! The canonical form of definitions, and its SHA-256. It follows RFC 8785 except for numbers, which stay as they were
//! sent: object members in the order of their keys' UTF-16 units, no white space, and strings with the fewest escapes.

use std::{borrow::Cow, cmp::Ordering, fmt, ops::Range};

use rawjson::{Cursor, Kind, RawJson};

use crate::sha256::{Sha256, hexadecimal};

/// The prefix of a digest as text.
const PREFIX: &str = "sha256-";

/// A SHA-256 digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    /// Returns the digest of some bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes))
    }

    /// Returns the digest of a finished hash.
    pub(super) fn finish(hash: Sha256) -> Self {
        Self(hash.finish())
    }

    pub fn parse(text: &str) -> Option<Self> {
        let (pairs, rest) = text.strip_prefix(PREFIX)?.as_bytes().as_chunks();
        let pairs: &[[u8; 2]; 32] = pairs.try_into().ok().filter(|_| rest.is_empty())?;
        let mut bytes = [0; 32];
        for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
            *byte = digit(*high)? << 4 | digit(*low)?;
        }
        Some(Self(bytes))
    }

    /// Returns the digits without the prefix.
    pub(super) fn digits(&self) -> String {
        hexadecimal(&self.0)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}", self.digits())
    }
}

/// Returns the value of a lower-case hexadecimal digit.
fn digit(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

/// Returns the canonical form of a value.
pub(crate) fn canonical(value: &RawJson) -> String {
    let mut text = Vec::with_capacity(value.as_bytes().len());
    if write_at(&mut text, &mut Cursor::new(value)).is_none() {
        // A key is written with escapes.
        text.clear();
        write(&mut text, value);
    }
    String::from_utf8(text).expect("made of valid JSON")
}

/// Writes the value at a cursor in one pass over the text. Returns `None` if a key is written with escapes.
fn write_at(text: &mut Vec<u8>, cursor: &mut Cursor<'_>) -> Option<()> {
    match cursor.kind()? {
        Kind::Object => write_members_at(text, cursor)?,
        Kind::Array => {
            text.push(b'[');
            let begin = text.len();
            cursor.elements(|cursor| {
                write_at(text, cursor)?;
                text.push(b',');
                Some(())
            })?;
            close(text, begin, b']');
        }
        Kind::String => match cursor.any_text()? {
            // The string has no escapes and needs none.
            Cow::Borrowed(string) => write_plain(text, string.as_bytes()),
            Cow::Owned(string) => write_string(text, &string),
        },
        Kind::Null | Kind::Boolean | Kind::Number => text.extend_from_slice(cursor.written()?),
    }
    Some(())
}

/// Writes the members in their order, and sorts them by key afterwards if they are not sorted.
fn write_members_at(text: &mut Vec<u8>, cursor: &mut Cursor<'_>) -> Option<()> {
    text.push(b'{');
    let begin = text.len();
    let mut members: Vec<(&[u8], Range<usize>)> = Vec::new();
    cursor.members(|cursor, key| {
        let at = text.len();
        write_plain(text, key);
        text.push(b':');
        write_at(text, cursor)?;
        text.push(b',');
        members.push((key, at - begin..text.len() - begin));
        Some(())
    })?;
    if !members.is_sorted_by(|a, b| order(a.0, b.0).is_le()) {
        // A stable sort: members with the same key keep their order, as in `write_object`.
        members.sort_by(|a, b| order(a.0, b.0));
        let written = text.split_off(begin);
        for (_, place) in members {
            text.extend_from_slice(&written[place]);
        }
    }
    close(text, begin, b'}');
    Some(())
}

/// Closes the array or object that begins there. Each of its parts ends with a comma.
fn close(text: &mut Vec<u8>, begin: usize, end: u8) {
    if text.len() > begin {
        text.pop();
    }
    text.push(end);
}

/// Compares two keys by their UTF-16 units. For ASCII that is the order of their bytes.
fn order(a: &[u8], b: &[u8]) -> Ordering {
    if a.is_ascii() && b.is_ascii() {
        return a.cmp(b);
    }
    // As UTF-16, characters beyond U+FFFF come before U+E000, which is not the order of their bytes.
    let units = |key| String::from_utf8_lossy(key).encode_utf16().collect();
    let (a, b): (Vec<u16>, Vec<u16>) = (units(a), units(b));
    a.cmp(&b)
}

fn write_plain(text: &mut Vec<u8>, string: &[u8]) {
    text.push(b'"');
    text.extend_from_slice(string);
    text.push(b'"');
}

fn write(text: &mut Vec<u8>, value: &RawJson) {
    match value.kind() {
        Kind::Object => write_object(text, value),
        Kind::Array => {
            text.push(b'[');
            for (index, element) in value.elements().unwrap_or_default().iter().enumerate() {
                if index > 0 {
                    text.push(b',');
                }
                write(text, element);
            }
            text.push(b']');
        }
        Kind::String => write_string(text, &value.as_text().unwrap_or_default()),
        Kind::Null | Kind::Boolean | Kind::Number => text.extend_from_slice(value.as_bytes()),
    }
}

/// Writes an object. Members with the same key keep their order, because a reader may use either.
fn write_object(text: &mut Vec<u8>, value: &RawJson) {
    let mut members = value.members().unwrap_or_default();
    members.sort_by(|a, b| a.key.encode_utf16().cmp(b.key.encode_utf16()));
    text.push(b'{');
    for (index, member) in members.iter().enumerate() {
        if index > 0 {
            text.push(b',');
        }
        write_string(text, &member.key);
        text.push(b':');
        write(text, &member.value);
    }
    text.push(b'}');
}

fn write_string(text: &mut Vec<u8>, string: &str) {
    serde_json::to_writer(text, string).expect("writing a string to memory cannot fail");
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use proptest::prelude::*;
    use serde_json::{Map, Value};

    use super::*;

    fn form(text: &str) -> String {
        canonical(&RawJson::parse(&Bytes::copy_from_slice(text.as_bytes())).unwrap())
    }

    #[test]
    fn only_the_content_of_a_definition_counts() {
        let same = [
            r#"{"name":"a","inputSchema":{"type":"object","default":1.0}}"#,
            "{ \"inputSchema\" : {\"default\":1.0,\n\t\"type\":\"object\"}, \"name\" : \"\\u0061\" }",
        ];
        assert_eq!(form(same[0]), form(same[1]));
        let different = [
            r#"{"name":"a","inputSchema":{"type":"object","default":1}}"#,
            r#"{"name":"a","inputSchema":{"type":"object","default":"1.0"}}"#,
            r#"{"name":"a","inputSchema":{"type":"object","default":1.0},"annotations":{}}"#,
            r#"{"name":"a ","inputSchema":{"type":"object","default":1.0}}"#,
        ];
        for other in different {
            assert_ne!(form(same[0]), form(other));
        }
    }

    #[test]
    fn keys_are_in_the_order_of_their_utf16_units() {
        // The example of RFC 8785, section 3.2.3.
        let text = r#"{"\u20ac":1,"\r":2,"\ufb33":3,"1":4,"\ud83d\ude00":5,"\u0080":6,"\u00f6":7}"#;
        let expected = "{\"\\r\":2,\"1\":4,\"\u{80}\":6,\"ö\":7,\"€\":1,\"😀\":5,\"\u{fb33}\":3}";
        assert_eq!(form(text), expected);
        assert_eq!(
            form(r#"{"b":[2,{"d":1,"c":0}],"a":"/\/\u001f"}"#),
            "{\"a\":\"//\\u001f\",\"b\":[2,{\"c\":0,\"d\":1}]}"
        );
        assert_ne!(form(r#"{"a":1,"a":2}"#), form(r#"{"a":2,"a":1}"#));
    }

    #[test]
    fn a_digest_is_parsed_back() {
        let digest = Digest::of(b"abc");
        let text = "sha256-ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(digest.to_string(), text);
        assert_eq!(Digest::parse(text), Some(digest));
        for wrong in [
            "",
            "sha256-",
            &text[7..],
            &text.to_uppercase(),
            &format!("{text}0"),
        ] {
            assert_eq!(Digest::parse(wrong), None, "{wrong}");
        }
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            ".{0,4}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::vec((".{0,3}", inner), 0..4)
                    .prop_map(|it| Value::Object(it.into_iter().collect())),
            ]
        })
    }

    /// Returns the value with the members of all objects in reverse order.
    fn reversed(value: &Value) -> Value {
        match value {
            Value::Object(members) => {
                let members = members.iter().rev();
                let members = members.map(|(key, value)| (key.clone(), reversed(value)));
                Value::Object(members.collect::<Map<_, _>>())
            }
            Value::Array(elements) => elements.iter().map(reversed).collect(),
            other => other.clone(),
        }
    }

    proptest! {
        #[test]
        fn fast_and_slow_canonicalization_agree(value in values()) {
            let text = serde_json::to_string_pretty(&value).unwrap();
            let value = RawJson::parse(&Bytes::from(text.into_bytes())).unwrap();
            let mut slow = Vec::new();
            write(&mut slow, &value);
            prop_assert_eq!(canonical(&value).into_bytes(), slow);
        }

        #[test]
        fn order_and_white_space_do_not_count_and_everything_else_does(a in values(), b in values()) {
            let plain = form(&a.to_string());
            prop_assert_eq!(&form(&serde_json::to_string_pretty(&reversed(&a)).unwrap()), &plain);
            prop_assert_eq!(form(&plain), plain.clone());
            prop_assert_eq!(form(&b.to_string()) == plain, a == b);
        }
    }
}
