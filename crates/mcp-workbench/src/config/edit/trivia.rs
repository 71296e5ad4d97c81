//! The space, line breaks, comments and commas between the values of a JSON text. The text has been parsed, so
//! nothing else can occur there.

use std::ops::Range;

/// A piece of the text between values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Piece {
    Space,
    /// The end of a line.
    Break,
    Comma,
    /// A comment up to the end of its line.
    LineComment,
    BlockComment,
}

/// Splits a part of the text into pieces, with their positions in the whole.
pub(super) fn pieces(text: &str, part: Range<usize>) -> Vec<(Piece, Range<usize>)> {
    let mut found = Vec::new();
    let mut at = part.start;
    while at < part.end {
        let (piece, length) = first_piece(&text[at..part.end]);
        found.push((piece, at..at + length));
        at += length;
    }
    found
}

/// Returns the position of the comma outside of comments in a part of the text.
pub(super) fn comma(text: &str, part: Range<usize>) -> Option<usize> {
    let pieces = pieces(text, part);
    let comma = pieces.iter().find(|(piece, _)| *piece == Piece::Comma);
    comma.map(|(_, range)| range.start)
}

/// Returns the end of the leading space and comments of a part of the text, or the end of its first line.
pub(super) fn end_of_remarks(text: &str, part: Range<usize>) -> usize {
    let mut end = part.start;
    for (piece, range) in pieces(text, part) {
        match piece {
            Piece::Space => {}
            Piece::LineComment | Piece::BlockComment => end = range.end,
            Piece::Break | Piece::Comma => break,
        }
    }
    end
}

/// Returns the start of a comment that takes up the whole line before the last one of a part of the text.
pub(super) fn directly_above(text: &str, part: Range<usize>) -> Option<usize> {
    let pieces = pieces(text, part);
    let mut above = pieces
        .iter()
        .rev()
        .filter(|(piece, _)| *piece != Piece::Space);
    let (Piece::Break, _) = above.next()? else {
        return None;
    };
    let (Piece::LineComment | Piece::BlockComment, comment) = above.next()? else {
        return None;
    };
    let begins_line = matches!(above.next(), Some((Piece::Break, _)));
    begins_line.then_some(comment.start)
}

fn first_piece(text: &str) -> (Piece, usize) {
    if text.starts_with("\r\n") {
        return (Piece::Break, 2);
    }
    if text.starts_with(is_break) {
        return (Piece::Break, 1);
    }
    if text.starts_with(',') {
        return (Piece::Comma, 1);
    }
    if text.starts_with("//") {
        return (
            Piece::LineComment,
            text.find(is_break).unwrap_or(text.len()),
        );
    }
    if let Some(comment) = text.strip_prefix("/*") {
        // The four characters are both ends of the comment.
        let end = comment.find("*/").map(|at| at + 4);
        return (Piece::BlockComment, end.unwrap_or(text.len()));
    }
    let other = |it: char| is_break(it) || it == ',' || it == '/';
    // A lone `/` cannot occur in a parsed text. It counts as space, since every piece must have a length.
    let end = text.find(other).filter(|end| *end > 0);
    (Piece::Space, end.unwrap_or(text.len()))
}

/// Returns whether a character ends a line.
pub(super) fn is_break(character: char) -> bool {
    matches!(character, '\n' | '\r')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_in_comments_do_not_count() {
        let text = " /* , */ // ,\r\n\t, x";
        let found: Vec<_> = pieces(text, 0..text.len() - 2)
            .into_iter()
            .map(|(piece, range)| (piece, &text[range]))
            .collect();
        assert_eq!(
            found,
            [
                (Piece::Space, " "),
                (Piece::BlockComment, "/* , */"),
                (Piece::Space, " "),
                (Piece::LineComment, "// ,"),
                (Piece::Break, "\r\n"),
                (Piece::Space, "\t"),
                (Piece::Comma, ","),
            ]
        );
        assert_eq!(comma(text, 0..text.len() - 2), Some(16));
        assert_eq!(end_of_remarks(text, 0..text.len() - 2), 13);
    }
}
