//! A text that was checked while it arrived is judged like one that is checked at once.

use proptest::prelude::*;

use crate::{CheckedPart, Flaws, ScanError, Scanner};

/// Returns what a scan finds: the end, the flaws, and whether the text is UTF-8.
fn scanned(text: &[u8], checked: Option<&CheckedPart>) -> (Result<usize, ScanError>, Flaws, bool) {
    let mut scanner = Scanner::with_checked(text, checked);
    let end = scanner.value(0, 0).map_err(ScanError::from);
    (end, scanner.flaws, scanner.check_utf8().is_ok())
}

/// Returns the part that is checked of a text that arrives up to each of these positions in turn.
fn arrived(text: &[u8], cuts: &[usize]) -> Option<CheckedPart> {
    let mut part: Option<CheckedPart> = None;
    for cut in cuts {
        let text = &text[..*cut];
        match &mut part {
            Some(part) => {
                let end = part.extend(text);
                let newline = text[part.start..].iter().position(|byte| *byte == b'\n');
                let newline = newline.map_or(text.len(), |at| part.start + at);
                assert!(end <= newline);
            }
            None => part = CheckedPart::begin(text),
        }
    }
    part
}

/// Texts of a string in an array, of pieces that matter in strings.
fn texts() -> impl Strategy<Value = Vec<u8>> {
    let pieces: [&[u8]; 17] = [
        &[b'x'; 450],
        b"abcdefgh",
        b"abcdefghijklmnopqrstuvwxyz0123456789",
        "äöü€🚀".as_bytes(),
        b"\\\\",
        b"\\\\\\",
        b"\\\"",
        b"\\n",
        b"\\u00e4",
        b"\\ud83d\\ude00",
        b"\\ud83d",
        b"\\ude00",
        b"\xff",
        b"\n",
        b"\t",
        b"\",\"",
        b"\\x",
    ];
    let common = prop::sample::select(pieces[..10].to_vec());
    let any = prop::sample::select(pieces.to_vec());
    let piece = prop_oneof![40 => common, 1 => any];
    (
        prop::collection::vec(piece, 0..80),
        prop::sample::select(vec!["[\"", "{\"a\":1,\"text\":\"", "\"", "[1,2"]),
        prop::sample::select(vec!["\"]", "\"}", "\"", "", "\"] x"]),
    )
        .prop_map(|(pieces, before, after)| {
            [before.as_bytes(), &pieces.concat(), after.as_bytes()].concat()
        })
}

proptest! {
    #[test]
    fn a_text_is_judged_alike_however_it_arrives(
        text in texts(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 1..12),
    ) {
        let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(text.len() + 1)).collect();
        cuts.sort_unstable();
        let part = arrived(&text, &cuts);
        prop_assert_eq!(scanned(&text, part.as_ref()), scanned(&text, None));
    }
}

#[test]
fn all_of_a_long_string_but_its_end_is_checked_while_it_arrives() {
    let text = format!("[\"{}\"]", "0123456789\\n".repeat(1000));
    let cuts: Vec<_> = (500..text.len()).step_by(100).chain([text.len()]).collect();
    let part = arrived(text.as_bytes(), &cuts).unwrap();
    assert!(part.start < 200 && part.end + 200 > text.len(), "{part:?}");
}

#[test]
fn a_text_that_is_not_cut_in_a_long_string_has_no_such_part() {
    let long = "x".repeat(1000);
    for text in [
        format!("[\"{long}\"]"),
        format!("[\"{long}\","),
        format!("[\"{long}\",1"),
        format!("{long}\"{long}"),
        format!("[\"{long}\",\"short"),
        String::new(),
    ] {
        assert_eq!(CheckedPart::begin(text.as_bytes()), None, "{text}");
    }
}
