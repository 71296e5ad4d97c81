//! Text for a terminal: wrapping, shortening, numbers.

use std::time::Duration;

/// Breaks each line of `text` at `width` characters: at a space, which is dropped, or after a comma; without
/// either, in the middle of a word.
pub(super) fn wrap(text: &str, width: usize) -> Vec<String> {
    text.lines()
        .flat_map(|line| wrap_line(line, width.max(1)))
        .collect()
}

fn wrap_line(line: &str, width: usize) -> Vec<String> {
    let mut rest: Vec<char> = line.trim_end().chars().collect();
    let mut lines = Vec::new();
    while rest.len() > width {
        let end = break_at(&rest, width);
        let tail = rest.split_off(end);
        lines.push(rest.iter().collect::<String>().trim_end().to_owned());
        rest = tail;
    }
    lines.push(rest.into_iter().collect());
    lines
}

/// Returns the number of characters to leave on this line.
fn break_at(characters: &[char], width: usize) -> usize {
    let fits = |end: &usize| {
        let before = characters[end - 1];
        // A space may be just over the edge, because it is dropped.
        before == ' ' || (before == ',' && *end <= width)
    };
    // Never break inside the indent.
    let indent = characters
        .iter()
        .take_while(|character| **character == ' ')
        .count();
    (indent + 2..=width + 1).rev().find(fits).unwrap_or(width)
}

/// Cuts a text to `limit` characters, and appends the number of omitted ones.
pub(super) fn shorten(text: &str, limit: usize) -> String {
    let length = text.chars().count();
    if length <= limit {
        return text.to_owned();
    }
    let start: String = text.chars().take(limit).collect();
    format!("{start}… ({} more characters)", thousands(length - limit))
}

/// Cuts the first line of `text` to `width` characters, between words if possible, with an ellipsis.
pub(super) fn first_words(text: &str, width: usize) -> String {
    let line = text.lines().next().unwrap_or_default();
    if line.chars().count() <= width && text.lines().count() <= 1 {
        return line.to_owned();
    }
    // The character after the cut shows if it ends a word; it is never part of the result.
    let start: String = line.chars().take(width).collect();
    let room = width.saturating_sub(1);
    let cut = match start.rsplit_once(' ') {
        Some((words, _)) if line.chars().count() >= width => words.to_owned(),
        _ => start.chars().take(room).collect(),
    };
    format!("{}…", cut.trim_end())
}

/// Formats a number with commas between groups of three digits.
pub(super) fn thousands(number: usize) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (idx, digit) in digits.chars().enumerate() {
        if idx > 0 && (digits.len() - idx).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// Formats a duration: `0.4 ms`, `12.0 ms`, `1.50 s`.
pub(super) fn duration(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    if seconds < 1.0 {
        format!("{:.1} ms", seconds * 1000.0)
    } else {
        format!("{seconds:.2} s")
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lines_break_at_spaces_and_commas() {
        for (text, expected) in [
            ("", vec![]),
            ("short", vec!["short"]),
            ("one two three", vec!["one two", "three"]),
            ("12345678 next", vec!["12345678", "next"]),
            ("{\"a\":1,\"b\":2}", vec!["{\"a\":1,", "\"b\":2}"]),
            ("abcdefghijkl", vec!["abcdefgh", "ijkl"]),
            ("  abcdefghij", vec!["  abcdef", "ghij"]),
            ("one\n\ntwo", vec!["one", "", "two"]),
        ] {
            assert_eq!(wrap(text, 8), expected, "{text}");
        }
    }

    #[test]
    fn long_text_ends_with_the_number_of_omitted_characters() {
        assert_eq!(shorten("äöü", 3), "äöü");
        assert_eq!(shorten(&"ä".repeat(1005), 2), "ää… (1,003 more characters)");
    }

    #[test]
    fn first_words_fit_one_line() {
        for (text, expected) in [
            ("", ""),
            ("eight ch", "eight ch"),
            ("nine char", "nine…"),
            ("seven c d", "seven c…"),
            ("ninechars", "ninecha…"),
            ("a\nb", "a…"),
        ] {
            assert_eq!(first_words(text, 8), expected);
        }
    }

    #[test]
    fn numbers_are_grouped() {
        for (number, expected) in [
            (0, "0"),
            (999, "999"),
            (1000, "1,000"),
            (1_234_567, "1,234,567"),
        ] {
            assert_eq!(thousands(number), expected);
        }
    }

    #[test]
    fn durations_have_a_unit() {
        for (microseconds, expected) in [
            (42, "0.0 ms"),
            (1_240, "1.2 ms"),
            (999_000, "999.0 ms"),
            (1_500_000, "1.50 s"),
        ] {
            assert_eq!(duration(Duration::from_micros(microseconds)), expected);
        }
    }

    proptest! {
        #[test]
        fn wrapping_keeps_the_width_and_everything_but_spaces(text in "[a-z, é]{0,60}", width in 1..20_usize) {
            let lines = wrap(&text, width);
            for line in &lines {
                prop_assert!(line.chars().count() <= width, "{line:?}");
            }
            let without_spaces = |text: &str| text.replace(' ', "");
            prop_assert_eq!(without_spaces(&lines.concat()), without_spaces(&text));
        }
    }
}
