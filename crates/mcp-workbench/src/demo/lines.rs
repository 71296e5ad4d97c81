//! Reads one line at a time, with a length limit.

use std::io::{self, BufRead, Read};

/// The longest line that is read, in bytes, without its line feed.
pub(super) const MAX_LINE: usize = 1 << 20;

/// The result of [`read_line`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// A whole line is in the buffer (the last one may lack its line feed).
    Complete,
    /// The line was longer than [`MAX_LINE`]; it was skipped, and the buffer contains its start.
    TooLong,
    End,
}

/// Reads the next line into `line`, which is cleared first.
pub(super) fn read_line(input: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<Line> {
    line.clear();
    // One byte more, for the line feed of a line of exactly the maximum.
    let limit = MAX_LINE as u64 + 1;
    input.by_ref().take(limit).read_until(b'\n', line)?;
    if line.is_empty() {
        return Ok(Line::End);
    }
    if line.len() > MAX_LINE && line.last() != Some(&b'\n') {
        input.skip_until(b'\n')?;
        return Ok(Line::TooLong);
    }
    Ok(Line::Complete)
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use pretty_assertions::assert_eq;

    use super::*;

    fn all(text: &[u8]) -> Vec<(Line, usize)> {
        let mut input = Cursor::new(text);
        let mut line = Vec::new();
        let mut found = Vec::new();
        loop {
            let kind = read_line(&mut input, &mut line).unwrap();
            found.push((kind, line.len()));
            if kind == Line::End {
                return found;
            }
        }
    }

    #[test]
    fn lines_end_at_a_line_feed_or_at_the_end() {
        assert_eq!(all(b""), [(Line::End, 0)]);
        assert_eq!(
            all(b"one\n\nlast"),
            [
                (Line::Complete, 4),
                (Line::Complete, 1),
                (Line::Complete, 4),
                (Line::End, 0)
            ]
        );
    }

    #[test]
    fn a_line_over_the_bound_is_skipped_and_the_next_one_is_read() {
        let mut text = vec![b'x'; MAX_LINE];
        text.extend(b"\n");
        text.extend(vec![b'y'; MAX_LINE * 2]);
        text.extend(b"\nshort\n");
        assert_eq!(
            all(&text),
            [
                (Line::Complete, MAX_LINE + 1),
                (Line::TooLong, MAX_LINE + 1),
                (Line::Complete, 6),
                (Line::End, 0)
            ]
        );
    }
}
