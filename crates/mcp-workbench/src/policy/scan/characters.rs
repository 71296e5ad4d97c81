//! Characters that are not seen. Which of them are hard is the same as in `clean`; of the others, those are told that
//! stand where neither a language nor an emoji has a use for them.

use super::finding::Problem;
use crate::visible::{
    in_place, is_bidi_control, is_isolate, is_right_to_left, is_tag, is_zero_width,
};

/// The first character that no honest text holds.
pub(super) fn hard(text: &str) -> Option<Problem> {
    let may_be_in_place = |character: char| is_tag(character) || is_isolate(character);
    let in_place = if text.chars().any(may_be_in_place) {
        in_place(text.char_indices())
    } else {
        Vec::new()
    };
    let mut characters = text.char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        let next = characters.peek().map(|it| it.1);
        if let Some(problem) = hard_character(character, next)
            && in_place.binary_search(&at).is_err()
        {
            return Some(problem);
        }
    }
    None
}

/// Tab, line feed and the line end of Windows are text; every other control is for a machine.
fn hard_character(character: char, next: Option<char>) -> Option<Problem> {
    match (character, next) {
        ('\n' | '\t', _) | ('\r', Some('\n')) => None,
        ('\u{1b}' | '\u{90}' | '\u{9b}' | '\u{9d}'..='\u{9f}', _) => {
            Some(Problem::Escape(character))
        }
        _ if character.is_control() => Some(Problem::Control(character)),
        _ if is_bidi_control(character) => Some(Problem::Bidi(character)),
        _ if is_tag(character) => Some(Problem::Tag(character)),
        _ => None,
    }
}

/// What is not seen in a text: the first that is hard, and those that are out of place.
pub(super) fn all(text: &str) -> Vec<Problem> {
    let mut problems: Vec<Problem> = hard(text).into_iter().collect();
    if text.is_ascii() {
        return problems;
    }
    let reads_from_right = text.chars().any(is_right_to_left);
    let (mut first, mut count) = (None, 0);
    let mut before = None;
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        let after = characters.peek().copied();
        if is_out_of_place(character, before, after, reads_from_right) {
            first.get_or_insert(character);
            count += 1;
        }
        before = Some(character);
    }
    problems.extend(first.map(|character| Problem::ZeroWidth { character, count }));
    problems
}

fn is_out_of_place(
    character: char,
    before: Option<char>,
    after: Option<char>,
    reads_from_right: bool,
) -> bool {
    match character {
        // Marks of direction.
        '\u{200E}' | '\u{200F}' | '\u{061C}' => !reads_from_right,
        // The non-joiner stands between letters of scripts that join.
        '\u{200C}' => !(is_joining(before) || is_joining(after)),
        '\u{200D}' => !(is_joining(before) || is_emoji(before)),
        '\u{FE00}'..='\u{FE0F}' => !takes_variation(before),
        '\u{E0100}'..='\u{E01EF}' => !is_ideograph(before),
        // Mongolian has variations and a vowel separator of its own.
        '\u{180B}'..='\u{180F}' => !is_joining(before),
        // A soft hyphen says where a word may be broken.
        '\u{00AD}' => !before.is_some_and(char::is_alphabetic),
        // A mark of the byte order is a habit of some editors.
        '\u{FEFF}' => before.is_some(),
        _ => is_zero_width(character),
    }
}

/// Letters and vowel signs of scripts beyond Latin, Greek and Cyrillic, which have uses for joiners.
fn is_joining(character: Option<char>) -> bool {
    character.is_some_and(|it| matches!(it, '\u{0590}'..='\u{1FFF}' | '\u{A840}'..='\u{ABFF}' | '\u{FB1D}'..='\u{FDFF}' | '\u{10A00}'..='\u{11FFF}'))
}

fn is_emoji(character: Option<char>) -> bool {
    character.is_some_and(|it| {
        matches!(it, '\u{00A9}' | '\u{00AE}' | '\u{203C}'..='\u{3299}' | '\u{FE0F}' | '\u{1F000}'..='\u{1FAFF}')
            && !is_zero_width_before(it)
    })
}

/// Of the characters in the range of emoji, those that are not seen themselves.
fn is_zero_width_before(character: char) -> bool {
    character != '\u{FE0F}' && is_zero_width(character)
}

/// Symbols, digits of keycaps, ideographs and letters of some scripts come in variations.
fn takes_variation(character: Option<char>) -> bool {
    let is_keycap = character.is_some_and(|it| it.is_ascii_digit() || it == '#' || it == '*');
    let is_symbol = character != Some('\u{FE0F}') && is_emoji(character);
    is_keycap || is_symbol || is_ideograph(character) || is_joining(character)
}

fn is_ideograph(character: Option<char>) -> bool {
    character.is_some_and(
        |it| matches!(it, '\u{2E80}'..='\u{9FFF}' | '\u{F900}'..='\u{FAFF}' | '\u{20000}'..='\u{3FFFF}'),
    )
}
