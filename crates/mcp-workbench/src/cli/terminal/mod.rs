//! Terminal output: colour, tables, bars and progress. On a pipe there is no colour, no cutting to a width, and
//! no progress.

mod bars;
mod progress;
mod style;
mod table;

pub(super) use bars::bar;
pub(super) use progress::Progress;
pub(super) use style::{Ink, OutputStyle};
pub(super) use table::{Column, Table};

/// Formats a number with its noun, in the singular for 1.
pub(super) fn count(number: usize, word: &str) -> String {
    if number == 1 {
        format!("1 {word}")
    } else {
        format!("{} {word}s", grouped(number))
    }
}

/// Formats a number with commas between groups of three digits.
pub(super) fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Cuts a text to `width` characters; the last one is an ellipsis if something was cut.
pub(super) fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let start: String = text.chars().take(width.saturating_sub(1)).collect();
    format!("{}…", start.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_have_singular_and_plural() {
        assert_eq!(count(0, "tool"), "0 tools");
        assert_eq!(count(1, "tool"), "1 tool");
        assert_eq!(count(12_345, "tool"), "12,345 tools");
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(grouped(999), "999");
    }

    #[test]
    fn cut_texts_end_with_an_ellipsis() {
        assert_eq!(cut("abcdef", 6), "abcdef");
        assert_eq!(cut("abc def", 5), "abc…");
        assert_eq!(cut("ääää", 3), "ää…");
        assert_eq!(cut("abc", 0), "…");
    }
}
