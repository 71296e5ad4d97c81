//! Names in a line that a model parses: unchanged if nothing can be misread, otherwise as JSON strings. Both can be
//! copied.

use std::borrow::Cow;

use crate::visible::is_unseen;

/// Returns a name as it is written in a line.
pub(crate) fn shown_name(name: &str) -> Cow<'_, str> {
    if !name.is_empty() && name.chars().all(is_plain) {
        Cow::Borrowed(name)
    } else {
        Cow::Owned(quoted(name))
    }
}

/// Returns whether a character is a letter or digit of any script, or a sign that names usually contain.
fn is_plain(character: char) -> bool {
    let is_name = character.is_alphanumeric() || matches!(character, '_' | '-' | '.' | '$' | '@');
    // Hangul fillers are letters without a visible form.
    is_name && !is_unseen(character)
}

/// Returns a text as a JSON string without hidden characters.
pub(super) fn quoted(text: &str) -> String {
    let mut shown = String::with_capacity(text.len() + 2);
    shown.push('"');
    for character in text.chars() {
        match character {
            '"' => shown.push_str("\\\""),
            '\\' => shown.push_str("\\\\"),
            '\n' => shown.push_str("\\n"),
            '\t' => shown.push_str("\\t"),
            hidden if is_unseen(hidden) => {
                // Escapes in JSON are units of UTF-16.
                for unit in hidden.encode_utf16(&mut [0; 2]) {
                    shown.push_str(&format!("\\u{unit:04x}"));
                }
            }
            plain => shown.push(plain),
        }
    }
    shown.push('"');
    shown
}
