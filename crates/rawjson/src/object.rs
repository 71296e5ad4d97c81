//! Objects that are written member by member.

use serde::Serialize;

use crate::{Member, RawJson, blocks::plain_length};

/// Capacity for the members that most objects have besides relayed values.
const USUAL_BYTES: usize = 96;

/// A JSON object that is written member by member, with relayed values among ours.
#[derive(Debug, Clone)]
pub struct ObjectText(Vec<u8>);

impl ObjectText {
    pub fn new() -> Self {
        Self::with_room(0)
    }

    /// Creates an object without members, with capacity for `bytes` of values.
    pub fn with_room(bytes: usize) -> Self {
        let mut text = Vec::with_capacity(USUAL_BYTES + bytes);
        text.push(b'{');
        Self(text)
    }

    /// Adds a member that is relayed with its key.
    #[must_use]
    pub fn relay(mut self, member: &Member<'_>) -> Self {
        self.separate();
        self.0.extend_from_slice(member.key_as_sent);
        self.0.push(b':');
        self.0.extend_from_slice(member.value.as_bytes());
        self
    }

    /// Adds a member whose value is relayed.
    #[must_use]
    pub fn raw(mut self, key: &str, value: &RawJson) -> Self {
        self.key(key);
        self.0.extend_from_slice(value.as_bytes());
        self
    }

    /// Adds a member whose value is ours.
    #[must_use]
    pub fn member(mut self, key: &str, value: &(impl Serialize + ?Sized)) -> Self {
        self.key(key);
        write_json(&mut self.0, value);
        self
    }

    /// Adds a member with an array of relayed values.
    #[must_use]
    pub fn array(mut self, key: &str, elements: &[RawJson]) -> Self {
        self.key(key);
        self.0.push(b'[');
        for (index, element) in elements.iter().enumerate() {
            if index > 0 {
                self.0.push(b',');
            }
            self.0.extend_from_slice(element.as_bytes());
        }
        self.0.push(b']');
        self
    }

    pub fn finish(mut self) -> RawJson {
        self.0.push(b'}');
        RawJson::trusted(self.0.into())
    }

    fn separate(&mut self) {
        if self.0.len() > 1 {
            self.0.push(b',');
        }
    }

    fn key(&mut self, key: &str) {
        self.separate();
        write_string(&mut self.0, key);
        self.0.push(b':');
    }
}

impl Default for ObjectText {
    fn default() -> Self {
        Self::new()
    }
}

/// Appends a string.
pub fn write_string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    write_escaped(out, text);
    out.push(b'"');
}

/// Appends the text of a string without its quotes, so that one string can be written in parts.
pub fn write_escaped(out: &mut Vec<u8>, text: &str) {
    let mut rest = text.as_bytes();
    loop {
        let (plain, special) = rest.split_at(plain_length(rest));
        out.extend_from_slice(plain);
        let Some((byte, behind)) = special.split_first() else {
            return;
        };
        match byte {
            b'"' => out.extend_from_slice(br#"\""#),
            b'\\' => out.extend_from_slice(br"\\"),
            b'\n' => out.extend_from_slice(br"\n"),
            b'\r' => out.extend_from_slice(br"\r"),
            b'\t' => out.extend_from_slice(br"\t"),
            0x08 => out.extend_from_slice(br"\b"),
            0x0c => out.extend_from_slice(br"\f"),
            _ => {
                let digit = |value: u8| b"0123456789abcdef"[usize::from(value)];
                out.extend_from_slice(br"\u00");
                out.extend([digit(byte >> 4), digit(byte & 0xf)]);
            }
        }
        rest = behind;
    }
}

pub fn write_json(out: &mut Vec<u8>, value: &(impl Serialize + ?Sized)) {
    serde_json::to_writer(out, value).expect("writing our own values to memory cannot fail");
}
