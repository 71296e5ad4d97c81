//! JSON text as bytes, for programs that relay it. A text is checked in one scan ([`Scanner`], [`RawJson::parse`]), read as
//! slices of the buffer it arrived in ([`RawJson`], [`Cursor`]), changed by splicing ([`ObjectText`], [`Insertion`], [`Spliced`])
//! and repaired inside strings ([`repair`]). Nothing is built and written again, so every byte that is not changed on
//! purpose stays as it was sent: the order of members, duplicate keys, white space, escapes and the digits of numbers.
//!
//! Every scan is bounded: it is iterative, visits each byte once and nests at most [`MAX_DEPTH`] levels.

mod blocks;
mod checked;
mod cursor;
mod json;
mod object;
pub mod repair;
mod scan;
mod splice;
mod string;

pub use checked::CheckedPart;
pub use cursor::Cursor;
pub use json::{
    Insertion, Key, Kind, Member, RawJson, Span, unescape, walk_elements, walk_members,
};
pub use object::{ObjectText, write_escaped, write_json, write_string};
pub use scan::{Flaws, MAX_DEPTH, ScanError, ScanFault, Scanner};
pub use splice::Spliced;

#[cfg(test)]
pub mod tests;
