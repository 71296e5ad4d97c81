//! Splits a text into words: splits identifiers, converts to lower case, stems, and forms pairs of characters for
//! scripts without spaces.

use crate::{stem::stem, stop::is_stop_word};

/// Longer runs of letters are not words; most are encoded data.
const MAX_WORD_BYTES: usize = 40;
/// A joined identifier up to this length is also a word by itself: "GitHub" is also "github".
const MAX_WHOLE_BYTES: usize = 16;
/// A joined identifier with more parts is not a word by itself.
const MAX_WHOLE_PARTS: usize = 3;

/// The kind of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    /// A name: every word counts.
    Name,
    /// Sentences, of which stop words do not count.
    Prose,
}

/// A word of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Word {
    /// The word in lower case.
    pub text: String,
    /// The stem, under which the word is indexed.
    pub term: String,
    /// The stems of the parts, if it is an identifier with several.
    pub parts: Vec<String>,
}

/// Returns the words of a query.
pub(crate) fn words(text: &str) -> Vec<Word> {
    let mut words = Vec::new();
    each_run(text, |run| match run {
        Run::Ideographs(run) => {
            let step = if run.len() > 1 { 2 } else { 1 };
            words.extend(run.windows(step).map(|pair| {
                let text: String = pair.iter().collect();
                Word {
                    term: text.clone(),
                    text,
                    parts: Vec::new(),
                }
            }));
        }
        Run::Letters(run) => words.push(word(run)),
    });
    words
}

/// Calls `visit` with every term of a text to index. An identifier gives its parts, and itself if it is short. Stop
/// words are left out of prose, but not of names.
pub(crate) fn each_term(text: &str, style: Style, mut visit: impl FnMut(&str)) {
    let mut buffer = String::new();
    let mut parts = Vec::new();
    each_run(text, |run| match run {
        Run::Ideographs(run) => {
            // Without a dictionary, single characters and pairs are what a query can match in such a script.
            for step in [1, 2] {
                for pair in run.windows(step) {
                    buffer.clear();
                    buffer.extend(pair);
                    visit(&buffer);
                }
            }
        }
        Run::Letters(run) => {
            split(run, &mut parts);
            if parts.len() > 1 {
                for part in &parts {
                    lower(&run[part.clone()], &mut buffer);
                    stem(&mut buffer);
                    visit(&buffer);
                }
            }
            if parts.len() == 1 || is_whole(run, parts.len()) {
                lower(run, &mut buffer);
                if style == Style::Prose && is_stop_word(&buffer) {
                    return;
                }
                stem(&mut buffer);
                visit(&buffer);
            }
        }
    });
}

/// Returns whether a joined identifier is a word by itself.
fn is_whole(run: &str, parts: usize) -> bool {
    run.len() <= MAX_WHOLE_BYTES && parts <= MAX_WHOLE_PARTS
}

fn word(run: &str) -> Word {
    let mut ranges = Vec::new();
    split(run, &mut ranges);
    let stemmed = |text: &str| {
        let mut term = String::new();
        lower(text, &mut term);
        stem(&mut term);
        term
    };
    let mut text = String::new();
    lower(run, &mut text);
    let parts = if ranges.len() > 1 {
        ranges
            .into_iter()
            .map(|range| stemmed(&run[range]))
            .collect()
    } else {
        Vec::new()
    };
    Word {
        term: stemmed(run),
        text,
        parts,
    }
}

/// A run of characters without separators.
enum Run<'a> {
    Letters(&'a str),
    /// Characters of a script without spaces.
    Ideographs(&'a [char]),
}

/// Calls `visit` with every run of a text.
fn each_run<'a>(text: &'a str, mut visit: impl FnMut(Run<'_>)) {
    let mut ideographs: Vec<char> = Vec::new();
    let mut start: Option<usize> = None;
    let letters = |run: &'a str, visit: &mut dyn FnMut(Run<'_>)| {
        // Longer runs match no query and would fill the index.
        if run.len() <= MAX_WORD_BYTES {
            visit(Run::Letters(run));
        }
    };
    let mut skip_until = 0;
    for (at, char) in text.char_indices() {
        if at < skip_until {
            continue;
        }
        let ideograph = is_ideograph(char);
        if !ideograph && !ideographs.is_empty() {
            visit(Run::Ideographs(&ideographs));
            ideographs.clear();
        }
        if !ideograph && char.is_alphanumeric() {
            start.get_or_insert(at);
            continue;
        }
        if let Some(start) = start.take() {
            letters(&text[start..at], &mut visit);
            // The ending after an apostrophe is grammar: "user's" is indexed as "user", without an "s".
            if matches!(char, '\'' | '’') {
                skip_until = at + char.len_utf8() + ending(&text[at + char.len_utf8()..]);
            }
        }
        if ideograph {
            ideographs.push(char);
        }
    }
    if let Some(start) = start {
        letters(&text[start..], &mut visit);
    }
    if !ideographs.is_empty() {
        visit(Run::Ideographs(&ideographs));
    }
}

/// Returns the length of the ending after an apostrophe, such as the s of "user's".
fn ending(rest: &str) -> usize {
    let end = rest
        .find(|char: char| !char.is_ascii_alphabetic())
        .unwrap_or(rest.len());
    if matches!(&rest[..end], "s" | "t" | "m" | "d" | "re" | "ve" | "ll") {
        end
    } else {
        0
    }
}

/// Returns whether a character is Chinese, Japanese, Korean or Thai.
fn is_ideograph(char: char) -> bool {
    matches!(u32::from(char),
        0x0E00..=0x0E7F | 0x3040..=0x30FF | 0x3400..=0x4DBF | 0x4E00..=0x9FFF | 0xAC00..=0xD7AF
        | 0xF900..=0xFAFF | 0xFF66..=0xFF9F | 0x20000..=0x3FFFF)
}

/// The class of a character, for the borders within an identifier.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Upper,
    Lower,
    Digit,
}

fn class(char: char) -> Class {
    if char.is_numeric() {
        Class::Digit
    } else if char.is_uppercase() {
        Class::Upper
    } else {
        Class::Lower
    }
}

/// Splits an identifier without separators: `HTTPServer2` becomes `HTTP`, `Server` and `2`.
fn split(run: &str, parts: &mut Vec<std::ops::Range<usize>>) {
    parts.clear();
    let mut start = 0;
    let mut before: Option<(usize, Class)> = None;
    let mut uppers = 0;
    for (at, char) in run.char_indices() {
        let class = class(char);
        if let Some((last, previous)) = before {
            let cut = match (previous, class) {
                // The last of several capitals begins the next word: `HTTPServer`.
                (Class::Upper, Class::Lower) if uppers > 1 => Some(last),
                (Class::Upper, Class::Lower) => None,
                (previous, class) if previous != class => Some(at),
                _ => None,
            };
            if let Some(cut) = cut.filter(|cut| *cut > start) {
                parts.push(start..cut);
                start = cut;
            }
        }
        uppers = if class == Class::Upper { uppers + 1 } else { 0 };
        before = Some((at, class));
    }
    // The plural of an acronym is one word: URLs, PDFs.
    let plural = start > 0
        && run.len() - start == 2
        && run
            .strip_suffix('s')
            .is_some_and(|acronym| acronym.chars().all(char::is_uppercase));
    if plural {
        parts.clear();
        start = 0;
    }
    parts.push(start..run.len());
}

fn lower(text: &str, into: &mut String) {
    into.clear();
    if text.is_ascii() {
        into.push_str(text);
        into.make_ascii_lowercase();
    } else {
        into.extend(text.chars().flat_map(char::to_lowercase));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(text: &str) -> Vec<String> {
        let mut terms = Vec::new();
        each_term(text, Style::Name, |term| terms.push(term.to_owned()));
        terms
    }

    #[test]
    fn identifiers_are_split_into_words() {
        let cases: &[(&str, &[&str])] = &[
            ("read_file", &["read", "file"]),
            ("read-file.now", &["read", "file", "now"]),
            ("readFile", &["read", "file", "readfil"]),
            ("HTTPServer", &["http", "server", "httpserver"]),
            ("GitHub", &["git", "hub", "github"]),
            ("mp3", &["mp", "3", "mp3"]),
            (
                "getCurrentWeatherForecast",
                &["get", "current", "weather", "forecast"],
            ),
            ("URLs", &["url"]),
            ("ÄÖs", &["ä", "ös", "äös"]),
            ("the user's files", &["the", "user", "file"]),
            ("ÄPFEL", &["äpfel"]),
            ("搜索 a", &["搜", "索", "搜索", "a"]),
            ("", &[]),
        ];
        for (text, expected) in cases {
            assert_eq!(terms(text), *expected, "{text}");
        }
    }

    #[test]
    fn a_query_keeps_identifiers_whole_and_in_parts() {
        let found = words("GitHub搜索网");
        let texts: Vec<&str> = found.iter().map(|word| word.text.as_str()).collect();
        assert_eq!(texts, ["github", "搜索", "索网"]);
        assert_eq!(found[0].parts, ["git", "hub"]);
    }

    #[test]
    fn encoded_data_is_not_a_word() {
        assert_eq!(terms(&"x".repeat(41)), Vec::<String>::new());
    }
}
