//! The journal of an attached client: a file without a name that holds what was read from the client, and the beginnings of
//! the lines that were written to it. The process that waits for the host has the same file open. If the host is killed, the
//! next host reads it to continue the session and to answer what was not answered.
//!
//! One record is written per read and per write, after it. Two gaps of a few microseconds remain: if the host is killed
//! between a write and its record, the client may get a second answer to that request, which clients drop; if it is
//! killed between a read and its record, the requests of that read stay without an answer.

use std::{
    fs::File,
    io::{self, IoSlice, Write},
    os::unix::fs::FileExt,
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll, ready},
};

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::{
    meta::MetaTool,
    sync::lock,
    wire::{Message, Request, RequestId, id_from_head},
};

/// The size from which the journal is replaced by a shorter one.
const MIN_COMPACTED_BYTES: u64 = 1024 * 1024;
/// The beginning of a line that is recorded. Our own messages begin with their id.
const MAX_HEAD_BYTES: usize = 256;
/// Upper bound on a journal that is read: a few of the largest messages.
const MAX_REPLAYED_BYTES: u64 = 256 * 1024 * 1024;

/// A record of bytes that were read.
const READ: u8 = b'<';
/// A record of the beginning of a line that was written.
const WRITTEN: u8 = b'>';
/// The length of a record's kind and size.
const HEADER_BYTES: usize = 5;

/// Makes the file of a journal.
pub(crate) type MakeFile = Box<dyn Fn() -> io::Result<File> + Send + Sync>;
/// Passes a new file to the waiting process. Returns false if that is impossible at the moment.
pub(crate) type PassOn = Box<dyn Fn(&File) -> bool + Send + Sync>;

/// The journal of one client.
pub(crate) struct Journal {
    state: Mutex<JournalFile>,
    make: MakeFile,
    pass_on: PassOn,
}

struct JournalFile {
    file: File,
    bytes: u64,
    /// The size at which it is replaced.
    compact_at: u64,
    /// The beginning of the line that is being written.
    head: Vec<u8>,
    /// The heads of the lines that the current write has completed.
    completed: Vec<u8>,
}

impl Journal {
    /// Creates an empty journal and passes it on.
    pub(crate) fn new(make: MakeFile, pass_on: PassOn) -> io::Result<Self> {
        let file = make()?;
        if !pass_on(&file) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let state = JournalFile {
            file,
            bytes: 0,
            compact_at: MIN_COMPACTED_BYTES,
            head: Vec::new(),
            completed: Vec::new(),
        };
        Ok(Self {
            state: Mutex::new(state),
            make,
            pass_on,
        })
    }

    /// Records bytes that were read.
    pub(crate) fn read(&self, bytes: &[u8]) {
        let mut state = lock(&self.state);
        state.append(READ, bytes);
        if state.bytes >= state.compact_at {
            self.compact(&mut state);
        }
    }

    /// Records the first `count` bytes of the slices, which were written.
    fn written(&self, slices: &[IoSlice<'_>], mut count: usize) {
        let mut state = lock(&self.state);
        for slice in slices {
            let part = &slice[..slice.len().min(count)];
            count -= part.len();
            state.take_written(part);
        }
        state.append_completed();
    }

    /// Replaces the file by one that holds only what a new host needs. The old one stays in use if that fails.
    fn compact(&self, state: &mut JournalFile) {
        let replaced = replay(&state.file).and_then(|replay| {
            let file = (self.make)()?;
            let mut compacted = JournalFile {
                file,
                bytes: 0,
                compact_at: 0,
                head: state.head.clone(),
                completed: Vec::new(),
            };
            compacted.append_replay(&replay);
            Ok(compacted)
        });
        match replaced {
            Ok(compacted) if (self.pass_on)(&compacted.file) => *state = compacted,
            Ok(_) => {}
            Err(error) => tracing::warn!("failed to shorten the journal of a client: {error}"),
        }
        state.compact_at = MIN_COMPACTED_BYTES.max(2 * state.bytes);
    }

    /// Records what the journal of an earlier host says, except the requests that are still to be answered.
    pub(crate) fn inherit(&self, session: &[SessionLine]) {
        let mut state = lock(&self.state);
        for line in session.iter().filter(|line| line.is_answered) {
            state.append_answered(line);
        }
    }
}

impl JournalFile {
    fn append(&mut self, kind: u8, bytes: &[u8]) {
        let Ok(length) = u32::try_from(bytes.len()) else {
            return;
        };
        let [a, b, c, d] = length.to_le_bytes();
        let header = [kind, a, b, c, d];
        let mut slices = &mut [IoSlice::new(&header), IoSlice::new(bytes)][..];
        while !slices.is_empty() {
            match self.file.write_vectored(slices) {
                Ok(count) => IoSlice::advance_slices(&mut slices, count),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    // Half a record would be misread.
                    tracing::warn!("a client cannot be resumed if the host ends: {error}");
                    let _ = self.file.set_len(0);
                    return;
                }
            }
        }
        self.bytes += (HEADER_BYTES + bytes.len()) as u64;
    }

    fn take_written(&mut self, mut part: &[u8]) {
        while let Some(end) = memchr::memchr(b'\n', part) {
            self.add_to_head(&part[..end]);
            self.completed.append(&mut self.head);
            self.completed.push(b'\n');
            part = &part[end + 1..];
        }
        self.add_to_head(part);
    }

    fn add_to_head(&mut self, part: &[u8]) {
        let room = MAX_HEAD_BYTES.saturating_sub(self.head.len());
        self.head.extend_from_slice(&part[..part.len().min(room)]);
    }

    fn append_completed(&mut self) {
        if !self.completed.is_empty() {
            let completed = std::mem::take(&mut self.completed);
            self.append(WRITTEN, &completed);
            self.completed = completed;
            self.completed.clear();
        }
    }

    fn append_replay(&mut self, replay: &Replay) {
        for line in &replay.session {
            if line.is_answered {
                self.append_answered(line);
            }
        }
        for (_, line) in &replay.open {
            self.append_line(line);
        }
        if !replay.partial.is_empty() {
            self.append(READ, &replay.partial);
        }
    }

    fn append_answered(&mut self, line: &SessionLine) {
        self.append_line(&line.line);
        let head = format!("{{\"id\":{},\n", line.id.as_json().as_str());
        self.append(WRITTEN, head.as_bytes());
    }

    fn append_line(&mut self, line: &Bytes) {
        self.append(READ, &[line, &b"\n"[..]].concat());
    }
}

/// A request that a session depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SessionLine {
    pub(crate) id: RequestId,
    pub(crate) line: Bytes,
    /// False if it is also among the open ones.
    pub(crate) is_answered: bool,
}

/// The state of a client when its host ended.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Replay {
    /// The requests that the session depends on, in order.
    pub(crate) session: Vec<SessionLine>,
    /// The requests without an answer, in order.
    pub(crate) open: Vec<(RequestId, Bytes)>,
    /// The beginning of a line.
    pub(crate) partial: Bytes,
}

/// Reads the journal of a host that has ended.
pub(crate) fn replay(file: &File) -> io::Result<Replay> {
    let length = file.metadata()?.len().min(MAX_REPLAYED_BYTES);
    let mut text = vec![0; usize::try_from(length).unwrap_or(usize::MAX)];
    file.read_exact_at(&mut text, 0)?;
    Ok(Replay::of(&text))
}

impl Replay {
    fn of(mut records: &[u8]) -> Self {
        let mut replay = Self::default();
        let mut unread = BytesMut::new();
        while let Some((&[kind, a, b, c, d], rest)) = records.split_first_chunk() {
            let length = u32::from_le_bytes([a, b, c, d]) as usize;
            let Some((content, rest)) = rest.split_at_checked(length) else {
                break;
            };
            records = rest;
            if kind == READ {
                unread.extend_from_slice(content);
                while let Some(end) = memchr::memchr(b'\n', &unread) {
                    let line = unread.split_to(end + 1).freeze();
                    replay.take_line(&line.slice(..end));
                }
            } else {
                content.split(|byte| *byte == b'\n').for_each(|head| {
                    if let Some(id) = id_from_head(head) {
                        replay.close(&id);
                    }
                });
            }
        }
        for line in &mut replay.session {
            line.is_answered = !replay.open.iter().any(|(id, _)| *id == line.id);
        }
        replay.partial = unread.freeze();
        replay
    }

    fn take_line(&mut self, line: &Bytes) {
        match Message::parse(line) {
            Ok(Message::Request(request)) => {
                self.take_session_line(&request, line);
                self.open.push((request.id, line.clone()));
            }
            Ok(Message::Notification(cancel)) if &*cancel.method == "notifications/cancelled" => {
                let params = cancel.params.as_ref();
                let id = params.and_then(|params| params.member("requestId"));
                if let Some(id) = id.and_then(RequestId::from_json) {
                    self.close(&id);
                }
            }
            _ => {}
        }
    }

    /// Keeps a request that changes the session, and removes those that it replaces.
    fn take_session_line(&mut self, request: &Request, line: &Bytes) {
        let method = &*request.method;
        match method {
            "initialize" => self.session.clear(),
            "logging/setLevel" => self.session.retain(|it| !contains(&it.line, method)),
            "resources/subscribe" | "resources/unsubscribe" => {}
            "tools/call" if opened_toolbox(request).is_some() => {}
            _ => return,
        }
        self.session.push(SessionLine {
            id: request.id.clone(),
            line: line.clone(),
            is_answered: true,
        });
    }

    fn close(&mut self, id: &RequestId) {
        if let Some(at) = self.open.iter().position(|(open, _)| open == id) {
            self.open.remove(at);
        }
    }
}

/// Returns the toolbox that a call of `open_toolbox` opens.
pub(super) fn opened_toolbox(request: &Request) -> Option<String> {
    let params = request.params.as_ref()?;
    let name = params.member("name")?;
    if name.as_text()? != MetaTool::OpenToolbox.name() {
        return None;
    }
    let toolbox = params.member("arguments")?.member("toolbox")?;
    Some(toolbox.as_text()?.into_owned())
}

fn contains(line: &[u8], method: &str) -> bool {
    memchr::memmem::find(line, method.as_bytes()).is_some()
}

/// A stream whose bytes are recorded as read.
pub(super) struct RecordedInput<R> {
    pub(super) input: R,
    pub(super) journal: Arc<Journal>,
}

impl<R: AsyncRead + Unpin> AsyncRead for RecordedInput<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.input).poll_read(context, buffer))?;
        let read = &buffer.filled()[before..];
        if !read.is_empty() {
            self.journal.read(read);
        }
        Poll::Ready(Ok(()))
    }
}

/// A stream whose lines are recorded as written.
pub(super) struct RecordedOutput<W> {
    pub(super) output: W,
    pub(super) journal: Arc<Journal>,
}

impl<W: AsyncWrite + Unpin> AsyncWrite for RecordedOutput<W> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(context, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.output).poll_write_vectored(context, slices))?;
        self.journal.written(slices, written);
        Poll::Ready(Ok(written))
    }

    fn is_write_vectored(&self) -> bool {
        self.output.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.output).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.output).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn journal() -> Journal {
        Journal::new(Box::new(tempfile::tempfile), Box::new(|_| true)).unwrap()
    }

    fn replayed(journal: &Journal) -> Replay {
        replay(&lock(&journal.state).file).unwrap()
    }

    fn write(journal: &Journal, text: &str) {
        journal.written(&[IoSlice::new(text.as_bytes())], text.len());
    }

    fn open_ids(replay: &Replay) -> Vec<String> {
        let ids = replay.open.iter();
        ids.map(|(id, _)| id.as_json().as_str().to_owned())
            .collect()
    }

    const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}"#;
    const CALL: &str = r#"{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{}}"#;

    #[test]
    fn unanswered_requests_stay_open() {
        let journal = journal();
        journal.read(format!("{INITIALIZE}\n").as_bytes());
        write(&journal, "{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{}}\n");
        // Lines do not have to arrive whole.
        journal.read(&CALL.as_bytes()[..20]);
        journal.read(format!("{}\n{{\"jsonrpc\"", &CALL[20..]).as_bytes());
        let replay = replayed(&journal);
        assert_eq!(open_ids(&replay), [r#""a""#]);
        assert_eq!(replay.partial, "{\"jsonrpc\"");
        let session: Vec<_> = replay.session.iter().map(|it| it.is_answered).collect();
        assert_eq!(session, [true]);
    }

    #[test]
    fn a_request_is_answered_when_its_whole_line_is_written() {
        let journal = journal();
        journal.read(format!("{CALL}\n").as_bytes());
        write(&journal, "{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"result\":{");
        assert_eq!(open_ids(&replayed(&journal)), [r#""a""#]);
        write(&journal, "}}\n");
        assert_eq!(open_ids(&replayed(&journal)), Vec::<String>::new());
    }

    #[test]
    fn a_cancelled_request_is_not_open() {
        let journal = journal();
        journal.read(format!("{CALL}\n").as_bytes());
        let cancel =
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"a"}}"#;
        journal.read(format!("{cancel}\n").as_bytes());
        assert_eq!(open_ids(&replayed(&journal)), Vec::<String>::new());
    }

    #[test]
    fn a_long_journal_is_replaced_and_says_the_same() {
        let journal = journal();
        journal.read(format!("{INITIALIZE}\n").as_bytes());
        write(&journal, "{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{}}\n");
        journal.read(format!("{CALL}\n").as_bytes());
        let before = replayed(&journal);
        let filler = " ".repeat(100_000);
        for number in 1..=20 {
            let ping = format!(r#"{{"jsonrpc":"2.0","id":{number},"method":"ping"}}{filler}"#);
            journal.read(format!("{ping}\n").as_bytes());
            write(
                &journal,
                &format!("{{\"jsonrpc\":\"2.0\",\"id\":{number},\"result\":{{}}}}\n"),
            );
        }
        assert_eq!(replayed(&journal), before);
        assert!(lock(&journal.state).bytes < MIN_COMPACTED_BYTES);
    }

    #[test]
    fn broken_records_are_ignored() {
        for records in [
            &b""[..],
            b"<",
            b"<\xff\xff\xff\xff",
            b"<\x01\0\0\0",
            b"?\x01\0\0\0x",
        ] {
            assert_eq!(Replay::of(records), Replay::default(), "{records:?}");
        }
    }
}
