//! The parameter `detail` of the meta-tools that show tools.

use serde_json::{Value, json};

use super::parameters::{Key, ParameterProblem, ParameterReader};
use crate::config::Detail;

pub(super) const DETAIL: Key = Key {
    name: "detail",
    path: "detail",
};

pub(super) fn detail_schema(usual: Detail) -> Value {
    json!({ "enum": Detail::WORDS, "default": usual.word() })
}

/// Reads the value, if it is present.
pub(super) fn read_detail(
    reader: &ParameterReader,
    problems: &mut Vec<ParameterProblem>,
) -> Option<Detail> {
    let place = reader.word(&DETAIL, Detail::WORDS, problems)?;
    Some(Detail::ALL[place])
}
