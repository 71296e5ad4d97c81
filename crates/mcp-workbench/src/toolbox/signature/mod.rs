//! Describes a tool on one line, for a model that pays for every word: its typed parameters and the first sentence of
//! its description. Whatever a server sends as a schema, the output is one line of bounded length that contains every
//! required parameter.

mod name;
mod schema;
mod sentence;
mod write;

pub(crate) use name::shown_name;
pub(crate) use sentence::{sentence, sentence_of};

use rawjson::RawJson;

/// Returns the parameters of a tool with their types, in parentheses.
pub(crate) fn parameters(definition: &RawJson) -> String {
    let schema = definition.member("inputSchema");
    write::parameters(&schema::read(schema.as_ref()))
}

#[cfg(test)]
mod tests;
