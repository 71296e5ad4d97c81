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

/// Appends a string. Almost none has anything to escape.
pub fn write_string(out: &mut Vec<u8>, text: &str) {
    if plain_length(text.as_bytes()) < text.len() {
        return write_json(out, text);
    }
    out.push(b'"');
    out.extend_from_slice(text.as_bytes());
    out.push(b'"');
}

pub fn write_json(out: &mut Vec<u8>, value: &(impl Serialize + ?Sized)) {
    serde_json::to_writer(out, value).expect("writing our own values to memory cannot fail");
}
