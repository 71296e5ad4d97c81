//! What a server has told of itself and its tools: the one thing that lists are made of, whether it was told just now
//! or in an earlier run. Filters and checks are no part of it.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::{introduction::Introduction, verdicts::EraWord};
use crate::{
    era::{CacheHints, Era},
    wire::{ObjectText, RawJson},
};

/// The layout of the text; one of another layout is not read.
const LAYOUT: u32 = 1;

/// What stands between the head and the tools, which may be many and are written without a copy.
const TOOLS: &[u8] = b",\"tools\":[";

/// Everything that was read of a server before its first call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServerSnapshot {
    pub(crate) era: Era,
    /// What it said of itself.
    pub(crate) introduction: Introduction,
    /// The definitions of its tools, as they came.
    pub(crate) definitions: Vec<RawJson>,
    /// What else a reader should know of the list.
    pub(crate) notices: Vec<String>,
    /// The bound at which reading the list stopped, with the number of tools that fit.
    pub(crate) incomplete: Option<String>,
    /// How long the list may be kept, and by whom.
    pub(crate) hints: CacheHints,
}

/// What stands before the tools.
#[derive(Serialize, Deserialize)]
struct Head {
    layout: u32,
    /// What the text is kept under, so that a file under another's name is not taken for that.
    key: String,
    #[serde(with = "EraWord")]
    era: Era,
    introduction: Introduction,
    notices: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    incomplete: Option<String>,
}

impl ServerSnapshot {
    /// Returns the size of all definitions.
    pub(crate) fn bytes(&self) -> usize {
        let definitions = self.definitions.iter();
        definitions.map(|it| it.as_bytes().len()).sum()
    }

    /// All of it as a text to be kept under a key.
    pub(crate) fn to_text(&self, key: &str) -> Vec<u8> {
        let head = Head {
            layout: LAYOUT,
            key: key.to_owned(),
            era: self.era,
            introduction: self.introduction.clone(),
            notices: self.notices.clone(),
            incomplete: self.incomplete.clone(),
        };
        let hints = self.hints.put_on(&ObjectText::new().finish());
        let head = ObjectText::new().member("head", &head).raw("hints", &hints);
        let head = head.finish();
        let head = head
            .as_bytes()
            .strip_suffix(b"}")
            .expect("an object ends so");
        let definitions = self.definitions.iter();
        let length: usize = definitions.map(|it| it.as_bytes().len() + 1).sum();
        let mut text = Vec::with_capacity(head.len() + length + TOOLS.len() + 2);
        text.extend_from_slice(head);
        text.extend_from_slice(TOOLS);
        for (index, definition) in self.definitions.iter().enumerate() {
            if index > 0 {
                text.push(b',');
            }
            text.extend_from_slice(definition.as_bytes());
        }
        text.extend_from_slice(b"]}");
        text
    }

    /// Reads such a text; nothing if it is not one, or is kept under another key.
    pub(crate) fn of_text(text: Vec<u8>, key: &str) -> Option<Self> {
        let text = RawJson::parse(&Bytes::from(text)).ok()?;
        let members = text.members()?;
        let member = |name: &str| Some(&members.iter().find(|it| it.key == name)?.value);
        let head: Head = serde_json::from_str(member("head")?.as_str()).ok()?;
        if head.layout != LAYOUT || head.key != key {
            return None;
        }
        Some(Self {
            era: head.era,
            introduction: head.introduction,
            definitions: member("tools")?.elements()?,
            notices: head.notices,
            incomplete: head.incomplete,
            hints: CacheHints::of(member("hints")?),
        })
    }
}
