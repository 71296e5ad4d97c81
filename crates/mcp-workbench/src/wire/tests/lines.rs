//! Any chunking of the bytes gives the same lines.

use bytes::Bytes;
use proptest::prelude::*;

use super::super::{Line, LineFramer, MAX_FRAME_BYTES, parse_checked, parse_on_one_line};

/// The size of the stored beginning and end of a line that is too long.
const EXCERPT: usize = 4096;
const MARK: &[u8] = b"\xef\xbb\xbf";

/// Returns the lines of a stream, by the rules of the contract and without optimization.
fn expected(stream: &[u8], limit: usize) -> Vec<Line> {
    let mut lines = Vec::new();
    let stream = stream.strip_prefix(MARK).unwrap_or(stream);
    for ended in stream.split(|byte| *byte == b'\n') {
        let line = ended.strip_suffix(b"\r").unwrap_or(ended);
        if line.len() > limit {
            let tail = &ended[ended.len().saturating_sub(EXCERPT)..];
            lines.push(Line::TooLong(Bytes::copy_from_slice(line)));
            lines.push(Line::TooLongEnded(Bytes::copy_from_slice(tail)));
        } else if !line.iter().all(u8::is_ascii_whitespace) {
            lines.push(Line::Complete(Bytes::copy_from_slice(line)));
        }
    }
    lines
        .into_iter()
        .map(|line| comparable(line, limit))
        .collect()
}

/// Normalizes a line. The beginning of a long line has at least the bytes that passed the limit, or an excerpt; its
/// exact length depends on the chunks.
fn comparable(line: Line, limit: usize) -> Line {
    match line {
        Line::TooLong(head) => {
            assert!(
                head.len() > limit || head.len() == EXCERPT,
                "{}",
                head.len()
            );
            Line::TooLong(head.slice(..head.len().min(limit + 1).min(EXCERPT)))
        }
        other => other,
    }
}

/// Returns the lines of the stream, read in chunks of these sizes in turn.
fn framed(stream: &[u8], chunks: &[usize], limit: usize) -> Vec<Line> {
    let mut framer = LineFramer::new(limit);
    let mut lines = Vec::new();
    let mut rest = stream;
    for size in chunks.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (chunk, more) = rest.split_at((*size).min(rest.len()));
        framer.room().extend_from_slice(chunk);
        rest = more;
        while let Some(line) = framer.next_line() {
            lines.push(line);
        }
    }
    // As a reader does at the end of a pipe.
    while let Some(line) = framer.next_line().or_else(|| framer.finish()) {
        lines.push(line);
    }
    assert_eq!(framer.finish(), None);
    lines
        .into_iter()
        .map(|line| comparable(line, limit))
        .collect()
}

fn complete(lines: &[&str]) -> Vec<Line> {
    lines
        .iter()
        .map(|line| Line::Complete(Bytes::copy_from_slice(line.as_bytes())))
        .collect()
}

/// Streams of the bytes that matter, long runs among them.
fn streams() -> impl Strategy<Value = Vec<u8>> {
    let pieces: [&[u8]; 11] = [
        b"\n", b"\n", b"\r\n", b"\r", b" ", MARK, b"{}", b"a", b"bcdefgh", b"\0", b"\xff",
    ];
    let piece = prop::sample::select(pieces.map(<[u8]>::to_vec).to_vec());
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn any_chunking_gives_the_same_lines(
        stream in streams(),
        chunks in prop::collection::vec(1_usize..12, 1..6),
        limit in 3_usize..24,
    ) {
        let lines = expected(&stream, limit);
        prop_assert_eq!(&framed(&stream, &chunks, limit), &lines);
        prop_assert_eq!(&framed(&stream, &[1], limit), &lines);
        prop_assert_eq!(&framed(&stream, &[usize::MAX], limit), &lines);
    }

    #[test]
    fn the_excerpts_of_a_long_line_are_its_ends(
        lengths in prop::collection::vec(0_usize..12_000, 1..5),
        chunks in prop::collection::vec(1_usize..9000, 1..4),
        limit in 4090_usize..6000,
    ) {
        let line = |(index, length): (usize, &usize)| {
            let digits = (index..).map(|it| b'0' + u8::try_from(it % 10).unwrap());
            digits.take(*length).chain([b'\r', b'\n']).collect::<Vec<u8>>()
        };
        let stream: Vec<u8> = lengths.iter().enumerate().flat_map(line).collect();
        prop_assert!(framed(&stream, &chunks, limit) == expected(&stream, limit));
    }
}

/// Streams of answers with long texts, some of which are broken.
fn answers() -> impl Strategy<Value = Vec<u8>> {
    let pieces = [
        "0123456789",
        "\\n",
        "\\\"",
        "\\\\",
        "\\u00e4",
        "äöü",
        "\\ud83d\\ude00",
    ];
    let flaws = ["", "", "", "", "\\ud83d", "\t", "\"", "\\x", "\n", "\r"];
    let text = prop::collection::vec(prop::sample::select(pieces.to_vec()), 1..9);
    let answer = (text, 0_usize..6000, prop::sample::select(flaws.to_vec()));
    let answer = answer.prop_map(|(text, repeats, flaw)| {
        let text = text.concat().repeat(repeats);
        let start = r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":""#;
        format!("{start}{text}{flaw}{text}\"}}]}}}}\r\n")
    });
    prop::collection::vec(answer, 1..4).prop_map(|answers| answers.concat().into_bytes())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn answers_that_are_checked_while_they_arrive_are_read_alike(
        stream in answers(),
        chunks in prop::collection::vec(1000_usize..70_000, 1..6),
    ) {
        let mut framer = LineFramer::new(1 << 20).checking();
        let (mut rest, mut sizes) = (&stream[..], chunks.iter().cycle());
        let mut lines = Vec::new();
        while !rest.is_empty() {
            let (chunk, more) = rest.split_at(rest.len().min(*sizes.next().unwrap()));
            framer.room().extend_from_slice(chunk);
            rest = more;
            while let Some(line) = framer.next_line() {
                if let Line::Complete(text) = &line {
                    let read = parse_checked(text, framer.checked());
                    prop_assert_eq!(read, parse_on_one_line(text));
                }
                lines.push(comparable(line, 1 << 20));
            }
        }
        prop_assert!(lines == expected(&stream, 1 << 20));
    }
}

#[test]
fn a_long_text_is_checked_while_it_arrives() {
    let mut framer = LineFramer::new(1 << 20).checking();
    let line = format!("[\"{}\"]\n", "0123456789".repeat(10_000));
    for chunk in line.as_bytes().chunks(8 * 1024) {
        assert_eq!(framer.next_line(), None);
        assert_eq!(framer.checked(), None);
        framer.room().extend_from_slice(chunk);
    }
    assert!(matches!(framer.next_line(), Some(Line::Complete(_))));
    assert!(framer.checked().is_some());
    framer.room().extend_from_slice(b"[\"short\"]\n");
    assert!(matches!(framer.next_line(), Some(Line::Complete(_))));
    assert_eq!(framer.checked(), None);
}

#[test]
fn lines_are_separated_by_newlines() {
    let cases: [(&str, &[&str]); 14] = [
        ("", &[]),
        ("\n\n\r\n \t\n", &[]),
        ("a", &["a"]),
        ("a\n", &["a"]),
        ("a\nb", &["a", "b"]),
        ("a\r\nb\r\n", &["a", "b"]),
        ("a\rb\r\r\n", &["a\rb\r"]),
        ("\r\r\na\r", &["a"]),
        (" a \n\n b", &[" a ", " b"]),
        ("\u{feff}a\n\u{feff}b\n", &["a", "\u{feff}b"]),
        ("\u{feff}\u{feff}a\n", &["\u{feff}a"]),
        ("\u{feff}\na\n", &["a"]),
        ("\n\u{feff}a\n", &["\u{feff}a"]),
        ("a\0\u{2028}\u{85}b\n", &["a\0\u{2028}\u{85}b"]),
    ];
    for (stream, lines) in cases {
        assert_eq!(
            framed(stream.as_bytes(), &[1], 100),
            complete(lines),
            "{stream:?}"
        );
        assert_eq!(
            framed(stream.as_bytes(), &[usize::MAX], 100),
            complete(lines),
            "{stream:?}"
        );
    }
}

#[test]
fn neither_line_end_nor_mark_count_against_the_limit() {
    for stream in ["abcd\n", "abcd\r\n", "abcd", "abcd\r", "\u{feff}abcd\r\n"] {
        for chunk in [1, 2, 5, 6, 100] {
            let lines = framed(stream.as_bytes(), &[chunk], 4);
            assert_eq!(lines, complete(&["abcd"]), "{stream:?} by {chunk}");
        }
    }
}

/// The id of a response may be at its end.
#[test]
fn a_long_line_has_an_end_however_it_is_read() {
    for chunk in [1, 4, 5, 6, 9, 10, 100] {
        let lines = framed(b"too long\nok\n", &[chunk], 4);
        let [
            Line::TooLong(_),
            Line::TooLongEnded(tail),
            Line::Complete(next),
        ] = lines.as_slice()
        else {
            panic!("{lines:?}");
        };
        assert_eq!(
            (tail.as_ref(), next.as_ref()),
            (&b"too long"[..], &b"ok"[..])
        );
    }
}

#[test]
fn a_long_line_is_reported_before_it_ends() {
    let mut framer = LineFramer::new(4);
    framer.room().extend_from_slice(b"abcd");
    assert_eq!(framer.next_line(), None);
    framer.room().extend_from_slice(b"e");
    assert_eq!(
        framer.next_line(),
        Some(Line::TooLong(Bytes::from_static(b"abcde")))
    );
    framer.room().extend_from_slice(b"fg");
    assert_eq!(framer.next_line(), None);
    assert_eq!(
        framer.finish(),
        Some(Line::TooLongEnded(Bytes::from_static(b"abcdefg")))
    );
    assert_eq!(framer.finish(), None);
}

#[test]
fn an_endless_line_is_not_buffered() {
    let mut framer = LineFramer::new(10_000);
    let chunk = [b'x'; 8192];
    let mut told = 0;
    for _ in 0..2000 {
        framer.room().extend_from_slice(&chunk);
        while framer.next_line().is_some() {
            told += 1;
        }
        assert!(framer.room().len() <= 10_000);
        assert!(
            framer.room().capacity() <= 1024 * 1024,
            "{}",
            framer.room().capacity()
        );
    }
    assert_eq!(told, 1);
}

/// Reads a line of 4 MiB.
fn read_huge_line(framer: &mut LineFramer) -> Bytes {
    for _ in 0..512 {
        framer.room().extend_from_slice(&[b'x'; 8 * 1024]);
        assert_eq!(framer.next_line(), None);
    }
    framer.room().extend_from_slice(b"\n");
    match framer.next_line() {
        Some(Line::Complete(line)) if line.len() == 4 << 20 => line,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_memory_of_a_huge_message_is_used_for_the_next_one() {
    let mut framer = LineFramer::new(8 * 1024 * 1024);
    let first = read_huge_line(&mut framer);
    let memory = first.as_ptr();
    assert!(framer.room().capacity() <= 512 * 1024);
    assert!(framer.keeps_memory());
    let text = first.clone();
    drop(first);
    let second = read_huge_line(&mut framer);
    assert_ne!(second.as_ptr(), memory, "the first line is still in use");
    assert_eq!(text, second);
    let memory = second.as_ptr();
    drop((text, second));
    framer.room();
    let third = read_huge_line(&mut framer);
    assert_eq!(third.as_ptr(), memory);
}

#[test]
fn the_memory_of_a_huge_message_that_fills_it_can_be_released() {
    let mut framer = LineFramer::new(8 * 1024 * 1024);
    let line = loop {
        let buffer = framer.room();
        let last = if buffer.capacity() > 2 << 20 {
            b'\n'
        } else {
            b'x'
        };
        buffer.resize(buffer.capacity() - 1, b'x');
        buffer.extend_from_slice(&[last]);
        if let Some(Line::Complete(line)) = framer.next_line() {
            break line;
        }
    };
    framer.room();
    assert!(framer.keeps_memory());
    assert!(!line.is_unique());
    framer.release_memory();
    assert!(line.is_unique());
    assert!(!framer.keeps_memory());
}

#[test]
fn the_memory_of_a_huge_message_can_be_released() {
    let mut framer = LineFramer::new(8 * 1024 * 1024);
    read_huge_line(&mut framer);
    assert!(framer.room().capacity() <= 512 * 1024);
    assert!(framer.keeps_memory());
    framer.release_memory();
    assert!(!framer.keeps_memory());
    framer.room().extend_from_slice(b"x\n");
    assert!(matches!(framer.next_line(), Some(Line::Complete(_))));
    assert!(framer.room().capacity() <= 512 * 1024);
    assert!(!framer.keeps_memory(), "a small line keeps nothing");
}

#[test]
fn a_read_that_was_filled_is_followed_by_a_larger_one() {
    let mut framer = LineFramer::new(1 << 20);
    let fill = |framer: &mut LineFramer, lines: usize| {
        let room = framer.room();
        let free = room.capacity() - room.len();
        let text = b"x\n".repeat(free.min(lines * 2) / 2);
        room.extend_from_slice(&text);
        let mut taken = 0;
        while framer.next_line().is_some() {
            taken += 1;
        }
        assert_eq!(taken, text.len() / 2);
        free
    };
    let first = fill(&mut framer, usize::MAX / 2);
    let second = fill(&mut framer, 10);
    assert!(second >= 4 * first, "{first} {second}");
    assert!(second <= 256 * 1024, "{second}");
}

#[test]
fn a_long_line_grows_in_few_steps_and_never_far_beyond_the_limit() {
    let mut framer = LineFramer::new(MAX_FRAME_BYTES);
    let mut capacities = Vec::new();
    while framer.room().len() < 10 * 1024 * 1024 {
        let buffer = framer.room();
        let capacity = buffer.capacity();
        if capacities.last() != Some(&capacity) {
            capacities.push(capacity);
        }
        buffer.resize(buffer.len() + 64 * 1024, b'x');
        assert_eq!(framer.next_line(), None);
        let (length, most) = (framer.room().len(), framer.room().capacity());
        assert!(most <= MAX_FRAME_BYTES + 1024 * 1024, "{most}");
        assert!(
            length < 1024 * 1024 || most <= 5 * length,
            "{length} {most}"
        );
    }
    let huge = capacities.iter().filter(|it| **it > 2 * 1024 * 1024);
    assert!(huge.count() <= 3, "{capacities:?}");
}
