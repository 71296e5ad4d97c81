//! The length limit for our texts, so that every client shows them whole.

/// The maximum length of a text: clients silently cut descriptions and instructions at 2,048 characters.
pub const MAX_CHARACTERS: usize = 2000;

/// Counts characters as the strictest clients do.
pub(super) fn size(text: &str) -> usize {
    text.encode_utf16().count()
}
