//! A client of one target: the start of the protocol, calls one after the other, and many in flight. What
//! differs between pipes and HTTP is in [`crate::pipes`] and [`crate::connections`].

use std::{
    io,
    time::{Duration, Instant},
};

use serde::Deserialize;
use serde_json::value::RawValue;
use thiserror::Error;

use crate::{
    connections::Connections,
    era::{Params, RequestMeta},
    pipes::Pipes,
    prepared::Prepared,
    text::Text,
    watchdog::Watched,
};

/// How long a target may take to end by itself.
pub(crate) const GRACE: Duration = Duration::from_secs(5);

/// A reason why a target could not be measured.
#[derive(Debug, Error)]
pub enum SessionError {
    /// It could not be started, or a pipe broke.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// It ended, or was ended because it took too long.
    #[error("it ended, or did not answer in time")]
    Ended,
    /// It said something that is not an answer.
    #[error("it answered with {0}")]
    Unexpected(String),
}

/// An answer as far as it is read. All of it must be JSON.
#[derive(Deserialize)]
struct Answer<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
}

/// Reads an answer: its id and its result. Nothing for what is no answer.
pub(crate) fn read_answer(message: &[u8]) -> Result<Option<(u64, &str)>, SessionError> {
    let unexpected = || SessionError::Unexpected(excerpt(message));
    let answer: Answer<'_> = serde_json::from_slice(message).map_err(|_| unexpected())?;
    let (None, Some(id)) = (answer.method, answer.id) else {
        return Ok(None);
    };
    let id = id.get().parse().map_err(|_| unexpected())?;
    let result = answer.result.ok_or_else(unexpected)?;
    Ok(Some((id, result.get())))
}

fn excerpt(message: &[u8]) -> String {
    String::from_utf8_lossy(&message[..message.len().min(300)]).into_owned()
}

pub(crate) fn write_request(out: &mut Vec<u8>, id: u64, method: &str, params: &Params) {
    let id = id.to_string();
    out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    out.extend_from_slice(id.as_bytes());
    out.extend_from_slice(br#","method":""#);
    out.extend_from_slice(method.as_bytes());
    out.extend_from_slice(br#"","params":"#);
    params.write(&id, out);
    out.push(b'}');
}

pub enum Link {
    /// Over the pipes of the target's process.
    Pipes(Pipes),
    Http(Connections),
}

impl Link {
    fn process(&self) -> &Watched {
        match self {
            Self::Pipes(pipes) => &pipes.process,
            Self::Http(connections) => &connections.process,
        }
    }

    /// Sends a request and gives its result to `read`.
    fn ask<T>(
        &mut self,
        id: u64,
        (method, params): (&str, &Params),
        read: impl Fn(&str) -> T,
    ) -> Result<T, SessionError> {
        match self {
            Self::Pipes(pipes) => {
                pipes.request(id, method, params)?;
                pipes.wait(id, read)
            }
            Self::Http(connections) => connections.ask(id, method, params, read),
        }
    }
}

/// A target that runs and a client of it.
pub struct Session {
    link: Link,
    next_id: u64,
    prepared: Prepared,
}

/// For how long, and for how many calls at most, something is repeated.
#[derive(Debug, Clone, Copy)]
pub struct Budget {
    /// No call begins after this.
    pub time: Duration,
    /// At most so many calls.
    pub calls: usize,
}

/// The parameters of the client's `initialize`.
pub const INITIALIZE: &str = r#"{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}"#;

impl Session {
    /// Starts the target's process, and no more.
    pub fn spawn(prepared: Prepared) -> Result<Self, SessionError> {
        let link = if prepared.is_http {
            Link::Http(Connections::spawn(&prepared)?)
        } else {
            Link::Pipes(Pipes::spawn(&prepared)?)
        };
        Ok(Self {
            link,
            next_id: 1,
            prepared,
        })
    }

    /// Starts the target's process, opens what is behind it and makes a call that must be good.
    pub fn ready(prepared: Prepared) -> Result<Self, SessionError> {
        let mut session = Self::spawn(prepared)?;
        session.initialize()?;
        session.open()?;
        session.first_call()?;
        Ok(session)
    }

    /// The process of the target.
    pub fn pid(&self) -> u32 {
        self.link.process().pid()
    }

    /// Ends the target's process if nothing further is asked for so long.
    pub fn limit(&self, time: Duration) {
        self.link.process().limit(time);
    }

    /// Performs the handshake. A modern client has none.
    pub fn initialize(&mut self) -> Result<(), SessionError> {
        if self.prepared.meta == RequestMeta::Modern {
            return Ok(());
        }
        self.ask("initialize", INITIALIZE)?;
        self.initialized()
    }

    /// The end of the beginning of the protocol.
    pub fn initialized(&mut self) -> Result<(), SessionError> {
        let initialized = br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        match &mut self.link {
            Link::Pipes(pipes) => pipes.send(initialized),
            Link::Http(connections) => connections.notify(initialized),
        }
    }

    /// Sends a request to a target with pipes without waiting for the answer.
    pub fn begin(&mut self, method: &str, params: &str) -> Result<u64, SessionError> {
        let id = self.next_id;
        self.next_id += 1;
        match &mut self.link {
            Link::Pipes(pipes) => pipes.request(id, method, &self.prepared.params(params))?,
            Link::Http(_) => return Err(SessionError::Unexpected("no pipes".to_owned())),
        }
        Ok(id)
    }

    /// Waits for the answer to such a request; returns its length.
    pub fn finish(&mut self, id: u64) -> Result<usize, SessionError> {
        match &mut self.link {
            Link::Pipes(pipes) => pipes.wait(id, str::len),
            Link::Http(_) => Err(SessionError::Ended),
        }
    }

    /// Has the tools of all servers listed; returns how many there are.
    pub fn open(&mut self) -> Result<usize, SessionError> {
        let open = self.prepared.open.clone();
        let Some((method, params)) = open else {
            return Ok(0);
        };
        let mut list = self.ask(&method, &params)?;
        let mut count = count_tools(&list);
        while let Some(cursor) = next_page(&list) {
            let params = format!(r#"{{"cursor":"{cursor}"}}"#);
            list = self.ask(&method, &params)?;
            count += count_tools(&list);
        }
        if count < self.prepared.least_tools {
            return Err(SessionError::Unexpected(excerpt(list.as_bytes())));
        }
        Ok(count)
    }

    /// A call whose answer is looked at.
    pub fn first_call(&mut self) -> Result<(), SessionError> {
        let params = self.prepared.call(0, Text::default());
        let id = self.next_id;
        self.next_id += 1;
        let result = self.link.ask(id, ("tools/call", &params), str::to_owned)?;
        if result.contains("an answer of few words") {
            Ok(())
        } else {
            Err(SessionError::Unexpected(excerpt(result.as_bytes())))
        }
    }

    /// Calls one after the other for text of `bytes` bytes; how many microseconds each took.
    pub fn sequential(&mut self, bytes: usize, budget: Budget) -> Result<Vec<f64>, SessionError> {
        self.sequential_of(bytes, Text::default(), budget)
    }

    /// The same for a kind of text.
    pub fn sequential_of(
        &mut self,
        bytes: usize,
        text: Text,
        budget: Budget,
    ) -> Result<Vec<f64>, SessionError> {
        let params = self.prepared.call(bytes, text);
        if let Link::Http(connections) = &mut self.link {
            connections.reopen()?;
        }
        let began = Instant::now();
        let mut times = Vec::with_capacity(budget.calls.min(10_000));
        while times.len() < budget.calls && (times.len() < 5 || began.elapsed() < budget.time) {
            let before = Instant::now();
            let id = self.next_id;
            self.next_id += 1;
            let length = self.link.ask(id, ("tools/call", &params), str::len)?;
            times.push(before.elapsed().as_secs_f64() * 1e6);
            if length < bytes {
                return Err(SessionError::Unexpected(format!("only {length} bytes")));
            }
        }
        Ok(times)
    }

    /// Keeps `count` calls in flight; returns how many were answered and how many seconds that took.
    pub fn in_flight(
        &mut self,
        count: usize,
        budget: Budget,
    ) -> Result<(usize, f64), SessionError> {
        let params = self.prepared.call(0, Text::default());
        let began = Instant::now();
        let first = self.next_id;
        let done = match &mut self.link {
            Link::Pipes(pipes) => pipes.in_flight(first, &params, count, budget),
            Link::Http(connections) => connections.in_flight(first, &params, count, budget),
        }?;
        self.next_id += done as u64;
        Ok((done, began.elapsed().as_secs_f64()))
    }

    /// Makes this many calls with `count` of them in flight.
    pub fn in_flight_exactly(&mut self, count: usize, calls: usize) -> Result<(), SessionError> {
        let time = Duration::from_mins(5);
        self.limit(time);
        self.in_flight(count, Budget { time, calls }).map(drop)
    }

    fn ask(&mut self, method: &str, params: &str) -> Result<String, SessionError> {
        let id = self.next_id;
        self.next_id += 1;
        let params = self.prepared.params(params);
        self.link.ask(id, (method, &params), str::to_owned)
    }
}

fn count_tools(list: &str) -> usize {
    memchr::memmem::find_iter(list.as_bytes(), "inputSchema").count()
}

/// The cursor of the next page of a list.
fn next_page(list: &str) -> Option<&str> {
    let (_, rest) = list.split_once(r#""nextCursor":""#)?;
    Some(rest.split_once('"')?.0)
}
