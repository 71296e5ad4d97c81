//! Reads the journal of a host that has ended: the session, the requests without an answer, and the bytes that were not sent.

use std::{
    collections::HashMap,
    fs::File,
    io::{self, Seek},
    os::unix::fs::FileExt,
};

use bytes::{Bytes, BytesMut};
use rawjson::RawJson;

use super::{INPUT_AT, JournalFiles, MAX_JOURNAL_BYTES, MAX_TAKEN_BYTES, RECORDED_AT, TAKEN_AT};
use crate::{
    meta::MetaTool,
    wire::{MAX_FRAME_BYTES, Message, Request, RequestId, Response, id_from_head},
};

/// Upper bound on a file that is read. More than a host writes, which checks the length before each write: without the
/// end of a file, calls that were answered would be answered again.
const MAX_REPLAYED_BYTES: usize = 2 * MAX_JOURNAL_BYTES;
/// The part that is stored of the end of a line that is too long. Its id may be there.
pub(super) const LINE_END_BYTES: usize = 4 * 1024;
/// The part of an unfinished line of output that is stored. Our own messages begin with their id.
const MAX_HEAD_BYTES: usize = 256;
/// Words of the requests that a session depends on.
const SESSION_WORDS: [&str; 4] = ["initialize", "setLevel", "subscribe", "open_toolbox"];

/// A request that a session depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SessionLine {
    pub(crate) id: RequestId,
    change: SessionChange,
    pub(crate) line: Bytes,
    /// False if it is also among the open ones.
    pub(crate) is_answered: bool,
}

/// The effect of a request on the session. A later request with the same effect replaces it.
#[derive(Debug, Clone, PartialEq, Eq)]
enum SessionChange {
    Begin,
    Level,
    /// The resource is subscribed to.
    Subscribe(String),
    /// The toolbox is opened.
    Open(String),
}

/// A line of the client without an answer: a request, or a batch with several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OpenRequest {
    pub(crate) requests: Vec<Request>,
    pub(crate) line: Bytes,
    pub(crate) is_batch: bool,
}

/// The state of a client when its host ended.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Replay {
    /// The requests that the session depends on, in order.
    pub(crate) session: Vec<SessionLine>,
    /// The lines without an answer, in order.
    pub(crate) open: Vec<OpenRequest>,
    /// The beginning of a line. One that is too long is stored in part.
    pub(crate) partial: Bytes,
    /// The id of that line, if it was refused because it is too long.
    pub(crate) refused: Option<RequestId>,
    /// The questions that the client has not answered, as they were sent.
    pub(crate) questions: Vec<(RequestId, Bytes)>,
    /// The answers and other messages that were recorded and not sent.
    pub(crate) unsent: Bytes,
    /// The beginning of a line that was sent in part, if its rest was not recorded.
    pub(crate) broken_line: Bytes,
}

/// Reads the journal of a host.
pub(crate) fn replay(files: &JournalFiles) -> io::Result<Replay> {
    let (taken, recorded) = (
        number(&files.input, TAKEN_AT)?,
        number(&files.input, RECORDED_AT)?,
    );
    let most = taken.saturating_add(MAX_TAKEN_BYTES);
    let mut input = read(&files.input, INPUT_AT, most)?;
    // Nothing is behind the bytes that were taken but those of a read after which the host was killed. JSON text has no zeros.
    let certain = taken.min(input.len());
    let doubtful = input[certain..].iter().rposition(|byte| *byte != 0);
    input.truncate(doubtful.map_or(certain, |last| certain + last + 1));
    let output = read(&files.output, 0, recorded)?;
    let sent = usize::try_from((&*files.output).stream_position()?)
        .unwrap_or(usize::MAX)
        .min(output.len());
    Ok(Replay::of(input, &output, sent))
}

fn number(file: &File, at: usize) -> io::Result<usize> {
    let mut bytes = [0; 8];
    file.read_exact_at(&mut bytes, at as u64)?;
    Ok(usize::try_from(u64::from_ne_bytes(bytes)).unwrap_or(usize::MAX))
}

/// Reads bytes of a file from `at` on, at most so many.
fn read(file: &File, at: usize, most: usize) -> io::Result<Bytes> {
    let length = file.metadata()?.len().saturating_sub(at as u64);
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    let mut bytes = vec![0; length.min(most).min(MAX_REPLAYED_BYTES)];
    file.read_exact_at(&mut bytes, at as u64)?;
    Ok(bytes.into())
}

impl Replay {
    /// Compares what was taken with what was recorded for the client. `sent` is the length of the output that was sent.
    pub(super) fn of(mut input: Bytes, output: &Bytes, sent: usize) -> Self {
        let mut replay = Self::default();
        // The output first: it says which requests of the input have an answer.
        let mut answered = replay.take_output(output, sent);
        // Each line of the input is matched with the answers by its id. What the session depends on is kept even if
        // it was answered; of all other lines only those without an answer are open.
        while let Some(end) = memchr::memchr(b'\n', &input) {
            let line = input.split_to(end + 1).slice(..end);
            replay.take_line(&line, &mut answered);
        }
        replay.take_partial(input, &mut answered);
        for line in &mut replay.session {
            // The same line, and not only the same id: some clients use an id again.
            let mut open = replay.open.iter().map(|it| it.line.as_ptr());
            line.is_answered = !open.any(|open| open == line.line.as_ptr());
        }
        replay
    }

    /// Finds the unsent messages and the questions. Returns how often each id was answered.
    fn take_output(&mut self, output: &Bytes, sent: usize) -> Answered {
        let mut answered = Answered::default();
        let whole = memchr::memrchr(b'\n', output).map_or(0, |end| end + 1);
        // The client has read a part of a line whose rest was never recorded.
        if whole < sent {
            let head = &output[whole..sent];
            self.broken_line = Bytes::copy_from_slice(&head[..head.len().min(MAX_HEAD_BYTES)]);
        } else {
            self.unsent = output.slice(sent..whole);
        }
        let mut rest = output.slice(..whole);
        while let Some(end) = memchr::memchr(b'\n', &rest) {
            let line = rest.split_to(end + 1).slice(..end);
            if line.first() == Some(&b'[') {
                let elements = RawJson::parse(&line).ok().and_then(|it| it.elements());
                for element in elements.into_iter().flatten() {
                    answered.add(element.member("id").and_then(RequestId::from_json));
                }
                continue;
            }
            match id_from_head(&line) {
                Some(id) if is_question(&line, &id) => self.questions.push((id, line)),
                id => answered.add(id),
            }
        }
        answered
    }

    fn take_line(&mut self, line: &Bytes, answered: &mut Answered) {
        // A word can be anywhere in a line. It only decides that the line is parsed; the method is checked below.
        let is_of_session = SESSION_WORDS
            .iter()
            .any(|word| memchr::memmem::find(line, word.as_bytes()).is_some());
        // Most requests are answered, and need no full parse.
        if !is_of_session && id_from_head(line).is_some_and(|id| answered.take(&id)) {
            return;
        }
        match Message::parse(line) {
            Ok(Message::Request(request)) => {
                self.take_session_line(&request, line);
                if !answered.take(&request.id) {
                    self.open.push(OpenRequest {
                        requests: vec![request],
                        line: line.clone(),
                        is_batch: false,
                    });
                }
            }
            Ok(Message::Notification(cancel)) if &*cancel.method == "notifications/cancelled" => {
                let params = cancel.params.as_ref();
                let id = params.and_then(|params| params.member("requestId"));
                if let Some(id) = id.and_then(RequestId::from_json) {
                    self.cancel(&id);
                }
            }
            Ok(Message::Response(response)) => self.take_answer(&response),
            Ok(Message::Notification(_)) => {}
            Err(_) => self.take_batch(line, answered),
        }
    }

    fn take_batch(&mut self, line: &Bytes, answered: &mut Answered) {
        let elements = RawJson::parse(line).ok().and_then(|it| it.elements());
        let mut requests = Vec::new();
        for element in elements.into_iter().flatten() {
            match Message::parse(element.as_bytes()) {
                Ok(Message::Request(request)) => requests.push(request),
                Ok(Message::Response(response)) => self.take_answer(&response),
                _ => {}
            }
        }
        // A batch has one answer.
        let taken = requests.iter().filter(|it| answered.take(&it.id)).count();
        if taken == 0 && !requests.is_empty() {
            self.open.push(OpenRequest {
                requests,
                line: line.clone(),
                is_batch: true,
            });
        }
    }

    /// Takes the beginning of a line.
    fn take_partial(&mut self, line: Bytes, answered: &mut Answered) {
        self.partial = line;
        if self.partial.len() <= MAX_FRAME_BYTES {
            return;
        }
        self.refused = id_from_head(&self.partial).filter(|id| answered.take(id));
        // Long enough to be refused by the next host too, with or without a byte order mark.
        let (beginning, end) = (
            MAX_FRAME_BYTES + 2 * LINE_END_BYTES,
            self.partial.len() - LINE_END_BYTES,
        );
        if end > beginning {
            let kept = [&self.partial[..beginning], &self.partial[end..]];
            self.partial = kept.concat().into();
        }
    }

    /// Keeps a request that changes the session, and removes those that it replaces.
    fn take_session_line(&mut self, request: &Request, line: &Bytes) {
        let change = match &*request.method {
            "initialize" => SessionChange::Begin,
            "logging/setLevel" => SessionChange::Level,
            "resources/subscribe" => match resource(request) {
                Some(uri) => SessionChange::Subscribe(uri),
                None => return,
            },
            "resources/unsubscribe" => {
                let ended = resource(request).map(SessionChange::Subscribe);
                return self.session.retain(|it| Some(&it.change) != ended.as_ref());
            }
            "tools/call" => match opened_toolbox(request) {
                Some(toolbox) => SessionChange::Open(toolbox),
                None => return,
            },
            _ => return,
        };
        match change {
            // A new session forgets what the one before had set.
            SessionChange::Begin => self.session.clear(),
            SessionChange::Level | SessionChange::Subscribe(_) | SessionChange::Open(_) => {
                self.session.retain(|it| it.change != change);
            }
        }
        self.session.push(SessionLine {
            id: request.id.clone(),
            change,
            line: line.clone(),
            is_answered: true,
        });
    }

    /// Removes a request that the client has cancelled. It gets no answer.
    fn cancel(&mut self, id: &RequestId) {
        let is_cancelled = |it: &OpenRequest| !it.is_batch && it.requests[0].id == *id;
        self.open.retain(|it| !is_cancelled(it));
    }

    fn take_answer(&mut self, response: &Response) {
        self.questions
            .retain(|(id, _)| response.id.as_ref() != Some(id));
    }

    /// Returns the input that says the same: the session, then what is open.
    pub(super) fn input(&self) -> Vec<u8> {
        // The others are among the open ones.
        let session = self
            .session
            .iter()
            .filter(|it| it.is_answered)
            .map(|it| &it.line);
        let mut input = BytesMut::new();
        for line in session.chain(self.open.iter().map(|it| &it.line)) {
            input.extend_from_slice(line);
            input.extend_from_slice(b"\n");
        }
        input.extend_from_slice(&self.partial);
        input.into()
    }

    /// Returns the sent output that says the same: answers to the requests of the session, and the open questions.
    pub(super) fn sent_output(&self) -> Vec<u8> {
        let mut output = Vec::new();
        let answered = self.session.iter().filter(|it| it.is_answered);
        for id in answered.map(|it| &it.id).chain(&self.refused) {
            // Only the id of an answer counts when a journal is read, so the rest is not stored.
            output.extend_from_slice(br#"{"id":"#);
            output.extend_from_slice(id.as_bytes());
            output.extend_from_slice(b",\n");
        }
        for (_, question) in &self.questions {
            output.extend_from_slice(question);
            output.push(b'\n');
        }
        output.extend_from_slice(&self.broken_line);
        output
    }

    /// Prepares the replay for the next host, which cannot finish a line that was sent in part: the line ends, and the request is
    /// answered again. Open questions are withdrawn.
    pub(crate) fn resume(mut self) -> Self {
        if !self.broken_line.is_empty() {
            // Without its id, the line does not count as an answer.
            self.broken_line = Bytes::from_static(b"-");
            self.unsent = Bytes::from_static(b"\n");
        }
        self
    }
}

/// How often each id was answered.
#[derive(Default)]
struct Answered(HashMap<RequestId, usize>);

impl Answered {
    fn add(&mut self, id: Option<RequestId>) {
        if let Some(id) = id {
            *self.0.entry(id).or_default() += 1;
        }
    }

    /// Removes one answer. Returns false if there is none.
    fn take(&mut self, id: &RequestId) -> bool {
        match self.0.get_mut(id) {
            Some(count) if *count > 0 => {
                *count -= 1;
                true
            }
            _ => false,
        }
    }
}

/// Returns whether a line for the client is a question of the workbench with this id.
fn is_question(line: &[u8], id: &RequestId) -> bool {
    let head = [
        br#"{"jsonrpc":"2.0","id":"#,
        id.as_bytes(),
        br#","method":"#,
    ]
    .concat();
    line.starts_with(&head)
}

/// Returns the toolbox that a call of `open_toolbox` opens.
pub(in crate::serve) fn opened_toolbox(request: &Request) -> Option<String> {
    let params = request.params.as_ref()?;
    let name = params.member("name")?;
    if name.as_text()? != MetaTool::OpenToolbox.name() {
        return None;
    }
    let toolbox = params.member("arguments")?.member("toolbox")?;
    Some(toolbox.as_text()?.into_owned())
}

/// Returns the resource that a request names.
fn resource(request: &Request) -> Option<String> {
    let uri = request.params.as_ref()?.member("uri")?;
    Some(uri.as_text()?.into_owned())
}
