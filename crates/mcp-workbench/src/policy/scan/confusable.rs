//! Letters that look like Latin ones, and what they look like. The table has those that are used to imitate names; it
//! is no copy of Unicode's, which would withhold honest words.

use crate::visible::{is_unseen, number};

/// What looks like each letter: Cyrillic, Greek, Armenian and others.
const LOOKALIKES: &[(char, &str)] = &[
    ('a', "аɑα"),
    ('b', "ЬƄ"),
    ('c', "сϲⅽ"),
    ('d', "ԁⅾ"),
    ('e', "еҽ℮"),
    ('f', "ғ"),
    ('g', "ɡց"),
    ('h', "һհ"),
    ('i', "іıιⅰ"),
    ('j', "јϳ"),
    ('k', "кκ"),
    ('l', "ӏⅼ"),
    ('m', "мⅿ"),
    ('n', "ոп"),
    ('o', "оοօσ"),
    ('p', "рρ"),
    ('q', "ԛգ"),
    ('r', "гᴦ"),
    ('s', "ѕꜱ"),
    ('t', "тτ"),
    ('u', "υսц"),
    ('v', "ѵνⅴ"),
    ('w', "ԝшω"),
    ('x', "хχⅹ"),
    ('y', "уүγ"),
    ('z', "ᴢ"),
];

/// The Latin letter in lower case that a letter looks like or is.
pub(super) fn folded(character: char) -> char {
    let character = match character {
        // The full-width forms of ASCII.
        '\u{FF01}'..='\u{FF5E}' => {
            char::from_u32(u32::from(character) - 0xFEE0).unwrap_or(character)
        }
        _ => character,
    };
    if character.is_ascii() {
        return character.to_ascii_lowercase();
    }
    let lower = character.to_lowercase().next().unwrap_or(character);
    let mut lookalikes = LOOKALIKES.iter();
    let alike = lookalikes.find(|(_, alike)| alike.contains(lower) || alike.contains(character));
    alike.map_or(lower, |(latin, _)| *latin)
}

/// What a name looks like to somebody who reads fast.
pub(super) fn skeleton(name: &str) -> String {
    let seen = name.chars().filter(|it| !is_unseen(*it));
    seen.map(folded).collect()
}

/// The first word that has Latin letters together with others that look like Latin ones.
pub(super) fn mixed_word(text: &str) -> Option<&str> {
    if text.is_ascii() {
        return None;
    }
    text.split(|it: char| !it.is_alphanumeric() && !is_unseen(it))
        .find(|word| {
            let has_latin = word.chars().any(|it| it.is_ascii_alphabetic());
            has_latin && word.chars().any(is_lookalike)
        })
}

/// A name in which everything can be told apart: hidden characters and letters that look like others are numbers.
pub(super) fn told_apart(name: &str) -> String {
    let mut text = String::new();
    for character in name.chars() {
        let is_other = !character.is_ascii() && folded(character).is_ascii();
        if is_other || is_unseen(character) {
            text.push_str(&number(character));
        } else {
            text.push(character);
        }
    }
    text
}

/// Whether a letter is of another alphabet and looks like a Latin one.
fn is_lookalike(character: char) -> bool {
    // Small Greek letters beside Latin ones are the habit of formulas.
    let is_greek = "ΑΒΕΖΗΙΚΜΝΟΡΤΥΧον".contains(character);
    let is_other = is_greek || matches!(character, '\u{0400}'..='\u{058F}');
    is_other && folded(character).is_ascii()
}
