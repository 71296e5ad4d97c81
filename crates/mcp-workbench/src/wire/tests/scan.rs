//! Broken and deep text in messages, read in both ways.

use bytes::Bytes;
use proptest::prelude::*;
use rawjson::{MAX_DEPTH, RawJson, ScanError};
use serde::de::IgnoredAny;

use super::{
    super::{Message, ParseError, parse_repaired},
    generate::damaged,
};

fn is_json(text: &[u8]) -> bool {
    std::str::from_utf8(text).is_ok() && serde_json::from_slice::<IgnoredAny>(text).is_ok()
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        let bytes = Bytes::from(bytes);
        let json = RawJson::parse(&bytes).is_ok();
        let message = Message::parse(&bytes).is_ok();
        let repaired = parse_repaired(&bytes).is_ok();
        prop_assert!(!message || (json && repaired));
    }

    #[test]
    fn no_damaged_envelope_makes_it_panic(text in damaged(), key in 0_usize..6) {
        let key = [r"a\u0062", r"a\n", "jsonrpc", "id", "method", "params"][key];
        let mut frame = format!("{{\"{key}").into_bytes();
        frame.extend(text);
        let frame = Bytes::from(frame);
        let message = Message::parse(&frame).is_ok();
        let repaired = parse_repaired(&frame).is_ok();
        prop_assert!(!message || (repaired && is_json(&frame)));
    }
}

#[test]
fn depth_counts_from_the_message() {
    let message = |depth| {
        let params = ["[".repeat(depth), "]".repeat(depth)].concat();
        format!(r#"{{"jsonrpc":"2.0","method":"m","params":{params}}}"#)
    };
    let fits = Bytes::from(message(MAX_DEPTH - 1));
    assert!(Message::parse(&fits).is_ok() && parse_repaired(&fits).is_ok());
    let too_deep = Bytes::from(message(MAX_DEPTH));
    let refused = Err(ParseError::NotJson(ScanError::TooDeep));
    assert_eq!(Message::parse(&too_deep), refused);
    assert_eq!(parse_repaired(&too_deep), refused);
}
