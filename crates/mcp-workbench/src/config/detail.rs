//! The levels of detail in which tools are listed.

use schemars::JsonSchema;

use super::{
    problems::ValueFault,
    raw::{Node, Reader},
};
use crate::near::nearest;

/// How much a list says of each tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub enum Detail {
    Names,
    /// Its name and what it does, in a sentence.
    Brief,
    /// Its name, its typed parameters and what it does.
    Signature,
    /// Its name, its description and its input schema.
    Compact,
    /// Everything that its server says of it.
    Full,
}

impl Detail {
    /// All of them, from the least to the most.
    pub(crate) const ALL: [Self; 5] = [
        Self::Names,
        Self::Brief,
        Self::Signature,
        Self::Compact,
        Self::Full,
    ];

    /// The words for them, in the same order.
    pub(crate) const WORDS: &'static [&'static str] =
        &["names", "brief", "signature", "compact", "full"];

    /// Returns the word for it.
    pub(crate) fn word(self) -> &'static str {
        Self::WORDS[self as usize]
    }

    /// Reads a level from a configuration.
    pub(super) fn read(reader: &mut Reader<'_>, node: &Node<'_>) -> Option<Self> {
        let found = reader.text(node)?.written;
        let place = Self::WORDS.iter().position(|word| *word == found);
        if place.is_none() {
            let fault = ValueFault::UnknownWord {
                near: nearest(&found, Self::WORDS.iter().copied()),
                found,
                known: Self::WORDS,
            };
            reader.report_value(node, fault);
        }
        place.map(|place| Self::ALL[place])
    }
}
