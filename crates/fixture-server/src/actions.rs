//! Runs the actions of a script.
//!
//! Placeholders in texts for stdout: `$ID` (the raw id of the request), `$TOKEN` (its raw progress
//! token), `$PARAMS` (its raw parameters), `$REPLY` (the last answer of the client, the whole message),
//! `$REPLIES` (all its answers to what this call asked, an array), `$ROUND` (how often the innermost `repeat` has run before) and `$xHH` (the byte with that
//! hexadecimal value).

use std::{
    fs::{File, OpenOptions},
    path::Path,
    sync::{Arc, atomic::Ordering},
    thread,
    time::{Duration, Instant},
};

use serde::Deserialize;
use serde_json::{json, value::RawValue};

use crate::{
    builtin, catalogue, children,
    message::{Era, Request},
    modern,
    output::{self, Output},
    rounds::Step,
    script::{Action, Fill, InTurn, Once, Raw, Repeat, Rounds, Spawn, Stream, TaskScript},
    server::Server,
};

/// How often to check for a file.
const FILE_POLL: Duration = Duration::from_millis(5);

/// How many bytes of a fill are written at once.
const FILL_CHUNK: usize = 64 * 1024;

/// The surroundings of a list of actions.
pub(crate) struct Stage<'a> {
    pub(crate) server: &'a Server,
    /// The request or notification that is handled; none at the start.
    pub(crate) request: Option<&'a Request>,
    pub(crate) output: Arc<Output>,
    /// The client's responses to the questions of this call, each a whole message.
    pub(crate) replies: Vec<String>,
    /// How often the innermost `repeat` has run before.
    pub(crate) round: u64,
    /// True if the remaining actions are skipped.
    pub(crate) over: bool,
}

/// The part of a log message that the server reads.
#[derive(Deserialize)]
struct Level {
    level: String,
}

impl Stage<'_> {
    /// Runs the actions in order.
    pub(crate) fn run(&mut self, actions: &[Action]) {
        for action in actions {
            if self.over {
                return;
            }
            self.act(action);
        }
    }

    fn act(&mut self, action: &Action) {
        let output = Arc::clone(&self.output);
        match action {
            Action::Answer(result) => self.server.answer(self.asked(), result.get()),
            Action::Error(error) => output.error(self.id(), error.get()),
            Action::Line(text) => output.line(&self.fill_in(text)),
            Action::Stdout(text) => output.bytes(&self.fill_in(text)),
            Action::Bytewise(text) => {
                for byte in self.fill_in(text) {
                    output.bytes(&[byte]);
                }
            }
            Action::Stderr(text) => output::stderr_line(text),
            Action::Fill(fill) => self.fill(fill),
            Action::Notify(members) => output.message(members.get()),
            Action::Progress(members) => self.progress(members),
            Action::Request(members) => self.request(std::slice::from_ref(members)),
            Action::Requests(all) => self.request(all),
            Action::Log(members) => self.log(members),
            Action::Change(members) => self.server.listens.tell(members),
            Action::EndListens(how) => self.server.listens.end(*how),
            Action::Rounds(rounds) => self.rounds(rounds),
            Action::Require(capabilities) => self.require(capabilities.get()),
            Action::Task(task) => self.task(task),
            Action::InTurn(turns) => self.in_turn(turns),
            Action::SetTools(tools) => self.server.set_tools(tools),
            Action::ListTools => self.server.list_tools(self.asked()),
            Action::SleepMs(ms) => pause(Duration::from_millis(*ms)),
            Action::AwaitFile(file) => await_file(file),
            Action::Touch(file) => drop(File::create(file).expect("the file can be created")),
            Action::AwaitCancel => self.server.pending.await_cancel(&self.asked().key),
            Action::Once(once) => self.once(once),
            Action::Repeat(repeat) => self.repeat(repeat),
            Action::Alone(actions) => output.alone(|| self.run(actions)),
            Action::Journal(text) => self.server.journal.record("note", text.as_bytes()),
            Action::Spawn(spawn) => self.spawn(spawn),
            Action::BuiltIn => builtin::run(self.server, self.request.expect("a call")),
            Action::StopReading => self.server.stop_reading(),
            Action::Hang => pause(Duration::from_hours(1)),
            Action::CloseStream => output.reply().expect("HTTP").close(),
            // This returns only if it failed.
            Action::CloseStdout => panic!("{}", children::close_stdout()),
            Action::Exit(code) => self.server.exit(*code),
            Action::Die(signal) => panic!("{}", children::die(signal)),
        }
    }

    fn asked(&self) -> &Request {
        self.request.expect("only a request can be answered")
    }

    fn id(&self) -> &RawValue {
        let id = self.asked().id.as_deref();
        id.expect("a notification cannot be answered")
    }

    fn progress(&self, members: &RawValue) {
        let Some(token) = self
            .request
            .and_then(|request| request.known.meta.progress_token.as_deref())
        else {
            self.server.journal.record("note", b"no progress token");
            return;
        };
        // The object is pasted without its brace, so that its members stay as they were written.
        let members = members.get().trim_start_matches('{');
        self.output.line(
            format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},{members}}}"#
            )
            .as_bytes(),
        );
    }

    fn request(&mut self, requests: &[Raw]) {
        let mut ids = Vec::new();
        for members in requests {
            let id = self.server.pending.next_id();
            let members = members.get().replace("$ROUND", &self.round.to_string());
            let members = members.trim_start_matches('{');
            self.output
                .line(format!(r#"{{"jsonrpc":"2.0","id":{id},{members}"#).as_bytes());
            ids.push(id);
        }
        for id in ids {
            self.replies.push(self.server.pending.await_reply(&id));
        }
    }

    fn log(&self, members: &RawValue) {
        let level: Level = serde_json::from_str(members.get()).expect("a level");
        let level = modern::level(&level.level);
        let request = self.request.filter(|request| request.era == Era::Modern);
        let wanted = match request {
            Some(request) => {
                modern::wanted_level(&request.known.meta).is_some_and(|least| level >= Some(least))
            }
            None => level >= self.server.log_level(),
        };
        if wanted {
            self.output.message(&format!(
                r#"{{"method":"notifications/message","params":{members}}}"#
            ));
        }
    }

    fn rounds(&mut self, rounds: &Rounds) {
        match self.server.states.step(self.asked(), rounds) {
            Step::Ask(result) => {
                self.server.answer(self.asked(), &result);
                self.over = true;
            }
            Step::Refuse(error) => {
                self.asked().fail(&error);
                self.over = true;
            }
            Step::Done(told) if rounds.then.is_empty() => {
                let state = json!(self.asked().known.request_state);
                let told = told.join(",");
                let told = format!(r#"{{"told":[{told}],"requestState":{state}}}"#);
                let result = catalogue::echo(self.asked(), &told);
                self.server.answer(self.asked(), &result);
            }
            Step::Done(told) => {
                self.replies = told;
                self.run(&rounds.then);
            }
        }
    }

    fn require(&mut self, capabilities: &str) {
        if !modern::declares(self.asked(), capabilities) {
            let error = modern::missing_capability(capabilities);
            self.output.refuse(self.id(), &error);
            self.over = true;
        }
    }

    fn task(&mut self, task: &TaskScript) {
        let capability = modern::tasks_capability();
        if modern::declares(self.asked(), &capability) {
            let result = self.server.tasks.create(task);
            self.server.answer(self.asked(), &result);
        } else if let Some(actions) = &task.otherwise {
            self.run(actions);
        } else {
            self.require(&capability);
        }
    }

    fn in_turn(&mut self, in_turn: &InTurn) {
        let turn = in_turn.runs.fetch_add(1, Ordering::Relaxed);
        let turns = &in_turn.turns;
        if let Some(actions) = turns.get(turn).or(turns.last()) {
            self.run(actions);
        }
    }

    fn once(&mut self, once: &Once) {
        let first = OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&once.file)
            .is_ok();
        self.run(if first {
            &once.actions
        } else {
            &once.otherwise
        });
    }

    fn repeat(&mut self, repeat: &Repeat) {
        let outer = self.round;
        for round in 0..repeat.times {
            self.round = round;
            self.run(&repeat.actions);
        }
        self.round = outer;
    }

    fn spawn(&self, spawn: &Spawn) {
        let pid = children::spawn(spawn).expect("a process can be started");
        self.server
            .journal
            .record("spawned", pid.to_string().as_bytes());
    }

    fn fill(&self, fill: &Fill) {
        let once = self.fill_in(&fill.text);
        let at_once = (FILL_CHUNK / once.len().max(1)).max(1);
        let mut left = usize::try_from(fill.times).expect("so many bytes have room");
        while left > 0 {
            let n = left.min(at_once);
            left -= n;
            let chunk = once.repeat(n);
            match fill.stream {
                Stream::Stdout => self.output.bytes(&chunk),
                Stream::Stderr => output::stderr_bytes(&chunk),
            }
        }
    }

    fn fill_in(&self, text: &str) -> Vec<u8> {
        let raw = |part: Option<&RawValue>| part.map_or("null", RawValue::get).to_owned();
        let request = self.request;
        let text = text
            .replace("$ID", &raw(request.and_then(|it| it.id.as_deref())))
            .replace(
                "$TOKEN",
                &raw(request.and_then(|it| it.known.meta.progress_token.as_deref())),
            )
            .replace("$PARAMS", &raw(request.map(|it| &*it.params)))
            .replace("$REPLIES", &format!("[{}]", self.replies.join(",")))
            .replace("$REPLY", self.replies.last().map_or("", String::as_str))
            .replace("$ROUND", &self.round.to_string());
        bytes_of(&text)
    }
}

/// The text with every `$xHH` made the byte it names.
fn bytes_of(text: &str) -> Vec<u8> {
    let mut parts = text.split("$x");
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let (digits, rest) = part.split_at(2);
        bytes.push(u8::from_str_radix(digits, 16).expect("two hexadecimal digits after $x"));
        bytes.extend_from_slice(rest.as_bytes());
    }
    bytes
}

pub(crate) fn pause(time: Duration) {
    let end = Instant::now() + time;
    // A parked thread may wake up early.
    while let Some(left) = end.checked_duration_since(Instant::now()) {
        thread::park_timeout(left);
    }
}

fn await_file(file: &Path) {
    while !file.exists() {
        pause(FILE_POLL);
    }
}
