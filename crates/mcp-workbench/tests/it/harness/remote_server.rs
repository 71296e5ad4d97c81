//! A remote server of the tests: plain sockets and threads, so that every byte of an answer, every close and
//! every silence is the test's own. What the test does not decide is answered as a small MCP server would.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread::{self, JoinHandle},
};

use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};

use super::{Setup, TIMEOUT, poll};

/// The session that the usual answers belong to.
pub(crate) const SESSION: &str = "session-1";

/// A request as it came.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    /// `POST` and the like.
    pub(crate) verb: String,
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
    /// Which connection it came on.
    pub(crate) connection: usize,
}

impl Seen {
    /// The method of the message in it.
    pub(crate) fn method(&self) -> String {
        self.envelope().method.unwrap_or_default()
    }

    /// The raw id of the message in it.
    pub(crate) fn id(&self) -> String {
        let id = self.envelope().id;
        id.map_or_else(String::new, |id| id.get().to_owned())
    }

    /// The message in it, where its numbers are ordinary.
    pub(crate) fn message(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_default()
    }

    fn envelope(&self) -> Envelope {
        serde_json::from_str(&self.body).unwrap_or_default()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        let found = headers.find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// The raw answer to it.
    pub(crate) fn answer(&self, result: &str) -> String {
        format!(
            r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#,
            self.id()
        )
    }
}

/// The members that the usual responses depend on.
#[derive(Debug, Default, Deserialize)]
struct Envelope {
    method: Option<String>,
    id: Option<Box<RawValue>>,
}

/// The handling of a connection after a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Then {
    /// It waits for the next request.
    Keep,
    Close,
}

/// The way to answer a request.
pub(crate) struct Out {
    socket: TcpStream,
    /// True if responses announce the end of the connection.
    pub(crate) says_close: bool,
}

impl Out {
    /// Writes bytes as they are; a client that has gone is no error.
    pub(crate) fn raw(&mut self, text: &str) {
        let _gone = self.socket.write_all(text.as_bytes());
        let _gone = self.socket.flush();
    }

    /// A whole answer; `head` is the status and further header lines.
    pub(crate) fn reply(&mut self, head: &str, body: &str) -> Then {
        let length = body.len();
        let close = if self.says_close {
            "\nConnection: close"
        } else {
            ""
        };
        let head = format!("{head}{close}").replace('\n', "\r\n");
        self.raw(&format!(
            "HTTP/1.1 {head}\r\nContent-Length: {length}\r\n\r\n{body}"
        ));
        Then::Keep
    }

    pub(crate) fn json(&mut self, body: &str) -> Then {
        self.reply("200 OK\nContent-Type: application/json", body)
    }

    /// The beginning of a stream of events, which ends with the connection.
    pub(crate) fn stream(&mut self) {
        self.raw("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n");
    }

    pub(crate) fn event(&mut self, data: &str) {
        self.raw(&format!("data: {data}\n\n"));
    }

    /// Waits until the client has closed the connection.
    pub(crate) fn wait_closed(&mut self) {
        let _ended = self.socket.read(&mut [0]);
    }
}

type Handler = dyn Fn(&Seen, &mut Out) -> Option<Then> + Send + Sync;

/// A server that is reached over HTTP.
pub(crate) struct RemoteServer {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
    stopped: Arc<AtomicBool>,
    accepting: JoinHandle<()>,
}

impl RemoteServer {
    /// A server whose answers are the test's own where `handler` gives some, and the usual ones elsewhere.
    pub(crate) fn start(
        handler: impl Fn(&Seen, &mut Out) -> Option<Then> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let journal = Arc::clone(&seen);
        let handler: Arc<Handler> = Arc::new(handler);
        let stopped = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&stopped);
        let accepting = thread::spawn(move || {
            let connections = AtomicUsize::new(0);
            for socket in listener.incoming().map_while(Result::ok) {
                if stop.load(Ordering::SeqCst) {
                    return;
                }
                let number = connections.fetch_add(1, Ordering::Relaxed);
                let (journal, handler) = (Arc::clone(&journal), Arc::clone(&handler));
                thread::spawn(move || serve(&socket, number, &journal, &*handler));
            }
        });
        Self {
            address,
            seen,
            stopped,
            accepting,
        }
    }

    /// Takes no connections any more.
    pub(crate) fn stop(self) {
        self.stopped.store(true, Ordering::SeqCst);
        let _woken = TcpStream::connect(self.address);
        self.accepting.join().unwrap();
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    pub(crate) fn authority(&self) -> String {
        self.address.to_string()
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// The messages of this method so far.
    pub(crate) fn received(&self, method: &str) -> Vec<Seen> {
        let mut seen = self.seen();
        seen.retain(|seen| seen.method() == method);
        seen
    }

    /// Waits for so many messages of this method.
    pub(crate) fn wait(&self, method: &str, count: usize) -> Vec<Seen> {
        let found = poll(TIMEOUT, || {
            let received = self.received(method);
            (received.len() >= count).then_some(received)
        });
        found.unwrap_or_else(|| panic!("no {count} {method}: {:#?}", self.seen()))
    }

    /// Waits for a request with this verb.
    pub(crate) fn wait_verb(&self, verb: &str) -> Seen {
        let found = poll(TIMEOUT, || {
            self.seen().into_iter().find(|seen| seen.verb == verb)
        });
        found.unwrap_or_else(|| panic!("no {verb}: {:#?}", self.seen()))
    }

    /// A setup with a toolbox `dev` whose server `fs` this is, with more keys in its entry.
    pub(crate) fn setup(&self, keys: &Value) -> Setup {
        let mut entry = json!({"url": self.url()});
        for (key, value) in keys.as_object().unwrap() {
            entry[key] = value.clone();
        }
        Setup::new().toolbox("dev", "d").entry("fs", entry)
    }
}

fn serve(socket: &TcpStream, number: usize, journal: &Mutex<Vec<Seen>>, handler: &Handler) {
    let mut reader = BufReader::new(socket.try_clone().unwrap());
    let mut out = Out {
        socket: socket.try_clone().unwrap(),
        says_close: false,
    };
    while let Some(mut seen) = read_request(&mut reader) {
        seen.connection = number;
        journal.lock().unwrap().push(seen.clone());
        let then = handler(&seen, &mut out).unwrap_or_else(|| usual(&seen, &mut out));
        if then == Then::Close {
            break;
        }
    }
    let _gone = socket.shutdown(std::net::Shutdown::Both);
}

fn read_request(reader: &mut BufReader<TcpStream>) -> Option<Seen> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
    let mut words = line.split(' ').map(str::to_owned);
    let (verb, path) = (words.next()?, words.next()?);
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(": ") else {
            break;
        };
        headers.push((name.to_owned(), value.to_owned()));
    }
    let length = headers
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let length = length.map_or(0, |(_, value)| value.parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Seen {
        verb,
        path,
        headers,
        body: String::from_utf8(body).unwrap(),
        connection: 0,
    })
}

/// Responds as a small MCP server.
pub(crate) fn usual(seen: &Seen, out: &mut Out) -> Then {
    if seen.verb != "POST" {
        return out.reply("405 Method Not Allowed\nAllow: POST", "");
    }
    match seen.method().as_str() {
        "initialize" => {
            let head = format!("200 OK\nContent-Type: application/json\nMcp-Session-Id: {SESSION}");
            out.reply(&head, &seen.answer(&initialize_result()))
        }
        "tools/list" => out.json(&seen.answer(&tools())),
        "tools/call" => out.json(&seen.answer(r#"{"content":[]}"#)),
        "ping" => out.json(&seen.answer("{}")),
        _ => out.reply("202 Accepted", ""),
    }
}

pub(crate) fn initialize_result() -> String {
    let info = json!({"name": "remote", "version": "1"});
    json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info})
        .to_string()
}

/// The result of `tools/list`: the tools `t` and `u`.
pub(crate) fn tools() -> String {
    let schema = json!({"type": "object"});
    let tool = |name| json!({"name": name, "inputSchema": schema});
    json!({"tools": [tool("t"), tool("u")]}).to_string()
}
