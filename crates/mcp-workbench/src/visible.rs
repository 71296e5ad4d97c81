//! Text of others in our sentences. A character without a visible form is shown as `⟦U+200B⟧` instead of being passed on
//! to a terminal, a log or a model, unless a language or an emoji [needs it](Standing::InPlace) where it is.

mod lookalike;
mod table;
mod unseen;

use std::borrow::Cow;

use self::{lookalike::imitations_shown, unseen::is_direction_mark};
pub(crate) use self::{
    lookalike::{folded, imitation, skeleton, with_lookalikes_numbered},
    unseen::{
        MAX_STRAYS, Standing, Unseen, is_bidi_control, is_other_space, is_private_use, is_tag,
        is_unseen, unseen,
    },
};

/// Characters that are drawn only where a line ends, so that a word looks the same without them: the soft hyphen and the
/// zero-width space. They belong into long words and into text without spaces.
const LINE_BREAKS: [char; 2] = ['\u{AD}', '\u{200B}'];

/// Returns the text with hidden characters shown by number; line breaks and tabs become spaces.
pub(crate) fn visible(text: &str) -> Cow<'_, str> {
    shown(text, Lines::Joined)
}

/// Returns a text of several lines with hidden characters shown by number; line breaks and tabs stay.
pub(crate) fn visible_lines(text: &str) -> Cow<'_, str> {
    shown(text, Lines::Kept)
}

/// Does the same as [`visible`] with a word that is compared by eye: characters that are drawn only where a line ends are shown
/// by number too.
pub(crate) fn visible_word(word: &str) -> Cow<'_, str> {
    let shown = visible(word);
    if !shown.contains(LINE_BREAKS) {
        return shown;
    }
    let parts = shown.chars().map(|it| {
        if LINE_BREAKS.contains(&it) {
            number(it)
        } else {
            it.to_string()
        }
    });
    Cow::Owned(parts.collect())
}

/// Does the same as [`visible_word`] with a name, and shows letters by number that imitate others.
pub(crate) fn visible_name(name: &str) -> Cow<'_, str> {
    match imitations_shown(name) {
        Cow::Borrowed(name) => visible_word(name),
        Cow::Owned(shown) => Cow::Owned(visible_word(&shown).into_owned()),
    }
}

/// Returns the text with every character shown by number that has no visible form, or looks like a plain space or a Latin
/// letter and is another, for a reader who wants to see what is really there. Emoji of several characters are taken apart
/// too. Line breaks and tabs become spaces.
pub(crate) fn revealed(text: &str) -> Cow<'_, str> {
    let Cow::Owned(revealed) = revealed_lines(text) else {
        return visible(text);
    };
    Cow::Owned(revealed.replace(['\n', '\t'], " "))
}

/// Does the same as [`revealed`] with a text of several lines: line breaks and tabs stay.
pub(crate) fn revealed_lines(text: &str) -> Cow<'_, str> {
    let is_numbered =
        |it: char| !matches!(it, '\n' | '\t') && (is_unseen(it) || is_other_space(it));
    let text = imitations_shown(text);
    if !text.chars().any(is_numbered) {
        return text;
    }
    let mut revealed = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        if is_numbered(character) {
            revealed.push_str(&number(character));
        } else {
            revealed.push(character);
        }
    }
    Cow::Owned(revealed)
}

/// Returns how a hidden character is shown.
pub(crate) fn number(character: char) -> String {
    format!("\u{27E6}U+{:04X}\u{27E7}", u32::from(character))
}

/// Returns a JSON document with every character escaped that has no visible form. It says the same to a program
/// and does nothing to a terminal.
pub(crate) fn escaped(document: &str) -> Cow<'_, str> {
    let is_raw = |character: char| character != '\n' && is_unseen(character);
    if !document.chars().any(is_raw) {
        return Cow::Borrowed(document);
    }
    let mut text = String::with_capacity(document.len() + 16);
    for character in document.chars() {
        if is_raw(character) {
            // JSON escapes characters beyond U+FFFF as two units.
            for unit in character.encode_utf16(&mut [0; 2]) {
                text.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            text.push(character);
        }
    }
    Cow::Owned(text)
}

/// The treatment of line breaks and tabs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lines {
    Joined,
    Kept,
}

fn shown(text: &str, lines: Lines) -> Cow<'_, str> {
    let is_changed = |character| match character {
        '\n' | '\t' => lines == Lines::Joined,
        character => is_unseen(character),
    };
    if !text.chars().any(is_changed) {
        return Cow::Borrowed(text);
    }
    let mut visible = String::with_capacity(text.len() + 16);
    let mut unseen = unseen(text.char_indices()).into_iter().peekable();
    for (at, character) in text.char_indices() {
        let found = unseen.next_if(|it| it.at == at);
        match character {
            '\n' | '\t' if lines == Lines::Joined => visible.push(' '),
            _ if found.is_some_and(is_numbered) => visible.push_str(&number(character)),
            _ => visible.push(character),
        }
    }
    Cow::Owned(visible)
}

/// Returns whether a character is shown by number. What acts on a terminal or on the direction of our own sentence is
/// shown wherever it is.
fn is_numbered(found: Unseen) -> bool {
    let character = found.character;
    found.standing != Standing::InPlace
        || character.is_control()
        || character == '\u{FEFF}'
        || is_bidi_control(character)
        || is_direction_mark(character)
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

    const SCOTLAND: &str = "\u{1F3F4}\u{E0067}\u{E0062}\u{E0073}\u{E0063}\u{E0074}\u{E007F}";

    /// Returns the characters without a visible form that are in place.
    fn kept(text: &str) -> String {
        let unseen = unseen(text.char_indices()).into_iter();
        unseen
            .filter(|it| it.standing == Standing::InPlace)
            .map(|it| it.character)
            .collect()
    }

    #[test]
    fn flags_stay_and_other_tags_are_shown() {
        for text in [SCOTLAND, &format!("a\u{1F3F4}{SCOTLAND}{SCOTLAND}b")] {
            assert_eq!(visible(&format!("{text}\u{1b}")), format!("{text}⟦U+001B⟧"));
            assert_eq!(
                kept(text).chars().count(),
                6 * text.matches(SCOTLAND).count()
            );
        }
        assert!(revealed(SCOTLAND).starts_with("\u{1F3F4}⟦U+E0067⟧"));
        let end = "\u{E007F}";
        let flags = [
            // Without its base, its end, or one of its letters; in upper case; another subdivision; and text behind it.
            SCOTLAND.replace('\u{1F3F4}', ""),
            SCOTLAND.replace(end, ""),
            SCOTLAND.replace('\u{E0074}', ""),
            SCOTLAND.replace('\u{E0067}', "\u{E0047}"),
            SCOTLAND.replace("\u{E0073}\u{E0063}\u{E0074}", "\u{E0063}\u{E0061}\u{E0062}"),
            SCOTLAND.replace('\u{1F3F4}', "\u{1F3F4}\u{FE0F}"),
            SCOTLAND.replace('\u{1F3F4}', "\u{1F600}"),
        ];
        for text in &flags {
            assert!(!kept(text).chars().any(is_tag), "{text:?}");
            assert!(!visible(text).chars().any(is_tag), "{text:?}");
        }
        let longer = format!("{SCOTLAND}\u{E0041}");
        assert_eq!(visible(&longer), format!("{SCOTLAND}⟦U+E0041⟧"));
        assert_eq!(kept(&longer).chars().count(), 6);
    }

    #[test]
    fn isolates_are_in_place_where_they_are_closed_in_text_from_right_to_left() {
        let rows = [
            ("שלום \u{2068}Bob\u{2069}!", 2),
            ("\u{2067}א \u{2066}a \u{2068}b\u{2069}\u{2069} ב\u{2069}", 6),
            ("\u{2066}a\u{2069}\nمرحبا", 2),
            // One line is in order, the other is not.
            ("א \u{2066}a\u{2069}\n\u{2067}b", 2),
            ("\u{2066}a\u{2069}", 0),
            ("\u{2066}١٢\u{2069}", 0),
            ("א \u{2066}a", 0),
            ("א a\u{2069}", 0),
            ("א \u{2069}a\u{2066}", 0),
            ("א \u{2066}a\nb\u{2069}", 0),
            ("א \u{2066}a\u{2069}\u{2069}", 0),
            ("א \u{202E}a\u{202C}", 0),
            // Empty ones in a row could be the digits of a text.
            ("א \u{2066}\u{2069}\u{2067}\u{2069}", 0),
            ("א \u{2066}\u{2067}a\u{2069}\u{2069}", 0),
        ];
        for (text, count) in rows {
            assert_eq!(kept(text).chars().count(), count, "{text:?}");
        }
    }

    /// Text with characters that languages and emoji need.
    const HONEST: &[&str] = &[
        "می\u{200C}کنم",
        "क\u{94D}\u{200D}ष न\u{D4D}\u{200D}",
        "👨\u{200D}👩\u{200D}👧 👩🏽\u{200D}💻 🏳\u{FE0F}\u{200D}🌈 ❤\u{FE0F}\u{200D}🔥 🧑\u{200D}⚕\u{FE0F}",
        "1\u{FE0F}\u{20E3} ☺\u{FE0E} ⚠\u{FE0F}",
        "葛\u{E0100}飾区 ≨\u{FE00}",
        "ᠮᠣᠩᠭᠣᠯ\u{180E}ᠠ",
        "ភាសា\u{200B}ខ្មែរ ภาษา\u{200B}ไทย",
        "Donau\u{AD}dampf",
        "\u{1100}\u{1160}\u{11A8}",
        "⠓⠑⠇⠇⠕\u{2800}\u{2800}\u{2800}⠺",
        "Traduit «\u{A0}le texte\u{A0}»\u{202F}!",
    ];

    #[test]
    fn text_that_needs_invisible_characters_stays_as_it_is() {
        for text in HONEST {
            assert_eq!(visible(text), *text);
        }
    }

    #[test]
    fn stray_and_hidden_characters_are_shown_and_distinguished() {
        let strays = [
            "a\u{200B}b",
            "a\u{200C}b",
            "a\u{200D}b",
            "a\u{2060}b",
            "a\u{FEFF}b",
            "a\u{FE0F}b",
            "a\u{200E}b",
            "a \u{AD}b",
            "a\u{2028}b",
            "👩\u{200D}",
            "a\u{200D}👩",
            "😀\u{FE05}",
        ];
        let hidden = [
            "a\u{E0200}b",
            "a\u{E0FFF}b",
            "a\u{E000}b",
            "a\u{F8FF}b",
            "a\u{10FFFD}b",
            "a\u{2800}b",
            "a\u{2061}b",
            "a\u{2062}b",
            "a\u{2064}b",
            "a\u{206A}b",
            "a\u{3164}b",
            "a\u{FFA0}b",
            "a\u{FFF9}b",
            "a\u{1BCA0}b",
            "a\u{1D159}b",
            "a\u{1D173}b",
            "a\u{180B}b",
            "a\u{115F}b",
            "a\u{E0100}b",
            "😀\u{E0172}b",
            "a\u{FFFE}b",
            "a\u{FDD0}b",
        ];
        let rows = strays.map(|text| (text, Standing::Stray)).into_iter();
        for (text, standing) in rows.chain(hidden.map(|text| (text, Standing::Hidden))) {
            let found = unseen(text.char_indices());
            let standings: Vec<Standing> = found.iter().map(|it| it.standing).collect();
            assert_eq!(standings, [standing], "{text:?}");
            let shown = text.replace(found[0].character, &number(found[0].character));
            assert_eq!(visible(text), shown);
            assert_eq!(revealed(text), shown);
        }
    }

    #[test]
    fn only_the_first_of_a_row_of_variation_selectors_is_in_place() {
        assert_eq!(visible("❤\u{FE0F}\u{FE0F}"), "❤\u{FE0F}⟦U+FE0F⟧");
        assert_eq!(visible("葛\u{E0100}\u{E0172}"), "葛\u{E0100}⟦U+E0172⟧");
        for text in ["❤\u{FE0F}\u{FE01}", "葛\u{E0100}\u{E0172}"] {
            let last = unseen(text.char_indices()).pop().unwrap();
            assert_eq!(last.standing, Standing::Hidden, "{text:?}");
        }
    }

    #[test]
    fn every_character_without_a_visible_form_can_be_shown() {
        assert_eq!(
            revealed("👩\u{200D}💻\u{FE0F}\u{202E}\u{A0}\u{3000}a\nb"),
            "👩⟦U+200D⟧💻⟦U+FE0F⟧⟦U+202E⟧⟦U+00A0⟧⟦U+3000⟧a b"
        );
        assert_eq!(revealed("a\nb"), "a b");
        assert_eq!(revealed("usеr\n\u{200B}"), "us⟦U+0435⟧r ⟦U+200B⟧");
        assert_eq!(
            visible_name("usеr 👩\u{200D}💻"),
            "us⟦U+0435⟧r 👩\u{200D}💻"
        );
        for name in ["dele\u{AD}te", "ภาษา\u{200B}ไทย"] {
            assert_eq!(visible(name), name);
            assert_eq!(visible_name(name), revealed(name));
        }
        assert_eq!(revealed_lines("a\n\u{2003}b"), "a\n⟦U+2003⟧b");
    }

    #[test]
    fn an_escaped_document_has_the_same_value() {
        let value =
            serde_json::json!({"a\u{7f}": "\u{1b}\u{9b}\u{202e}\u{e0041}\u{200f}\u{1f600} ok"});
        let document = serde_json::to_string_pretty(&value).unwrap();
        let text = escaped(&document);
        let hidden = text.chars().filter(|it| *it != '\n' && is_unseen(*it));
        assert_eq!(hidden.count(), 0, "{text:?}");
        assert!(
            text.contains(r"\u001b\u009b\u202e\udb40\udc41\u200f😀 ok"),
            "{text}"
        );
        let read: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(read, value);
    }
}
