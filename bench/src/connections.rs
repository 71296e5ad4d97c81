//! Streamable HTTP to a process that listens: one connection for calls one after the other, and one for each
//! call in flight.

use std::{
    io::{self, BufRead, BufReader, Write},
    net::TcpStream,
    process::Stdio,
    thread,
    time::{Duration, Instant},
};

use rustix::event::{PollFd, PollFlags, poll};

use crate::{
    era::{MODERN_REVISION, Params, RequestMeta},
    http::{HttpMessage, MessageBuffer},
    prepared::Prepared,
    session::{Budget, GRACE, SessionError, read_answer, write_request},
    watchdog::Watched,
};

/// How long a target may take until it listens, and how often that is tried.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);
const PACE: Duration = Duration::from_millis(2);

/// A process that listens, and the connections to it. Dropping it ends the process.
pub struct Connections {
    pub(crate) process: Watched,
    address: String,
    is_modern: bool,
    /// The headers of every request of a legacy client after the answer to `initialize`.
    session_headers: String,
    /// The headers of the next request that depend on the era.
    headers: String,
    open: Vec<Connection>,
    body: Vec<u8>,
    message: Vec<u8>,
}

struct Connection {
    stream: TcpStream,
    buffer: MessageBuffer,
}

impl Connections {
    /// Starts the process and waits until it says where it listens.
    pub fn spawn(prepared: &Prepared) -> Result<Self, SessionError> {
        let mut child = prepared
            .command()
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()?;
        let stderr = child.stderr.take().ok_or(SessionError::Ended)?;
        let process = Watched::new(child);
        let mut lines = BufReader::new(stderr).lines();
        let address = match &prepared.address {
            Some(address) => address.clone(),
            None => announced(&mut lines)?,
        };
        // The pipe is read so that the target never waits for it.
        thread::spawn(move || lines.for_each(drop));
        let first = Connection::open_when_ready(&address)?;
        Ok(Self {
            process,
            address,
            is_modern: prepared.meta == RequestMeta::Modern,
            session_headers: String::new(),
            headers: String::new(),
            open: vec![first],
            body: Vec::new(),
            message: Vec::new(),
        })
    }

    /// Sends a message that has no answer but its receipt.
    pub(crate) fn notify(&mut self, message: &[u8]) -> Result<(), SessionError> {
        self.body.clear();
        self.body.extend_from_slice(message);
        self.headers.clone_from(&self.session_headers);
        self.post(0)?;
        self.open[0].wait().map(drop)
    }

    /// Sends a request and gives its result to `read`.
    pub(crate) fn ask<T>(
        &mut self,
        id: u64,
        method: &str,
        params: &Params,
        read: impl Fn(&str) -> T,
    ) -> Result<T, SessionError> {
        self.body.clear();
        write_request(&mut self.body, id, method, params);
        self.write_headers(method, params);
        self.post(0)?;
        let message = self.open[0].wait()?;
        if method == "initialize" {
            self.session_headers.clear();
            self.session_headers += "mcp-protocol-version: 2025-06-18\r\n";
            if let Some(session) = message.header("mcp-session-id") {
                self.session_headers += &format!("mcp-session-id: {session}\r\n");
            }
        }
        match read_answer(message.json())? {
            Some((answered, result)) if answered == id => Ok(read(result)),
            _ => Err(SessionError::Unexpected(message.head)),
        }
    }

    /// Keeps `count` calls in flight until the budget is used up; returns how many were answered.
    pub(crate) fn in_flight(
        &mut self,
        first: u64,
        params: &Params,
        count: usize,
        budget: Budget,
    ) -> Result<usize, SessionError> {
        self.reopen()?;
        while self.open.len() < count {
            self.open.push(Connection::open(&self.address)?);
        }
        self.write_headers("tools/call", params);
        let began = Instant::now();
        let mut sent = 0;
        let mut done = 0;
        while sent < count {
            self.call(sent, first + sent as u64, params)?;
            sent += 1;
        }
        while done < sent {
            for index in self.readable(count)? {
                let connection = &mut self.open[index];
                if !connection.buffer.fill(&mut connection.stream)? {
                    return Err(SessionError::Ended);
                }
                let Some(message) = connection.buffer.take() else {
                    continue;
                };
                read_answer(message.json())?;
                done += 1;
                if sent < budget.calls && began.elapsed() < budget.time {
                    self.call(index, first + sent as u64, params)?;
                    sent += 1;
                }
            }
        }
        Ok(done)
    }

    /// Opens again what the target has closed because it was idle.
    pub(crate) fn reopen(&mut self) -> io::Result<()> {
        for connection in &mut self.open {
            if connection.is_closed()? {
                *connection = Connection::open(&self.address)?;
            }
        }
        Ok(())
    }

    /// Waits until some of the first `count` connections have something; returns which.
    fn readable(&self, count: usize) -> io::Result<Vec<usize>> {
        let streams = self.open[..count]
            .iter()
            .map(|connection| &connection.stream);
        let mut waiting: Vec<_> = streams.map(|it| PollFd::new(it, PollFlags::IN)).collect();
        poll(&mut waiting, None)?;
        let ready = waiting
            .iter()
            .enumerate()
            .filter(|(_, it)| !it.revents().is_empty());
        Ok(ready.map(|(index, _)| index).collect())
    }

    fn call(&mut self, index: usize, id: u64, params: &Params) -> Result<(), SessionError> {
        self.body.clear();
        write_request(&mut self.body, id, "tools/call", params);
        self.post(index)
    }

    /// Writes the headers that depend on the era: those of the session, or those that repeat the body.
    fn write_headers(&mut self, method: &str, params: &Params) {
        self.headers.clear();
        if !self.is_modern {
            self.headers += &self.session_headers;
            return;
        }
        let texts = [
            "mcp-protocol-version: ",
            MODERN_REVISION,
            "\r\nmcp-method: ",
            method,
            "\r\n",
        ];
        self.headers.extend(texts);
        if let Some(name) = params.name() {
            self.headers.extend(["mcp-name: ", name, "\r\n"]);
        }
    }

    /// Posts the body on a connection with one write.
    fn post(&mut self, index: usize) -> Result<(), SessionError> {
        self.message.clear();
        let (address, length) = (&self.address, self.body.len());
        write!(
            self.message,
            "POST /mcp HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\n\
             accept: application/json, text/event-stream\r\n{}content-length: {length}\r\n\r\n",
            self.headers
        )?;
        self.message.extend_from_slice(&self.body);
        Ok(self.open[index].stream.write_all(&self.message)?)
    }
}

/// The address that the target says it listens at.
fn announced(lines: &mut impl Iterator<Item = io::Result<String>>) -> Result<String, SessionError> {
    loop {
        let line = lines.next().ok_or(SessionError::Ended)??;
        if let Some((_, address)) = line.split_once("listening on http://") {
            return Ok(address.trim_end_matches("/mcp").to_owned());
        }
    }
}

impl Connection {
    /// Waits until somebody listens.
    fn open_when_ready(address: &str) -> io::Result<Self> {
        let began = Instant::now();
        loop {
            match Self::open(address) {
                Err(_) if began.elapsed() < CONNECT_TIMEOUT => thread::park_timeout(PACE),
                done => return done,
            }
        }
    }

    fn open(address: &str) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            buffer: MessageBuffer::default(),
        })
    }

    fn is_closed(&self) -> io::Result<bool> {
        // A connection that is open has nothing to read now.
        self.stream.set_nonblocking(true)?;
        let waits = self.stream.peek(&mut [0]);
        self.stream.set_nonblocking(false)?;
        Ok(!matches!(waits, Err(error) if error.kind() == io::ErrorKind::WouldBlock))
    }

    fn wait(&mut self) -> Result<HttpMessage, SessionError> {
        let message = self.buffer.next(&mut self.stream)?;
        message.ok_or(SessionError::Ended)
    }
}

impl Drop for Connections {
    fn drop(&mut self) {
        // It may have ended by itself; it has no other way to learn that nobody needs it any more.
        self.process.terminate();
        self.process.wait(GRACE);
    }
}
