//! What edits do to a text, and what they leave alone.

mod toolboxes;
mod writing;
