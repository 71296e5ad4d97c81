//! Words that say nothing about what is looked for: those of grammar, which are left out, and the filler of requests,
//! which counts less the more else there is.

use std::sync::LazyLock;

static STOP: LazyLock<Vec<&'static str>> = LazyLock::new(|| sorted(include_str!("words/stop.txt")));
static WEAK: LazyLock<Vec<&'static str>> = LazyLock::new(|| sorted(include_str!("words/weak.txt")));

/// Whether a word, in lower case, is only grammar.
pub(super) fn is_stop_word(word: &str) -> bool {
    STOP.binary_search(&word).is_ok()
}

/// Whether a word, in lower case, is mostly filler.
pub(super) fn is_weak_word(word: &str) -> bool {
    WEAK.binary_search(&word).is_ok()
}

fn sorted(words: &'static str) -> Vec<&'static str> {
    let mut words: Vec<&str> = words.split_whitespace().collect();
    words.sort_unstable();
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grammar_is_left_out_and_filler_is_weak() {
        assert!(is_stop_word("please") && !is_stop_word("weather"));
        assert!(is_weak_word("comprehensive") && !is_weak_word("weather"));
    }
}
