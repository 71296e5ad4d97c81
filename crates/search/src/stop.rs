//! Words that say nothing about the subject of a query: grammar words, which are left out, and filler words of
//! requests, which count less the more other words there are.

use std::sync::LazyLock;

static STOP_WORDS: LazyLock<WordList> =
    LazyLock::new(|| WordList::read(include_str!("words/stop.txt")));
static FILLER_WORDS: LazyLock<WordList> =
    LazyLock::new(|| WordList::read(include_str!("words/weak.txt")));

/// Returns whether a word, in lower case, is a grammar word.
pub(crate) fn is_stop_word(word: &str) -> bool {
    STOP_WORDS.contains(word)
}

/// Returns whether a word, in lower case, is a filler word.
pub(crate) fn is_weak_word(word: &str) -> bool {
    FILLER_WORDS.contains(word)
}

/// A word list by first letter, because nearly every word of a text is looked up.
struct WordList([Vec<&'static str>; 26]);

impl WordList {
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
