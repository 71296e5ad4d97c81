use std::{
    io::{Read, Write},
    os::{fd::OwnedFd, unix::net::UnixStream},
    sync::Arc,
    time::Duration,
};

use bytes::BytesMut;
use pretty_assertions::assert_eq;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;
use crate::{serve::standard_streams::PassedStreams, wire::MAX_FRAME_BYTES};

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}"#;
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","id":0,"result":{}}"#;
const CALL: &str = r#"{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{}}"#;
const ANSWER: &str = r#"{"jsonrpc":"2.0","id":"a","result":{}}"#;

fn journal(replay: &Replay) -> Arc<Journal> {
    Arc::new(Journal::new(Box::new(tempfile::tempfile), replay).unwrap())
}

/// A client with a journal.
struct Client {
    journal: Arc<Journal>,
    input: RecordedInput,
    output: RecordedOutput,
    /// The input again, as the next host gets it.
    stream: ClientStream,
    to_us: Box<dyn Write + Send>,
    from_us: Box<dyn Read + Send>,
}

/// The kinds of streams that clients pass.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Pipes,
    Sockets,
}

impl Client {
    fn new(kind: Kind) -> Self {
        Self::resumed(kind, &Replay::default())
    }

    fn resumed(kind: Kind, replay: &Replay) -> Self {
        let (to_us, stdin): (Box<dyn Write + Send>, OwnedFd) = match kind {
            Kind::Pipes => {
                let (stdin, to_us) = io::pipe().unwrap();
                (Box::new(to_us), stdin.into())
            }
            Kind::Sockets => {
                let (stdin, to_us) = UnixStream::pair().unwrap();
                (Box::new(to_us), stdin.into())
            }
        };
        let (from_us, stdout): (Box<dyn Read + Send>, OwnedFd) = match kind {
            Kind::Pipes => {
                let (from_us, stdout) = io::pipe().unwrap();
                (Box::new(from_us), stdout.into())
            }
            Kind::Sockets => {
                let (from_us, stdout) = UnixStream::pair().unwrap();
                (Box::new(from_us), stdout.into())
            }
        };
        let PassedStreams { input, output } = PassedStreams::new(&stdin, &stdout).unwrap();
        let journal = journal(replay);
        Self {
            stream: PassedStreams::new(&stdin, &stdout).unwrap().input,
            input: RecordedInput::new(input, Arc::clone(&journal), replay.partial.clone()).unwrap(),
            output: RecordedOutput::new(output, Arc::clone(&journal)).unwrap(),
            journal,
            to_us,
            from_us,
        }
    }

    /// Lets the client write a text, and takes it.
    async fn take(&mut self, text: &str) {
        self.to_us.write_all(text.as_bytes()).unwrap();
        // Like the reader of the lines, which takes as much as there is.
        let mut taken = BytesMut::with_capacity(2 * text.len());
        while taken.len() < text.len() {
            self.input.read_buf(&mut taken).await.unwrap();
        }
        assert_eq!(taken, text.as_bytes());
    }

    /// Sends a text, and lets the client read it.
    async fn send(&mut self, text: &str) {
        self.output.write_all(text.as_bytes()).await.unwrap();
        self.output.flush().await.unwrap();
        self.read(text);
    }

    fn read(&mut self, text: &str) {
        let mut read = vec![0; text.len()];
        self.from_us.read_exact(&mut read).unwrap();
        assert_eq!(read, text.as_bytes());
    }

    /// Lets the client write a text, and takes it as a host does that is killed before it has stored how much it took.
    fn take_and_be_killed(&mut self, text: &[u8]) {
        self.to_us.write_all(text).unwrap();
        let mut state = self.journal.state();
        let at = INPUT_AT + state.taken;
        state.input.reserve(at + MAX_TAKEN_BYTES).unwrap();
        let count = state
            .input
            .read_from(self.stream.as_fd(), at, MAX_TAKEN_BYTES);
        assert_eq!(count.unwrap(), text.len());
    }

    /// Returns what the next host finds if this one is killed now.
    fn replay(&self) -> Replay {
        replay(&self.journal.state().files).unwrap()
    }
}

fn open_ids(replay: &Replay) -> Vec<String> {
    let requests = replay.open.iter().flat_map(|it| &it.requests);
    let ids = requests.map(|it| it.id.to_json().as_str().to_owned());
    ids.collect()
}

#[tokio::test]
async fn unanswered_requests_stay_open() {
    for kind in [Kind::Pipes, Kind::Sockets] {
        let mut client = Client::new(kind);
        client.take(&format!("{INITIALIZE}\n")).await;
        client.send(&format!("{INITIALIZED}\n")).await;
        // Lines do not have to arrive whole.
        client.take(&CALL[..20]).await;
        client
            .take(&format!("{}\n{{\"jsonrpc\"", &CALL[20..]))
            .await;
        let replay = client.replay();
        assert_eq!(open_ids(&replay), [r#""a""#], "{kind:?}");
        assert_eq!(replay.partial, "{\"jsonrpc\"");
        let session: Vec<_> = replay.session.iter().map(|it| it.is_answered).collect();
        assert_eq!(session, [true]);
        client.send(&format!("{ANSWER}\n")).await;
        assert_eq!(open_ids(&client.replay()), Vec::<String>::new());
    }
}

#[tokio::test]
async fn a_long_request_is_taken_whole() {
    for kind in [Kind::Pipes, Kind::Sockets] {
        let mut client = Client::new(kind);
        let request = format!("{CALL}{}\n", " ".repeat(50_000));
        let taking = client.take(&request);
        let taken = tokio::time::timeout(Duration::from_secs(10), taking).await;
        assert!(taken.is_ok(), "{kind:?}");
    }
}

#[tokio::test]
async fn what_was_not_sent_is_sent_by_the_next_host_once() {
    for kind in [Kind::Pipes, Kind::Sockets] {
        let mut client = Client::new(kind);
        client.take(&format!("{CALL}\n")).await;
        // The host is killed between the record and the sending.
        let slices = [IoSlice::new(ANSWER.as_bytes()), IoSlice::new(b"\n")];
        client.journal.state().record(&slices).unwrap();
        let replay = client.replay().resume();
        assert_eq!(open_ids(&replay), Vec::<String>::new());
        let mut next = Client::resumed(kind, &replay);
        next.output.flush().await.unwrap();
        next.read(&format!("{ANSWER}\n"));
        let replay = next.replay();
        assert_eq!((replay.unsent, replay.open), Default::default());
    }
}

#[tokio::test]
async fn a_line_that_was_sent_in_part_is_ended_and_its_request_stays_open() {
    let mut client = Client::new(Kind::Pipes);
    client.take(&format!("{CALL}\n")).await;
    client.send(&ANSWER[..30]).await;
    let replay = client.replay().resume();
    assert_eq!(open_ids(&replay), [r#""a""#]);
    let mut next = Client::resumed(Kind::Pipes, &replay);
    next.output.flush().await.unwrap();
    next.read("\n");
    // The ended line is no answer for the host after the next one either.
    assert_eq!(open_ids(&next.replay()), [r#""a""#]);
}

#[tokio::test]
async fn only_whole_lines_are_sent() {
    let mut client = Client::new(Kind::Pipes);
    client.take(&format!("{CALL}\n{CALL}\n")).await;
    let head = &ANSWER[..20];
    let slices = [ANSWER, "\n", head].map(|part| IoSlice::new(part.as_bytes()));
    let count = client.output.write_vectored(&slices).await.unwrap();
    assert_eq!(count, ANSWER.len() + 1);
    // The host is killed now: the client has no part of a line.
    assert_eq!(client.replay().broken_line, "");
    client.read(&format!("{ANSWER}\n"));
    client.send(&format!("{ANSWER}\n")).await;
    assert_eq!(client.replay().open, []);
}

#[tokio::test]
async fn bytes_behind_the_number_that_was_taken_are_found() {
    let whole = format!("{CALL}\n");
    let long = format!("{CALL}{}\n", " ".repeat(MAX_TAKEN_BYTES - 200));
    // What was taken last, the ids of the open requests after it, and the beginning of a line.
    let cases = [
        (whole.clone(), "\"a\"", ""),
        (long, "\"a\"", ""),
        (CALL.to_owned(), "", CALL),
        (format!("{whole}{{\"json"), "\"a\"", "{\"json"),
        // Zeros are not part of JSON text. Those at the end are not found.
        (format!("\0\0\n{whole}\0\0"), "\"a\"", ""),
        (format!("{}\0{}\n", &CALL[..9], &CALL[9..]), "", ""),
        ("\0\0".to_owned(), "", ""),
    ];
    for kind in [Kind::Pipes, Kind::Sockets] {
        for (text, open, partial) in &cases {
            let mut client = Client::new(kind);
            client.take(&format!("{INITIALIZE}\n")).await;
            client.take_and_be_killed(text.as_bytes());
            let found = client.replay();
            let expected: Vec<&str> = ["0"]
                .into_iter()
                .chain(open.split_terminator(' '))
                .collect();
            assert_eq!(open_ids(&found), expected, "{kind:?} {text:.90}");
            assert_eq!(found.partial, *partial, "{kind:?} {text:.90}");
            // The host after the next one finds the same.
            assert_eq!(client.replay(), found, "{kind:?} {text:.90}");
        }
    }
}

#[tokio::test]
async fn bytes_that_were_not_taken_are_left_to_the_next_host() {
    for kind in [Kind::Pipes, Kind::Sockets] {
        let mut client = Client::new(kind);
        client.take(&format!("{INITIALIZE}\n")).await;
        client.to_us.write_all(CALL.as_bytes()).unwrap();
        assert_eq!(open_ids(&client.replay()), ["0"], "{kind:?}");
        let mut left = [0; CALL.len()];
        let read = rustix::io::read(&client.stream, &mut left[..]).unwrap();
        assert_eq!(&left[..read], CALL.as_bytes(), "{kind:?}");
    }
}

#[tokio::test]
async fn lines_with_zeros_are_taken_as_they_are() {
    for kind in [Kind::Pipes, Kind::Sockets] {
        let mut client = Client::new(kind);
        client.take("\0").await;
        client.take(&format!("\0\n{CALL}\n\0\0")).await;
        let replay = client.replay();
        assert_eq!(open_ids(&replay), [r#""a""#], "{kind:?}");
        assert_eq!(replay.partial, "\0\0", "{kind:?}");
    }
}

#[tokio::test]
async fn a_line_that_is_longer_than_the_mapping_is_found() {
    for kind in [Kind::Pipes, Kind::Sockets] {
        let mut client = Client::new(kind);
        client.take(&format!("{INITIALIZE}\n")).await;
        client.take(&CALL[..CALL.len() - 1]).await;
        let filler = " ".repeat(60_000);
        let count = 3 * MAPPED_BYTES / filler.len();
        for _ in 0..count {
            client.take(&filler).await;
        }
        let expected = CALL.len() - 1 + count * filler.len();
        assert_eq!(client.replay().partial.len(), expected, "{kind:?}");
        client.take_and_be_killed(b"}\n");
        assert_eq!(open_ids(&client.replay()), ["0", r#""a""#], "{kind:?}");
    }
}

#[tokio::test]
async fn a_long_answer_is_sent_and_found() {
    let mut client = Client::new(Kind::Pipes);
    client.take(&format!("{CALL}\n")).await;
    // The next answers are behind the mapping.
    let lengths = [LONG_OUTPUT_BYTES, 2 * MAPPED_BYTES, 10, 10];
    let answers: Vec<String> = lengths.map(|it| format!("{}\n", " ".repeat(it))).into();
    let (mut from_us, expected) = (client.from_us, answers.concat());
    let reading = std::thread::spawn(move || {
        let mut read = vec![0; expected.len()];
        from_us.read_exact(&mut read).unwrap();
        assert!(read == expected.as_bytes());
    });
    for answer in &answers {
        client.output.write_all(answer.as_bytes()).await.unwrap();
    }
    reading.join().unwrap();
    let slices = [IoSlice::new(ANSWER.as_bytes()), IoSlice::new(b"\n")];
    client.journal.state().record(&slices).unwrap();
    let replay = replay(&client.journal.state().files).unwrap();
    assert_eq!(replay.unsent, format!("{ANSWER}\n"));
    assert_eq!(replay.open, []);
}

/// Returns the files of a host, made by hand.
fn files(numbers: [u64; 2], input: &[u8], output: &[u8], sent: u64) -> JournalFiles {
    let made = JournalFiles {
        input: Arc::new(tempfile::tempfile().unwrap()),
        output: Arc::new(tempfile::tempfile().unwrap()),
    };
    for (at, number) in [TAKEN_AT, RECORDED_AT].into_iter().zip(numbers) {
        let bytes = number.to_ne_bytes();
        made.input.write_all_at(&bytes, at as u64).unwrap();
    }
    made.input.write_all_at(input, INPUT_AT as u64).unwrap();
    made.output.write_all_at(output, 0).unwrap();
    (&*made.output).seek(SeekFrom::Start(sent)).unwrap();
    made
}

#[test]
fn files_of_a_killed_host_are_read() {
    let call = format!("{CALL}\n");
    let answer = format!("{ANSWER}\n");
    let (taken, recorded) = (call.len() as u64, answer.len() as u64);
    let behind = [vec![0; MAX_TAKEN_BYTES], b"x".to_vec()].concat();
    // The numbers, the input, the output, its offset, the number of open requests and of unsent bytes.
    let cases = [
        ([taken, recorded], call.as_bytes(), recorded, 0, 0),
        ([taken, recorded], call.as_bytes(), 0, 0, answer.len()),
        // Output that was copied and not recorded does not count.
        ([taken, 0], call.as_bytes(), 0, 1, 0),
        ([taken, recorded - 1], call.as_bytes(), 0, 1, 0),
        ([0, 0], call.as_bytes(), 0, 1, 0),
        // No host takes so much at once.
        ([0, 0], &behind, 0, 0, 0),
        // The numbers of another program.
        ([u64::MAX, u64::MAX], call.as_bytes(), 0, 0, answer.len()),
    ];
    for (numbers, input, sent, open, unsent) in cases {
        let found = replay(&files(numbers, input, answer.as_bytes(), sent)).unwrap();
        assert_eq!(
            (found.open.len(), found.unsent.len(), &found.partial[..]),
            (open, unsent, &b""[..]),
            "{numbers:?}"
        );
    }
    let empty = JournalFiles {
        input: Arc::new(tempfile::tempfile().unwrap()),
        output: Arc::new(tempfile::tempfile().unwrap()),
    };
    assert!(replay(&empty).is_err());
}

#[test]
fn answers_cancels_and_questions_close_requests() {
    let cancel =
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"a"}}"#;
    let question = r#"{"jsonrpc":"2.0","id":"a","method":"elicitation/create","params":{}}"#;
    let answered = r#"{"jsonrpc":"2.0","id":"a","result":{"action":"decline"}}"#;
    let batch = format!("[{CALL},{}]", CALL.replace("\"a\"", "1"));
    let batch_answer = format!("[{},{ANSWER}]", ANSWER.replace("\"a\"", "1"));
    // The lines of the client, those for it, the open requests and the open questions.
    let cases: [(&[&str], &[&str], usize, usize); 9] = [
        (&[CALL], &[], 1, 0),
        (&[CALL], &[ANSWER], 0, 0),
        (&[CALL, cancel], &[], 0, 0),
        // An id that is used again belongs to a new request.
        (&[CALL, CALL], &[ANSWER], 1, 0),
        // A question of the workbench has ids of its own.
        (&[CALL], &[question], 1, 1),
        (&[CALL, answered], &[question], 1, 0),
        (&[&batch], &[], 2, 0),
        (&[&batch], &[&batch_answer], 0, 0),
        (&["not json", "[1]", "[]"], &["not json"], 0, 0),
    ];
    let text = |lines: &[&str]| lines.join("\n") + if lines.is_empty() { "" } else { "\n" };
    for (input, output, open, questions) in cases {
        let (input_text, output_text): (String, String) = (text(input), text(output));
        let sent = output_text.len();
        let replay = Replay::of(input_text.into(), &output_text.into(), sent);
        let found = (open_ids(&replay).len(), replay.questions.len());
        assert_eq!(found, (open, questions), "{input:?} {output:?}");
        // A journal that is made from it says the same.
        let again = Replay::of(
            replay.input().into(),
            &replay.sent_output().into(),
            replay.sent_output().len(),
        );
        assert_eq!(again, replay, "{input:?} {output:?}");
    }
}

#[test]
fn a_session_has_one_line_for_each_change_of_it() {
    let request = |id: u32, method: &str, params: String| {
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{{params}}}}}"#)
    };
    let opening = |id, toolbox| {
        let call = format!(r#""name":"open_toolbox","arguments":{{"toolbox":"{toolbox}"}}"#);
        request(id, "tools/call", call)
    };
    let level = |id| request(id, "logging/setLevel", r#""level":"error""#.to_owned());
    let about = |method, uri| request(0, method, format!(r#""uri":"{uri}""#));
    let answer = |id: u32| format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#);
    let again = |line: String| vec![line; 3];
    let requests: Vec<String> = [
        again(INITIALIZE.to_owned()),
        again(opening(0, "a")),
        again(level(0)),
        again(opening(0, "b")),
        again(about("resources/subscribe", "x:/a")),
        again(about("resources/subscribe", "x:/b")),
        again(about("resources/unsubscribe", "x:/a")),
        // The last two have no answer yet; the id is one that was answered before.
        vec![opening(0, "a"), opening(0, "c")],
    ]
    .concat();
    let input = requests.join("\n") + "\n";
    let output = format!("{}\n", answer(0)).repeat(requests.len() - 2);
    let sent = output.len();
    let replay = Replay::of(input.into(), &output.into(), sent);
    let session: Vec<_> = replay
        .session
        .iter()
        .map(|it| (str::from_utf8(&it.line).unwrap().to_owned(), it.is_answered))
        .collect();
    let expected = [
        (INITIALIZE.to_owned(), true),
        (level(0), true),
        (opening(0, "b"), true),
        (about("resources/subscribe", "x:/b"), true),
        (opening(0, "a"), false),
        (opening(0, "c"), false),
    ];
    assert_eq!(session, expected);
    assert_eq!(open_ids(&replay), ["0", "0"]);
}

#[test]
fn a_line_that_is_too_long_is_kept_in_part() {
    let head = r#"{"jsonrpc":"2.0","id":"a","method":"ping","params":{"x":""#;
    let filler = |length: usize| "x".repeat(length);
    // The length of the beginning of a line, and whether it was answered; what is kept, and whether it counts as refused.
    let longest = MAX_FRAME_BYTES + 3 * replay::LINE_END_BYTES;
    for (length, is_answered, kept, is_refused) in [
        (MAX_FRAME_BYTES, false, MAX_FRAME_BYTES, false),
        (MAX_FRAME_BYTES + 1, false, MAX_FRAME_BYTES + 1, false),
        (MAX_FRAME_BYTES + 1, true, MAX_FRAME_BYTES + 1, true),
        (2 * MAX_FRAME_BYTES, true, longest, true),
    ] {
        let line = format!("{head}{}", filler(length - head.len() - 1)) + "\"";
        let output = if is_answered {
            format!("{ANSWER}\n")
        } else {
            String::new()
        };
        let sent = output.len();
        let replay = Replay::of(line.into(), &output.into(), sent);
        assert_eq!(replay.partial.len(), kept);
        assert!(replay.partial.starts_with(head.as_bytes()) && replay.partial.ends_with(b"\""));
        assert_eq!(replay.refused.is_some(), is_refused);
        // A journal that is made from it says the same.
        let sent_output = replay.sent_output();
        let sent = sent_output.len();
        assert!(Replay::of(replay.input().into(), &sent_output.into(), sent) == replay);
    }
}

#[tokio::test]
async fn a_long_journal_is_replaced_and_says_the_same() {
    let mut client = Client::new(Kind::Pipes);
    client.take(&format!("{INITIALIZE}\n")).await;
    client.send(&format!("{INITIALIZED}\n")).await;
    client.take(&format!("{CALL}\n")).await;
    let before = client.replay();
    let filler = " ".repeat(50_000);
    for number in 1..=40 {
        let ping = format!(r#"{{"jsonrpc":"2.0","id":{number},"method":"ping"}}{filler}"#);
        client.take(&format!("{ping}\n")).await;
        let answer = format!("{{\"jsonrpc\":\"2.0\",\"id\":{number},\"result\":{{}}}}\n");
        client.send(&answer).await;
    }
    assert_eq!(client.replay(), before);
    assert!(client.journal.state().taken < MIN_COMPACTED_BYTES);
    // The new files are mapped too.
    client.take_and_be_killed(CALL.replace("\"a\"", "\"b\"").as_bytes());
    assert_eq!(open_ids(&client.replay()), [r#""a""#]);
    assert_eq!(client.replay().partial.len(), CALL.len());
}

#[tokio::test]
async fn the_journal_of_a_client_that_only_listens_is_replaced() {
    let mut client = Client::new(Kind::Pipes);
    client.take(&format!("{INITIALIZE}\n")).await;
    client.send(&format!("{INITIALIZED}\n")).await;
    client.take(&format!("{CALL}\n")).await;
    let before = client.replay();
    let filler = " ".repeat(50_000);
    let progress = format!(r#"{{"jsonrpc":"2.0","method":"notifications/progress"}}{filler}"#);
    for _ in 0..40 {
        client.send(&format!("{progress}\n")).await;
    }
    assert!(client.journal.state().recorded < MIN_COMPACTED_BYTES);
    assert_eq!(client.replay(), before);
    client.send(&format!("{ANSWER}\n")).await;
    assert_eq!(client.replay().open, []);
}

#[tokio::test]
async fn the_journal_of_a_client_that_reads_slowly_is_replaced() {
    let (stdin, _to_us) = io::pipe().unwrap();
    let (mut from_us, stdout) = io::pipe().unwrap();
    let streams = PassedStreams::new(&stdin, &stdout).unwrap();
    let journal = journal(&Replay::default());
    let line = "x".repeat(99_999) + "\n";
    let (output, most) = (line.repeat(50), 3 * line.len());
    let (mut sent, mut longest, mut read) = (0, 0, Vec::new());
    while sent < output.len() {
        // More waits all the time.
        let waiting = &output.as_bytes()[sent..output.len().min(sent + most)];
        match journal.send(&streams.output, &[IoSlice::new(waiting)]) {
            Ok(count) => sent += count,
            Err(error) => {
                assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
                let mut part = [0; 10_000];
                let count = from_us.read(&mut part).unwrap();
                read.extend_from_slice(&part[..count]);
            }
        }
        longest = longest.max(journal.state().recorded);
    }
    drop((streams, stdout));
    from_us.read_to_end(&mut read).unwrap();
    assert!(read == output.as_bytes());
    assert!(longest < MIN_COMPACTED_BYTES + most, "{longest}");
}

#[tokio::test]
async fn replaced_files_are_used_only_if_they_were_passed_on() {
    for is_passed in [false, true] {
        let passed = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&passed);
        let journal = Journal::new(Box::new(tempfile::tempfile), &Replay::default()).unwrap();
        let pass_on: PassOn = Box::new(move |files| {
            let mut log = log.lock().unwrap();
            log.push(Arc::clone(&files.input));
            log.len() == 1 || is_passed
        });
        let journal = journal.passed_by(pass_on).unwrap();
        journal.compact(&mut journal.state());
        let passed = passed.lock().unwrap();
        let used = &journal.state().files.input;
        assert_eq!(passed.len(), 2);
        assert!(Arc::ptr_eq(used, &passed[usize::from(is_passed)]));
    }
}

#[tokio::test]
async fn a_journal_that_cannot_be_shortened_ends_its_client() {
    let mut client = Client::new(Kind::Pipes);
    client.journal.state().recorded = MAX_JOURNAL_BYTES;
    assert!(client.output.write_all(b"x\n").await.is_err());
    client.to_us.write_all(b"x\n").unwrap();
    assert!(client.input.read(&mut [0; 10]).await.is_err());
}

#[tokio::test]
async fn a_slow_client_gets_everything_once() {
    let client = Client::new(Kind::Pipes);
    let lines = "a line of the output\n".repeat(20_000);
    let Client {
        mut output,
        mut from_us,
        journal,
        ..
    } = client;
    let expected = lines.clone();
    let reading = std::thread::spawn(move || {
        let mut read = vec![0; expected.len()];
        from_us.read_exact(&mut read).unwrap();
        assert!(read == expected.as_bytes());
    });
    // Like the writer: what was not taken is offered again, together with more.
    let mut rest = lines.as_bytes();
    while !rest.is_empty() {
        let count = output.write(rest).await.unwrap();
        rest = &rest[count..];
    }
    reading.join().unwrap();
    let state = journal.state();
    assert_eq!((state.sent, state.recorded), (lines.len(), lines.len()));
}
