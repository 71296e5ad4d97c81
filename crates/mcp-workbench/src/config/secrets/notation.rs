//! The notations in which a secret appears in a text: as it is, percent-encoded, as in a form, or escaped for JSON, and in
//! each of them broken over lines.

use std::ops::Range;

/// The maximum number of characters for one byte of a value: `\u0000`.
pub(super) const MAX_ESCAPE_LENGTH: usize = 6;

/// A way to write a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Notation {
    Plain,
    /// `%41`.
    Percent,
    /// `%41`, and `+` for a space.
    Form,
    /// `\n`, `\"`, `\u0041`.
    Json,
}

impl Notation {
    /// Returns the notations that a text may have. Most texts have only one.
    pub(super) fn of(text: &str) -> impl Iterator<Item = Self> {
        let marks = [
            (Self::Plain, None),
            (Self::Percent, Some(b'%')),
            (Self::Form, Some(b'+')),
            (Self::Json, Some(b'\\')),
        ];
        let text = text.as_bytes();
        marks
            .into_iter()
            .filter(|(_, mark)| mark.is_none_or(|mark| memchr::memchr(mark, text).is_some()))
            .map(|(notation, _)| notation)
    }

    /// Returns whether a text in this notation equals its own decoding.
    pub(super) fn is_decoded(self, text: &str) -> bool {
        self == Self::Plain && memchr::memchr2(b'\r', b'\n', text.as_bytes()).is_none()
    }

    /// Decodes the notation and skips line breaks. Calls `take` with each byte and its position in the text.
    pub(super) fn decode(self, text: &str, mut take: impl FnMut(u8, Range<usize>)) {
        let bytes = text.as_bytes();
        let mut at = 0;
        while let Some(&first) = bytes.get(at) {
            let escape = match (self, first) {
                (Self::Percent | Self::Form, b'%') => percent(&bytes[at..]),
                (Self::Form, b'+') => Some(Escape::byte(b' ', 1)),
                (Self::Json, b'\\') => json(&bytes[at..]),
                _ => None,
            };
            // A malformed escape stands for itself.
            let escape = escape.unwrap_or(Escape::byte(first, 1));
            let end = at + escape.length;
            for byte in escape.bytes.into_iter().take(escape.count) {
                if !matches!(byte, b'\r' | b'\n') {
                    take(byte, at..end);
                }
            }
            at = end;
        }
    }
}

struct Escape {
    bytes: [u8; 4],
    /// The number of bytes that it stands for.
    count: usize,
    /// The length of the escape.
    length: usize,
}

impl Escape {
    fn byte(byte: u8, length: usize) -> Self {
        Self {
            bytes: [byte, 0, 0, 0],
            count: 1,
            length,
        }
    }

    fn character(character: char, length: usize) -> Self {
        let mut bytes = [0; 4];
        let count = character.encode_utf8(&mut bytes).len();
        Self {
            bytes,
            count,
            length,
        }
    }
}

/// Parses `%41` at the start.
fn percent(text: &[u8]) -> Option<Escape> {
    let byte = u8::try_from(hexadecimal(text.get(1..3)?)?).ok()?;
    Some(Escape::byte(byte, 3))
}

/// Parses a JSON escape at the start.
fn json(text: &[u8]) -> Option<Escape> {
    let byte = match text.get(1)? {
        b'u' => return unicode(text),
        b'b' => 0x08,
        b'f' => 0x0c,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        other @ (b'"' | b'\\' | b'/') => *other,
        _ => return None,
    };
    Some(Escape::byte(byte, 2))
}

/// Parses `\u0041` at the start, or a surrogate pair.
fn unicode(text: &[u8]) -> Option<Escape> {
    let unit = |at: usize| {
        let escape = text.get(at..at + 6)?.strip_prefix(b"\\u")?;
        hexadecimal(escape)
    };
    let first = unit(0)?;
    if let Some(character) = char::from_u32(first.into()) {
        return Some(Escape::character(character, 6));
    }
    // Half of a surrogate pair is not a character.
    let mut characters = char::decode_utf16([first, unit(6)?]);
    let character = characters.next()?.ok()?;
    Some(Escape::character(character, 12))
}

fn hexadecimal(digits: &[u8]) -> Option<u16> {
    digits.iter().try_fold(0, |number: u16, digit| {
        let digit = char::from(*digit).to_digit(16)?;
        Some(number << 4 | u16::try_from(digit).ok()?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(notation: Notation, text: &str) -> String {
        let mut bytes = Vec::new();
        notation.decode(text, |byte, _| bytes.push(byte));
        String::from_utf8_lossy(&bytes).into_owned()
    }

    #[test]
    fn each_notation_is_decoded() {
        let cases = [
            (Notation::Plain, "a%41\r\n\\u0041+ä", "a%41\\u0041+ä"),
            (Notation::Percent, "a%41%c3%A4%0d%0A+%4", "aAä+%4"),
            (Notation::Form, "a%20b+c", "a b c"),
            (Notation::Json, r#"\"\\\/\t\r\n"#, "\"\\/\t"),
            (
                Notation::Json,
                r"\u0041\u00e4\ud83d\ude00\ud83d\x\",
                "Aä😀\\ud83d\\x\\",
            ),
        ];
        for (notation, text, expected) in cases {
            assert_eq!(decoded(notation, text), expected, "{notation:?} {text}");
        }
    }
}
