//! As much of HTTP/1.1 as the benchmark needs: messages with a length or in chunks, on connections that stay.

use std::{
    io::{self, Read, Write},
    net::TcpStream,
};

use crate::echo::EchoServer;

const CHUNK: usize = 64 * 1024;

/// The bytes of a connection that were read and not used yet.
#[derive(Default)]
pub struct MessageBuffer {
    bytes: Vec<u8>,
}

/// A message that is complete.
pub struct HttpMessage {
    /// The first line and the headers.
    pub head: String,
    /// The body without the chunks' sizes.
    pub body: Vec<u8>,
}

impl HttpMessage {
    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        header(&self.head, name)
    }

    /// The JSON-RPC message of the body; the last one if it is a stream of events.
    pub fn json(&self) -> &[u8] {
        if !self.body.starts_with(b"{") {
            let last = memchr::memmem::rfind(&self.body, b"data:");
            let json = last.map(|at| self.body[at + 5..].trim_ascii());
            return json.unwrap_or_default();
        }
        &self.body
    }
}

impl MessageBuffer {
    /// Reads once; false at the end of the connection.
    pub fn fill(&mut self, stream: &mut TcpStream) -> io::Result<bool> {
        let before = self.bytes.len();
        self.bytes.resize(before + CHUNK, 0);
        let count = stream.read(&mut self.bytes[before..])?;
        self.bytes.truncate(before + count);
        Ok(count > 0)
    }

    /// Takes the next message, if all of it is there.
    pub fn take(&mut self) -> Option<HttpMessage> {
        let end = memchr::memmem::find(&self.bytes, b"\r\n\r\n")?;
        let head = String::from_utf8_lossy(&self.bytes[..end]).into_owned();
        let rest = &self.bytes[end + 4..];
        let (body, used) = if header(&head, "transfer-encoding").is_some() {
            take_chunks(rest)?
        } else {
            let length: usize = header(&head, "content-length")
                .and_then(|text| text.parse().ok())
                .unwrap_or(0);
            (rest.get(..length)?.to_vec(), length)
        };
        self.bytes.drain(..end + 4 + used);
        Some(HttpMessage { head, body })
    }

    /// Waits for the next message.
    pub fn next(&mut self, stream: &mut TcpStream) -> io::Result<Option<HttpMessage>> {
        loop {
            if let Some(message) = self.take() {
                return Ok(Some(message));
            }
            if !self.fill(stream)? {
                return Ok(None);
            }
        }
    }
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let lines = head.split("\r\n").skip(1);
    let mut pairs = lines.filter_map(|line| line.split_once(':'));
    let found = pairs.find(|(key, _)| key.eq_ignore_ascii_case(name));
    found.map(|(_, value)| value.trim())
}

/// The body that comes in chunks, and how many bytes that took; nothing if it is not complete.
fn take_chunks(mut rest: &[u8]) -> Option<(Vec<u8>, usize)> {
    let whole = rest.len();
    let mut body = Vec::new();
    loop {
        let line = memchr::memmem::find(rest, b"\r\n")?;
        let size = std::str::from_utf8(&rest[..line]).ok()?;
        let size = usize::from_str_radix(size.trim(), 16).ok()?;
        let chunk = rest.get(line + 2..line + 2 + size)?;
        body.extend_from_slice(chunk);
        rest = rest.get(line + 2 + size + 2..)?;
        if size == 0 {
            return Some((body, whole - rest.len()));
        }
    }
}

/// Answers the requests of one connection until it ends.
pub fn serve_connection(mut stream: TcpStream, server: &mut EchoServer) {
    let mut buffer = MessageBuffer::default();
    let mut out = Vec::new();
    let mut answer = Vec::new();
    // A client that goes away ends the connection, and that is all.
    while let Ok(Some(request)) = buffer.next(&mut stream) {
        answer.clear();
        out.clear();
        server.answer(&request.body, &mut answer);
        let status = match (request.head.starts_with("POST"), answer.is_empty()) {
            (false, _) => "405 Method Not Allowed",
            (true, true) => "202 Accepted",
            (true, false) => "200 OK\r\ncontent-type: application/json",
        };
        let length = answer.len();
        out.extend_from_slice(
            format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\n\r\n").as_bytes(),
        );
        out.extend_from_slice(&answer);
        if stream.write_all(&out).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunked_message_is_returned_when_it_is_complete() {
        let text = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";
        for end in 0..text.len() {
            let mut buffer = MessageBuffer {
                bytes: text[..end].to_vec(),
            };
            assert!(buffer.take().is_none(), "{end}");
        }
        let mut buffer = MessageBuffer {
            bytes: [&text[..], b"HTTP"].concat(),
        };
        assert_eq!(buffer.take().unwrap().body, b"abcde");
        assert_eq!(buffer.bytes, b"HTTP");
    }

    #[test]
    fn the_last_event_of_a_stream_holds_the_answer() {
        let message = HttpMessage {
            head: String::new(),
            body: b"id: 1\ndata:\n\nevent: message\ndata: {\"id\":1}\n\n".to_vec(),
        };
        assert_eq!(message.json(), b"{\"id\":1}");
    }
}
