//! Finds a text in another and returns each match with the line around it, for readers of a text of many pages.

use std::fmt;

use memchr::{memchr, memmem, memrchr};

/// The number of bytes of the line that are shown on either side of a match.
const CONTEXT_BYTES: usize = 200;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct TextMatch<'t> {
    pub(super) at: usize,
    /// The line, or the part of a long line around the match.
    line: &'t str,
    /// True if the line begins before that part.
    begins_before: bool,
    /// True if the line continues after that part.
    goes_on: bool,
}

impl fmt::Display for TextMatch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = |is_cut: bool| if is_cut { "…" } else { "" };
        let (before, behind) = (mark(self.begins_before), mark(self.goes_on));
        write!(f, "{before}{}{behind}", self.line)
    }
}

/// Returns all matches, except those that an earlier one shows as well. ASCII letters match in both cases.
pub(super) fn text_matches<'t>(text: &'t str, query: &str) -> Vec<TextMatch<'t>> {
    // Only ASCII letters change, so positions in the copy are positions in the text.
    let folded = text.to_ascii_lowercase();
    let query = query.to_ascii_lowercase();
    let mut text_matches = Vec::new();
    let mut shown = 0;
    for at in memmem::find_iter(folded.as_bytes(), query.as_bytes()) {
        if at < shown || !text.is_char_boundary(at) {
            continue;
        }
        let bytes = text.as_bytes();
        let begin = memrchr(b'\n', &bytes[..at]).map_or(0, |end| end + 1);
        let behind = at + query.len();
        let end = memchr(b'\n', &bytes[behind..]).map_or(text.len(), |end| behind + end);
        let start = begin.max(text.floor_char_boundary(at.saturating_sub(CONTEXT_BYTES)));
        let stop = end.min(text.ceil_char_boundary((behind + CONTEXT_BYTES).min(text.len())));
        shown = stop;
        text_matches.push(TextMatch {
            at,
            line: text[start..stop].trim_end_matches('\r'),
            begins_before: start > begin,
            goes_on: stop < end,
        });
    }
    text_matches
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use proptest::prelude::*;

    use super::*;

    fn found(text: &str, query: &str) -> Vec<String> {
        text_matches(text, query)
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn lines_are_shown_once_and_whole() {
        let text = "first Error, error\r\nnothing\nERROR last";
        assert_eq!(found(text, "error"), ["first Error, error", "ERROR last"]);
        assert_eq!(found(text, "nowhere"), [""; 0]);
        assert_eq!(found("grüße", "ÜSS"), [""; 0]);
        assert_eq!(found("a\nb\nc", "a\nb"), ["a\nb"]);
    }

    #[test]
    fn a_long_line_is_cut_around_the_match() {
        let (gap, ends) = ("ü".repeat(300), "ü".repeat(100));
        let text = format!("{gap}x{gap}x{gap}");
        let part = format!("…{ends}x{ends}…");
        assert_eq!(found(&text, "X"), [part.clone(), part]);
    }

    proptest! {
        #[test]
        fn any_text_can_be_searched(text in "(a|b|ü|\r?\n|😀){0,900}", query in "(a|b|ü|\n){1,3}") {
            for place in text_matches(&text, &query) {
                prop_assert!(text[place.at..].to_lowercase().starts_with(&query));
            }
        }
    }
}
