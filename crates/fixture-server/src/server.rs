//! The server: reads lines, responds to the requests of the protocol, and runs each call in its own thread, so that
//! responses can overtake each other.

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

use serde_json::Value;

use crate::{
    actions::{Stage, pause},
    builtin, catalogue,
    executions::Executions,
    journal::Journal,
    listens::Listens,
    message::{Era, Message, Request},
    modern,
    output::Output,
    pending::Pending,
    rounds::States,
    script::{Action, OnEof, Raw, Script, ScriptEra, Unknown},
    tasks::Tasks,
};

/// The key of the legacy client over stdio among the recipients of changes.
const STDIO: &str = "stdio";

/// The whole state of the process.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) script: Script,
    /// The command line without the program.
    pub(crate) arguments: Vec<String>,
    pub(crate) journal: Journal,
    /// The journal of calls.
    executions: Executions,
    /// The output for messages that belong to no request.
    output: Arc<Output>,
    pub(crate) pending: Pending,
    pub(crate) listens: Listens,
    /// The states that were issued with questions.
    pub(crate) states: States,
    pub(crate) tasks: Tasks,
    /// The raw definitions, page by page.
    pages: Mutex<Vec<Vec<String>>>,
    /// The lowest level of log messages that a legacy client wants; all if it has not set one.
    log_level: Mutex<Option<usize>>,
    /// True after `initialize`.
    initialized: AtomicBool,
    /// True if no more lines are read.
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
            output: Arc::default(),
            pending: Pending::default(),
            listens: Listens::default(),
            states: States::default(),
            tasks: Tasks::default(),
            pages: Mutex::new(pages),
            log_level: Mutex::default(),
            initialized: AtomicBool::new(false),
            deaf: AtomicBool::new(false),
        }
    }

    /// Runs the actions at the start.
    pub(crate) fn start(&self) {
        self.journal.event("start");
        self.stage(None).run(&self.script.on_start);
    }

    /// Serves until stdin ends, and gives the exit code.
    pub(crate) fn run(self: &Arc<Self>) -> u8 {
        self.start();
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

    pub(crate) fn list_tools(&self, request: &Request) {
        self.answer(request, &self.page(request));
    }

    /// The least urgent log messages that a legacy client wants.
    pub(crate) fn log_level(&self) -> Option<usize> {
        *self
            .log_level
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn stage<'a>(&'a self, request: Option<&'a Request>) -> Stage<'a> {
        let output = request.map_or(&self.output, |request| &request.output);
        Stage {
            server: self,
            request,
            output: Arc::clone(output),
            replies: Vec::new(),
            round: 0,
            over: false,
        }
    }

    /// Takes a line of stdin.
    fn receive(self: &Arc<Self>, line: &[u8]) {
        let Ok(mut message) = serde_json::from_slice::<Message>(line) else {
            return;
        };
        let Some(method) = message.method.take() else {
            self.reply(&message, line);
            return;
        };
        let mut request = Request::new(message, method, Arc::clone(&self.output), "");
        request.era = self.era(&request);
        if !self.begin(&request) {
            return;
        }
        // Only these may take time. All else is answered in the order of arrival.
        if self.script.on_method.contains_key(&request.method) || self.actions(&request).is_some() {
            let server = Arc::clone(self);
            thread::spawn(move || server.handle(&request));
        } else {
            self.handle(&request);
        }
    }

    /// Takes the client's answer to a request of the server's own.
    pub(crate) fn reply(&self, message: &Message, line: &[u8]) {
        if let Some(id) = &message.id {
            let line = String::from_utf8_lossy(line).into_owned();
            self.pending.reply(id.get(), line);
        }
    }

    /// How a request is to be understood.
    pub(crate) fn era(&self, request: &Request) -> Era {
        let modern = request.known.meta.is_modern() || request.method == "server/discover";
        match self.script.era {
            ScriptEra::Modern => Era::Modern,
            ScriptEra::Both if modern => Era::Modern,
            ScriptEra::Legacy | ScriptEra::Both => Era::Legacy,
        }
    }

    /// Starts a request or a notification, in the order of arrival. Returns false if there is nothing more to do.
    pub(crate) fn begin(&self, request: &Request) -> bool {
        if request.method == "notifications/cancelled" {
            self.cancelled(request);
        }
        let Some(id) = request.id.as_deref() else {
            return true;
        };
        // A script may answer the first request of either era as it likes.
        let first = matches!(request.method.as_str(), "initialize" | "server/discover");
        let scripted = first && self.script.on_method.contains_key(&request.method);
        if request.era == Era::Modern
            && !scripted
            && let Some(error) = modern::problem(request)
        {
            request.output.refuse(id, &error);
            return false;
        }
        self.pending.begin();
        if request.method == "tools/call" {
            // Here and not in the call's own thread, so that calls are written down in their order.
            self.executions.record(request);
        }
        true
    }

    fn cancelled(&self, request: &Request) {
        if let Some(id) = request.known.request_id.as_deref() {
            self.cancel(id.get(), id.get());
        }
    }

    /// Records that the client has cancelled a request.
    pub(crate) fn cancel(&self, id: &str, key: &str) {
        self.journal.record("cancelled", id.as_bytes());
        self.listens.remove(key);
        self.pending.cancel(key);
    }

    /// Handles a request or a notification.
    pub(crate) fn handle(&self, request: &Request) {
        if let Some(actions) = self.script.on_method.get(&request.method) {
            self.stage(Some(request)).run(actions);
        } else if let Some(actions) = self.actions(request) {
            self.stage(Some(request)).run(actions);
        } else if request.id.is_some() {
            self.respond(request);
        }
        if request.id.is_some() {
            self.pending.end();
        }
    }

    /// Returns the scripted actions for the tool, prompt or resource of a request.
    fn actions(&self, request: &Request) -> Option<&[Action]> {
        const BUILT_IN: &[Action] = &[Action::BuiltIn];
        let script = &self.script;
        let name = request.known.name.as_deref().unwrap_or_default();
        let actions = match request.method.as_str() {
            "tools/call" => script.on_call.get(name).map_or(BUILT_IN, Vec::as_slice),
            "prompts/get" => script.on_prompt.get(name)?,
            "resources/read" => script.on_read.get(request.known.uri.as_deref()?)?,
            _ => return None,
        };
        Some(actions)
    }

    /// Answers a request with a result, in the form of its era.
    pub(crate) fn answer(&self, request: &Request, result: &str) {
        let id = request.id.as_deref().expect("a request");
        match request.era {
            Era::Legacy => request.output.answer(id, result),
            Era::Modern => {
                let result = modern::complete(&self.script, &request.method, result);
                request.output.answer(id, &result);
            }
        }
    }

    /// Answers a request of the protocol's own.
    fn respond(&self, request: &Request) {
        let result = match (request.era, request.method.as_str()) {
            (Era::Legacy, "initialize") => {
                self.initialized.store(true, Ordering::Release);
                if request.output.reply().is_none() {
                    self.listens.add_legacy(STDIO, &request.output);
                }
                Ok(catalogue::initialize_result(&self.script, request))
            }
            (Era::Legacy, "ping") => Ok("{}".to_owned()),
            (Era::Legacy, "logging/setLevel") if self.logs() => {
                let level = request.known.level.as_deref().and_then(modern::level);
                *self
                    .log_level
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner) = level;
                Ok("{}".to_owned())
            }
            (Era::Modern, "server/discover") => Ok(catalogue::discover_result(&self.script)),
            (Era::Modern, "subscriptions/listen") => {
                return self.listens.begin(request);
            }
            (Era::Modern, "tasks/get" | "tasks/update" | "tasks/cancel") => {
                return self.task(request);
            }
            (_, "tools/list") => Ok(self.page(request)),
            _ => match catalogue::answer(&self.script, request) {
                Some(answer) => answer,
                None => return self.unknown(request),
            },
        };
        match result {
            Ok(result) => self.answer(request, &result),
            Err(error) => request.fail(&error),
        }
    }

    fn logs(&self) -> bool {
        let capabilities = self.script.capabilities.as_deref();
        capabilities.is_some_and(|raw| raw.get().contains("\"logging\""))
    }

    fn task(&self, request: &Request) {
        let capability = modern::tasks_capability();
        if !modern::declares(request, &capability) {
            return request.fail(&modern::missing_capability(&capability));
        }
        match self.tasks.handle(request) {
            Ok(result) => self.answer(request, &result),
            Err(error) => request.fail(&error),
        }
    }

    fn unknown(&self, request: &Request) {
        match self.script.unknown {
            Unknown::Silent => return,
            Unknown::Exit if !self.initialized.load(Ordering::Acquire) => self.exit(1),
            Unknown::Error | Unknown::Exit => {}
        }
        let message = Value::from(format!("Method not found: {}", request.method));
        request.fail(&format!(r#"{{"code":-32601,"message":{message}}}"#));
    }

    /// The definition of a tool.
    pub(crate) fn definition(&self, name: &str) -> Option<Value> {
        let pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        let mut tools = pages.iter().flatten();
        tools.find_map(|raw| {
            let tool: Value = serde_json::from_str(raw).ok()?;
            (tool["name"] == name).then_some(tool)
        })
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
