//! Objects in two parts, so that a change at the beginning needs no copy.

use std::borrow::Cow;

use bytes::Bytes;

use crate::RawJson;

/// A JSON object in two parts, so that its beginning can differ from the text that it was read from without a copy.
#[derive(Debug, Clone)]
pub struct Spliced {
    lead: Cow<'static, [u8]>,
    rest: Bytes,
}

impl From<RawJson> for Spliced {
    fn from(value: RawJson) -> Self {
        Self {
            lead: Cow::Borrowed(b""),
            rest: value.into_bytes(),
        }
    }
}

impl Spliced {
    /// Joins two parts, which together must be one object.
    pub fn new(lead: &'static [u8], rest: Bytes) -> Self {
        let lead = Cow::Borrowed(lead);
        Self { lead, rest }
    }

    /// Joins two parts like [`Spliced::new`], and copies the first.
    pub fn joined(lead: &[u8], rest: Bytes) -> Self {
        let lead = Cow::Owned(lead.to_vec());
        Self { lead, rest }
    }

    #[inline]
    pub fn lead(&self) -> &[u8] {
        &self.lead
    }

    #[inline]
    pub fn rest(&self) -> &Bytes {
        &self.rest
    }

    /// Returns the object as one value.
    pub fn to_json(&self) -> RawJson {
        if self.lead.is_empty() {
            return RawJson::trusted(self.rest.clone());
        }
        RawJson::trusted([&self.lead, &self.rest[..]].concat().into())
    }
}
