//! A text in pages of a bounded number of characters. The joined pages are the text again, byte for byte.

use memchr::{memchr, memrchr};

/// The syntax of a text, which decides where it may be cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Syntax {
    /// Plain text is cut between characters, preferably after the end of a line.
    Plain,
    /// JSON is cut between characters, but not within an escape.
    Json,
}

/// The positions at which the pages of a text begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pages {
    starts: Vec<usize>,
}

impl Pages {
    /// Divides a text into pages of at most `characters` each. An empty text has one page.
    pub(crate) fn of(text: &str, characters: usize, syntax: Syntax) -> Self {
        let first = end(text, characters, syntax);
        Self::after(text, first, characters, syntax)
    }

    /// Divides a text into pages, the first of which ends at `first`.
    pub(crate) fn after(text: &str, first: usize, characters: usize, syntax: Syntax) -> Self {
        let mut starts = vec![0];
        let mut at = first;
        while at < text.len() {
            starts.push(at);
            at += end(&text[at..], characters, syntax);
        }
        starts.shrink_to_fit();
        Self { starts }
    }

    /// Returns the end of the first page of the text that was divided.
    pub(crate) fn first_end(&self, text: &str) -> usize {
        self.starts.get(1).copied().unwrap_or(text.len())
    }

    pub(crate) fn count(&self) -> usize {
        self.starts.len()
    }

    /// Returns a page of the text that was divided, counted from 1.
    pub(crate) fn page<'t>(&self, text: &'t str, page: usize) -> Option<&'t str> {
        let index = page.checked_sub(1)?;
        let start = *self.starts.get(index)?;
        let end = self.starts.get(index + 1).copied();
        text.get(start..end.unwrap_or(text.len()))
    }

    /// Returns the page that contains a byte of the text, counted from 1.
    pub(crate) fn page_at(&self, at: usize) -> usize {
        self.starts.partition_point(|start| *start <= at)
    }

    /// Returns the memory that the positions take, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.starts.capacity() * size_of::<usize>()
    }
}

/// Returns the end of the first page of a text.
fn end(text: &str, characters: usize, syntax: Syntax) -> usize {
    match syntax {
        Syntax::Plain => head_end(text, characters),
        Syntax::Json => json_end(text, characters),
    }
}

/// Returns the end of a head of at most this many characters: after the end of a line, if there is one in its last
/// quarter.
pub(super) fn head_end(text: &str, characters: usize) -> usize {
    let Some((end, _)) = text.char_indices().nth(characters) else {
        return text.len();
    };
    // A line end before this would make the page much shorter than it may be.
    let quarter = end - end / 4;
    match memrchr(b'\n', &text.as_bytes()[quarter..end]) {
        Some(line_end) => quarter + line_end + 1,
        // A page must not be empty, so a text that starts with `\r\n` may be split there.
        None if splits_line_end(text, end) && end > 1 => end - 1,
        None => end,
    }
}

/// Returns the start of a tail of at most this many characters: after the end of a line, if there is one in its first
/// quarter.
pub(super) fn tail_start(text: &str, characters: usize) -> usize {
    let Some(last) = characters.checked_sub(1) else {
        return text.len();
    };
    let Some((start, _)) = text.char_indices().nth_back(last) else {
        return 0;
    };
    let quarter = start + (text.len() - start) / 4;
    match memchr(b'\n', &text.as_bytes()[start..quarter]) {
        Some(line_end) => start + line_end + 1,
        None if splits_line_end(text, start) => start + 1,
        None => start,
    }
}

/// Returns whether a position is in the middle of `\r\n`.
fn splits_line_end(text: &str, at: usize) -> bool {
    text[..at].ends_with('\r') && text[at..].starts_with('\n')
}

/// Returns the end of a page of JSON. A backslash occurs only in strings, where it begins an escape.
fn json_end(text: &str, characters: usize) -> usize {
    let (mut at, mut left) = (0, characters);
    while at < text.len() {
        let (bytes, taken) = unit(&text[at..]);
        // A page has at least one unit, even if that is longer than a page, so that the loop ends.
        if taken > left && at > 0 {
            return at;
        }
        at += bytes;
        left = left.saturating_sub(taken);
    }
    text.len()
}

/// Returns the length, in bytes and in characters, of the shortest piece at the beginning of a JSON text that must
/// not be split.
fn unit(text: &str) -> (usize, usize) {
    let bytes = text.as_bytes();
    let length = match bytes {
        // Two escapes that are one character.
        [b'\\', b'u', ..] if is_high_surrogate(bytes) && bytes.get(6) == Some(&b'\\') => 12,
        [b'\\', b'u', ..] => 6,
        [b'\\', ..] => 2,
        _ => 1,
    };
    match text.get(..length) {
        Some(unit) if unit.is_ascii() => (length, length),
        _ => (text.chars().next().map_or(1, char::len_utf8), 1),
    }
}

/// Returns whether an escape is the first half of a surrogate pair. Lone halves have already been repaired.
fn is_high_surrogate(escape: &[u8]) -> bool {
    matches!(
        escape,
        [
            _,
            _,
            b'd' | b'D',
            b'8'..=b'9' | b'a' | b'b' | b'A' | b'B',
            ..
        ]
    )
}
