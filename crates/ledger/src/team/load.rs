//! Load over HTTP from connections that stay open: each sends a request when it has the response to the one before.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::TcpStream,
    thread,
    time::{Duration, Instant},
};

use super::place::TOKEN;

/// How long a response may take.
const TIMEOUT: Duration = Duration::from_secs(30);

/// A connection of a client.
pub(super) struct HttpClient {
    stream: BufReader<TcpStream>,
    host: String,
}

pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) session: Option<String>,
    pub(super) body: Vec<u8>,
}

impl HttpClient {
    pub(super) fn connect(address: &str) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        Ok(Self {
            stream: BufReader::new(stream),
            host: address.to_owned(),
        })
    }

    /// Posts a message with headers, each of which ends its line, and reads the response.
    pub(super) fn post(&mut self, headers: &str, body: &str) -> io::Result<Answer> {
        let request = format!(
            "POST /mcp HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {TOKEN}\r\n\
             Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
             Content-Length: {}\r\n{headers}\r\n{body}",
            self.host,
            body.len()
        );
        self.stream.get_mut().write_all(request.as_bytes())?;
        let mut answer = Answer {
            status: 0,
            session: None,
            body: Vec::new(),
        };
        let mut length = 0;
        loop {
            let mut line = String::new();
            if self.stream.read_line(&mut line)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let line = line.trim_end();
            if line.is_empty() {
                break;
            }
            if answer.status == 0 {
                let status = line.split(' ').nth(1).and_then(|it| it.parse().ok());
                answer.status = status.unwrap_or_default();
            } else if let Some((name, value)) = line.split_once(':') {
                match name.to_ascii_lowercase().as_str() {
                    "content-length" => length = value.trim().parse().unwrap_or_default(),
                    "mcp-session-id" => answer.session = Some(value.trim().to_owned()),
                    _ => {}
                }
            }
        }
        answer.body.resize(length, 0);
        self.stream.read_exact(&mut answer.body)?;
        Ok(answer)
    }
}

/// The figures of a load.
#[derive(Debug, Clone, Copy)]
pub struct Throughput {
    pub per_second: f64,
    pub p99_ms: f64,
}

/// Sends the same request on so many connections for a while; `None` if one of them failed.
pub(super) fn measure(
    address: &str,
    connections: usize,
    time: Duration,
    headers: &str,
    body: &str,
) -> Option<Throughput> {
    let clients: Vec<_> = (0..connections)
        .map(|_| {
            let (address, headers, body) =
                (address.to_owned(), headers.to_owned(), body.to_owned());
            thread::spawn(move || send_for(&address, time, &headers, &body))
        })
        .collect();
    let mut waits = Vec::new();
    for client in clients {
        waits.extend(client.join().ok()??);
    }
    waits.sort_unstable();
    let p99 = waits.get(waits.len() * 99 / 100)?;
    #[expect(clippy::cast_precision_loss, reason = "far fewer than 2^52")]
    let count = waits.len() as f64;
    Some(Throughput {
        per_second: count / time.as_secs_f64(),
        p99_ms: p99.as_secs_f64() * 1000.0,
    })
}

/// Returns the time of each request.
fn send_for(address: &str, time: Duration, headers: &str, body: &str) -> Option<Vec<Duration>> {
    let mut client = HttpClient::connect(address).ok()?;
    let end = Instant::now() + time;
    let mut waits = Vec::new();
    while Instant::now() < end {
        let begun = Instant::now();
        let answer = client.post(headers, body).ok()?;
        (answer.status == 200).then_some(())?;
        waits.push(begun.elapsed());
    }
    Some(waits)
}
