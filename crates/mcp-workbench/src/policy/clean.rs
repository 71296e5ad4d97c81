//! Makes hidden characters in results visible, for servers with `"sanitize": true`. Each becomes its number, such
//! as `⟦U+001B⟧`, in every string and key, raw or escaped. Hidden are the characters for which the scanner
//! withholds a tool ([`Standing::Hidden`]), and stray ones if a value has more than [`MAX_STRAYS`].
//!
//! No other byte changes, and a value without hidden characters is not copied.

use bytes::Bytes;
use rawjson::RawJson;

use crate::{
    visible::{MAX_STRAYS, Standing, Unseen, is_unseen, number, unseen},
    wire::{Answer, Message, RequestId, ResultMarks},
};

/// The number of bytes that are compared at once.
const BLOCK: usize = 32;

/// Returns the value without hidden characters.
pub(crate) fn cleaned(json: RawJson) -> RawJson {
    match replaced(json.as_str()) {
        None => json,
        // Parsing the text again checks that it is still valid JSON.
        Some(text) => RawJson::parse(&Bytes::from(text)).unwrap_or(json),
    }
}

/// Returns true if a value has no hidden characters.
pub(crate) fn is_clean(json: &RawJson) -> bool {
    hidden(json.as_str()).is_empty()
}

/// Cleans a server's message, as far as it is text for a client. `is_for_client` tells if a response id belongs
/// to a client's call; responses to our own requests stay unchanged.
pub(crate) fn cleaned_message(message: Message, is_for_client: impl Fn(u64) -> bool) -> Message {
    match message {
        Message::Response(mut response) => {
            let id = response.id.as_ref().and_then(RequestId::as_u64);
            if id.is_some_and(is_for_client) {
                response.answer = match response.answer {
                    Answer::Result(result) => {
                        let result = cleaned(result);
                        // The marks belong to the text, which may have changed.
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
            // Other notifications have no text that a client shows.
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

/// Returns the JSON text with hidden characters made visible; `None` if there are none.
fn replaced(text: &str) -> Option<String> {
    let hidden = hidden(text);
    if hidden.is_empty() {
        return None;
    }
    // Room for a few replacements; most texts have none at all and never get here.
    let mut out = String::with_capacity(text.len() + 64);
    let mut copied = 0;
    for Unseen { at, character, .. } in hidden {
        out.push_str(&text[copied..at]);
        out.push_str(&number(character));
        copied = at + character_at(&text[at..]).1;
    }
    out.push_str(&text[copied..]);
    Some(out)
}

/// Finds the hidden characters of a JSON text. Only strings that may contain one are decoded: outside of strings
/// there are neither escapes nor characters beyond ASCII.
fn hidden(text: &str) -> Vec<Unseen> {
    if !may_hide(text) {
        return Vec::new();
    }
    let mut found = Vec::new();
    let mut at = 0;
    // Outside of strings JSON has no quotation marks, so the next one begins a string.
    while let Some(quote) = memchr::memchr(b'"', &text.as_bytes()[at..]) {
        let start = at + quote + 1;
        let end = string_end(text, start);
        at = end + 1;
        if may_hide(&text[start..end]) {
            found.append(&mut unseen(characters(text, start, end)));
        }
    }
    let strays = found.iter().filter(|it| it.standing == Standing::Stray);
    // Counted over the whole value: hidden text may be spread over many strings.
    let has_too_many_strays = strays.count() > MAX_STRAYS;
    found.retain(|it| match it.standing {
        Standing::InPlace => false,
        Standing::Stray => has_too_many_strays,
        Standing::Hidden => true,
    });
    found
}

/// Returns true if a part of a JSON text has a character without a visible form.
fn may_hide(text: &str) -> bool {
    let mut at = 0;
    while let Some(next) = next(&text.as_bytes()[at..]) {
        at += next;
        let (character, length) = character_at(&text[at..]);
        at += length;
        // Windows line ends are common and harmless.
        let is_line_end = character == '\r' && character_at(&text[at..]).0 == '\n';
        if is_unseen(character) && !is_line_end && !matches!(character, '\n' | '\t') {
            return true;
        }
    }
    false
}

/// Returns the characters of a string with their positions.
fn characters(text: &str, start: usize, end: usize) -> impl Iterator<Item = (usize, char)> {
    let mut at = start;
    std::iter::from_fn(move || {
        (at < end).then(|| {
            let (character, length) = character_at(&text[at..]);
            at += length;
            (at - length, character)
        })
    })
}

/// Returns the end of the string whose content starts at `start`.
fn string_end(text: &str, start: usize) -> usize {
    let bytes = text.as_bytes();
    let mut at = start;
    while let Some(found) = memchr::memchr2(b'"', b'\\', &bytes[at..]) {
        if bytes[at + found] == b'"' {
            return at + found;
        }
        // Skips the backslash and the character that it escapes.
        at += found + 2;
    }
    text.len()
}

/// Finds the next escape or non-ASCII character.
fn next(bytes: &[u8]) -> Option<usize> {
    // DEL is a control character. Those below the space are always escaped in JSON.
    let is_candidate = |byte: &u8| *byte == b'\\' || *byte >= 0x7F;
    // Most text has none for long. Whole blocks are compared at once, because the compiler uses vectors for a block.
    let (blocks, _) = bytes.as_chunks::<BLOCK>();
    let is_plain = |block: &&[u8; BLOCK]| {
        let joined = block.iter().map(is_candidate);
        !joined.fold(false, |found, is_candidate| found | is_candidate)
    };
    let plain = BLOCK * blocks.iter().take_while(is_plain).count();
    let found = bytes[plain..].iter().position(is_candidate)?;
    Some(plain + found)
}

/// Returns the character at the start of the text, decoded if it is escaped, and its length in bytes.
fn character_at(text: &str) -> (char, usize) {
    let Some(escape) = text.strip_prefix('\\') else {
        let character = text.chars().next().unwrap_or(' ');
        return (character, character.len_utf8());
    };
    let character = match escape.as_bytes().first() {
        Some(b'b') => '\u{8}',
        Some(b'f') => '\u{c}',
        Some(b'n') => '\n',
        Some(b'r') => '\r',
        Some(b't') => '\t',
        // An invalid escape is taken literally; the text was validated before, so this does not happen.
        Some(b'u') => return unit(escape).map_or(('u', 2), |first| escaped(first, text)),
        Some(plain) => char::from(*plain),
        None => return ('\\', 1),
    };
    (character, 2)
}

/// Decodes a `\u` escape whose first unit is known. A lone surrogate becomes U+FFFD.
fn escaped(first: u16, text: &str) -> (char, usize) {
    let second = text[6..].strip_prefix('\\').and_then(unit);
    let units = [
        Some(first),
        second.filter(|_| (0xD800..0xDC00).contains(&first)),
    ];
    match char::decode_utf16(units.into_iter().flatten()).next() {
        Some(Ok(character)) => (character, 6 * character.len_utf16()),
        _ => (char::REPLACEMENT_CHARACTER, 6),
    }
}

/// Parses a UTF-16 unit: `u` and four hex digits.
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
            (
                "[\"\u{e0200}\u{e000}\", \"a\u{2800}b\u{2062}c\", \"\\udb41\\ude00\"]",
                "[\"⟦U+E0200⟧⟦U+E000⟧\", \"a⟦U+2800⟧b⟦U+2062⟧c\", \"⟦U+E0600⟧\"]",
            ),
            (
                "[\"😀\u{fe0f}\u{fe01}\", \"😀\u{e0172}\"]",
                "[\"😀\u{fe0f}⟦U+FE01⟧\", \"😀⟦U+E0172⟧\"]",
            ),
            // Four strays could be the bits of a text, wherever they are.
            (
                "{\"a\u{200b}b\":[\"c\u{200c}\",\"d\\u200d\",\"\\u200be\"]}",
                "{\"a⟦U+200B⟧b\":[\"c⟦U+200C⟧\",\"d⟦U+200D⟧\",\"⟦U+200B⟧e\"]}",
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(clean(text), expected);
        }
    }

    #[test]
    fn flags_and_closed_isolates_are_not_hidden() {
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
            r#"["\ud83d\ude00 😀 👩‍💻 ❤️ \u200f \u2060 \u200b"]"#,
            "[\"Ünïcode âê €, \u{200f} \u{200e} \u{61c}\"]",
            r#"["\u0645\u06cc\u200c\u06a9\u0646\u0645", "\u2764\ufe0f\u200d\ud83d\udd25"]"#,
            "[\r\n1,\t2]",
        ];
        for text in cases {
            assert_eq!(clean(text), text);
        }
    }

    proptest! {
        #[test]
        fn cleaning_removes_only_hidden_characters(text in any::<String>(), escape in any::<bool>()) {
            let mut json = serde_json::to_string(&[&text]).unwrap();
            if escape {
                json = crate::visible::escaped(&json).into_owned();
            }
            let out = clean(&json);
            let read: Vec<String> = serde_json::from_str(&out).unwrap();
            let found = unseen(text.char_indices());
            let strays = found.iter().filter(|it| it.standing == Standing::Stray).count();
            let is_shown = |at: usize| found.iter().any(|it| it.at == at && match it.standing {
                Standing::InPlace => false,
                Standing::Stray => strays > MAX_STRAYS,
                Standing::Hidden => true,
            });
            let shown: String = text.char_indices()
                .map(|(at, it)| if is_shown(at) { number(it) } else { it.to_string() })
                .collect();
            prop_assert_eq!(&read[0], &shown);
        }
    }

    #[test]
    fn only_messages_for_clients_are_cleaned() {
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
