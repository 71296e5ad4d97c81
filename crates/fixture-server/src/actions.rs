//! Runs the actions of a script.
//!
//! Placeholders in texts for stdout: `$ID` (the raw id of the request), `$TOKEN` (its raw progress
//! token), `$PARAMS` (its raw parameters), `$REPLY` (the last answer of the client, the whole line),
//! `$ROUND` (how often the innermost `repeat` has run before) and `$xHH` (the byte with that
//! hexadecimal value).

use std::{
    fs::{File, OpenOptions},
    path::Path,
    thread,
    time::{Duration, Instant},
};

use serde_json::value::RawValue;

use crate::{
    builtin, children,
    message::Request,
    output,
    script::{Action, Fill, Once, Repeat, Spawn, Stream},
    server::Server,
};

/// How often a file is looked for.
const FILE_POLL: Duration = Duration::from_millis(5);

/// How many bytes of a fill are written at once.
const FILL_CHUNK: usize = 64 * 1024;

/// The surroundings of a list of actions.
pub(crate) struct Stage<'a> {
    /// The server that acts.
    pub(crate) server: &'a Server,
    /// The request or notification that is handled; none at the start.
    pub(crate) request: Option<&'a Request>,
    /// The client's last answer to a request of the server's own.
    pub(crate) reply: String,
    /// How often the innermost `repeat` has run before.
    pub(crate) round: u64,
}

impl Stage<'_> {
    /// Runs the actions in order.
    pub(crate) fn run(&mut self, actions: &[Action]) {
        for action in actions {
            self.act(action);
        }
    }

    fn act(&mut self, action: &Action) {
        let output = &self.server.output;
        match action {
            Action::Answer(result) => output.answer(self.id(), result.get()),
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
            Action::Notify(members) => output.message(members),
            Action::Progress(members) => self.progress(members),
            Action::Request(members) => self.request(members),
            Action::SetTools(tools) => self.server.set_tools(tools),
            Action::SleepMs(ms) => pause(Duration::from_millis(*ms)),
            Action::AwaitFile(file) => await_file(file),
            Action::Touch(file) => drop(File::create(file).expect("the file can be created")),
            Action::AwaitCancel => self.server.pending.await_cancel(self.id().get()),
            Action::Once(once) => self.once(once),
            Action::Repeat(repeat) => self.repeat(repeat),
            Action::Alone(actions) => output.alone(|| self.run(actions)),
            Action::Journal(text) => self.server.journal.record("note", text.as_bytes()),
            Action::Spawn(spawn) => self.spawn(spawn),
            Action::BuiltIn => builtin::run(self.server, self.request.expect("a call")),
            Action::StopReading => self.server.stop_reading(),
            Action::Hang => pause(Duration::from_hours(1)),
            Action::CloseStdout => panic!("{}", children::close_stdout()),
            Action::Exit(code) => self.server.exit(*code),
            Action::Die(signal) => panic!("{}", children::die(signal)),
        }
    }

    fn id(&self) -> &RawValue {
        self.request
            .and_then(|request| request.id.as_deref())
            .expect("only a request can be answered")
    }

    fn progress(&self, members: &RawValue) {
        let Some(token) = self
            .request
            .and_then(|request| request.known.meta.progress_token.as_deref())
        else {
            self.server.journal.record("note", b"no progress token");
            return;
        };
        let members = members.get().trim_start_matches('{');
        self.server.output.line(
            format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},{members}}}"#
            )
            .as_bytes(),
        );
    }

    fn request(&mut self, members: &RawValue) {
        let id = self.server.pending.next_id();
        let members = members.get().trim_start_matches('{');
        self.server
            .output
            .line(format!(r#"{{"jsonrpc":"2.0","id":{id},{members}"#).as_bytes());
        self.reply = self.server.pending.await_reply(&id);
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
                Stream::Stdout => self.server.output.bytes(&chunk),
                Stream::Stderr => output::stderr_bytes(&chunk),
            }
        }
    }

    /// Fills in the placeholders.
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
            .replace("$REPLY", &self.reply)
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

/// Lets time pass.
pub(crate) fn pause(time: Duration) {
    let end = Instant::now() + time;
    while let Some(left) = end.checked_duration_since(Instant::now()) {
        thread::park_timeout(left);
    }
}

fn await_file(file: &Path) {
    while !file.exists() {
        pause(FILE_POLL);
    }
}
