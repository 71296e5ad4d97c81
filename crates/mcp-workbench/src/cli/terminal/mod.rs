//! What a terminal shows: colour, tables, bars, and what is going on. On a pipe there is no colour, nothing is cut
//! to a width, and nothing is said of what is going on.

mod bars;
mod look;
mod progress;
mod table;

pub(super) use bars::bar;
pub(super) use look::{Ink, Look};
pub(super) use progress::Progress;
pub(super) use table::{Column, Table};

/// A number with its word, in the singular where it is one.
pub(super) fn count(number: usize, word: &str) -> String {
    if number == 1 {
        format!("1 {word}")
    } else {
        format!("{} {word}s", grouped(number))
    }
}

/// A number with a comma after every three digits from the right.
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

/// At most `width` characters of a text, the last of which tells that there is more.
pub(super) fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let kept: String = text.chars().take(width.saturating_sub(1)).collect();
    format!("{}…", kept.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_their_words() {
        assert_eq!(count(0, "tool"), "0 tools");
        assert_eq!(count(1, "tool"), "1 tool");
        assert_eq!(count(12_345, "tool"), "12,345 tools");
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(grouped(999), "999");
    }

    #[test]
    fn what_is_cut_says_so() {
        assert_eq!(cut("abcdef", 6), "abcdef");
        assert_eq!(cut("abc def", 5), "abc…");
        assert_eq!(cut("ääää", 3), "ää…");
        assert_eq!(cut("abc", 0), "…");
    }
}
