//! Repairs text that a server wrote incorrectly. Invalid UTF-8 and lone surrogates become U+FFFD, because
//! they break the parsers of many clients, and control characters that are raw in a string are
//! escaped, which keeps their meaning. Everything else is left exactly as it came.

use bytes::Bytes;
use rawjson::{
    CheckedPart, RawJson, Scanner,
    repair::{escape_controls, replace_invalid_utf8, replace_lone_surrogates},
};

use super::{
    lines::BYTE_ORDER_MARK,
    message::{Envelope, Message, ParseError, Scanned},
};

/// Parses a message of a server, repaired where that is possible.
pub fn parse_repaired(frame: &Bytes) -> Result<Message, ParseError> {
    let scanned = Envelope::scan(frame, None)?;
    if scanned.utf8.is_err() {
        // The replaced text is valid UTF-8, so this recurses once.
        return parse_repaired(&replace_invalid_utf8(frame));
    }
    repaired(frame, scanned)
}

/// Parses a message of a server. What is relayed of it has to fit on one line, so white space between tokens
/// goes if there is a line end in it; otherwise every byte stays.
pub(crate) fn parse_on_one_line(text: &Bytes) -> Result<Message, ParseError> {
    parse_checked(text, None)
}

/// Does the same as [`parse_on_one_line`] for a text of which a part was checked while it arrived.
pub(crate) fn parse_checked(
    text: &Bytes,
    checked: Option<&CheckedPart>,
) -> Result<Message, ParseError> {
    if let Some(unmarked) = text.strip_prefix(BYTE_ORDER_MARK) {
        // A text that is checked while it arrives begins with JSON.
        return parse_checked(&text.slice_ref(unmarked), None);
    }
    let scanner = Scanner::with_checked(text, checked);
    let scanned = Envelope::scan_with(scanner, text, None)?;
    if scanned.has_line_ends {
        let value = RawJson::trusted(text.clone());
        return parse_repaired(value.minified().as_bytes());
    }
    if scanned.utf8.is_err() {
        return parse_repaired(&replace_invalid_utf8(text));
    }
    repaired(text, scanned)
}

fn repaired(frame: &Bytes, scanned: Scanned) -> Result<Message, ParseError> {
    // The usual case, in which nothing is copied.
    if !scanned.flaws.any() {
        return Ok(scanned.envelope.into_message(frame)?);
    }
    let mut text = frame.to_vec();
    if scanned.flaws.raw_control {
        text = escape_controls(&text);
    }
    replace_lone_surrogates(&mut text);
    // Repairs change lengths, so the positions of the first scan are no longer right.
    Message::parse(&text.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_put_on_one_line_only_if_it_is_not() {
        let cases = [
            (
                r#"{"jsonrpc":"2.0", "method":"x","params":{ "a" : 1.0 }}"#,
                r#"{ "a" : 1.0 }"#,
            ),
            (
                "\u{feff}{\"jsonrpc\":\"2.0\",\r\n \"method\":\"x\",\n\"params\":{\n\t\"a\" : \"b \\\" c\",\n\"d\":1.00}}\n",
                r#"{"a":"b \" c","d":1.00}"#,
            ),
            (
                "{\"jsonrpc\":\"2.0\",\"method\":\"x\",\n\"params\":{\"a\":\"b\nc\\ud800\"}}",
                r#"{"a":"b\u000ac\ufffd"}"#,
            ),
        ];
        for (text, params) in cases {
            let message = parse_on_one_line(&Bytes::from(text)).unwrap();
            let Message::Notification(notification) = message else {
                panic!("{message:?}");
            };
            assert_eq!(notification.params.unwrap().as_str(), params);
        }
        for broken in [
            "",
            "\n",
            "{\n",
            "[\"a\n\"",
            "{\"jsonrpc\":\"2.0\",\n\"x\":\"}",
        ] {
            assert!(
                parse_on_one_line(&Bytes::from(broken)).is_err(),
                "{broken:?}"
            );
        }
    }
}
