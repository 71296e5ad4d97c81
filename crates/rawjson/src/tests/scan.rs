//! Texts that the scanner accepts, compared with serde.

use bytes::Bytes;
use proptest::{collection::vec, prelude::*};
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::{MAX_DEPTH, RawJson, ScanError, blocks::plain_length};

use super::generate::{clean_tokens, damaged, gaps, odd_tokens, spaced};

/// The grammar of JSON as serde reads it: without a look at the range of numbers, at surrogates or
/// at depth.
fn is_json(text: &[u8]) -> bool {
    std::str::from_utf8(text).is_ok() && serde_json::from_slice::<IgnoredAny>(text).is_ok()
}

fn parse(text: impl Into<Vec<u8>>) -> Result<RawJson, ScanError> {
    RawJson::parse(&Bytes::from(text.into()))
}

fn nested(open: &str, core: &str, close: &str, depth: usize) -> String {
    format!("{}{core}{}", open.repeat(depth), close.repeat(depth))
}

proptest! {
    #[test]
    fn the_scanner_accepts_exactly_what_serde_accepts(text in damaged()) {
        prop_assert_eq!(parse(text.clone()).is_ok(), is_json(&text));
    }

    #[test]
    fn the_scanner_accepts_every_json_text(tokens in odd_tokens(), gaps in gaps()) {
        let text = spaced(&tokens, &gaps);
        let accepted = parse(text.clone()).map(|it| it.as_str().to_owned());
        prop_assert_eq!(accepted.as_deref(), Ok(text.trim_ascii()));
    }

    #[test]
    fn serde_only_refuses_more_numbers_out_of_range(tokens in clean_tokens()) {
        let text = tokens.concat();
        prop_assert!(parse(text.clone()).is_ok());
        if let Err(error) = serde_json::from_str::<Value>(&text) {
            prop_assert!(error.to_string().starts_with("number out of range"), "{error}");
        }
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        prop_assert_eq!(parse(bytes.clone()).is_ok(), is_json(&bytes));
    }
}

#[test]
fn every_form_of_a_value_is_accepted() {
    let accepted = [
        "0",
        "-0",
        "0.0",
        "-0.0e-0",
        "1E+1",
        "10",
        "1e400",
        "-1E-999",
        "[]",
        "{}",
        " [ ] ",
        "{ }",
        r#""""#,
        r#""\"""#,
        r#""\/""#,
        r#""\u0000""#,
        "[null,true,false]",
        r#"{"":{"":[]}}"#,
        r#"{"a":1,"a":2}"#,
        "\"\u{7f}\u{2028}\u{10ffff}\"",
        "\r\n\t 1 \t\r\n",
    ];
    for text in accepted {
        assert_eq!(parse(text).unwrap().as_str(), text.trim_ascii(), "{text}");
        assert!(is_json(text.as_bytes()), "{text}");
    }
}

#[test]
fn nothing_looser_is_accepted() {
    let refused = [
        "",
        " ",
        "-",
        "+1",
        "01",
        "-01",
        "1.",
        ".1",
        "1.e1",
        "1e",
        "1e+",
        "0x1",
        "1 2",
        "1,",
        "nul",
        "nulll",
        "True",
        "NaN",
        "Infinity",
        "'a'",
        r#"""#,
        r#""\"#,
        r#""\""#,
        r#""\x41""#,
        r#""\u12""#,
        r#""\u123g""#,
        r#""\u+123""#,
        r#""\U0041""#,
        "[",
        "]",
        "[1",
        "[1,]",
        "[,1]",
        "[1 2]",
        "[1}",
        "{",
        "}",
        "{1:2}",
        "{a:1}",
        r#"{"a"}"#,
        r#"{"a":}"#,
        r#"{"a":1,}"#,
        r#"{"a":1 "b":2}"#,
        r#"{"a":1]"#,
        r#"{"a" 1}"#,
        r#"{,"a":1}"#,
        "{}{}",
        "[]]",
        "\u{feff}1",
        "\u{a0}1",
        "\u{c}1",
        "1\0",
        "\"\t\"",
        "\"\0\"",
        "\"\u{1f}\"",
        "// c\n1",
        "/**/1",
    ];
    for text in refused {
        assert!(matches!(parse(text), Err(ScanError::Syntax(_))), "{text}");
        assert!(!is_json(text.as_bytes()), "{text}");
    }
}

#[test]
fn invalid_utf8_is_refused() {
    for bytes in [
        &b"\"\xff\""[..],
        b"\"\xed\xa0\x80\"",
        b"\"\xc0\x80\"",
        b"\xef\xbb",
    ] {
        assert!(
            matches!(parse(bytes), Err(ScanError::Syntax(_))),
            "{bytes:?}"
        );
    }
}

#[test]
fn a_syntax_error_names_its_place() {
    let cases = [
        ("", 0),
        (" x", 1),
        ("[1,]", 3),
        (r#"{"a" 1}"#, 5),
        (r#""\x""#, 2),
        ("[1", 2),
        ("1 2", 2),
        ("nul", 0),
        ("\"abc", 4),
        ("1.x", 2),
    ];
    for (text, place) in cases {
        assert_eq!(parse(text), Err(ScanError::Syntax(place)), "{text}");
    }
    assert_eq!(parse(b"\"a\xff\"".to_vec()), Err(ScanError::Syntax(2)));
}

/// Texts on which the two differ on purpose.
#[test]
fn some_text_that_serde_refuses_is_accepted() {
    let deep = nested("[", "", "]", MAX_DEPTH);
    for text in [
        "1e400",
        "-1e400",
        r#""\ud800""#,
        r#"["\udc00\ud800"]"#,
        &deep,
    ] {
        assert_eq!(parse(text).unwrap().as_str(), text);
        assert!(serde_json::from_str::<Value>(text).is_err(), "{text}");
    }
}

#[test]
fn depth_has_a_limit_whatever_the_containers() {
    let shapes = [
        ("[", "", "]"),
        ("[", "0", "]"),
        ("[0,", "[]", "]"),
        (r#"{"a":"#, "0", "}"),
        (r#" { "a" : 1, "b" : "#, "{}", " } "),
    ];
    for (open, core, close) in shapes {
        let core_depth = usize::from(core.starts_with(['[', '{']));
        let fits = nested(open, core, close, MAX_DEPTH - core_depth);
        assert_eq!(parse(fits.clone()).unwrap().as_str(), fits.trim_ascii());
        for surplus in [1, 2, 100_000] {
            let text = nested(open, core, close, MAX_DEPTH - core_depth + surplus);
            assert_eq!(parse(text), Err(ScanError::TooDeep), "{open} {surplus}");
            let text = nested(open, core, "", MAX_DEPTH - core_depth + surplus);
            assert_eq!(parse(text), Err(ScanError::TooDeep), "{open} {surplus}");
        }
    }
    let objects_in_arrays = nested(r#"[{"a":"#, "0", "}]", MAX_DEPTH / 2);
    assert!(parse(objects_in_arrays).is_ok());
    let one_more = nested(r#"[{"a":"#, "[0]", "}]", MAX_DEPTH / 2);
    assert_eq!(parse(one_more), Err(ScanError::TooDeep));
}

#[test]
fn many_siblings_are_not_deep() {
    let wide = format!("[{}]", vec![r#"{"a":[{}]}"#; 10_000].join(","));
    assert_eq!(parse(wide).unwrap().elements().unwrap().len(), 10_000);
}

proptest! {
    /// Wherever the first special byte is, and whatever is behind it.
    #[test]
    fn plain_text_ends_at_the_first_special_byte(
        plain in vec(prop_oneof![Just(0x20_u8), Just(0x21), Just(0x7f), Just(0x80), Just(0xff), 0x5d..=0xff_u8], 0..100),
        rest in vec(prop_oneof![Just(b'"'), Just(b'\\'), 0..0x20_u8, any::<u8>()], 0..40),
    ) {
        let mut text = plain;
        text.extend_from_slice(&rest);
        let special = |byte: &u8| *byte == b'"' || *byte == b'\\' || *byte < 0x20;
        let first = text.iter().position(special).unwrap_or(text.len());
        prop_assert_eq!(plain_length(&text), first);
    }
}
