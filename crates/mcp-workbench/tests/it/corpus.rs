//! A short deterministic run of the fuzz corpus: every input, and mutations of it from a fixed seed,
//! through framing, messages, repairing, splicing, the configuration and expansion. Nothing panics, what
//! comes out is valid, and what is not ours to change is not changed. `./scripts/fuzz` runs the same for
//! longer and from other seeds.

use std::{fs, path::Path};

use bytes::Bytes;
use rawjson::{MAX_DEPTH, RawJson, ScanError};

use mcp_workbench::internal::{
    config::{self, Environment, Loaded, Problems, Transport},
    meta,
    wire::{
        self, Answer, Line, LineFramer, Message, ParseError, RequestId, Response, parse_repaired,
    },
};
use serde::de::IgnoredAny;

/// How many mutations of each input are tried.
const MUTATIONS: usize = 1500;
/// Reading a configuration takes longer than a message.
const CONFIG_MUTATIONS: usize = 300;
/// The longest line of the framing runs, so that small inputs pass it.
const LIMIT: usize = 64;
/// The largest input that a mutation makes.
const LARGEST: usize = 4096;

/// Marsaglia's xorshift: the same numbers in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A number below `bound`, or 0.
    fn below(&mut self, bound: usize) -> usize {
        let bound = u64::try_from(bound.max(1)).unwrap();
        usize::try_from(self.next() % bound).unwrap()
    }
}

/// The pieces that are put into inputs besides pieces of other inputs.
const PIECES: &[&[u8]] = &[
    b"\"",
    b"\\",
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b"\n",
    b"\r\n",
    b"\0",
    b"\x1f",
    b"\t",
    b"\xff",
    b"\xef\xbb\xbf",
    b"\xed\xa0\x80",
    b"\\u0000",
    b"\\ud800",
    b"\\udc00",
    b"1e400",
    b"-",
    b"null",
    b"\"id\":1",
    b"${",
    b"$${",
    b"}",
    b":-",
    b"//",
    b"/*",
    b"*/",
    b"[[[[[[[[[[[[[[[[",
];

fn mutate(input: &[u8], others: &[(String, Vec<u8>)], random: &mut Random) -> Vec<u8> {
    let mut bytes = input.to_vec();
    for _ in 0..=random.below(4) {
        let at = random.below(bytes.len() + 1);
        let end = (at + random.below(16)).min(bytes.len());
        match random.below(6) {
            0 => {
                bytes.drain(at..end);
            }
            1 => {
                let copy = bytes[at..end].to_vec();
                bytes.splice(at..at, copy);
            }
            2 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
            3 => bytes.truncate(at),
            4 => {
                let other = &others[random.below(others.len())].1;
                let from = random.below(other.len() + 1);
                let to = (from + random.below(64)).min(other.len());
                bytes.splice(at..end, other[from..to].iter().copied());
            }
            _ => {
                let piece = PIECES[random.below(PIECES.len())];
                bytes.splice(at..at, piece.iter().copied());
            }
        }
    }
    bytes.truncate(LARGEST);
    bytes
}

/// A number that `./scripts/fuzz` may give; it gives none in an ordinary run.
fn setting(name: &str, usual: u64) -> u64 {
    let given = std::env::vars_os().find(|(it, _)| it == name);
    given.map_or(usual, |(_, value)| value.to_str().unwrap().parse().unwrap())
}

/// Runs every input of a folder, and its mutations, through `check`.
#[expect(
    clippy::print_stdout,
    reason = "a longer run says how much it has tried"
)]
fn run(name: &str, mutations: usize, check: impl Fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/corpus")
        .join(name);
    let entries = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut inputs: Vec<(String, Vec<u8>)> = entries
        .map(|path| (path.display().to_string(), fs::read(&path).unwrap()))
        .collect();
    inputs.sort();
    assert!(inputs.len() >= 10, "the corpus is not there");
    let mut random = Random(setting("FUZZ_SEED", 0x9e37_79b9_7f4a_7c15));
    let mutations = mutations * usize::try_from(setting("FUZZ_TIMES", 1)).unwrap();
    for (file, input) in &inputs {
        guarded(&check, input, file);
        for number in 0..mutations {
            let input = mutate(input, &inputs, &mut random);
            guarded(&check, &input, &format!("{file}, mutation {number}"));
        }
    }
    let executions = inputs.len() * (mutations + 1);
    println!("{name}: {executions} executions");
}

/// Names the input where the check fails.
fn guarded(check: &impl Fn(&[u8]), input: &[u8], name: &str) {
    let checked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| check(input)));
    assert!(checked.is_ok(), "{name}: {}", input.escape_ascii());
}

/// The grammar of JSON, by another reader; it looks neither at depth nor at the range of numbers.
fn is_json(text: &[u8]) -> bool {
    std::str::from_utf8(text).is_ok() && serde_json::from_slice::<IgnoredAny>(text).is_ok()
}

fn lines(stream: &[u8], chunk: usize) -> Vec<Line> {
    let mut framer = LineFramer::new(LIMIT);
    let mut lines = Vec::new();
    for chunk in stream.chunks(chunk) {
        framer.room().extend_from_slice(chunk);
        lines.extend(std::iter::from_fn(|| framer.next_line()));
        assert!(framer.room().len() <= LIMIT + 4, "a long line is kept");
    }
    lines.extend(std::iter::from_fn(|| framer.finish()));
    // How much there is of the beginning of a long line depends on what has been read.
    let cut = lines.into_iter().map(|line| match line {
        Line::TooLong(head) => Line::TooLong(head.slice(..=LIMIT)),
        other => other,
    });
    cut.collect()
}

#[test]
fn frames() {
    run("frames", MUTATIONS, |stream| {
        let whole = lines(stream, LARGEST + 1);
        for chunk in [1, 2, 7] {
            assert_eq!(lines(stream, chunk), whole, "by {chunk}");
        }
        let mut rest = stream;
        for line in &whole {
            if let Line::Complete(line) = line {
                assert!(line.len() <= LIMIT && !line.contains(&b'\n'));
                let at = rest.windows(line.len()).position(|it| it == line);
                rest = &rest[at.expect("the bytes are the stream's, in order") + line.len()..];
                check_message(line);
            }
        }
    });
}

#[test]
fn envelopes() {
    run("envelopes", MUTATIONS, check_message);
}

fn check_message(text: &[u8]) {
    let frame = Bytes::copy_from_slice(text);
    let json = RawJson::parse(&frame);
    match &json {
        Ok(value) => check_value(value, text),
        Err(ScanError::TooDeep) => assert!(text.len() > MAX_DEPTH),
        Err(ScanError::Syntax(at)) => assert!(*at <= text.len() && !is_json(text)),
    }
    let strict = Message::parse(&frame);
    let repaired = parse_repaired(&frame);
    match (&strict, &json) {
        (Err(ParseError::NotJson(_)), _) => {}
        // A message lies in an object, which counts.
        (_, Ok(_)) => assert!(!matches!(repaired, Err(ParseError::NotJson(_)))),
        (_, Err(error)) => panic!("a message that is not JSON: {error}"),
    }
    match repaired {
        Ok(message) => check_answers(&message),
        Err(ParseError::Invalid(invalid)) => check_refusal(invalid.id.as_ref()),
        Err(ParseError::NotJson(_)) => assert!(strict.is_err()),
    }
    if let Err(ParseError::Invalid(invalid)) = strict {
        check_refusal(invalid.id.as_ref());
    }
}

/// A value is taken apart and put together again.
fn check_value(value: &RawJson, text: &[u8]) {
    assert!(is_json(text));
    assert_eq!(value.as_bytes(), text.trim_ascii());
    let mut compact = Vec::new();
    value.minify_into(&mut compact);
    assert!(is_json(&compact));
    let compact = RawJson::parse(&compact.into()).unwrap();
    if let Some(members) = compact.members() {
        let rebuilt = members
            .iter()
            .fold(rawjson::ObjectText::new(), |text, it| text.relay(it));
        assert_eq!(rebuilt.finish(), compact);
    }
    if let Some(elements) = compact.elements() {
        let elements: Vec<&str> = elements.iter().map(RawJson::as_str).collect();
        assert_eq!(format!("[{}]", elements.join(",")), compact.as_str());
    }
}

/// Checks that received bytes are passed on unchanged.
fn check_answers(message: &Message) {
    match message {
        Message::Request(request) => {
            let params = request
                .params
                .clone()
                .unwrap_or_else(|| rawjson::ObjectText::new().finish());
            let sent = line(&wire::request(7, &request.method, &params));
            let Ok(Message::Request(read)) = Message::parse(&sent) else {
                panic!("{sent:?}");
            };
            assert_eq!(
                (read.method, read.params),
                (request.method.clone(), Some(params))
            );
            check_refusal(Some(&request.id));
        }
        Message::Notification(notification) => {
            let sent = line(&wire::notification(
                &notification.method,
                notification.params.as_ref(),
            ));
            assert_eq!(Message::parse(&sent).as_ref(), Ok(message));
        }
        Message::Response(Response {
            id: Some(id),
            answer: Answer::Result(result),
            ..
        }) => {
            let sent = line(&wire::result(id, result));
            assert_eq!(Message::parse(&sent).as_ref(), Ok(message));
        }
        Message::Response(response) => check_refusal(response.id.as_ref()),
    }
}

fn check_refusal(id: Option<&RequestId>) {
    let sent = line(&wire::error(id, -32600, "no"));
    let Ok(Message::Response(response)) = Message::parse(&sent) else {
        panic!("{sent:?}");
    };
    assert_eq!(response.id.as_ref(), id);
}

/// A frame without its newline, which is valid JSON.
fn line(frame: &wire::Frame) -> Bytes {
    let text = frame.to_vec();
    let text = text.strip_suffix(b"\n").unwrap();
    assert!(is_json(text), "{}", text.escape_ascii());
    Bytes::copy_from_slice(text)
}

fn parse(text: &str) -> Result<Loaded, Problems> {
    let variables = [
        ("A", "one"),
        ("B_2", "two"),
        ("EMPTY", ""),
        ("REFERENCE", "${A}"),
    ];
    let variables = variables.map(|(name, value)| (name.into(), value.into()));
    let environment = Environment::new(variables, "/start".into(), Some("/home/me".into()));
    config::parse(text, Path::new("/etc/c.json"), &environment)
}

#[test]
fn configurations() {
    run("config", CONFIG_MUTATIONS, |bytes| {
        let text = String::from_utf8_lossy(bytes);
        match parse(&text) {
            Ok(loaded) => {
                let units = meta::instructions(&loaded.config).encode_utf16().count();
                assert!(units <= 2000);
                for problem in loaded.warnings.iter().chain(&loaded.unset) {
                    assert!(problem.place.line > 0 && problem.place.column > 0);
                }
            }
            Err(problems) => check_problems(&problems, text.lines().count()),
        }
    });
}

fn check_problems(problems: &Problems, lines: usize) {
    assert!(problems.iter().count() > 0);
    for problem in problems.iter() {
        assert!((1..=lines + 1).contains(&problem.place.line), "{problem:?}");
        assert!(!problem.fault.to_string().is_empty() && !problem.remedy().is_empty());
    }
}

/// Expands a text as the value of a variable.
fn expanded(text: &str) -> Result<Option<String>, Problems> {
    let quoted = serde_json::to_string(text).unwrap();
    let loaded = parse(&format!(
        r#"{{"toolboxes":{{"t":{{"description":"d","mcpServers":{{"s":{{"command":"x","env":{{"V":{quoted}}}}}}}}}}}}}"#
    ))?;
    match &loaded.config.toolboxes["t"].servers["s"].transport {
        Transport::Stdio(launch) => Ok(Some(launch.environment.own["V"].clone())),
        Transport::Unset(variables) => {
            assert!(!variables.is_empty() && variables.len() == loaded.unset.len());
            for unset in variables {
                assert_eq!(unset.path, "toolboxes.t.mcpServers.s.env.V");
                assert!(text.contains(unset.value.name()));
            }
            Ok(None)
        }
        Transport::Remote(_) => panic!("the entry has a command"),
    }
}

#[test]
fn expansions() {
    run("expand", MUTATIONS / 3, |bytes| {
        let text = String::from_utf8_lossy(bytes).replace('\0', "0");
        assert_eq!(expanded(&text.replace("${", "$${")), Ok(Some(text.clone())));
        match expanded(&text) {
            Ok(Some(value)) if !text.contains("${") => assert_eq!(value, text),
            Ok(_) => assert!(text.contains("${")),
            Err(problems) => {
                check_problems(&problems, 1);
                assert!(problems.iter().all(|it| it.place.path.ends_with("env.V")));
            }
        }
    });
}
