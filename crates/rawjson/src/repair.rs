//! Repair of text that is JSON but for a few bytes inside of strings. Every other byte stays as it is.

use bytes::Bytes;

use crate::scan::{hex4, low_surrogate_follows};

/// Returns the text with U+FFFD for each invalid UTF-8 sequence. That does not change the structure of the JSON.
pub fn replace_invalid_utf8(text: &[u8]) -> Bytes {
    String::from_utf8_lossy(text).into_owned().into()
}

/// Turns every lone surrogate escape into `\ufffd`, which has the same length.
pub fn replace_lone_surrogates(text: &mut [u8]) {
    let mut at = 0;
    while let Some(found) = memchr::memchr(b'\\', &text[at..]) {
        at += found;
        let unit = (text.get(at + 1) == Some(&b'u'))
            .then(|| hex4(text, at + 2))
            .flatten();
        at += match unit {
            Some(0xD800..=0xDBFF) if low_surrogate_follows(text, at + 6) => 12,
            Some(0xD800..=0xDFFF) => {
                text[at + 2..at + 6].copy_from_slice(b"fffd");
                6
            }
            // A backslash and the byte that it escapes.
            _ => 2,
        };
        // The text may end with a backslash.
        at = at.min(text.len());
    }
}

/// Escapes the control characters in strings. White space between tokens stays.
pub fn escape_controls(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() + 64);
    let mut in_string = false;
    let mut escaped = false;
    for &byte in text {
        if in_string && byte < 0x20 {
            out.extend_from_slice(format!("\\u{byte:04x}").as_bytes());
            escaped = false;
            continue;
        }
        match byte {
            b'"' if !escaped => in_string = !in_string,
            _ => {}
        }
        escaped = in_string && byte == b'\\' && !escaped;
        out.push(byte);
    }
    out
}
