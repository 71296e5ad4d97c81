//! The servers of the rows over HTTP: one listener in the process of the test, with an address for each row.

use std::{
    ops::DerefMut,
    sync::{Arc, Condvar, Mutex, MutexGuard, mpsc},
};

use serde_json::json;

use super::{
    client::Step,
    definitions,
    run::Servers,
    table::{Event, Row, ServerKind},
};
use crate::harness::{
    Setup,
    remote_server::{Out, RemoteServer, Seen, Then, usual},
};

const DONE: &str = r#"{"content":[{"type":"text","text":"done"}]}"#;
const CHANGED: &str = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
/// The additional members of results of the modern era.
const COMPLETE: &str = r#""resultType":"complete","ttlMs":60000,"cacheScope":"public","#;

/// The remote servers. Dropping them ends their streams.
pub(super) struct RemoteServers {
    listener: Option<RemoteServer>,
    servers: Arc<Vec<Server>>,
}

struct Server {
    kind: ServerKind,
    row: Row,
    state: Mutex<State>,
    released: Condvar,
}

#[derive(Default)]
struct State {
    log: Vec<String>,
    has_changed: bool,
    delays_list: bool,
    sessions: usize,
    /// The stream on which the server speaks without being asked.
    stream: Option<mpsc::Sender<String>>,
    /// The raw id of `subscriptions/listen`.
    subscription: String,
}

impl RemoteServers {
    /// Adds a server for each row to the last toolbox.
    pub(super) fn add(mut setup: Setup, kind: ServerKind, rows: &[Row]) -> (Setup, Self) {
        let servers = rows.iter().map(|row| Server {
            kind,
            row: *row,
            state: Mutex::default(),
            released: Condvar::new(),
        });
        let servers: Arc<Vec<Server>> = Arc::new(servers.collect());
        let shared = Arc::clone(&servers);
        let listener = RemoteServer::start(move |seen, out| {
            let mut parts = seen.path.split('/').skip(1);
            let number: usize = parts.next()?.parse().ok()?;
            Some(shared[number].handle(seen, parts.next(), out))
        });
        for row in rows {
            let mut entry = definitions::keys(row.rule);
            entry["url"] = json!(format!("http://{}/{}", listener.authority(), row.number));
            match kind {
                ServerKind::LegacyHttp => entry["era"] = json!("legacy"),
                ServerKind::ModernHttp => entry["era"] = json!("modern"),
                ServerKind::Sse => entry["type"] = json!("sse"),
                ServerKind::LegacyStdio | ServerKind::ModernStdio => {
                    panic!("not over HTTP: {kind:?}")
                }
            }
            setup = setup.entry(&row.server(), entry);
        }
        let listener = Some(listener);
        (setup, Self { listener, servers })
    }
}

impl Drop for RemoteServers {
    fn drop(&mut self) {
        for server in self.servers.iter() {
            let mut state = server.lock();
            state.stream = None;
            state.delays_list = false;
            server.released.notify_all();
        }
        if let Some(listener) = self.listener.take() {
            listener.stop();
        }
    }
}

impl Servers for RemoteServers {
    fn log(&self, row: &Row) -> Vec<String> {
        self.servers[row.number].lock().log.clone()
    }

    fn delay_list(&self, row: &Row) {
        self.servers[row.number].lock().delays_list = true;
    }

    fn release_list(&self, row: &Row) {
        let server = &self.servers[row.number];
        server.lock().delays_list = false;
        server.released.notify_all();
    }

    fn change(&self, row: &Row) {
        let mut state = self.servers[row.number].lock();
        state.has_changed = true;
        state.log.push("changed".to_owned());
        match row.event {
            Event::Restart => state.stream = None,
            Event::ListChanged => state.say_changed(),
            Event::Renewal | Event::HeaderMismatch => panic!("not between calls: {row:?}"),
        }
    }

    fn forget_starts(&self) {
        for server in self.servers.iter() {
            let mut state = server.lock();
            *state = State::default();
        }
    }
}

impl State {
    /// Announces the change to whoever has subscribed.
    fn say_changed(&self) {
        let id = &self.subscription;
        self.say(format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{{"_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}}}}}}"#
        ));
    }

    fn say(&self, message: String) {
        if let Some(stream) = &self.stream {
            let _gone = stream.send(message);
        }
    }
}

impl Server {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    fn handle(&self, seen: &Seen, below: Option<&str>, out: &mut Out) -> Then {
        let is_message = seen.verb == "POST" && (self.kind != ServerKind::Sse || below.is_some());
        if self.kind == ServerKind::Sse && seen.verb == "GET" {
            let endpoint = format!("event: endpoint\ndata: /{}/messages\n\n", self.row.number);
            return self.stream(out, &endpoint);
        }
        if !is_message {
            return out.reply("405 Method Not Allowed\nAllow: POST", "");
        }
        match seen.method().as_str() {
            "initialize" => self.initialize(seen, out),
            "server/discover" => {
                let result = definitions::discover_result(definitions::VERSION);
                self.answer(seen, out, &result)
            }
            "subscriptions/listen" => self.listen(seen, out),
            "tools/list" => self.list(seen, out),
            "tools/call" => self.call(seen, out),
            "ping" => self.answer(seen, out, "{}"),
            _ => usual(seen, out),
        }
    }

    /// Answers a request on the way that the transport has for it.
    fn answer(&self, seen: &Seen, out: &mut Out, result: &str) -> Then {
        let result = match self.kind {
            ServerKind::ModernHttp => format!("{{{COMPLETE}{}", &result[1..]),
            _ => result.to_owned(),
        };
        let answer = seen.answer(&result);
        if self.kind == ServerKind::Sse {
            self.lock().say(answer);
            return out.reply("202 Accepted", "");
        }
        out.json(&answer)
    }

    fn initialize(&self, seen: &Seen, out: &mut Out) -> Then {
        let mut state = self.lock();
        let session = state.sessions;
        state.sessions += 1;
        let version = if state.has_changed {
            definitions::version_after(&self.row)
        } else {
            definitions::VERSION
        };
        drop(state);
        let result = definitions::initialize_result(version);
        if self.kind == ServerKind::Sse {
            return self.answer(seen, out, &result);
        }
        let head = format!("200 OK\nContent-Type: application/json\nMcp-Session-Id: s{session}");
        out.reply(&head, &seen.answer(&result))
    }

    fn listen(&self, seen: &Seen, out: &mut Out) -> Then {
        let id = seen.id();
        self.lock().subscription.clone_from(&id);
        let acknowledged = format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{{"_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}},"notifications":{{"toolsListChanged":true}}}}}}"#
        );
        self.stream(out, &format!("data: {acknowledged}\n\n"))
    }

    /// Begins the stream of the server, and writes what it says until it ends.
    fn stream(&self, out: &mut Out, first: &str) -> Then {
        let (say, said) = mpsc::channel();
        let mut state = self.lock();
        state.stream = Some(say);
        state.log.push("stream".to_owned());
        drop(state);
        out.stream();
        out.raw(first);
        for message in said {
            out.raw(&format!("event: message\ndata: {message}\n\n"));
        }
        Then::Close
    }

    fn list(&self, seen: &Seen, out: &mut Out) -> Then {
        if self.has_lost(seen) {
            return out.reply("404 Not Found", "");
        }
        let mut state = self.lock();
        state.log.push("list".to_owned());
        let state = self
            .released
            .wait_while(state, |state| state.delays_list)
            .unwrap();
        let tools = if state.has_changed {
            definitions::after(&self.row)
        } else {
            definitions::before(&self.row)
        };
        drop(state);
        self.answer(seen, out, &format!(r#"{{"tools":{tools}}}"#))
    }

    fn call(&self, seen: &Seen, out: &mut Out) -> Then {
        let step = seen.message()["params"]["arguments"]["step"].clone();
        let step = step.as_str().unwrap();
        let mut state = self.lock();
        let is_new = !state.has_changed;
        match self.row.event {
            Event::Renewal | Event::HeaderMismatch if step == Step::After.name() && is_new => {
                state.has_changed = true;
                state.log.push("refused".to_owned());
                drop(state);
                self.refuse(seen, out)
            }
            Event::Renewal if self.is_first_session(seen) && !is_new => {
                drop(state);
                out.reply("404 Not Found", "")
            }
            Event::ListChanged | Event::Restart if step == Step::Event.name() => {
                state.has_changed = true;
                state.log.push(format!("call {step}"));
                self.end_or_announce(seen, out, state)
            }
            Event::Restart | Event::Renewal | Event::ListChanged | Event::HeaderMismatch => {
                state.log.push(format!("call {step}"));
                drop(state);
                self.answer(seen, out, DONE)
            }
        }
    }

    /// Refuses the checked call once.
    fn refuse(&self, seen: &Seen, out: &mut Out) -> Then {
        match self.row.event {
            Event::Renewal => out.reply("404 Not Found", ""),
            _ => {
                let error = r#"{"code":-32020,"message":"header mismatch"}"#;
                let body = format!(r#"{{"jsonrpc":"2.0","id":{},"error":{error}}}"#, seen.id());
                out.reply("400 Bad Request\nContent-Type: application/json", &body)
            }
        }
    }

    /// Ends the stream in place of an answer, or announces the change before it.
    fn end_or_announce(
        &self,
        seen: &Seen,
        out: &mut Out,
        mut state: impl DerefMut<Target = State>,
    ) -> Then {
        match (self.kind, self.row.event) {
            (ServerKind::Sse, Event::Restart) => {
                state.stream = None;
                drop(state);
                out.reply("202 Accepted", "")
            }
            (ServerKind::Sse, _) => {
                state.say(CHANGED.to_owned());
                drop(state);
                self.answer(seen, out, DONE)
            }
            _ => {
                drop(state);
                out.stream();
                out.event(CHANGED);
                out.event(&seen.answer(DONE));
                Then::Close
            }
        }
    }

    fn is_first_session(&self, seen: &Seen) -> bool {
        self.kind == ServerKind::LegacyHttp && seen.header("mcp-session-id") == Some("s0")
    }

    /// Tells whether a request belongs to the session that the server has forgotten.
    fn has_lost(&self, seen: &Seen) -> bool {
        let has_changed = self.lock().has_changed;
        self.row.event == Event::Renewal && has_changed && self.is_first_session(seen)
    }
}
