//! Results of which a client gets a part: those over a budget of characters are measured, cut to a head and a tail, and
//! divided into pages; of others a filter selects a part. This module stores nothing and asks nobody. The workbench
//! decides how long a whole result is stored, and writes the note for the reader.
//!
//! It measures and shows what a model reads: decoded texts, not their JSON notation. Contents that cannot be shown in
//! part (images, audio, other data) are passed on and do not count. Links and unknown contents are shown whole or not
//! at all.

mod address;
mod cut;
mod pages;
mod reading;
mod selection;

pub(crate) use address::{Address, View, is_address};
pub(crate) use cut::{Cut, Structured};
pub(crate) use pages::{Pages, Syntax};
pub(crate) use reading::MetaMember;
pub(crate) use selection::{NotSelectable, SelectableResult, with_remark};

#[cfg(test)]
mod tests;
