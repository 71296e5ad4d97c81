//! Patterns with `*`, the only kind of pattern in a configuration file. `*` matches any characters, including none;
//! `\` before `*`, `!` or `\` makes it an ordinary character.

/// A pattern, split at its `*`s: one literal part more than there are stars.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Glob {
    first: String,
    rest: Vec<String>,
}

impl Glob {
    /// Parses a pattern. Every text is valid.
    pub(super) fn new(pattern: &str) -> Self {
        let mut parts = vec![String::new()];
        let mut characters = pattern.chars().peekable();
        while let Some(character) = characters.next() {
            if character == '*' {
                parts.push(String::new());
                continue;
            }
            let escaped = match characters.peek() {
                Some(&next @ ('*' | '!' | '\\')) if character == '\\' => {
                    characters.next();
                    next
                }
                _ => character,
            };
            if let Some(part) = parts.last_mut() {
                part.push(escaped);
            }
        }
        Self {
            first: parts.remove(0),
            rest: parts,
        }
    }

    /// Returns whether the pattern matches the whole of `text`. Each part is matched at its first possible position,
    /// which is sufficient for stars and keeps the time bounded for every text.
    pub(super) fn matches(&self, text: &str) -> bool {
        let Some((last, middle)) = self.rest.split_last() else {
            return text == self.first;
        };
        let Some(mut left) = text.strip_prefix(self.first.as_str()) else {
            return false;
        };
        for part in middle {
            let Some(at) = left.find(part.as_str()) else {
                return false;
            };
            left = &left[at + part.len()..];
        }
        // In what the parts before have left, so that no two parts share a character.
        left.ends_with(last.as_str())
    }

    /// Returns whether the pattern consists of stars only.
    pub(super) fn is_everything(&self) -> bool {
        !self.rest.is_empty() && self.first.is_empty() && self.rest.iter().all(String::is_empty)
    }

    /// Returns whether the pattern is exactly this name, without any star.
    pub(super) fn is_exactly(&self, name: &str) -> bool {
        self.rest.is_empty() && self.first == name
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn stars_and_escapes() {
        let cases = [
            ("read", "read", true),
            ("read", "read_file", false),
            ("*", "", true),
            ("*", "anything", true),
            ("read_*", "read_", true),
            ("read_*", "read_file", true),
            ("read_*", "bread_file", false),
            ("*_file", "read_file", true),
            ("*_file", "read_files", false),
            ("a*b*c", "aXbYc", true),
            ("a*b*c", "abc", true),
            ("a*b*c", "acb", false),
            ("ab*ba", "aba", false),
            ("**", "x", true),
            (r"\*", "*", true),
            (r"\*", "x", false),
            (r"\!x", "!x", true),
            (r"a\b", r"a\b", true),
            (r"a\\b", r"a\b", true),
            ("a\\", "a\\", true),
            ("ä*ü", "ä→ü", true),
            ("", "", true),
            ("", "x", false),
            ("Read", "read", false),
        ];
        for (pattern, text, expected) in cases {
            assert_eq!(
                Glob::new(pattern).matches(text),
                expected,
                "{pattern} on {text}"
            );
        }
    }

    #[test]
    fn many_stars_stay_fast() {
        let pattern = format!("{}b", "a*".repeat(200));
        assert!(!Glob::new(&pattern).matches(&"a".repeat(20_000)));
    }

    /// Matches by the definition, by trying every possibility.
    fn reference(pattern: &[char], text: &[char]) -> bool {
        match pattern {
            [] => text.is_empty(),
            ['*', rest @ ..] => (0..=text.len()).any(|from| reference(rest, &text[from..])),
            ['\\', escaped @ ('*' | '!' | '\\'), rest @ ..] | [escaped, rest @ ..] => {
                text.first() == Some(escaped) && reference(rest, &text[1..])
            }
        }
    }

    proptest! {
        #[test]
        fn agrees_with_the_definition(pattern in r"[ab*!\\]{0,7}", text in r"[ab*!\\]{0,8}") {
            let pattern_characters: Vec<char> = pattern.chars().collect();
            let text_characters: Vec<char> = text.chars().collect();
            prop_assert_eq!(
                Glob::new(&pattern).matches(&text),
                reference(&pattern_characters, &text_characters)
            );
        }
    }
}
