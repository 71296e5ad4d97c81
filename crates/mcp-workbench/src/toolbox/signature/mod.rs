//! A tool on one line, for a model that pays for every word: its typed parameters and the first sentence of its
//! description. Whatever a server sends as a schema, the line is one line, its length is bounded, and no parameter
//! that a call must have is missing from it.

mod name;
mod schema;
mod sentence;
mod write;

pub(crate) use name::shown_name;
pub(crate) use sentence::{sentence, sentence_of};

use crate::wire::RawJson;

/// The parameters of a tool with their types in parentheses, by its definition.
pub(crate) fn parameters(definition: &RawJson) -> String {
    let schema = definition.member("inputSchema");
    write::parameters(&schema::read(schema.as_ref()))
}

#[cfg(test)]
mod tests;
