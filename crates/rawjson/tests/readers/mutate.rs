//! Mutated JSON text from a seed, and its comparison: the scanner, a reader that takes one byte at a time, and serde must agree.

use bytes::Bytes;
use rawjson::{Kind, MAX_DEPTH, RawJson, ScanError, Scanner};
use serde::de::IgnoredAny;

use super::scalar;

/// Texts that mutations begin with. Strings of all lengths around the size of a block, with everything that a string may have.
const SEEDS: [&str; 12] = [
    r#"{"jsonrpc":"2.0","id":12345,"method":"tools/call","params":{"name":"use_tool","arguments":{"tool":{"toolbox":"a","server":"b"},"x":[1,-2.5e+7,true,null]}}}"#,
    r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"line one\nline \"two\"\n\tC:\\data\\a\\ \u00e9 \ud83d\ude00 end of the text that is long enough for two blocks"}]}}"#,
    r#"["\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\""]"#,
    r#""\ud83d\ude00\ud83d\ude00\ud83d\ude00\ud83d\ude00\ud83d\ude00\ud83d\ude00\ud83d\ude00\ud83d\ude00\ud83d\ude00\ud83d\ude00\ud83d\ude00\ud800\udc00\udc00""#,
    r#"{"a":"Über den Dächern der Stadt lag am frühen Morgen noch Nebel, und wer früh genug kam, sah „nichts“ 朝の駅は静かで 🚀🎉 thanks"}"#,
    r#"[[[[[["a"]],{"b":{"c":[{}]}}]]],"\/\b\f\n\r\t\"\\","",[],{}]"#,
    "\r\n\t { \"a\" : [ 0 , 0.0 , 1E+1 , -0 , 10 ] , \"\" : { } }\n",
    r#"["0123456789abcd\n","0123456789abcde\n","0123456789abcdef\n","0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde\\","0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\""]"#,
    r#""xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx""#,
    r#"{"k\u0065y":"{\"id\":1,\"tags\":[\"new\",\"\\\"quoted\\\"\",\"a\\\\b\"],\"note\":\"first line\\nsecond line\"}","k\u0065y":2}"#,
    "true",
    "-12.75e-3",
];

/// The pieces that mutations put in.
const PIECES: [&[u8]; 28] = [
    b"\"",
    b"\\",
    b"\\\\",
    b"\\\"",
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b"0",
    b"-",
    b".",
    b"e",
    b"\0",
    b"\x1f",
    b"\t",
    b"\n",
    b"\\u",
    b"\\ud800",
    b"\\udc00",
    b"\\u00e9",
    b"null",
    b"\xff",
    b"\xf0\x9f",
    b"\xc3",
    "é".as_bytes(),
    b"\xed\xa0\x80",
];

/// A source of numbers that is the same for the same seed.
pub(crate) struct Numbers(u64);

impl Numbers {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// Returns a number below `end`.
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap_or_default() % end.max(1)
    }
}

/// Puts a new text into a buffer.
pub(crate) fn mutated(numbers: &mut Numbers, text: &mut Vec<u8>) {
    let seed = |numbers: &mut Numbers| SEEDS[numbers.below(SEEDS.len())].as_bytes();
    text.clear();
    text.extend_from_slice(seed(numbers));
    for _ in 0..numbers.below(5) {
        let at = numbers.below(text.len() + 1);
        match numbers.below(8) {
            0..3 => {
                let piece = PIECES[numbers.below(PIECES.len())];
                text.splice(at..at, piece.iter().copied());
            }
            3 => {
                let end = (at + numbers.below(20)).min(text.len());
                text.drain(at..end);
            }
            4 if at < text.len() => text[at] = u8::try_from(numbers.below(256)).unwrap_or_default(),
            // Moves what follows to other places of their blocks, and makes strings of many plain blocks.
            5 => {
                let moved = numbers.below(600);
                text.splice(at..at, std::iter::repeat_n(b'x', moved));
            }
            6 => {
                let other = seed(numbers);
                let start = numbers.below(other.len());
                text.splice(at..at, other[start..].iter().copied());
            }
            _ => {
                let piece = PIECES[numbers.below(6)];
                let run = numbers.below(70);
                text.splice(at..at, piece.iter().copied().cycle().take(run));
            }
        }
    }
}

/// Checks that all readers agree on a text; returns whether it is JSON.
///
/// # Panics
/// If they do not agree.
pub(crate) fn compare(text: &Bytes) -> bool {
    let scanned = RawJson::parse(text);
    let expected = scalar::read(text, MAX_DEPTH);
    let by_serde =
        serde_json::from_slice::<IgnoredAny>(text).is_ok() && std::str::from_utf8(text).is_ok();
    let shown = || text.escape_ascii();
    match (&scanned, &expected) {
        (Ok(value), Ok(expected)) => {
            assert!(by_serde, "serde refuses {}", shown());
            assert_eq!(
                value.as_bytes(),
                &text[expected.value.clone()],
                "{}",
                shown()
            );
            assert_eq!(children(value), slices(text, expected), "{}", shown());
            assert_eq!(
                has_lone_surrogate(text),
                expected.lone_surrogate,
                "{}",
                shown()
            );
        }
        (Err(ScanError::Syntax(at)), Err(Some(place))) => {
            assert!(!by_serde, "serde accepts {}", shown());
            assert_eq!(at, place, "{}", shown());
        }
        // Serde has a limit of its own.
        (Err(ScanError::TooDeep), Err(None)) => {}
        _ => panic!("{scanned:?} {expected:?} {}", shown()),
    }
    scanned.is_ok()
}

fn children(value: &RawJson) -> Vec<Bytes> {
    let of = |values: Vec<RawJson>| values.iter().map(|it| it.as_bytes().clone()).collect();
    match value.kind() {
        Kind::Array => of(value.elements().unwrap_or_default()),
        Kind::Object => {
            let members = value.members().unwrap_or_default();
            of(members.into_iter().map(|member| member.value).collect())
        }
        _ => Vec::new(),
    }
}

fn slices(text: &Bytes, expected: &scalar::Scalar) -> Vec<Bytes> {
    let places = expected.children.iter();
    places.map(|place| text.slice(place.clone())).collect()
}

fn has_lone_surrogate(text: &[u8]) -> bool {
    let mut scanner = Scanner::new(text);
    let start = scanner.blanks(0);
    scanner.value(start, 0).is_ok() && scanner.flaws.lone_surrogate
}
