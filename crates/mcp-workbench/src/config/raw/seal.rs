//! Reads `seal` of the file.

#[cfg(test)]
use schemars::JsonSchema;

use super::{
    file::unknown_key,
    keys::SEAL_KEYS,
    reader::{Node, Reader, is_null},
    types::Text,
};
use crate::config::problems::{KeyFault, KeyScope};

/// The keys that seal what clients and stores hold for the workbench.
#[derive(Debug, Default)]
#[cfg_attr(test, derive(JsonSchema))]
#[cfg_attr(test, schemars(
    rename = "Seal",
    rename_all = "camelCase",
    extend("patternProperties" = {"^_": true}, "additionalProperties" = false, "required" = ["key"])
))]
pub(in crate::config) struct RawSeal {
    /// The key, from a file that only this user can read or from a variable: `${file:seal.key}`, `${SEAL_KEY}`. At
    /// least 32 characters.
    pub(in crate::config) key: Option<Text>,
    /// The key before it, which still opens what it has sealed.
    pub(in crate::config) previous_key: Option<Text>,
}

pub(super) fn seal(reader: &mut Reader<'_>, node: &Node<'_>) -> Option<RawSeal> {
    let mut seal = RawSeal::default();
    for entry in reader.entries(node)?.iter().filter(|it| !is_null(&it.node)) {
        let value = &entry.node;
        match entry.key {
            "key" => seal.key = reader.filled_text(value, "key"),
            "previousKey" => seal.previous_key = reader.filled_text(value, "key"),
            _ => unknown_key(reader, entry, KeyScope::Seal, SEAL_KEYS),
        }
    }
    if seal.key.is_none() {
        reader.report_value(node, KeyFault::Missing { key: "key" });
    }
    Some(seal)
}
