//! The levels of detail in which tools are listed.

#[cfg(test)]
use schemars::JsonSchema;

use super::{
    problems::ValueFault,
    raw::{Node, Reader},
};
use crate::near::nearest;

/// The amount of information that a list has of each tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(test, derive(JsonSchema))]
#[cfg_attr(test, schemars(rename_all = "camelCase"))]
pub enum Detail {
    Names,
    /// The name and one sentence of the description.
    Brief,
    /// The name, the typed parameters and one sentence of the description.
    Signature,
    /// The name, the description and the input schema.
    Compact,
    /// The whole definition.
    Full,
}

impl Detail {
    /// All levels, from the least to the most.
    pub(crate) const ALL: [Self; 5] = [
        Self::Names,
        Self::Brief,
        Self::Signature,
        Self::Compact,
        Self::Full,
    ];

    /// Their names, in the same order.
    pub(crate) const WORDS: &'static [&'static str] =
        &["names", "brief", "signature", "compact", "full"];

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
