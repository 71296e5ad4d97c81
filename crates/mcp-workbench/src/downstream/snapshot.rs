//! The snapshot of a server: its description of itself and its tools, from this run or an earlier one. Tool lists are
//! made from it. It is neither filtered nor checked, so changed rules do not require a restart of the server.

use bytes::Bytes;
use rawjson::{ObjectText, RawJson};
use serde::{Deserialize, Serialize};

use super::introduction::Introduction;
use crate::{
    era::{CacheHints, Era},
    server_cache::EraWord,
};

/// The text between the head and the definitions. The definitions may be large and are copied only once.
const TOOLS: &[u8] = b",\"tools\":[";

/// Everything that is read from a server before its first call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServerSnapshot {
    pub(crate) era: Era,
    pub(crate) introduction: Introduction,
    /// The definitions of its tools, unchanged.
    pub(crate) definitions: Vec<RawJson>,
    pub(crate) notices: Vec<String>,
    /// The bound at which reading the list stopped, with the number of tools that fit.
    pub(crate) incomplete: Option<String>,
    pub(crate) hints: CacheHints,
}

/// The parts before the definitions.
#[derive(Serialize, Deserialize)]
struct Head {
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

    /// Returns the snapshot as JSON for the cache.
    pub(crate) fn to_json(&self) -> RawJson {
        let head = Head {
            era: self.era,
            introduction: self.introduction.clone(),
            notices: self.notices.clone(),
            incomplete: self.incomplete.clone(),
        };
        let hints = self.hints.put_on(&ObjectText::new().finish());
        let head = ObjectText::new()
            .member("head", &head)
            .raw("hints", &hints)
            .finish();
        // The definitions are appended to the text of the head. As members of a JSON value they would be copied
        // twice.
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
        RawJson::parse(&Bytes::from(text)).expect("made of JSON")
    }

    /// Parses such JSON; returns `None` if it is something else.
    pub(crate) fn from_json(json: &RawJson) -> Option<Self> {
        let members = json.members()?;
        let member = |name: &str| Some(&members.iter().find(|it| it.key == name)?.value);
        let head: Head = serde_json::from_str(member("head")?.as_str()).ok()?;
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
