//! Characters that look like an ASCII letter or digit, by the confusables of Unicode.

use std::borrow::Cow;

use super::{
    number,
    table::{FAMILIAR, IMITATIONS},
    unseen::is_unseen,
};

/// Returns the ASCII character in lower case that a character is or looks like; other characters in lower case.
pub(crate) fn folded(character: char) -> char {
    if character.is_ascii() {
        return character.to_ascii_lowercase();
    }
    let lower = character.to_lowercase().next().unwrap_or(character);
    let upper = character.to_uppercase().next().unwrap_or(character);
    // In lower case first: U+0406 looks like `l` and is the capital of one that looks like `i`. In upper case last:
    // U+043A is not a lookalike, but a fast reader does not notice it.
    let mut forms = [lower, character, upper].into_iter();
    let ascii = forms.find_map(lookalike);
    ascii.map_or(lower, |ascii| ascii.to_ascii_lowercase())
}

/// Returns how a name looks to somebody who reads fast: names with equal skeletons can be mistaken for each other.
pub(crate) fn skeleton(name: &str) -> String {
    let seen = name.chars().filter(|it| !is_unseen(*it));
    let folded = seen.map(|it| match folded(it) {
        '0' => 'o',
        '1' | 'i' => 'l',
        other => other,
    });
    folded.collect()
}

/// Returns the first word of Latin letters in which another alphabet's letter looks like one of them.
pub(crate) fn imitation(text: &str) -> Option<&str> {
    if text.is_ascii() {
        return None;
    }
    text.split(is_between_words).find(|word| is_mixed(word))
}

/// Returns a name with everything shown by number that can be mistaken for something else: invisible characters and, in
/// every word, lookalikes.
pub(crate) fn with_lookalikes_numbered(name: &str) -> String {
    let mut text = String::new();
    for character in name.chars() {
        let is_other = !character.is_ascii() && folded(character).is_ascii();
        push(&mut text, character, is_other || is_unseen(character));
    }
    text
}

/// Returns the text with letters shown by number that [imitate](imitation) Latin ones. Words of another alphabet stay.
pub(super) fn imitations_shown(text: &str) -> Cow<'_, str> {
    if imitation(text).is_none() {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for word in text.split_inclusive(is_between_words) {
        let is_mixed = is_mixed(word);
        for character in word.chars() {
            push(&mut shown, character, is_mixed && imitates(character));
        }
    }
    Cow::Owned(shown)
}

fn push(text: &mut String, character: char, by_number: bool) {
    if by_number {
        text.push_str(&number(character));
    } else {
        text.push(character);
    }
}

fn is_between_words(character: char) -> bool {
    !character.is_alphanumeric() && !is_unseen(character)
}

/// Returns whether a word has ASCII letters and imitations of such. A word that shows by another letter that it is partly
/// of another alphabet is honest: an English word with a Russian ending.
fn is_mixed(word: &str) -> bool {
    let is_latin = |it: char| {
        matches!(it, '\0'..='\u{24F}' | '\u{1E00}'..='\u{1EFF}')
            || !it.is_alphanumeric()
            || lookalike(it).is_some()
    };
    word.chars().any(imitates)
        && word.chars().any(|it| it.is_ascii_alphabetic())
        && word.chars().all(is_latin)
}

/// Returns whether a character is of another alphabet and has no honest place in a word of ASCII letters.
fn imitates(character: char) -> bool {
    find(IMITATIONS, character).is_some()
}

/// Returns the ASCII letter or digit that another character looks like.
fn lookalike(character: char) -> Option<char> {
    find(IMITATIONS, character).or_else(|| find(FAMILIAR, character))
}

/// Looks a character up in a sorted table of code points, each followed by eight bits of ASCII.
fn find(table: &[u32], character: char) -> Option<char> {
    if character.is_ascii() {
        return None;
    }
    let at = table.binary_search_by_key(&u32::from(character), |entry| entry >> 8);
    let [.., ascii] = table[at.ok()?].to_be_bytes();
    Some(char::from(ascii))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lookalikes_of_every_alphabet_are_folded() {
        for text in [
            "раssword",
            "ｐａｓｓｗｏｒｄ",
            "𝐩𝐚𝐬𝐬𝐰𝐨𝐫𝐝",
            "ρаꜱѕԝοгԁ",
            "ᏢᎪSSᏔOᏒD",
            "ⲣasswⲟrd",
        ] {
            let folded: String = text.chars().map(folded).collect();
            assert_eq!(folded, "password", "{text}");
        }
        assert_eq!(folded('І'), 'i');
        assert_eq!(folded('Я'), 'я');
        assert_eq!(skeleton("us\u{200B}е_t००l"), skeleton("use_tool"));
        assert_eq!(skeleton("𝟏ⅼІ"), skeleton("1lI"));
    }

    #[test]
    fn imitations_are_shown_by_number_only_in_words_of_latin_letters() {
        let rows = [
            ("get_usеr", "get_us⟦U+0435⟧r"),
            ("résumе", "résum⟦U+0435⟧"),
            ("Βeta, ꓳpen", "⟦U+0392⟧eta, ⟦U+A4F3⟧pen"),
            ("𝐝elete", "⟦U+1D41D⟧elete"),
        ];
        for (text, shown) in rows {
            assert_eq!(imitations_shown(text), shown);
        }
        let honest = [
            "осени и море, сор API",
            "APIшный, SMSка",
            "το όνομα του URL",
            "μs, Δt, σx, αβ",
            "kırmızı, þing, ƒ",
            "३D, ৪G, 1920×1080",
            "וAPI, الAPI, ה-API",
            "ＡＰＩ、〇×ゲーム",
            "𝐝𝐞𝐥𝐞𝐭𝐞",
            "ℓ2",
        ];
        for text in honest {
            assert_eq!(imitation(text), None);
            assert_eq!(imitations_shown(text), text);
        }
    }
}
