//! Writes log lines as JSON bytes. Characters that a terminal could interpret, or that hide text, are escaped.

use std::{borrow::Cow, io::Write};

use rawjson::{Cursor, Kind, RawJson};

use crate::{config::Secrets, visible::is_unseen};

/// Appends a string with its quotes.
pub(crate) fn write_text(line: &mut Vec<u8>, text: &str) {
    line.push(b'"');
    // Without a branch per byte the compiler compares many bytes at once.
    if text.bytes().fold(true, |all, byte| all & is_plain(byte)) {
        line.extend_from_slice(text.as_bytes());
    } else {
        text.chars().for_each(|it| write_character(line, it));
    }
    line.push(b'"');
}

/// Appends a value without white space, with secrets replaced in strings and keys. Appends nothing and returns
/// false if the value cannot be read.
pub(crate) fn write_redacted(line: &mut Vec<u8>, value: &RawJson, secrets: &Secrets) -> bool {
    let start = line.len();
    let written = write_at(line, &mut Cursor::new(value), secrets);
    if written.is_none() {
        line.truncate(start);
    }
    written.is_some()
}

/// Replaces the secrets of a text, and cuts it to `most` characters.
pub(crate) fn redact_and_cut<'a>(
    text: Cow<'a, str>,
    secrets: &Secrets,
    most: usize,
) -> Cow<'a, str> {
    let redacted = match secrets.redact(&text) {
        Cow::Owned(redacted) => Some(redacted),
        Cow::Borrowed(_) => None,
    };
    let text = redacted.map_or(text, Cow::Owned);
    // A character has at least one byte, so a short text needs no counting.
    if text.len() <= most {
        return text;
    }
    match text.char_indices().nth(most) {
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
        None => text,
    }
}

/// Returns true if a byte needs no escape.
fn is_plain(byte: u8) -> bool {
    matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\'
}

fn write_character(line: &mut Vec<u8>, character: char) {
    let mut as_it_is = [0; 4];
    let written: &[u8] = match character {
        '"' => br#"\""#,
        '\\' => br"\\",
        '\n' => br"\n",
        '\r' => br"\r",
        '\t' => br"\t",
        '\u{8}' => br"\b",
        '\u{c}' => br"\f",
        _ if is_unseen(character) => {
            // JSON escapes characters beyond U+FFFF as two units.
            for unit in character.encode_utf16(&mut [0; 2]) {
                write!(line, "\\u{unit:04x}").expect("writing to memory cannot fail");
            }
            return;
        }
        _ => character.encode_utf8(&mut as_it_is).as_bytes(),
    };
    line.extend_from_slice(written);
}

fn write_at(line: &mut Vec<u8>, cursor: &mut Cursor<'_>, secrets: &Secrets) -> Option<()> {
    let mut is_first = true;
    match cursor.kind()? {
        Kind::String => write_text(line, &secrets.redact(&cursor.any_text()?)),
        Kind::Array => {
            line.push(b'[');
            cursor.elements(|cursor| {
                separate(line, &mut is_first);
                write_at(line, cursor, secrets)
            })?;
            line.push(b']');
        }
        Kind::Object => {
            line.push(b'{');
            cursor.members_with_any_keys(|cursor, key| {
                separate(line, &mut is_first);
                write_text(line, &secrets.redact(&key));
                line.push(b':');
                write_at(line, cursor, secrets)
            })?;
            line.push(b'}');
        }
        Kind::Null | Kind::Boolean | Kind::Number => line.extend_from_slice(cursor.written()?),
    }
    Some(())
}

/// Appends a comma, except before the first element.
pub(super) fn separate(line: &mut Vec<u8>, is_first: &mut bool) {
    if !std::mem::take(is_first) {
        line.push(b',');
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn text(text: &str) -> String {
        let mut line = Vec::new();
        write_text(&mut line, text);
        String::from_utf8(line).unwrap()
    }

    #[test]
    fn a_text_is_on_one_line_and_hides_nothing() {
        let hidden = "a\nb\u{1b}[2J\u{202E}\u{E0041}\u{9b}\u{7f}\u{8}\u{c}\r\t\"\\ü👍";
        let expected = r#""a\nb\u001b[2J\u202e\udb40\udc41\u009b\u007f\b\f\r\t\"\\ü👍""#;
        assert_eq!(text(hidden), expected);
        assert_eq!(text("plain"), r#""plain""#);
    }

    #[test]
    fn values_contain_no_secrets_however_they_are_written() {
        let mut secrets = Secrets::default();
        secrets.add("TOKEN", "hunter2-\"hunter2");
        let value = concat!(
            r#"{ "a" : [ "x hunter2-\"hunter2 y", "\u0068unter2-\u0022hunter2", 1.50, null, true ],"#,
            "\n",
            r#" "hunter2-\u0022hunter2": {"b": 1}, "e": [], "o": { } }"#
        );
        let value = RawJson::parse(&value.to_owned().into()).unwrap();
        let mut line = Vec::new();
        assert!(write_redacted(&mut line, &value, &secrets));
        let expected = concat!(
            r#"{"a":["x [redacted] y","[redacted]",1.50,null,true],"#,
            r#""[redacted]":{"b":1},"e":[],"o":{}}"#
        );
        assert_eq!(String::from_utf8(line).unwrap(), expected);
    }

    #[test]
    fn long_texts_are_cut_after_their_secrets_are_replaced() {
        let mut secrets = Secrets::default();
        secrets.add("TOKEN", "hunter2");
        let cases = [
            ("short", "short"),
            ("üüüüüüüüüü", "üüüüüüüüüü"),
            ("abcdefghijk", "abcdefghij…"),
            ("1234hunter2", "1234[redac…"),
        ];
        for (text, expected) in cases {
            assert_eq!(redact_and_cut(text.into(), &secrets, 10), expected);
        }
    }

    proptest! {
        #[test]
        fn any_text_can_be_read_back(any in "\\PC*|[\\x00-\\x7f]*") {
            let value = json!({ any.as_str(): [any.as_str()] });
            let mut line = Vec::new();
            let raw = RawJson::of(&value);
            prop_assert!(write_redacted(&mut line, &raw, &Secrets::default()));
            let line = String::from_utf8(line).unwrap();
            prop_assert!(!line.chars().any(is_unseen), "{line:?}");
            prop_assert_eq!(serde_json::from_str::<Value>(&line).unwrap(), value);
        }
    }
}
