//! A small HTTP/1.1 client that sends exactly what a test says, well-formed or not.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpStream},
};

use super::{Message, TIMEOUT};

/// A request, header by header.
#[derive(Debug, Clone)]
pub(crate) struct HttpRequest {
    method: String,
    path: String,
    headers: Vec<(String, String)>,
    body: String,
}

impl HttpRequest {
    /// A request without headers or body.
    pub(crate) fn new(method: &str, path: &str) -> Self {
        Self {
            method: method.to_owned(),
            path: path.to_owned(),
            headers: Vec::new(),
            body: String::new(),
        }
    }

    /// Adds a header, also where there is one of this name.
    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Puts a header in place of those of this name.
    pub(crate) fn with(self, name: &str, value: &str) -> Self {
        self.without(name).header(name, value)
    }

    /// Takes the headers of this name away.
    pub(crate) fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(known, _)| known != name);
        self
    }

    /// The value of a header.
    pub(crate) fn value(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        let header = headers.find(|(known, _)| known == name);
        header.map(|(_, value)| value.as_str())
    }

    /// The body, with its length as a header.
    pub(crate) fn body(self, body: &str) -> Self {
        let mut request = self.with("content-length", &body.len().to_string());
        body.clone_into(&mut request.body);
        request
    }

    /// The request on the wire.
    pub(crate) fn text(&self) -> String {
        let mut text = format!("{} {} HTTP/1.1\r\n", self.method, self.path);
        for (name, value) in &self.headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        text + "\r\n" + &self.body
    }
}

/// The head of a response.
#[derive(Debug, Clone)]
pub(crate) struct Head {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
}

impl Head {
    /// The value of a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        let header = headers.find(|(known, _)| known.eq_ignore_ascii_case(name));
        header.map(|(_, value)| value.as_str())
    }

    /// Returns true if the body is a stream of events.
    pub(crate) fn is_stream(&self) -> bool {
        self.header("content-type") == Some("text/event-stream")
    }

    fn is_chunked(&self) -> bool {
        self.header("transfer-encoding") == Some("chunked")
    }
}

#[derive(Debug, Clone)]
pub(crate) struct HttpResponse {
    pub(crate) head: Head,
    pub(crate) body: String,
}

impl HttpResponse {
    /// The body as a message.
    pub(crate) fn message(&self) -> Message {
        assert_eq!(self.head.header("content-type"), Some("application/json"));
        Message::parse(self.body.trim_end().to_owned())
    }

    /// The events of a stream that has ended.
    pub(crate) fn events(&self) -> Vec<Event> {
        let blocks = self.body.split_inclusive("\n\n");
        blocks.filter_map(Event::parse).collect()
    }
}

/// An event of a stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) id: String,
    /// Its data; empty where it only says where to resume.
    pub(crate) data: String,
    /// When to come back, in milliseconds.
    pub(crate) retry: Option<u64>,
}

impl Event {
    /// Reads an event; comments are none.
    fn parse(block: &str) -> Option<Self> {
        let mut event = Self::default();
        let mut fields = 0;
        for line in block.lines() {
            let (name, value) = line.split_once(": ").unwrap_or((line, ""));
            match name {
                "id" => value.clone_into(&mut event.id),
                "data" => value.clone_into(&mut event.data),
                "retry" => event.retry = value.parse().ok(),
                _ => continue,
            }
            fields += 1;
        }
        (fields > 0).then_some(event)
    }

    /// The data as a message.
    pub(crate) fn message(&self) -> Message {
        Message::parse(self.data.clone())
    }
}

#[derive(Debug)]
pub(crate) struct HttpConnection {
    stream: BufReader<TcpStream>,
    /// The received part of an incomplete event.
    unread: String,
}

impl HttpConnection {
    pub(crate) fn open(address: SocketAddr) -> Self {
        let stream = TcpStream::connect_timeout(&address, TIMEOUT).expect("a connection");
        stream.set_read_timeout(Some(TIMEOUT)).expect("a timeout");
        stream.set_nodelay(true).expect("no delay");
        Self {
            stream: BufReader::new(stream),
            unread: String::new(),
        }
    }

    /// Sends bytes as they are; a connection that was closed is no error.
    pub(crate) fn send_bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.get_mut().write_all(bytes)
    }

    pub(crate) fn send(&mut self, request: &HttpRequest) {
        let _answered_before = self.send_bytes(request.text().as_bytes());
    }

    /// Sends a request and reads the whole response.
    pub(crate) fn ask(&mut self, request: &HttpRequest) -> HttpResponse {
        self.send(request);
        self.response()
    }

    /// Reads the head of a response.
    pub(crate) fn head(&mut self) -> Head {
        let first = self.line().expect("a response");
        let status = first.split(' ').nth(1).and_then(|it| it.parse().ok());
        let mut headers = Vec::new();
        while let Some(line) = self.line().filter(|line| !line.is_empty()) {
            let (name, value) = line.split_once(": ").expect("a header");
            headers.push((name.to_owned(), value.to_owned()));
        }
        Head {
            status: status.unwrap_or_else(|| panic!("no status: {first}")),
            headers,
        }
    }

    pub(crate) fn response(&mut self) -> HttpResponse {
        let head = self.head();
        let mut body = String::new();
        if head.is_chunked() {
            while let Some(chunk) = self.chunk() {
                body.push_str(&chunk);
            }
        } else {
            let length = head.header("content-length").unwrap_or("0");
            body = self.text(length.parse().expect("a length"));
        }
        HttpResponse { head, body }
    }

    /// Reads the next event of a stream; nothing at its end.
    pub(crate) fn event(&mut self) -> Option<Event> {
        loop {
            if let Some((block, rest)) = self.unread.split_once("\n\n") {
                let event = Event::parse(block);
                self.unread = rest.to_owned();
                if event.is_some() {
                    return event;
                }
                continue;
            }
            let chunk = self.chunk()?;
            self.unread.push_str(&chunk);
        }
    }

    /// Reads the next event of a stream as a message.
    pub(crate) fn message(&mut self) -> Message {
        self.event().expect("an event").message()
    }

    /// Waits until the other side has closed the connection.
    pub(crate) fn wait_closed(&mut self) {
        let mut rest = Vec::new();
        if let Err(error) = self.stream.read_to_end(&mut rest) {
            assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
        }
    }

    fn chunk(&mut self) -> Option<String> {
        let size = self.line()?;
        let size = usize::from_str_radix(&size, 16).expect("the size of a chunk");
        let text = self.text(size);
        self.line();
        (size > 0).then_some(text)
    }

    /// Reads so many bytes of a body, as they are on the wire.
    pub(crate) fn text(&mut self, length: usize) -> String {
        let mut bytes = vec![0; length];
        self.stream.read_exact(&mut bytes).expect("a whole body");
        String::from_utf8(bytes).expect("UTF-8")
    }

    /// The next line; nothing at the end.
    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        let read = self.stream.read_line(&mut line).expect("an answer in time");
        (read > 0).then(|| line.trim_end_matches(['\r', '\n']).to_owned())
    }
}
