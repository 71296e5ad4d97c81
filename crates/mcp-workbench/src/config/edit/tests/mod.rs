//! What edits do to a text, and what they leave alone.

mod properties;
mod toolboxes;
mod writing;
