//! Results that are over a budget of characters: measures them, cuts them to a head and a tail, and divides the whole
//! into pages. This module stores nothing and asks nobody. The workbench decides how long a whole result is stored
//! and the note for the reader.
//!
//! It measures and shows what a model reads: decoded texts, not their JSON notation. Contents that cannot be shown in
//! part (images, audio, other data) are passed on and do not count. Links and unknown contents are shown whole or not
//! at all.

mod address;
mod cut;
mod pages;
mod reading;

pub(crate) use address::{Address, View, is_address};
pub(crate) use cut::{Cut, Structured};
pub(crate) use pages::{Pages, Syntax};

#[cfg(test)]
mod tests;
