//! A remote server for these tests: plain sockets and threads, so that the test controls every byte of a response and
//! every close.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
};

use tokio::sync::mpsc;

/// A request as it arrived.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    /// `POST` and the like.
    pub(super) verb: String,
    /// Its headers, with names in lower case.
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: String,
}

impl Seen {
    /// Returns the method of the message in it, or its verb.
    pub(super) fn method(&self) -> String {
        let message: serde_json::Value = serde_json::from_str(&self.body).unwrap_or_default();
        let method = message["method"].as_str();
        method.unwrap_or(&self.verb).to_owned()
    }

    /// Returns its headers whose names begin with a prefix.
    pub(super) fn headers(&self, prefix: &str) -> Vec<(&str, &str)> {
        let headers = self.headers.iter();
        headers
            .filter(|(name, _)| name.starts_with(prefix))
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect()
    }
}

/// The answer to a request.
pub(super) enum Script {
    /// These bytes; the connection waits for the next request.
    Whole(String),
    /// These bytes, and then nothing until the client closes the connection.
    Open(String),
    /// These bytes; then the server closes the connection.
    Cut(String),
}

pub(super) struct Remote {
    pub(super) address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
    /// Receives an event for each open connection that the client closes.
    closed: mpsc::UnboundedReceiver<()>,
    came: mpsc::UnboundedReceiver<()>,
}

/// The events that the threads of a server record.
#[derive(Clone)]
struct Journal {
    seen: Arc<Mutex<Vec<Seen>>>,
    closed: mpsc::UnboundedSender<()>,
    came: mpsc::UnboundedSender<()>,
}

impl Remote {
    /// Starts a server with these responses.
    pub(super) fn start(script: impl Fn(&Seen) -> Script + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (close, closed) = mpsc::unbounded_channel();
        let (come, came) = mpsc::unbounded_channel();
        let journal = Journal {
            seen: Arc::clone(&seen),
            closed: close,
            came: come,
        };
        let script = Arc::new(script);
        thread::spawn(move || {
            for socket in listener.incoming().map_while(Result::ok) {
                let (journal, script) = (journal.clone(), Arc::clone(&script));
                thread::spawn(move || serve(&socket, &journal, &*script));
            }
        });
        Self {
            address,
            seen,
            closed,
            came,
        }
    }

    pub(super) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// Returns the methods of all requests so far.
    pub(super) fn methods(&self) -> Vec<String> {
        self.seen().iter().map(Seen::method).collect()
    }

    /// Waits for the next request.
    pub(super) async fn next_request(&mut self) {
        self.came.recv().await.unwrap();
    }

    /// Waits until the client closes an open connection.
    pub(super) async fn next_close(&mut self) {
        self.closed.recv().await.unwrap();
    }
}

fn serve(socket: &TcpStream, journal: &Journal, script: &dyn Fn(&Seen) -> Script) {
    let mut reader = BufReader::new(socket.try_clone().unwrap());
    let mut writer = socket.try_clone().unwrap();
    while let Some(seen) = read_request(&mut reader) {
        journal.seen.lock().unwrap().push(seen.clone());
        let _test_is_over = journal.came.send(());
        match script(&seen) {
            Script::Whole(answer) => {
                let _gone = writer.write_all(answer.as_bytes());
            }
            Script::Open(beginning) => {
                let _gone = writer.write_all(beginning.as_bytes());
                let _gone = reader.read(&mut [0]);
                let _test_is_over = journal.closed.send(());
                break;
            }
            Script::Cut(beginning) => {
                let _gone = writer.write_all(beginning.as_bytes());
                break;
            }
        }
    }
    let _gone = socket.shutdown(std::net::Shutdown::Both);
}

fn read_request(reader: &mut BufReader<TcpStream>) -> Option<Seen> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
    let verb = line.split(' ').next()?.to_owned();
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end_matches(['\r', '\n']).split_once(": ") else {
            break;
        };
        headers.push((name.to_ascii_lowercase(), value.to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length = length.map_or(0, |(_, value)| value.parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Seen {
        verb,
        headers,
        body: String::from_utf8(body).unwrap(),
    })
}
