//! The canonical form of definitions, and its SHA-256. It follows RFC 8785 except for numbers, which stay as they were
//! sent: object members in the order of their keys' UTF-16 units, no white space, and strings with the fewest escapes.

use std::{cmp::Ordering, fmt};

use rawjson::{Cursor, Kind, RawJson, unescape};

use crate::sha256::{HEXADECIMAL, Sha256, hexadecimal};

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
        let mut joined = 0;
        for (byte, pair) in bytes.iter_mut().zip(pairs) {
            let [high, low] = pair.map(|digit| DIGIT_VALUES[usize::from(digit)]);
            joined |= high | low;
            *byte = high << 4 | low;
        }
        (joined < 16).then_some(Self(bytes))
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

/// The values of lower-case hexadecimal digits, and 255 for other bytes. The digits of a digest are random, so a branch for
/// each would be predicted wrongly half of the time: that took most of the time in which a lock file was read.
const DIGIT_VALUES: [u8; 256] = {
    let mut values = [u8::MAX; 256];
    let mut value = 0;
    while value < 16 {
        values[HEXADECIMAL[value as usize] as usize] = value;
        value += 1;
    }
    values
};

/// Returns the canonical form of a value.
pub(crate) fn canonical(value: &RawJson) -> String {
    let mut canonical = Canonical::default();
    canonical.write(value);
    String::from_utf8(canonical.text).expect("made of valid JSON")
}

/// Writes canonical forms one after the other, in the same memory: a list may have many thousands.
#[derive(Default)]
pub(super) struct Canonical {
    text: Vec<u8>,
    /// The members of the objects that are open, up to the position.
    members: Vec<WrittenMember>,
    /// The members of an object while they are put into order.
    unsorted: Vec<u8>,
}

/// A member in the text, with its comma.
struct WrittenMember {
    start: usize,
    end: usize,
    /// The end of its key, without the quote.
    key_end: usize,
}

impl Canonical {
    /// Returns the digest of the canonical form of a value.
    pub(super) fn digest(&mut self, value: &RawJson) -> Digest {
        self.write(value);
        Digest::of(&self.text)
    }

    fn write(&mut self, value: &RawJson) {
        self.text.clear();
        self.members.clear();
        self.text.reserve(value.as_bytes().len());
        if self.write_at(&mut Cursor::new(value)).is_none() {
            // A key is written with escapes.
            self.text.clear();
            write(&mut self.text, value);
        }
    }

    /// Writes the value at a cursor in one pass over the text. Returns `None` if a key is written with escapes.
    fn write_at(&mut self, cursor: &mut Cursor<'_>) -> Option<()> {
        match cursor.kind()? {
            Kind::Object => self.write_members_at(cursor)?,
            Kind::Array => {
                self.text.push(b'[');
                let begin = self.text.len();
                cursor.elements(|cursor| {
                    self.write_at(cursor)?;
                    self.text.push(b',');
                    Some(())
                })?;
                self.close(begin, b']');
            }
            Kind::String => match cursor.string()? {
                // It has no escapes and needs none.
                (string, true) => self.text.extend_from_slice(string),
                (string, false) => write_string(&mut self.text, &unescape(string)),
            },
            Kind::Null | Kind::Boolean | Kind::Number => {
                self.text.extend_from_slice(cursor.written()?);
            }
        }
        Some(())
    }

    /// Writes the members in their order, and sorts them by key afterwards if they are not sorted.
    fn write_members_at(&mut self, cursor: &mut Cursor<'_>) -> Option<()> {
        self.text.push(b'{');
        let begin = self.text.len();
        let first = self.members.len();
        cursor.members(|cursor, key| {
            let start = self.text.len();
            write_plain(&mut self.text, key);
            let key_end = self.text.len() - 1;
            self.text.push(b':');
            self.write_at(cursor)?;
            self.text.push(b',');
            self.members.push(WrittenMember {
                start,
                end: self.text.len(),
                key_end,
            });
            Some(())
        })?;
        self.sort_members(first, begin);
        self.members.truncate(first);
        self.close(begin, b'}');
        Some(())
    }

    /// Sorts the members from the number `first` on, whose text begins at `begin`.
    fn sort_members(&mut self, first: usize, begin: usize) {
        let text = &self.text;
        let members = &mut self.members[first..];
        let key = |it: &WrittenMember| &text[it.start + 1..it.key_end];
        if members.is_sorted_by(|a, b| order(key(a), key(b)).is_le()) {
            return;
        }
        // A stable sort: members with the same key keep their order, as in `write_object`.
        members.sort_by(|a, b| order(key(a), key(b)));
        self.unsorted.clear();
        self.unsorted.extend_from_slice(&self.text[begin..]);
        self.text.truncate(begin);
        for member in members {
            let written = &self.unsorted[member.start - begin..member.end - begin];
            self.text.extend_from_slice(written);
        }
    }

    /// Closes the array or object that begins there. Each of its parts ends with a comma.
    fn close(&mut self, begin: usize, end: u8) {
        if self.text.len() > begin {
            self.text.pop();
        }
        self.text.push(end);
    }
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
