//! The server over HTTP: one thread per connection, one endpoint, `/mcp`. Modern requests are independent and are
//! cancelled by closing their connection; legacy ones belong to a session and are not.
//!
//! Every request is in the journal as `http` (an object with `verb` and `headers`), and its body as `in`.
//! `disconnected` and the raw id is written for a legacy request whose connection was closed.

mod headers;
mod incoming;
mod reply;
mod sessions;

use std::{
    io::{self, BufReader},
    net::{TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

use serde_json::json;

pub(crate) use self::reply::Reply;
use self::{
    incoming::Incoming,
    reply::Shape,
    sessions::{SESSION, Sessions},
};
use crate::{
    message::{Era, Message, Request},
    modern,
    output::{self, Output},
    script::ScriptEra,
    server::Server,
};

struct Endpoint {
    server: Arc<Server>,
    sessions: Sessions,
    /// How many requests there were.
    requests: AtomicU64,
}

/// Serves forever; returns only on failure.
pub(crate) fn serve(server: &Arc<Server>, port: u16) -> io::Error {
    let listener = match TcpListener::bind(("127.0.0.1", port)) {
        Ok(listener) => listener,
        Err(error) => return error,
    };
    let address = listener.local_addr().expect("an address");
    output::stderr_line(&format!("listening on http://{address}/mcp"));
    server.start();
    let endpoint = Arc::new(Endpoint {
        server: Arc::clone(server),
        sessions: Sessions::default(),
        requests: AtomicU64::new(0),
    });
    loop {
        match listener.accept() {
            Ok((stream, _)) => {
                let endpoint = Arc::clone(&endpoint);
                thread::spawn(move || endpoint.connection(&stream));
            }
            Err(error) => return error,
        }
    }
}

impl Endpoint {
    fn connection(&self, stream: &TcpStream) {
        let _slower = stream.set_nodelay(true);
        let mut reader = BufReader::new(stream);
        while let Some(incoming) = Incoming::read(&mut reader) {
            let Ok(copy) = stream.try_clone() else { return };
            let reply = Reply::new(copy);
            self.take(&incoming, reply);
        }
    }

    fn take(&self, incoming: &Incoming, reply: Reply) {
        let journal = &self.server.journal;
        let head = json!({"verb": incoming.verb, "headers": incoming.headers});
        journal.record("http", head.to_string().as_bytes());
        match incoming.verb.as_str() {
            _ if incoming.path != "/mcp" => reply.empty("404 Not Found"),
            "POST" => {
                journal.record("in", incoming.body.as_bytes());
                self.post(incoming, reply);
            }
            _ if self.server.script.era == ScriptEra::Modern => {
                reply.empty("405 Method Not Allowed");
            }
            "GET" => self.listen(incoming, &reply),
            "DELETE" => match self.sessions.end(incoming) {
                Ok(()) => reply.empty("200 OK"),
                Err(status) => reply.empty(status),
            },
            _ => reply.empty("405 Method Not Allowed"),
        }
    }

    /// Keeps the stream of a legacy client for messages that belong to no request.
    fn listen(&self, incoming: &Incoming, reply: &Reply) {
        if let Err(status) = self.sessions.check(incoming) {
            return reply.empty(status);
        }
        let key = format!("stream {}", self.requests.fetch_add(1, Ordering::Relaxed));
        let output = Arc::new(Output::http(reply.clone()));
        // Added before the stream begins, so that a client that sees it begin receives all later changes.
        self.server.listens.add_legacy(&key, &output);
        reply.begin_stream();
        // Until the client closes the connection.
        drop(reply.watch(|| {}).join());
        self.server.listens.remove(&key);
    }

    fn post(&self, incoming: &Incoming, reply: Reply) {
        let Ok(mut message) = serde_json::from_str::<Message>(&incoming.body) else {
            let error = r#"{"code":-32700,"message":"Parse error"}"#;
            return reply.refuse("400 Bad Request", "null", error);
        };
        let Some(method) = message.method.take() else {
            return match self.sessions.check(incoming) {
                Ok(()) => {
                    self.server.reply(&message, incoming.body.as_bytes());
                    reply.empty("202 Accepted");
                }
                Err(status) => reply.empty(status),
            };
        };
        let serial = self.requests.fetch_add(1, Ordering::Relaxed);
        let scope = match incoming.header(SESSION) {
            Some(session) => format!("{session} "),
            None => format!("request {serial} "),
        };
        let output = Arc::new(Output::http(reply));
        let mut request = Request::new(message, method, output, &scope);
        request.era = self.era(incoming, &request);
        let reply = request.output.reply().expect("HTTP");
        if let Err((status, error)) = self.check(incoming, &request) {
            let id = request.id.as_deref().map_or("null", |id| id.get());
            return reply.refuse(status, id, &error);
        }
        if request.id.is_some() {
            self.request(&request, reply);
        } else {
            self.notification(&request, &scope);
            reply.empty("202 Accepted");
        }
    }

    fn era(&self, incoming: &Incoming, request: &Request) -> Era {
        let modern = incoming.header(headers::VERSION) == Some(modern::REVISION);
        match self.server.script.era {
            ScriptEra::Both if modern => Era::Modern,
            _ => self.server.era(request),
        }
    }

    /// Returns the problem with a request, as a status and a raw error.
    fn check(&self, incoming: &Incoming, request: &Request) -> Result<(), (&'static str, String)> {
        if request.method == "initialize" {
            return Ok(());
        }
        match request.era {
            Era::Modern => match headers::problem(incoming, request, &self.server) {
                Some(what) => Err((
                    "400 Bad Request",
                    json!({"code": -32020, "message": what}).to_string(),
                )),
                None => Ok(()),
            },
            Era::Legacy => self.sessions.check(incoming).map_err(|status| {
                let error = json!({"code": -32000, "message": "No valid session"});
                (status, error.to_string())
            }),
        }
    }

    fn notification(&self, request: &Request, scope: &str) {
        let cancelled = request.known.request_id.as_deref();
        match cancelled.filter(|_| request.method == "notifications/cancelled") {
            Some(id) => self
                .server
                .cancel(id.get(), &format!("{scope}{}", id.get())),
            None => self.server.handle(request),
        }
    }

    fn request(&self, request: &Request, reply: &Reply) {
        let id = request.id.as_deref().expect("a request").get();
        let new_session = request.era == Era::Legacy && request.method == "initialize";
        reply.shape(Shape {
            id: id.to_owned(),
            modern: request.era == Era::Modern,
            stream: self.server.script.sse,
            session: new_session.then(|| self.sessions.begin()),
        });
        let (server, era) = (Arc::clone(&self.server), request.era);
        let (id, key) = (id.to_owned(), request.key.clone());
        reply.watch(move || match era {
            Era::Modern => server.cancel(&id, &key),
            Era::Legacy => server.journal.record("disconnected", id.as_bytes()),
        });
        if self.server.begin(request) {
            self.server.handle(request);
        }
        if self.server.listens.holds(&request.key) {
            reply.wait_over();
        }
        // A request that will not get a response.
        if !reply.is_over() {
            reply.close();
        }
    }
}
