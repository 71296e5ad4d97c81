//! The outputs of the process: one locked writer for stdout and for each response over HTTP, so that messages of
//! different calls never mix, and stderr.

use std::{
    io::{self, Write},
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    thread::{self, ThreadId},
};

use serde_json::value::RawValue;

use crate::http::Reply;

/// A way to the client.
#[derive(Debug, Default)]
pub(crate) struct Output {
    /// The thread that owns the output exclusively. Locked during every write.
    owner: Mutex<Option<ThreadId>>,
    freed: Condvar,
    sink: Sink,
}

#[derive(Debug, Default)]
enum Sink {
    #[default]
    Stdout,
    Http(Reply),
}

impl Output {
    /// Creates an output that is the response to a request over HTTP.
    pub(crate) fn http(reply: Reply) -> Self {
        Self {
            sink: Sink::Http(reply),
            ..Self::default()
        }
    }

    /// Returns the response to a request over HTTP, if it is one.
    pub(crate) fn reply(&self) -> Option<&Reply> {
        match &self.sink {
            Sink::Stdout => None,
            Sink::Http(reply) => Some(reply),
        }
    }

    /// Writes bytes as they are. A disconnected client is ignored.
    pub(crate) fn bytes(&self, bytes: &[u8]) {
        let turn = self.turn();
        match &self.sink {
            Sink::Stdout => {
                let mut stdout = io::stdout().lock();
                drop(stdout.write_all(bytes).and_then(|()| stdout.flush()));
            }
            Sink::Http(reply) => reply.bytes(bytes),
        }
        drop(turn);
    }

    /// Runs something of which no other thread's output becomes a part.
    pub(crate) fn alone(&self, run: impl FnOnce()) {
        *self.turn() = Some(thread::current().id());
        run();
        *self.turn() = None;
        self.freed.notify_all();
    }

    /// Waits until no other thread has the output for itself.
    fn turn(&self) -> MutexGuard<'_, Option<ThreadId>> {
        let me = thread::current().id();
        let owner = self.owner.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = |owner: &mut Option<ThreadId>| owner.is_some_and(|owner| owner != me);
        let owner = self.freed.wait_while(owner, taken);
        owner.unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes one message: a line, or over HTTP the response or an event.
    pub(crate) fn line(&self, line: &[u8]) {
        match &self.sink {
            Sink::Stdout => self.bytes(&[line, b"\n"].concat()),
            Sink::Http(reply) => {
                let turn = self.turn();
                reply.message(&String::from_utf8_lossy(line));
                drop(turn);
            }
        }
    }

    pub(crate) fn answer(&self, id: &RawValue, result: &str) {
        self.line(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#).as_bytes());
    }

    /// Answers a request with an error.
    pub(crate) fn error(&self, id: &RawValue, error: &str) {
        self.line(format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#).as_bytes());
    }

    /// Answers with an error a request that is not as it must be.
    pub(crate) fn refuse(&self, id: &RawValue, error: &str) {
        if let Some(reply) = self.reply() {
            reply.expect_refusal();
        }
        self.error(id, error);
    }

    /// Writes a message with the members of an object, adding `jsonrpc`.
    pub(crate) fn message(&self, members: &str) {
        let members = members.trim_start_matches('{');
        self.line(format!(r#"{{"jsonrpc":"2.0",{members}"#).as_bytes());
    }
}

/// Writes one line to stderr.
pub(crate) fn stderr_line(line: &str) {
    stderr_bytes(format!("{line}\n").as_bytes());
}

/// Writes bytes to stderr as they are.
pub(crate) fn stderr_bytes(bytes: &[u8]) {
    drop(io::stderr().lock().write_all(bytes));
}
