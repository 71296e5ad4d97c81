//! How long a text of ours may be, so that every client shows it whole.

/// The most characters of a text: clients cut descriptions and instructions at 2,048 without a word.
pub const MAX_CHARACTERS: usize = 2000;

/// Characters as the strictest clients count them.
pub(super) fn size(text: &str) -> usize {
    text.encode_utf16().count()
}
