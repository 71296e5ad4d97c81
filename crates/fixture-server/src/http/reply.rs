//! The response to a request over HTTP: JSON, or a stream of events if there are other messages too.

use std::{
    io::Write,
    net::{Shutdown, TcpStream},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread::{self, JoinHandle},
};

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{message::Message, script::Raw};

#[derive(Debug, Clone)]
pub(crate) struct Reply {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    stream: TcpStream,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    phase: Phase,
    shape: Shape,
    refusal: bool,
}

/// How far the answer is.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Phase {
    #[default]
    Silent,
    Streaming,
    /// The response is complete.
    Over,
}

/// The form of a response.
#[derive(Debug, Default)]
pub(super) struct Shape {
    /// The raw id of the request.
    pub(super) id: String,
    /// True if errors have their own status.
    pub(super) modern: bool,
    /// True if it is a stream in any case.
    pub(super) stream: bool,
    /// The session that it starts.
    pub(super) session: Option<String>,
}

/// The part of a response that determines its status.
#[derive(Deserialize)]
struct Failure {
    error: Option<Code>,
}

#[derive(Deserialize)]
struct Code {
    code: Option<Raw>,
}

impl Reply {
    /// An answer on this connection.
    pub(super) fn new(stream: TcpStream) -> Self {
        let shared = Shared {
            stream,
            state: Mutex::default(),
            changed: Condvar::new(),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    pub(super) fn shape(&self, shape: Shape) {
        self.lock().shape = shape;
    }

    /// Records that the response will refuse an invalid request.
    pub(crate) fn expect_refusal(&self) {
        self.lock().refusal = true;
    }

    /// A whole answer without a body.
    pub(super) fn empty(&self, status: &str) {
        self.write(&format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n"));
        self.lock().phase = Phase::Over;
    }

    /// A whole answer that is an error.
    pub(super) fn refuse(&self, status: &str, id: &str, error: &str) {
        let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#);
        self.json(status, "", &body);
        self.lock().phase = Phase::Over;
    }

    /// Writes a message: the answer, or an event.
    pub(crate) fn message(&self, line: &str) {
        let mut state = self.lock();
        if state.phase == Phase::Over {
            return;
        }
        let message: Option<Message> = serde_json::from_str(line).ok();
        let last = message.is_some_and(|it| {
            it.method.is_none() && it.id.is_some_and(|id| id.get() == state.shape.id)
        });
        if last && state.phase == Phase::Silent && !state.shape.stream {
            self.json(state.status(line), &state.session_header(), line);
            state.phase = Phase::Over;
        } else {
            self.stream_head(&mut state);
            self.chunk(format!("event: message\ndata: {line}\n\n").as_bytes());
            if last {
                self.write("0\r\n\r\n");
                state.phase = Phase::Over;
            }
        }
        self.shared.changed.notify_all();
    }

    /// Writes bytes into the stream as they are.
    pub(crate) fn bytes(&self, bytes: &[u8]) {
        let mut state = self.lock();
        if state.phase != Phase::Over {
            self.stream_head(&mut state);
            self.chunk(bytes);
        }
    }

    /// Starts the stream before there is an event.
    pub(super) fn begin_stream(&self) {
        self.stream_head(&mut self.lock());
    }

    /// Closes the connection, whatever was written.
    pub(crate) fn close(&self) {
        self.over();
        let _gone = self.shared.stream.shutdown(Shutdown::Both);
    }

    /// Ends the stream without an answer.
    pub(crate) fn finish(&self) {
        self.write("0\r\n\r\n");
        self.over();
    }

    /// Returns true if the response is complete.
    pub(super) fn is_over(&self) -> bool {
        self.lock().phase == Phase::Over
    }

    /// Waits until the response is complete.
    pub(super) fn wait_over(&self) {
        let going_on = |state: &mut State| state.phase != Phase::Over;
        drop(self.shared.changed.wait_while(self.lock(), going_on));
    }

    /// Calls `closed` if the client closes the connection before the response is complete. Ends as well when the client
    /// sends more.
    pub(super) fn watch(&self, closed: impl FnOnce() + Send + 'static) -> JoinHandle<()> {
        let reply = self.clone();
        thread::spawn(move || {
            let more = reply.shared.stream.peek(&mut [0]).unwrap_or(0) > 0;
            if !more && !reply.is_over() {
                reply.over();
                closed();
            }
        })
    }

    fn over(&self) {
        self.lock().phase = Phase::Over;
        self.shared.changed.notify_all();
    }

    fn stream_head(&self, state: &mut State) {
        if state.phase == Phase::Silent {
            let session = state.session_header();
            self.write(&format!(
                "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\nX-Accel-Buffering: no\r\n{session}Transfer-Encoding: chunked\r\n\r\n"
            ));
            state.phase = Phase::Streaming;
        }
    }

    fn json(&self, status: &str, session: &str, body: &str) {
        let length = body.len();
        self.write(&format!(
            "HTTP/1.1 {status}\r\nContent-Type: application/json\r\n{session}Content-Length: {length}\r\n\r\n{body}"
        ));
    }

    fn chunk(&self, bytes: &[u8]) {
        let head = format!("{:x}\r\n", bytes.len());
        self.write_bytes(&[head.as_bytes(), bytes, b"\r\n"].concat());
    }

    fn write(&self, text: &str) {
        self.write_bytes(text.as_bytes());
    }

    /// Writes bytes. A disconnected client is ignored.
    fn write_bytes(&self, bytes: &[u8]) {
        let _gone = (&self.shared.stream).write_all(bytes);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        let state = self.shared.state.lock();
        state.unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn session_header(&self) -> String {
        let session = self.shape.session.as_deref();
        session.map_or_else(String::new, |it| format!("Mcp-Session-Id: {it}\r\n"))
    }

    fn status(&self, answer: &str) -> &'static str {
        let failure: Option<Failure> = serde_json::from_str(answer).ok();
        let code = failure.and_then(|it| it.error?.code);
        match code.as_deref().map(RawValue::get) {
            _ if !self.shape.modern => "200 OK",
            Some("-32020" | "-32021" | "-32022") => "400 Bad Request",
            Some("-32601") => "404 Not Found",
            Some(_) if self.refusal => "400 Bad Request",
            _ => "200 OK",
        }
    }
}
