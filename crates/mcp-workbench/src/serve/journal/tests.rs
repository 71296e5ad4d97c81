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
use crate::serve::standard_streams::PassedStreams;

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}"#;
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","id":0,"result":{}}"#;
const CALL: &str = r#"{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{}}"#;
const ANSWER: &str = r#"{"jsonrpc":"2.0","id":"a","result":{}}"#;

fn journal(replay: &Replay, stream: &ClientStream) -> Arc<Journal> {
    let make = Box::new(tempfile::tempfile);
    Arc::new(Journal::new(make, Box::new(|_| true), replay, stream).unwrap())
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
        let journal = journal(replay, &input);
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

    fn replay(&self) -> Replay {
        let mut state = self.journal.state();
        state.settle().unwrap();
        replay(&state.files, None).unwrap()
    }

    /// Returns what the next host finds if this one is killed now.
    fn found_by_next_host(&self) -> Replay {
        replay(&self.journal.state().files, Some(&self.stream)).unwrap()
    }
}

fn open_ids(replay: &Replay) -> Vec<String> {
    let requests = replay.open.iter().flat_map(|it| &it.requests);
    let ids = requests.map(|it| it.id.as_json().as_str().to_owned());
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
async fn bytes_that_the_stream_still_has_are_not_taken_twice() {
    for kind in [Kind::Pipes, Kind::Sockets] {
        let mut client = Client::new(kind);
        client.take(&format!("{INITIALIZE}\n")).await;
        client.take(&format!("{CALL}\n")).await;
        let second = format!("{}\n", CALL.replace("\"a\"", "\"b\""));
        client.to_us.write_all(second.as_bytes()).unwrap();
        // The host is killed after the bytes were recorded and before they were taken.
        record_input(&client, &second);
        let found = client.found_by_next_host();
        assert_eq!(open_ids(&found), ["0", r#""a""#], "{kind:?}");
        // The host after the next one finds the same.
        assert_eq!(client.found_by_next_host(), found, "{kind:?}");
    }
}

fn record_input(client: &Client, text: &str) {
    let state = client.journal.state();
    match &state.recent {
        #[cfg(target_os = "linux")]
        Some(recent) => {
            let count = recent.duplicate(&client.stream, usize::MAX >> 33).unwrap();
            assert_eq!(count, text.len());
        }
        _ => {
            let input = &state.files.input;
            input.write_all_at(text.as_bytes(), state.taken).unwrap();
        }
    }
}

#[tokio::test]
async fn bytes_that_were_taken_last_are_found() {
    for kind in [Kind::Pipes, Kind::Sockets] {
        // More and fewer than are recorded as certain together.
        for count in [1, MAX_UNSETTLED - 1, MAX_UNSETTLED, 3 * MAX_UNSETTLED + 1] {
            let mut client = Client::new(kind);
            for number in 0..count {
                let call = CALL.replace("\"a\"", &number.to_string());
                client.take(&format!("{call}\n")).await;
            }
            let expected: Vec<String> = (0..count).map(|it| it.to_string()).collect();
            let found = open_ids(&client.found_by_next_host());
            assert_eq!(found, expected, "{kind:?}");
        }
    }
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
    assert_eq!(
        (state.sent, state.recorded),
        (lines.len() as u64, lines.len() as u64)
    );
}
