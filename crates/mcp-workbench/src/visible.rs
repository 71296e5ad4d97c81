//! Text of others in sentences of ours. Escape sequences, control characters, bidirectional marks, embeddings,
//! overrides and isolates, and TAG characters are shown as `⟦U+001B⟧` instead of being passed on to a terminal, a log
//! or a model.

use std::borrow::Cow;

/// The text with what is meant not to be seen made visible; line breaks and tabs become spaces.
pub fn visible(text: &str) -> Cow<'_, str> {
    shown(text, |character| match character {
        '\n' | '\t' => Shown::Space,
        _ if is_hidden(character) => Shown::Number,
        _ => Shown::AsItIs,
    })
}

/// The same for text of several lines: line breaks and tabs stay.
pub fn visible_lines(text: &str) -> Cow<'_, str> {
    shown(text, |character| match character {
        '\n' | '\t' => Shown::AsItIs,
        _ if is_hidden(character) => Shown::Number,
        _ => Shown::AsItIs,
    })
}

/// The text with every character made visible that has no look of its own, zero-width ones included: for whoever wants
/// to see what is really there. It takes joiners out of emoji too.
pub fn revealed(text: &str) -> Cow<'_, str> {
    shown(text, |character| match character {
        '\n' | '\t' => Shown::Space,
        _ if is_hidden(character) || is_zero_width(character) => Shown::Number,
        _ => Shown::AsItIs,
    })
}

/// One hidden character as it is shown.
pub fn number(character: char) -> String {
    format!("\u{27E6}U+{:04X}\u{27E7}", u32::from(character))
}

/// A JSON document of ours with hidden characters escaped. It says the same to a program and does nothing to a
/// terminal.
pub fn escaped(document: &str) -> Cow<'_, str> {
    let is_raw = |character: char| character != '\n' && is_hidden(character);
    if !document.chars().any(is_raw) {
        return Cow::Borrowed(document);
    }
    let mut text = String::with_capacity(document.len() + 16);
    for character in document.chars() {
        if is_raw(character) {
            for unit in character.encode_utf16(&mut [0; 2]) {
                text.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            text.push(character);
        }
    }
    Cow::Owned(text)
}

/// C0, DEL and C1 controls, bidirectional marks, embeddings, overrides and isolates, and the TAG block.
pub fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{061C}' | '\u{200E}'..='\u{200F}')
        || is_bidi_control(character)
        || is_tag(character)
}

/// Bidirectional embeddings, overrides and isolates, with what ends them. The marks, which only say of themselves in
/// which direction they read, are not among them.
pub fn is_bidi_control(character: char) -> bool {
    matches!(character, '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}

/// The TAG block, which repeats ASCII without a look.
pub fn is_tag(character: char) -> bool {
    matches!(character, '\u{E0000}'..='\u{E007F}')
}

/// Characters without a look of their own that are neither controls nor bidirectional: spaces without width, joiners,
/// variation selectors, fillers and invisible operators.
pub fn is_zero_width(character: char) -> bool {
    matches!(
        character,
        '\u{00AD}'
            | '\u{034F}'
            | '\u{115F}'..='\u{1160}'
            | '\u{17B4}'..='\u{17B5}'
            | '\u{180B}'..='\u{180F}'
            | '\u{200B}'..='\u{200D}'
            | '\u{2028}'..='\u{2029}'
            | '\u{2060}'..='\u{2064}'
            | '\u{206A}'..='\u{206F}'
            | '\u{3164}'
            | '\u{FE00}'..='\u{FE0F}'
            | '\u{FEFF}'
            | '\u{FFA0}'
            | '\u{FFF9}'..='\u{FFFB}'
            | '\u{1D173}'..='\u{1D17A}'
            | '\u{E0100}'..='\u{E01EF}'
    )
}

/// How a character is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shown {
    AsItIs,
    Space,
    Number,
}

fn shown(text: &str, how: impl Fn(char) -> Shown) -> Cow<'_, str> {
    if text.chars().all(|it| how(it) == Shown::AsItIs) {
        return Cow::Borrowed(text);
    }
    let mut visible = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        match how(character) {
            Shown::AsItIs => visible.push(character),
            Shown::Space => visible.push(' '),
            Shown::Number => visible.push_str(&number(character)),
        }
    }
    Cow::Owned(visible)
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(visible_lines("a\r\nb\tc\u{1b}"), "a⟦U+000D⟧\nb\tc⟦U+001B⟧");
    }

    #[test]
    fn what_has_no_width_can_be_shown_too() {
        assert_eq!(visible("a\u{200b}b"), "a\u{200b}b");
        assert_eq!(
            revealed("a\u{200b}b\u{fe0f}\u{202e}"),
            "a⟦U+200B⟧b⟦U+FE0F⟧⟦U+202E⟧"
        );
    }

    #[test]
    fn a_document_says_the_same_when_it_is_escaped() {
        let value =
            serde_json::json!({"a\u{7f}": "\u{1b}\u{9b}\u{202e}\u{e0041}\u{200f}\u{1f600} ok"});
        let document = serde_json::to_string_pretty(&value).unwrap();
        let text = escaped(&document);
        let hidden = text.chars().filter(|it| *it != '\n' && is_hidden(*it));
        assert_eq!(hidden.count(), 0, "{text:?}");
        assert!(
            text.contains(r"\u001b\u009b\u202e\udb40\udc41\u200f😀 ok"),
            "{text}"
        );
        let read: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(read, value);
    }
}
