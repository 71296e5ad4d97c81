//! Results with hidden characters shown, for servers whose entry says `"sanitize": true`. Each of these becomes its
//! number, such as `⟦U+001B⟧`, in every string and key, whether it stood there raw or as an escape:
//!
//! - U+0000 to U+001F but tab, line feed, and a carriage return that a line feed follows
//! - U+007F to U+009F
//! - U+202A to U+202E and U+2066 to U+2069, the bidirectional embeddings, overrides and isolates, but isolates that are
//!   [in place](in_place)
//! - U+E0000 to U+E007F, the TAG block, but for flags that are in place
//!
//! Nothing else changes by a byte, and what has none of them is not copied.

use std::ops::Range;

use bytes::Bytes;

use crate::{
    visible::{in_place, is_bidi_control, is_isolate, is_tag, number},
    wire::{Answer, Message, RawJson, RequestId, ResultMarks},
};

/// What is shown besides what is an escape in JSON: the first bytes of such characters, and DEL.
const FIRST_BYTES: [u8; 4] = [0x7F, 0xC2, 0xE2, 0xF3];

/// The value without hidden characters.
pub fn cleaned(json: RawJson) -> RawJson {
    match replaced(json.as_str()) {
        None => json,
        // Parsing it again proves what the writing of it promises.
        Some(text) => RawJson::parse(&Bytes::from(text)).unwrap_or(json),
    }
}

/// Whether a value has no hidden characters.
pub fn is_clean(json: &RawJson) -> bool {
    hidden(json.as_str()).is_empty()
}

/// A message of a server without hidden characters, as far as it is text for a client; `is_for_client` tells of the
/// id of an answer whether it is one to a client's call. What we asked ourselves stays as it is.
pub fn cleaned_message(message: Message, is_for_client: impl Fn(u64) -> bool) -> Message {
    match message {
        Message::Response(mut response) => {
            let id = response.id.as_ref().and_then(RequestId::as_u64);
            if id.is_some_and(is_for_client) {
                response.answer = match response.answer {
                    Answer::Result(result) => {
                        let result = cleaned(result);
                        response.marks = ResultMarks::of(&result);
                        Answer::Result(result)
                    }
                    Answer::Error(error) => Answer::Error(cleaned(error)),
                    Answer::Invalid => Answer::Invalid,
                };
            }
            Message::Response(response)
        }
        Message::Notification(mut notification) => {
            if let "notifications/progress" | "notifications/message" = &*notification.method {
                notification.params = notification.params.map(cleaned);
            }
            Message::Notification(notification)
        }
        Message::Request(mut request) => {
            request.params = request.params.map(cleaned);
            Message::Request(request)
        }
    }
}

/// Whether a character is shown. A carriage return depends on what follows it.
fn is_shown(character: char) -> bool {
    match character {
        '\n' | '\t' => false,
        _ => character.is_control() || is_bidi_control(character) || is_tag(character),
    }
}

/// The JSON text with hidden characters shown; nothing if there are none.
fn replaced(text: &str) -> Option<String> {
    let hidden = hidden(text);
    if hidden.is_empty() {
        return None;
    }
    let mut out = String::with_capacity(text.len() + 64);
    let mut kept = 0;
    for Hidden {
        at,
        length,
        character,
    } in hidden
    {
        out.push_str(&text[kept..at]);
        out.push_str(&number(character));
        kept = at + length;
    }
    out.push_str(&text[kept..]);
    Some(out)
}

/// A hidden character in a JSON text.
#[derive(Clone, Copy)]
struct Hidden {
    at: usize,
    /// The bytes of the character or its escape.
    length: usize,
    character: char,
}

impl Hidden {
    /// Whether it may be where it belongs.
    fn may_be_in_place(self) -> bool {
        is_tag(self.character) || is_isolate(self.character)
    }
}

/// Finds the hidden characters of a JSON text. Strings are told apart only where it matters: outside of them there are
/// neither escapes nor characters beyond ASCII.
fn hidden(text: &str) -> Vec<Hidden> {
    let found = candidates(text, 0..text.len());
    if !found.iter().any(|it| it.may_be_in_place()) {
        return found;
    }
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(quote) = memchr::memchr(b'"', &text.as_bytes()[at..]) {
        let string = at + quote + 1..string_end(text, at + quote + 1);
        at = string.end + 1;
        let mut hidden = candidates(text, string.clone());
        if hidden.iter().any(|it| it.may_be_in_place()) {
            let in_place = in_place(characters(text, string));
            hidden.retain(|it| in_place.binary_search(&it.at).is_err());
        }
        found.append(&mut hidden);
    }
    found
}

/// Finds the characters in a part of a JSON text that are hidden, wherever they are.
fn candidates(text: &str, part: Range<usize>) -> Vec<Hidden> {
    let mut found = Vec::new();
    let mut at = part.start;
    while let Some(next) = next(&text.as_bytes()[at..part.end]) {
        at += next;
        let (character, length) = character_at(&text[at..]);
        if let Some(character) = character.filter(|it| is_shown(*it)) {
            found.push(Hidden {
                at,
                length,
                character,
            });
        }
        at += length;
    }
    found
}

/// The characters of a string with their places. Those that cannot be hidden and end no line may be missing.
fn characters(text: &str, string: Range<usize>) -> impl Iterator<Item = (usize, char)> {
    let mut at = string.start;
    let each = std::iter::from_fn(move || {
        (at < string.end).then(|| {
            let (character, length) = character_at(&text[at..]);
            at += length;
            (at - length, character)
        })
    });
    each.filter_map(|(at, character)| Some((at, character?)))
}

/// Where the string ends whose content begins here.
fn string_end(text: &str, start: usize) -> usize {
    let bytes = text.as_bytes();
    let mut at = start;
    while let Some(found) = memchr::memchr2(b'"', b'\\', &bytes[at..]) {
        if bytes[at + found] == b'"' {
            return at + found;
        }
        at += found + 2;
    }
    text.len()
}

/// Where something stands that may be a hidden character.
fn next(bytes: &[u8]) -> Option<usize> {
    let is_candidate = |byte: &u8| *byte == b'\\' || FIRST_BYTES.contains(byte);
    bytes.iter().position(is_candidate)
}

/// The character that begins here, or the one that the escape here means, and how many bytes it takes. Nothing if it is
/// none to be shown in any case.
fn character_at(text: &str) -> (Option<char>, usize) {
    let Some(escape) = text.strip_prefix('\\') else {
        let character = text.chars().next();
        return (character, character.map_or(1, char::len_utf8));
    };
    match escape.as_bytes().first() {
        Some(b'b') => (Some('\u{8}'), 2),
        Some(b'f') => (Some('\u{c}'), 2),
        Some(b'n') => (Some('\n'), 2),
        Some(b'r') => (carriage_return(&escape[1..]), 2),
        Some(b'u') => unit(escape).map_or((None, 2), |first| escaped_character(first, text)),
        _ => (None, 2),
    }
}

/// What a `\u` escape means, whose first unit is known.
fn escaped_character(first: u16, text: &str) -> (Option<char>, usize) {
    if first == 0x0D {
        return (carriage_return(&text[6..]), 6);
    }
    let second = text[6..].strip_prefix('\\').and_then(unit);
    let units = [
        Some(first),
        second.filter(|_| (0xD800..0xDC00).contains(&first)),
    ];
    let mut characters = char::decode_utf16(units.into_iter().flatten());
    match characters.next() {
        Some(Ok(character)) => (Some(character), 6 * character.len_utf16()),
        _ => (None, 6),
    }
}

/// A carriage return, unless it is part of a line end.
fn carriage_return(rest: &str) -> Option<char> {
    let is_line_end = match rest.strip_prefix('\\') {
        Some(escape) => escape.starts_with('n') || unit(escape) == Some(0x0A),
        None => false,
    };
    (!is_line_end).then_some('\r')
}

/// The number of an escape: `u` and four digits.
fn unit(escape: &str) -> Option<u16> {
    let digits = escape.strip_prefix('u')?.get(..4)?;
    u16::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    fn clean(text: &str) -> String {
        let json = RawJson::parse(&Bytes::from(text.to_owned())).unwrap();
        cleaned(json).as_str().to_owned()
    }

    #[test]
    fn hidden_characters_are_shown_raw_or_escaped() {
        let cases = [
            (
                "{\"a\" : \"\u{202e}x\u{7f}\"}",
                "{\"a\" : \"⟦U+202E⟧x⟦U+007F⟧\"}",
            ),
            (
                r#"["\u202e\u202E\u001b[2J\b\f"]"#,
                r#"["⟦U+202E⟧⟦U+202E⟧⟦U+001B⟧[2J⟦U+0008⟧⟦U+000C⟧"]"#,
            ),
            (r#"["\udb40\udc41"]"#, r#"["⟦U+E0041⟧"]"#),
            (
                "[\"\u{e0041}\u{9b}\u{2066}\"]",
                "[\"⟦U+E0041⟧⟦U+009B⟧⟦U+2066⟧\"]",
            ),
            (r#"{"\u0000":1}"#, r#"{"⟦U+0000⟧":1}"#),
            (r#"["a\rb\u000dc"]"#, r#"["a⟦U+000D⟧b⟦U+000D⟧c"]"#),
        ];
        for (text, expected) in cases {
            assert_eq!(clean(text), expected);
        }
    }

    #[test]
    fn flags_and_closed_isolates_stay_in_the_string_that_they_are_in() {
        let flag = "\u{1f3f4}\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}";
        let escaped_flag =
            r"\ud83c\udff4\udb40\udc67\udb40\udc62\udb40\udc65\udb40\udc6e\udb40\udc67\udb40\udc7f";
        let rows = [
            (format!("[\"{flag}\"]"), format!("[\"{flag}\"]")),
            (
                format!(r#"["\u001b{escaped_flag}"]"#),
                format!(r#"["⟦U+001B⟧{escaped_flag}"]"#),
            ),
            (
                r#"["\u05d0 \"\u2066\\a\u2069"]"#.to_owned(),
                r#"["\u05d0 \"\u2066\\a\u2069"]"#.to_owned(),
            ),
            // Neither a letter nor an end in another string counts.
            (
                "[\"א\",\"\u{2066}a\u{2069}\"]".to_owned(),
                "[\"א\",\"⟦U+2066⟧a⟦U+2069⟧\"]".to_owned(),
            ),
            (
                "[\"א\u{2066}\",\"א\u{2069}\"]".to_owned(),
                "[\"א⟦U+2066⟧\",\"א⟦U+2069⟧\"]".to_owned(),
            ),
            (
                r#"["\u05d0\u2066a\nb\u2069"]"#.to_owned(),
                r#"["\u05d0⟦U+2066⟧a\nb⟦U+2069⟧"]"#.to_owned(),
            ),
        ];
        for (text, expected) in rows {
            assert_eq!(clean(&text), expected);
            let json = RawJson::parse(&Bytes::from(text.clone())).unwrap();
            assert_eq!(is_clean(&json), text == expected);
        }
    }

    #[test]
    fn everything_else_stays_byte_for_byte() {
        let cases = [
            "{ \"a\" : [1.0, 1e400, 12345678901234567890123] }",
            r#"["\n\t\r\n\r\u000a\u000D\n\"\\\/\u00e9"]"#,
            r#"["\\u202e\\\\b\\r"]"#,
            r#"["\ud83d\ude00 😀 👩‍💻 ❤️ \u200f\u200e\u200d\u200c\u200b"]"#,
            "[\"Ünïcode âê €, \u{200f}\u{200e}\u{61c}\"]",
            "[\r\n1,\t2]",
        ];
        for text in cases {
            assert_eq!(clean(text), text);
        }
    }

    proptest! {
        #[test]
        fn what_comes_out_is_the_same_value_without_them(text in any::<String>(), escape in any::<bool>()) {
            let mut json = serde_json::to_string(&[&text]).unwrap();
            if escape {
                json = crate::visible::escaped(&json).into_owned();
            }
            let out = clean(&json);
            let read: Vec<String> = serde_json::from_str(&out).unwrap();
            let shown: String = text.replace("\r\n", "\n").chars()
                .map(|it| if is_shown(it) { number(it) } else { it.to_string() })
                .collect();
            prop_assert_eq!(read[0].replace("\r\n", "\n"), shown);
            prop_assert_eq!(clean(&out), out);
        }
    }

    #[test]
    fn only_what_is_for_a_client_is_cleaned() {
        let line = |text: &str| Message::parse(&Bytes::from(text.to_owned())).unwrap();
        let answer = line(r#"{"jsonrpc":"2.0","id":7,"result":{"a":"\u001b"}}"#);
        assert_eq!(cleaned_message(answer.clone(), |_| false), answer);
        let Message::Response(response) = cleaned_message(answer, |id| id == 7) else {
            panic!("another message");
        };
        let Answer::Result(result) = response.answer else {
            panic!("another answer");
        };
        let value: Value = serde_json::from_str(result.as_str()).unwrap();
        assert_eq!(value["a"], "⟦U+001B⟧");
        let changed = line(
            r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a\u001b"}}"#,
        );
        assert_eq!(cleaned_message(changed.clone(), |_| true), changed);
    }
}
