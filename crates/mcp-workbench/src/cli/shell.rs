//! Quotes words so that a command line can be pasted into a shell.

use crate::config::{self, REDACTED};

/// Quotes a word for a shell. A redacted value stays unquoted: the user has to replace it anyway.
pub(super) fn quoted(word: &str) -> String {
    let rest = word.replace(REDACTED, "");
    let is_plain = config::quoted(&rest) == rest || (rest.is_empty() && !word.is_empty());
    if is_plain {
        return word.to_owned();
    }
    config::quoted(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_can_be_pasted() {
        let cases = [
            ("@scope/server", "@scope/server"),
            ("--port=80", "--port=80"),
            ("--token=[redacted]", "--token=[redacted]"),
            ("", "''"),
            ("two words", "'two words'"),
            ("it's", "'it'\\''s'"),
            ("a;b", "'a;b'"),
            ("$HOME", "'$HOME'"),
            ("*", "'*'"),
        ];
        for (word, shown) in cases {
            assert_eq!(quoted(word), shown, "{word}");
        }
    }
}
