//! The effects of edits on a text, and the parts that they preserve.

mod properties;
mod toolboxes;
mod writing;
