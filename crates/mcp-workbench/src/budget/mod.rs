//! Results that are over a budget of characters: measuring them, cutting them so that a head and a tail are left, and
//! the pages in which the whole is read. Nothing is kept here and nobody is asked: who keeps a whole result, and what a
//! reader is told, is decided elsewhere.
//!
//! What is measured and shown is what a model reads: texts as they are meant, not as JSON writes them. What cannot be
//! shown in part (images, sound, other data) is passed on and counts nothing; links and what we do not know are shown
//! whole or not at all.

mod address;
mod cut;
mod pages;
mod reading;

pub(crate) use address::{Address, View, is_address};
pub(crate) use cut::{Cut, Structured};
pub(crate) use pages::{Pages, Syntax};

#[cfg(test)]
mod tests;
