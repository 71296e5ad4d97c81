//! The server: reads lines, answers the protocol's own requests, and runs each call in a thread of
//! its own, so that answers can overtake each other.

use std::{
    io::{self, BufRead},
    process,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use serde_json::{Value, value::RawValue};

use crate::{
    actions::{Stage, pause},
    builtin,
    executions::Executions,
    journal::Journal,
    message::{Message, Request},
    output::Output,
    pending::Pending,
    script::{OnEof, Raw, Script},
};

const DEFAULT_CAPABILITIES: &str = r#"{"tools":{"listChanged":true}}"#;
const DEFAULT_SERVER_INFO: &str = r#"{"name":"fixture-server","version":"1.0.0"}"#;
const DEFAULT_VERSION: &str = "2025-11-25";

/// The whole state of the process.
#[derive(Debug)]
pub(crate) struct Server {
    script: Script,
    /// The command line without the program.
    pub(crate) arguments: Vec<String>,
    /// Where events are written down.
    pub(crate) journal: Journal,
    /// Where calls are written down.
    executions: Executions,
    /// Where messages are written.
    pub(crate) output: Output,
    /// What is under way.
    pub(crate) pending: Pending,
    /// The raw definitions, page by page.
    pages: Mutex<Vec<Vec<String>>>,
    /// Whether no further line is read.
    deaf: AtomicBool,
}

impl Server {
    /// A server at its start.
    pub(crate) fn new(script: Script, arguments: Vec<String>) -> Self {
        let pages = match (&script.tools, &script.pages) {
            (_, Some(pages)) => pages.iter().map(|page| texts(page)).collect(),
            (Some(tools), None) => vec![texts(tools)],
            (None, None) => vec![builtin::definitions()],
        };
        Self {
            journal: Journal::open(script.journal.as_deref()),
            executions: Executions::open(script.executions.as_deref()),
            script,
            arguments,
            output: Output::default(),
            pending: Pending::default(),
            pages: Mutex::new(pages),
            deaf: AtomicBool::new(false),
        }
    }

    /// Serves until stdin ends, and gives the exit code.
    pub(crate) fn run(self: &Arc<Self>) -> u8 {
        self.journal.event("start");
        self.stage(None).run(&self.script.on_start);
        let mut stdin = io::stdin().lock();
        let mut line = Vec::new();
        while stdin.read_until(b'\n', &mut line).unwrap_or(0) > 0 {
            if self.deaf.load(Ordering::Acquire) {
                pause(Duration::from_hours(1));
            }
            let text = line.trim_ascii_end();
            self.journal.record("in", text);
            self.receive(text);
            line.clear();
        }
        self.journal.event("eof");
        match self.script.on_eof {
            OnEof::Exit => {}
            OnEof::Finish => self.pending.await_idle(),
            OnEof::Ignore => pause(Duration::from_hours(1)),
        }
        self.journal.record("exit", b"0");
        0
    }

    /// Ends the process from wherever it is.
    pub(crate) fn exit(&self, code: u8) -> ! {
        self.journal.record("exit", code.to_string().as_bytes());
        process::exit(code.into())
    }

    /// Makes the server read no further line. One that is being waited for is not acted on.
    pub(crate) fn stop_reading(&self) {
        self.deaf.store(true, Ordering::Release);
    }

    /// Replaces the list of tools.
    pub(crate) fn set_tools(&self, tools: &[Raw]) {
        *self.pages.lock().unwrap_or_else(PoisonError::into_inner) = vec![texts(tools)];
    }

    fn stage<'a>(&'a self, request: Option<&'a Request>) -> Stage<'a> {
        Stage {
            server: self,
            request,
            reply: String::new(),
            round: 0,
        }
    }

    fn receive(self: &Arc<Self>, line: &[u8]) {
        let Ok(message) = serde_json::from_slice::<Message>(line) else {
            return;
        };
        let Some(method) = message.method else {
            if let Some(id) = message.id {
                let line = String::from_utf8_lossy(line).into_owned();
                self.pending.reply(id.get(), line);
            }
            return;
        };
        let request = Request::new(message.id, method, message.params);
        if request.method == "notifications/cancelled" {
            self.cancelled(&request);
        }
        if request.id.is_some() {
            self.pending.begin();
        }
        if request.method == "tools/call" {
            // Here and not in the call's own thread, so that calls are written down in their order.
            self.executions.record(&request);
        }
        if self.script.on_method.contains_key(&request.method) || request.method == "tools/call" {
            let server = Arc::clone(self);
            thread::spawn(move || server.handle(&request));
        } else {
            self.handle(&request);
        }
    }

    fn cancelled(&self, request: &Request) {
        if let Some(id) = request.known.request_id.as_deref() {
            self.journal.record("cancelled", id.get().as_bytes());
            self.pending.cancel(id.get());
        }
    }

    fn handle(&self, request: &Request) {
        if let Some(actions) = self.script.on_method.get(&request.method) {
            self.stage(Some(request)).run(actions);
        } else if request.method == "tools/call" {
            self.call(request);
        } else if let Some(id) = request.id.as_deref() {
            self.answer(id, request);
        }
        if request.id.is_some() {
            self.pending.end();
        }
    }

    fn call(&self, request: &Request) {
        let name = request.known.name.as_deref().unwrap_or_default();
        match self.script.on_call.get(name) {
            Some(actions) => self.stage(Some(request)).run(actions),
            None => builtin::run(self, request),
        }
    }

    /// Answers a request of the protocol's own.
    fn answer(&self, id: &RawValue, request: &Request) {
        match request.method.as_str() {
            "initialize" => self.output.answer(id, &self.initialize_result(request)),
            "tools/list" => self.output.answer(id, &self.page(request)),
            "ping" => self.output.answer(id, "{}"),
            method => {
                let message = Value::from(format!("Method not found: {method}"));
                let error = format!(r#"{{"code":-32601,"message":{message}}}"#);
                self.output.error(id, &error);
            }
        }
    }

    fn initialize_result(&self, request: &Request) -> String {
        let script = &self.script;
        let version = script
            .protocol_version
            .as_deref()
            .or(request.known.protocol_version.as_deref())
            .unwrap_or(DEFAULT_VERSION);
        let version = Value::from(version);
        let capabilities = raw_or(script.capabilities.as_deref(), DEFAULT_CAPABILITIES);
        let info = raw_or(script.server_info.as_deref(), DEFAULT_SERVER_INFO);
        let instructions = script
            .instructions
            .as_deref()
            .map(|text| format!(r#","instructions":{text}"#))
            .unwrap_or_default();
        format!(
            r#"{{"protocolVersion":{version},"capabilities":{capabilities},"serverInfo":{info}{instructions}}}"#
        )
    }

    /// One page of the list; the cursor is the number of the page.
    fn page(&self, request: &Request) -> String {
        let pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        let cursor = request.known.cursor.as_deref().unwrap_or("0");
        let number: usize = cursor.parse().unwrap_or_default();
        let tools = pages.get(number).map(|page| page.join(","));
        let next = if number + 1 < pages.len() {
            format!(r#","nextCursor":"{}""#, number + 1)
        } else {
            String::new()
        };
        format!(r#"{{"tools":[{}]{next}}}"#, tools.unwrap_or_default())
    }
}

fn texts(tools: &[Raw]) -> Vec<String> {
    tools.iter().map(|tool| tool.get().to_owned()).collect()
}

fn raw_or<'a>(raw: Option<&'a RawValue>, default: &'a str) -> &'a str {
    raw.map_or(default, RawValue::get)
}
