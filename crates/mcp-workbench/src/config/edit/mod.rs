//! Edits the configuration file in place, as a careful person would: comments, order, unknown keys, layout, line
//! breaks and a BOM are preserved.
//!
//! [`JsoncText`] is any JSON with comments. A change is computed on the syntax tree as a few replaced parts of the
//! text, so that everything else keeps its bytes. [`ConfigText`] knows the toolboxes and servers in it.
//! [`write_atomically`] and the functions beside it write a text to disk whole or not at all.

mod error;
mod render;
mod splice;
mod style;
mod text;
mod toolboxes;
mod trivia;
mod write;

pub(crate) use self::{
    error::EditError,
    text::JsoncText,
    toolboxes::ConfigText,
    write::{WriteError, create_new, replace_unchanged, write_atomically},
};

#[cfg(test)]
mod tests;
