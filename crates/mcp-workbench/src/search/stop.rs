//! Words that say nothing about what is looked for: those of grammar, which are left out, and the filler of requests,
//! which counts less the more else there is.

use std::sync::LazyLock;

static STOP: LazyLock<Words> = LazyLock::new(|| Words::read(include_str!("words/stop.txt")));
static WEAK: LazyLock<Words> = LazyLock::new(|| Words::read(include_str!("words/weak.txt")));

/// Whether a word, in lower case, is only grammar.
pub(super) fn is_stop_word(word: &str) -> bool {
    STOP.contains(word)
}

/// Whether a word, in lower case, is mostly filler.
pub(super) fn is_weak_word(word: &str) -> bool {
    WEAK.contains(word)
}

/// Some words by their first letter: nearly every word of a text is looked for.
struct Words([Vec<&'static str>; 26]);

impl Words {
    fn read(words: &'static str) -> Self {
        let mut table = Self(std::array::from_fn(|_| Vec::new()));
        for word in words.split_whitespace() {
            if let Some(letter) = Self::letter(word) {
                table.0[letter].push(word);
            }
        }
        table
    }

    fn letter(word: &str) -> Option<usize> {
        let letter = word.bytes().next()?.checked_sub(b'a')?;
        Some(usize::from(letter)).filter(|letter| *letter < 26)
    }

    fn contains(&self, word: &str) -> bool {
        Self::letter(word).is_some_and(|letter| self.0[letter].contains(&word))
    }
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
