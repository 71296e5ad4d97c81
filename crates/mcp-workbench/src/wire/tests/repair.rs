//! Repair: invalid text is corrected, and everything else stays unchanged.

use bytes::Bytes;
use proptest::prelude::*;
use rawjson::{RawJson, ScanError};
use serde_json::Value;

use super::{
    super::{Answer, Message, ParseError, Response, parse_repaired},
    generate::{damaged, object_text},
};

fn answer(result: &[u8]) -> Bytes {
    let mut frame = br#"{"jsonrpc":"2.0","id":1,"result":"#.to_vec();
    frame.extend_from_slice(result);
    frame.push(b'}');
    frame.into()
}

fn repaired(result: &[u8]) -> Option<RawJson> {
    match parse_repaired(&answer(result)) {
        Ok(Message::Response(Response {
            answer: Answer::Result(result),
            ..
        })) => Some(result),
        _ => None,
    }
}

/// Strings with everything that can be wrong with them, none of it beyond repair.
fn flawed_string() -> impl Strategy<Value = Vec<u8>> {
    let pieces: [&[u8]; 14] = [
        b"a",
        b"\\\"",
        b"\\\\",
        b"\\n",
        b"\\u0041",
        b"\\ud800",
        b"\\uDFFF",
        b"\\ud83d\\ude00",
        b"\t",
        b"\0",
        b"\x1f",
        b"\xff",
        b"\xed\xa0\x80",
        "\u{1f600}".as_bytes(),
    ];
    let piece = prop::sample::select(pieces.map(<[u8]>::to_vec).to_vec());
    prop::collection::vec(piece, 0..8)
        .prop_map(|pieces| [b"\"", &pieces.concat()[..], b"\""].concat())
}

/// Members with flaws on both sides of the colon, joined by commas.
fn flawed_members() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec((flawed_string(), flawed_string()), 1..4).prop_map(|members| {
        let members = members
            .into_iter()
            .map(|(key, value)| [key, value].join(&b':'));
        members.collect::<Vec<_>>().join(&b',')
    })
}

fn flawed_object() -> impl Strategy<Value = Vec<u8>> {
    flawed_members().prop_map(|members| [b"{", &members[..], b"}"].concat())
}

proptest! {
    #[test]
    fn valid_text_is_not_changed(object in object_text()) {
        let frame = answer(object.as_bytes());
        let found = repaired(object.as_bytes()).unwrap();
        prop_assert_eq!(found.as_str(), &object);
        prop_assert_eq!(parse_repaired(&frame), Message::parse(&frame));
    }

    #[test]
    fn every_flaw_is_repaired(object in flawed_object()) {
        let repaired = repaired(&object).expect("nothing in it is beyond repair");
        prop_assert!(serde_json::from_slice::<Value>(repaired.as_bytes()).is_ok(), "{repaired:?}");
    }

    #[test]
    fn repairing_twice_changes_nothing(object in flawed_object()) {
        let once = repaired(&object).unwrap();
        prop_assert_eq!(repaired(once.as_bytes()).unwrap(), once);
    }

    #[test]
    fn a_flaw_in_the_envelope_is_repaired(
        members in flawed_members(),
        method in flawed_string(),
    ) {
        let frame = [b"{", &members[..], b",\"jsonrpc\":\"2.0\",\"method\":", &method, b"}"].concat();
        let frame = Bytes::from(frame);
        let clean = frame.iter().all(|byte| *byte >= 0x20) && std::str::from_utf8(&frame).is_ok();
        prop_assert_eq!(Message::parse(&frame).is_ok(), clean);
        let Ok(Message::Notification(notification)) = parse_repaired(&frame) else {
            return Err(TestCaseError::fail("nothing in it is beyond repair"));
        };
        let object = repaired(&[b"{\"m\":", &method[..], b"}"].concat()).unwrap();
        let value = object.member("m").unwrap();
        prop_assert_eq!(value.as_text().unwrap(), notification.method);
    }

    #[test]
    fn repaired_text_is_json(text in damaged()) {
        if let Some(repaired) = repaired(&text)
            && let Err(error) = serde_json::from_slice::<Value>(repaired.as_bytes())
        {
            prop_assert!(error.to_string().starts_with("number out of range"), "{error} {repaired:?}");
        }
    }
}

#[test]
fn flaws_are_repaired_in_place() {
    let cases: [(&[u8], &str); 18] = [
        (br#"{"a":"\ud800"}"#, r#"{"a":"\ufffd"}"#),
        (br#"{"a":"\uDC00x"}"#, r#"{"a":"\ufffdx"}"#),
        (br#"{"a":"\ud800\ud800"}"#, r#"{"a":"\ufffd\ufffd"}"#),
        (
            br#"{"a":"\ud800\ud83d\ude00"}"#,
            r#"{"a":"\ufffd\ud83d\ude00"}"#,
        ),
        (
            br#"{"a":"\ud83d\ude00\ude00"}"#,
            r#"{"a":"\ud83d\ude00\ufffd"}"#,
        ),
        (br#"{"a":"\ud83d \ude00"}"#, r#"{"a":"\ufffd \ufffd"}"#),
        (br#"{"a":"\ud83dude00"}"#, r#"{"a":"\ufffdude00"}"#),
        (br#"{"a":"\\ud800"}"#, r#"{"a":"\\ud800"}"#),
        (br#"{"a":"\\\ud800"}"#, r#"{"a":"\\\ufffd"}"#),
        (br#"{"\ud800":1e400}"#, r#"{"\ufffd":1e400}"#),
        (b"{\"a\":\"\t\"}", r#"{"a":"\u0009"}"#),
        (b"{\"a\":\"\0\x1f\"}", r#"{"a":"\u0000\u001f"}"#),
        (b"{\"a\":\"\\\\\t\\\"\t\"}", r#"{"a":"\\\u0009\"\u0009"}"#),
        (b"{\t\"\t\"\r:\t1 }", "{\t\"\\u0009\"\r:\t1 }"),
        (b"{\"a\":\"\xff\"}", "{\"a\":\"\u{fffd}\"}"),
        (
            b"{\"a\":\"\xed\xa0\x80\"}",
            "{\"a\":\"\u{fffd}\u{fffd}\u{fffd}\"}",
        ),
        (b"{\"a\":\"\xf0\x9f\x98\"}", "{\"a\":\"\u{fffd}\"}"),
        (
            b"{\"a\":\"\t\xff\\ud800\"}",
            "{\"a\":\"\\u0009\u{fffd}\\ufffd\"}",
        ),
    ];
    for (object, expected) in cases {
        let found = repaired(object).unwrap();
        assert_eq!(found.as_str(), expected, "{}", object.escape_ascii());
    }
}

#[test]
fn text_that_is_not_json_is_not_repaired() {
    let cases: [&[u8]; 6] = [
        b"{\"a\":\"\\\t\"}",
        b"{\"a\":\x01}",
        b"{\xff}",
        b"{\"a\":\"\\u12\"}",
        b"{\"a\":\"\xff}",
        b"{\"a\":1}\xff",
    ];
    for object in cases {
        let refused = parse_repaired(&answer(object));
        assert!(
            matches!(refused, Err(ParseError::NotJson(ScanError::Syntax(_)))),
            "{}: {refused:?}",
            object.escape_ascii()
        );
    }
}

/// A client's text is not repaired: the client gets an error instead.
#[test]
fn raw_control_characters_are_repaired_only_for_servers() {
    let frame = answer(b"{\"a\":\"\t\"}");
    assert!(matches!(
        Message::parse(&frame),
        Err(ParseError::NotJson(_))
    ));
    assert!(parse_repaired(&frame).is_ok());
}
