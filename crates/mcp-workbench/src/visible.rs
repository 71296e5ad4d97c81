//! Text of others in sentences of ours. Escape sequences, control characters, bidirectional overrides
//! and TAG characters are shown as `⟦U+001B⟧` instead of being passed on to a terminal, a log or a
//! model.

use std::borrow::Cow;

/// The text with what is meant not to be seen made visible; line breaks become spaces.
pub fn visible(text: &str) -> Cow<'_, str> {
    if !text
        .chars()
        .any(|it| it == '\n' || it == '\t' || is_hidden(it))
    {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        match character {
            '\n' | '\t' => shown.push(' '),
            hidden if is_hidden(hidden) => {
                shown.push_str(&format!("\u{27E6}U+{:04X}\u{27E7}", u32::from(hidden)));
            }
            plain => shown.push(plain),
        }
    }
    Cow::Owned(shown)
}

/// Whether a character is meant not to be seen: C0, DEL and C1 controls, bidirectional marks, embeddings, overrides
/// and isolates, and the TAG block.
pub fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{061C}'
                | '\u{200E}'..='\u{200F}'
                | '\u{202A}'..='\u{202E}'
                | '\u{2066}'..='\u{2069}'
                | '\u{E0000}'..='\u{E007F}'
        )
}

#[cfg(test)]
mod tests {
    use super::visible;

    #[test]
    fn hidden_characters_are_shown() {
        let cases = [
            ("plain, with ümlaut and 👩‍💻", "plain, with ümlaut and 👩‍💻"),
            ("\u{1b}[2J", "⟦U+001B⟧[2J"),
            ("a\r\nb\tc", "a⟦U+000D⟧ b c"),
            ("\u{202E}evil\u{2069}", "⟦U+202E⟧evil⟦U+2069⟧"),
            ("\u{E0041}", "⟦U+E0041⟧"),
            ("\u{9b}31m\u{7f}\0", "⟦U+009B⟧31m⟦U+007F⟧⟦U+0000⟧"),
        ];
        for (text, shown) in cases {
            assert_eq!(visible(text), shown);
        }
    }
}
