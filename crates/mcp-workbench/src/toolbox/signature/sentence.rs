//! Extracts the first sentence of a text.

use rawjson::RawJson;

use crate::visible::visible;

/// The maximum length of a sentence.
pub(super) const MAX_CHARACTERS: usize = 100;

/// The number of characters of a text that are searched for the end of the sentence.
const MAX_SEARCHED: usize = 4 * MAX_CHARACTERS;

/// Abbreviations whose point does not end a sentence.
const ABBREVIATIONS: &[&str] = &["e.g", "i.e", "etc", "vs", "cf", "approx", "incl", "no"];

/// Returns the first sentence of a tool's description, if it has one.
pub(crate) fn sentence(definition: &RawJson) -> Option<String> {
    let said = |name: &str| {
        let value = definition.member(name)?;
        let text = sentence_of(&value.as_text()?, MAX_CHARACTERS);
        (!text.is_empty()).then_some(text)
    };
    said("description").or_else(|| said("title"))
}

/// Returns the first sentence of a text on one line, shortened to `longest` characters.
pub(crate) fn sentence_of(text: &str, longest: usize) -> String {
    let text = without_headings(text.trim_start());
    let looked_at = text.char_indices().nth(MAX_SEARCHED.max(longest + 1));
    let text = &text[..looked_at.map_or(text.len(), |(end, _)| end)];
    let words: Vec<&str> = text[..end(text)].split_whitespace().collect();
    cut(&visible(&words.join(" ")), longest)
}

/// Removes leading headings from a text, if more text follows.
fn without_headings(text: &str) -> &str {
    let mut rest = text;
    while rest.starts_with('#') {
        let Some((_, behind)) = rest.split_once('\n') else {
            return text;
        };
        rest = behind.trim_start();
    }
    if rest.is_empty() { text } else { rest }
}

/// Returns the end of the first sentence: after its point, or before an empty line or a list.
fn end(text: &str) -> usize {
    for (at, character) in text.char_indices() {
        let after = &text[at + character.len_utf8()..];
        match character {
            '。' => return text.len() - after.len(),
            '.' if is_shortened(&text[..at]) => {}
            '.' | '!' | '?' if after.is_empty() || after.starts_with(char::is_whitespace) => {
                return text.len() - after.len();
            }
            '\n' if is_break(after) => return at,
            _ => {}
        }
    }
    text.len()
}

fn is_shortened(before: &str) -> bool {
    let word = before.rsplit(|it: char| it.is_whitespace() || it == '(');
    let word = word.into_iter().next().unwrap_or_default();
    ABBREVIATIONS.iter().any(|it| it.eq_ignore_ascii_case(word))
}

/// Returns whether a new line starts something else.
fn is_break(after: &str) -> bool {
    let line = after.trim_start_matches([' ', '\t', '\r']);
    let number = line.trim_start_matches(|it: char| it.is_ascii_digit());
    line.is_empty()
        || line.starts_with(['\n', '-', '*', '#', '•', '<', '|', '`'])
        || (number.len() < line.len() && number.starts_with(['.', ')']))
}

fn cut(text: &str, longest: usize) -> String {
    if text.chars().count() <= longest {
        return text.to_owned();
    }
    let end = text.char_indices().nth(longest - 1);
    let kept = &text[..end.map_or(text.len(), |(end, _)| end)];
    // Does not split a word, unless it is most of the text.
    let kept = match kept.rsplit_once(' ') {
        Some((words, _)) if words.chars().count() > longest / 2 => words,
        _ => kept,
    };
    format!("{}…", kept.trim_end_matches([' ', ',', ';', ':']))
}
