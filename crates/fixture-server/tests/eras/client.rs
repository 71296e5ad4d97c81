//! A running server and the client's side of it.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpStream},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tempfile::TempDir;

const TIMEOUT: Duration = Duration::from_secs(30);

/// A server with a journal of its own.
pub(crate) struct Process {
    child: Child,
    directory: TempDir,
}

impl Process {
    fn start(script: &Value, arguments: &[&str]) -> Self {
        let directory = TempDir::new().expect("a directory");
        let mut script = script.clone();
        script["journal"] = json!(directory.path().join("journal"));
        let child = Command::new(env!("CARGO_BIN_EXE_fixture-server"))
            .args(arguments)
            .args(["--script", &script.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the server starts");
        Self { child, directory }
    }

    /// Returns the data of the events of this name.
    pub(crate) fn journal(&self, event: &str) -> Vec<String> {
        let text = fs::read_to_string(self.directory.path().join("journal")).unwrap_or_default();
        let lines = text.lines().filter_map(|line| {
            let (_, rest) = line.split_once(' ')?;
            let (name, rest) = rest.split_once(' ').unwrap_or((rest, ""));
            (name == event).then(|| rest.to_owned())
        });
        lines.collect()
    }

    /// Waits for an event of this name.
    pub(crate) fn wait(&self, event: &str) -> Vec<String> {
        let end = Instant::now() + TIMEOUT;
        loop {
            let events = self.journal(event);
            if !events.is_empty() {
                return events;
            }
            assert!(Instant::now() < end, "no {event}");
            thread::park_timeout(Duration::from_millis(5));
        }
    }

    /// Waits for the end of the process and gives its exit code.
    pub(crate) fn exit_code(&mut self) -> Option<i32> {
        self.child.wait().expect("the server ends").code()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ended = self.child.kill();
        let _ended = self.child.wait();
    }
}

pub(crate) struct Lines {
    pub(crate) process: Process,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Lines {
    pub(crate) fn start(script: &Value) -> Self {
        let mut process = Process::start(script, &[]);
        Self {
            stdin: process.child.stdin.take().expect("a pipe"),
            stdout: BufReader::new(process.child.stdout.take().expect("a pipe")),
            process,
        }
    }

    pub(crate) fn send(&mut self, message: &Value) {
        writeln!(self.stdin, "{message}").expect("the server reads");
    }

    /// The next message, `null` at the end.
    pub(crate) fn next(&mut self) -> Value {
        let mut line = String::new();
        self.stdout.read_line(&mut line).expect("a line");
        serde_json::from_str(&line).unwrap_or_default()
    }

    pub(crate) fn ask(&mut self, message: &Value) -> Value {
        self.send(message);
        self.next()
    }
}

pub(crate) fn request(id: u64, method: &str, params: Value) -> Value {
    let mut message = json!({"jsonrpc": "2.0", "id": id, "method": method});
    message["params"] = params;
    message
}

/// A modern request whose client has declared these capabilities.
pub(crate) fn modern(id: u64, method: &str, mut params: Value, capabilities: Value) -> Value {
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = capabilities;
    request(id, method, params)
}

pub(crate) struct Http {
    pub(crate) process: Process,
    address: SocketAddr,
}

impl Http {
    pub(crate) fn start(script: &Value) -> Self {
        let mut process = Process::start(script, &["http", "--port", "0"]);
        let mut line = String::new();
        let stderr = process.child.stderr.take().expect("a pipe");
        let mut stderr = BufReader::new(stderr);
        stderr.read_line(&mut line).expect("a line");
        let address = line.trim().strip_prefix("listening on http://");
        let address = address.and_then(|it| it.strip_suffix("/mcp"));
        Self {
            address: address.expect("an address").parse().expect("an address"),
            process,
        }
    }

    /// Sends a request with these headers and gives its connection.
    pub(crate) fn send(&self, verb: &str, headers: &[(&str, &str)], body: &str) -> Connection {
        let mut stream = TcpStream::connect(self.address).expect("a connection");
        stream.set_read_timeout(Some(TIMEOUT)).expect("a timeout");
        let length = body.len();
        let mut text = format!("{verb} /mcp HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n");
        text.push_str("Accept: application/json, text/event-stream\r\n");
        for (name, value) in headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        let text = format!("{text}\r\n{body}");
        stream.write_all(text.as_bytes()).expect("the server reads");
        Connection::read(stream)
    }

    /// Sends a modern request with the headers that belong to it.
    pub(crate) fn modern(&self, message: &Value) -> Connection {
        let params = &message["params"];
        let name = ["name", "uri", "taskId"]
            .iter()
            .find_map(|it| params[it].as_str());
        let mut headers = vec![
            ("MCP-Protocol-Version", "2026-07-28"),
            ("Mcp-Method", message["method"].as_str().expect("a method")),
        ];
        headers.extend(name.map(|name| ("Mcp-Name", name)));
        self.send("POST", &headers, &message.to_string())
    }
}

/// An answer of which the head was read.
pub(crate) struct Connection {
    stream: BufReader<TcpStream>,
    pub(crate) status: u16,
    pub(crate) head: String,
}

impl Connection {
    fn read(stream: TcpStream) -> Self {
        let mut stream = BufReader::new(stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert!(stream.read_line(&mut head).expect("a head") > 0, "{head}");
        }
        let status = head.split(' ').nth(1).and_then(|it| it.parse().ok());
        Self {
            stream,
            status: status.expect("a status"),
            head: head.to_ascii_lowercase(),
        }
    }

    pub(crate) fn is_stream(&self) -> bool {
        self.head.contains("content-type: text/event-stream")
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines();
        lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }

    /// The body, which is JSON.
    pub(crate) fn json(&mut self) -> Value {
        let length = self.header("content-length").expect("a length");
        let mut body = vec![0; length.parse().expect("a length")];
        self.stream.read_exact(&mut body).expect("a body");
        serde_json::from_slice(&body).expect("JSON")
    }

    /// The next event; `null` at the end of the stream, nothing if the connection was cut.
    pub(crate) fn event(&mut self) -> Option<Value> {
        let mut size = String::new();
        if self.stream.read_line(&mut size).ok()? == 0 {
            return None;
        }
        let size = usize::from_str_radix(size.trim(), 16).expect("a size");
        let mut chunk = vec![0; size + 2];
        self.stream.read_exact(&mut chunk).expect("a chunk");
        let text = String::from_utf8(chunk).expect("UTF-8");
        let data = text.lines().find_map(|line| line.strip_prefix("data: "));
        Some(data.map_or(Value::Null, |data| {
            serde_json::from_str(data).expect("JSON")
        }))
    }
}
