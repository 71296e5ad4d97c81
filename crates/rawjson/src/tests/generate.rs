//! Generated JSON text, and text that was JSON before somebody broke it.

use std::ops::Range;

use proptest::{prelude::*, sample::Index};

/// Any characters and escapes that a string may hold; every surrogate has its partner.
const CLEAN_STRING: &str = concat!(
    r#""([^"\\\x00-\x1f]|\\["\\/bfnrt]|\\u00[0-9a-fA-F]{2}|\\u[1-9a-cA-Ce-fE-F][0-9a-f]{3}"#,
    r#"|\\u[dD][0-7][0-9A-F]{2}|\\u[dD][89abAB][0-9a-f]{2}\\u[dD][c-fC-F][0-9a-f]{2}){0,6}""#
);

/// The same, and surrogates without their partner.
const ODD_STRING: &str = r#""([^"\\\x00-\x1f]|\\["\\/bfnrt]|\\u[dD][89a-fA-F][0-9a-f]{2}){0,6}""#;

/// Every form of a number, those that no machine type holds included.
const NUMBER: &str = r"-?(0|[1-9][0-9]{0,30})(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,3})?";

/// The tokens of one JSON value.
pub(crate) type Tokens = Vec<String>;

/// Values in which every string is valid.
pub(crate) fn clean_tokens() -> BoxedStrategy<Tokens> {
    tokens(CLEAN_STRING)
}

/// Values in which strings may hold lone surrogates.
pub(crate) fn odd_tokens() -> BoxedStrategy<Tokens> {
    tokens(ODD_STRING)
}

/// A string as JSON text.
pub(crate) fn clean_string() -> impl Strategy<Value = String> {
    CLEAN_STRING
}

/// A number as JSON text.
pub(crate) fn number() -> impl Strategy<Value = String> {
    NUMBER
}

fn tokens(string: &'static str) -> BoxedStrategy<Tokens> {
    let words = prop::sample::select(vec!["null", "true", "false"]).prop_map(str::to_owned);
    let leaf = prop_oneof![words, NUMBER, string].prop_map(|token| vec![token]);
    leaf.prop_recursive(4, 32, 5, move |inner| {
        prop_oneof![array(inner.clone(), 0..5), object(string, inner, 0..5)]
    })
    .boxed()
}

fn array(
    inner: impl Strategy<Value = Tokens>,
    size: Range<usize>,
) -> impl Strategy<Value = Tokens> {
    prop::collection::vec(inner, size).prop_map(|elements| enclose("[", elements, "]"))
}

fn object(
    key: &'static str,
    inner: impl Strategy<Value = Tokens>,
    size: Range<usize>,
) -> impl Strategy<Value = Tokens> {
    prop::collection::vec((key, inner), size).prop_map(|members| {
        let members = members.into_iter().map(|(key, value)| {
            let mut member = vec![key, ":".to_owned()];
            member.extend(value);
            member
        });
        enclose("{", members.collect(), "}")
    })
}

fn enclose(open: &str, parts: Vec<Tokens>, close: &str) -> Tokens {
    let mut tokens = vec![open.to_owned()];
    for (index, part) in parts.into_iter().enumerate() {
        if index > 0 {
            tokens.push(",".to_owned());
        }
        tokens.extend(part);
    }
    tokens.push(close.to_owned());
    tokens
}

/// An object and its text.
pub(crate) fn object_text() -> impl Strategy<Value = String> {
    object(CLEAN_STRING, clean_tokens(), 0..5).prop_map(|tokens| tokens.concat())
}

/// Members as key and value, each as JSON text.
pub(crate) fn members() -> impl Strategy<Value = Vec<(String, String)>> {
    let value = clean_tokens().prop_map(|tokens| tokens.concat());
    prop::collection::vec((CLEAN_STRING, value), 0..6)
}

/// White space to put between tokens, taken in turn.
pub(crate) fn gaps() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec("[ \t\r\n]{0,3}", 1..8)
}

/// The tokens with white space around each.
pub(crate) fn spaced(tokens: &[String], gaps: &[String]) -> String {
    let mut gaps = gaps.iter().cycle();
    let mut gap = || gaps.next().map_or("", String::as_str);
    let mut text = gap().to_owned();
    for token in tokens {
        text.push_str(token);
        text.push_str(gap());
    }
    text
}

/// Damage to a text on its way.
#[derive(Debug, Clone)]
enum Damage {
    Insert(Index, Vec<u8>),
    Delete(Index),
    Replace(Index, u8),
    Cut(Index),
}

/// JSON text, most of it broken in a few places.
pub(crate) fn damaged() -> impl Strategy<Value = Vec<u8>> {
    let text = (odd_tokens(), gaps()).prop_map(|(tokens, gaps)| spaced(&tokens, &gaps));
    (text, prop::collection::vec(damage(), 0..4)).prop_map(|(text, damages)| {
        let mut text = text.into_bytes();
        for damage in damages {
            apply(&mut text, &damage);
        }
        text
    })
}

fn damage() -> impl Strategy<Value = Damage> {
    let pieces: [&[u8]; 20] = [
        b"\"",
        b"\\",
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
        b"\\u",
        b"\\ud800",
        b"null",
        b"\xff",
        b"\xf0\x9f",
    ];
    let piece = prop::sample::select(pieces.map(<[u8]>::to_vec).to_vec());
    prop_oneof![
        (any::<Index>(), piece).prop_map(|(at, piece)| Damage::Insert(at, piece)),
        any::<Index>().prop_map(Damage::Delete),
        any::<(Index, u8)>().prop_map(|(at, byte)| Damage::Replace(at, byte)),
        any::<Index>().prop_map(Damage::Cut),
    ]
}

fn apply(text: &mut Vec<u8>, damage: &Damage) {
    let end = text.len() + 1;
    match damage {
        Damage::Insert(at, piece) => {
            let at = at.index(end);
            text.splice(at..at, piece.iter().copied());
        }
        Damage::Delete(at) if !text.is_empty() => {
            text.remove(at.index(text.len()));
        }
        Damage::Replace(at, byte) if !text.is_empty() => {
            let at = at.index(text.len());
            text[at] = *byte;
        }
        Damage::Cut(at) => text.truncate(at.index(end)),
        Damage::Delete(_) | Damage::Replace(..) => {}
    }
}
