//! A running workbench and the client's side of its stdin and stdout.

use std::{
    io::Write,
    process::{Child, ChildStdin, Command, ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};

use rustix::process::Signal;
use serde_json::{Value, json};

use super::{
    Journal, Message, Setup, TIMEOUT, ToolResult, kill, poll, raw_string, reading::Reading,
    survivors, transcript::Transcript,
};

/// How much of a line the message of a failed test shows.
const SHOWN_CHARACTERS: usize = 2000;

/// The workbench under test. Dropping it kills it and everything its servers left.
#[derive(Debug)]
pub(crate) struct Workbench {
    child: Child,
    stdin: Option<ChildStdin>,
    reading: Reading,
    waiting: Vec<Message>,
    wire: Transcript,
    stderr: Transcript,
    stderr_reader: thread::JoinHandle<()>,
    ids: u64,
    /// The setup that it was started with.
    pub(crate) setup: Setup,
}

/// The output of a workbench that has ended.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) status: ExitStatus,
    /// The lines of stdout that nobody had read.
    pub(crate) stdout: Vec<String>,
    pub(crate) stderr: String,
}

impl Workbench {
    pub(crate) fn spawn(mut command: Command, setup: Setup) -> Self {
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().expect("the workbench starts");
        let stderr = Transcript::default();
        let stderr_reader = stderr.drain(child.stderr.take().expect("a piped stderr"));
        let reading = Reading::start(child.stdout.take().expect("a piped stdout"));
        Self {
            stdin: child.stdin.take(),
            child,
            reading,
            waiting: Vec::new(),
            wire: Transcript::default(),
            stderr,
            stderr_reader,
            ids: 0,
            setup,
        }
    }

    /// Sends one line as it is.
    pub(crate) fn send_line(&mut self, line: &str) {
        self.send_bytes(format!("{line}\n").as_bytes());
    }

    /// Sends bytes as they are.
    pub(crate) fn send_bytes(&mut self, bytes: &[u8]) {
        let text = String::from_utf8_lossy(bytes);
        self.wire
            .add(&format!("→ {}", shortened(text.trim_end_matches('\n'))));
        let stdin = self.stdin.as_mut().expect("stdin is open");
        let written = stdin.write_all(bytes);
        written.expect("the workbench reads its stdin");
    }

    /// Sends a request with raw parameters and gives its raw id.
    pub(crate) fn request(&mut self, method: &str, params: &str) -> String {
        self.ids += 1;
        let id = self.ids.to_string();
        self.send_request(&id, method, params);
        id
    }

    /// Sends a request with a raw id of the test's own.
    pub(crate) fn send_request(&mut self, id: &str, method: &str, params: &str) {
        self.send_line(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#
        ));
    }

    /// Sends a notification with raw parameters.
    pub(crate) fn notify(&mut self, method: &str, params: &str) {
        self.send_line(&format!(
            r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#
        ));
    }

    /// Waits for the next line of stdout.
    pub(crate) fn next_line(&mut self) -> String {
        let line = self.reading.next_within(TIMEOUT);
        let line = line.expect("a line from the workbench");
        self.wire.add(&format!("← {}", shortened(&line)));
        line
    }

    /// Waits for the first message that nobody has taken.
    pub(crate) fn next_message(&mut self) -> Message {
        if self.waiting.is_empty() {
            Message::parse(self.next_line())
        } else {
            self.waiting.remove(0)
        }
    }

    /// Waits for the first message of which this is true; the others stay.
    pub(crate) fn message(&mut self, wanted: impl Fn(&Message) -> bool) -> Message {
        let message = self.message_within(TIMEOUT, wanted);
        message.expect("the message that the test waits for")
    }

    /// Waits so long for a message of which this is true.
    pub(crate) fn message_within(
        &mut self,
        time: Duration,
        wanted: impl Fn(&Message) -> bool,
    ) -> Option<Message> {
        if let Some(at) = self.waiting.iter().position(&wanted) {
            return Some(self.waiting.remove(at));
        }
        let end = Instant::now() + time;
        while let Some(left) = end.checked_duration_since(Instant::now()) {
            let line = self.reading.next_within(left)?;
            self.wire.add(&format!("← {}", shortened(&line)));
            let message = Message::parse(line);
            if wanted(&message) {
                return Some(message);
            }
            self.waiting.push(message);
        }
        None
    }

    /// Waits for the answer to the request with this raw id.
    pub(crate) fn response(&mut self, id: &str) -> Message {
        self.message(|message| message.answers(id))
    }

    pub(crate) fn notification(&mut self, method: &str) -> Message {
        self.message(|message| message.method.as_deref() == Some(method))
    }

    /// The messages that came and that nobody has taken.
    pub(crate) fn untaken(&self) -> &[Message] {
        &self.waiting
    }

    /// Sends a request and waits for its answer.
    pub(crate) fn ask(&mut self, method: &str, params: &str) -> Message {
        let id = self.request(method, params);
        self.response(&id)
    }

    /// Goes through the handshake at the newest revision and gives the result of `initialize`.
    pub(crate) fn initialize(&mut self) -> Value {
        self.initialize_as("2025-11-25")
    }

    /// Goes through the handshake and gives the result of `initialize`.
    pub(crate) fn initialize_as(&mut self, version: &str) -> Value {
        let params = initialize_params(version);
        let result = self.ask("initialize", &params).result();
        self.notify("notifications/initialized", "{}");
        result
    }

    /// Sends a `tools/call` and gives its id.
    pub(crate) fn send_call(&mut self, tool: &str, arguments: &str) -> String {
        self.request("tools/call", &call_params(tool, arguments))
    }

    /// Calls a tool of the workbench.
    pub(crate) fn call(&mut self, tool: &str, arguments: &str) -> ToolResult {
        let id = self.send_call(tool, arguments);
        self.tool_result(&id)
    }

    /// Waits for the result of a `tools/call`.
    pub(crate) fn tool_result(&mut self, id: &str) -> ToolResult {
        ToolResult::of(&self.response(id))
    }

    pub(crate) fn open(&mut self, toolbox: &str) -> ToolResult {
        self.call("open_toolbox", &json!({"toolbox": toolbox}).to_string())
    }

    /// Sends a `use_tool` of the toolbox `dev` and its server `fs` and gives its id.
    pub(crate) fn send_use(&mut self, tool: &str, arguments: &str) -> String {
        self.send_call(
            "use_tool",
            &use_arguments(["dev", "fs", tool], Some(arguments)),
        )
    }

    /// Uses a tool of the toolbox `dev` and its server `fs`.
    pub(crate) fn use_tool(&mut self, tool: &str, arguments: &str) -> ToolResult {
        self.use_tool_of(["dev", "fs", tool], arguments)
    }

    /// Uses the tool with this toolbox, server and name.
    pub(crate) fn use_tool_of(&mut self, identifier: [&str; 3], arguments: &str) -> ToolResult {
        self.call("use_tool", &use_arguments(identifier, Some(arguments)))
    }

    /// The journal of a fixture server.
    pub(crate) fn journal(&self, toolbox: &str, server: &str) -> Journal {
        self.setup.journal(toolbox, server)
    }

    /// Everything that it has said so far and that was taken or waited past.
    pub(crate) fn said(&self) -> String {
        let wire = self.wire.text();
        let said = wire.lines().filter(|line| line.starts_with('←'));
        said.collect::<Vec<_>>().join("\n")
    }

    /// Everything on stderr so far.
    pub(crate) fn stderr(&self) -> String {
        self.stderr.text()
    }

    /// Waits until stderr holds a text.
    pub(crate) fn wait_stderr(&self, text: &str) {
        let seen = poll(TIMEOUT, || self.stderr().contains(text).then_some(()));
        assert!(seen.is_some(), "stderr never said {text:?}");
    }

    pub(crate) fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// The client's side of its stdout.
    pub(crate) fn reading(&self) -> &Reading {
        &self.reading
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal to the workbench.
    pub(crate) fn signal(&self, signal: Signal) {
        kill(self.child.id(), signal);
    }

    /// Waits for the end of the process.
    pub(crate) fn wait_exit(&mut self) -> ExitStatus {
        let status = poll(TIMEOUT, || {
            self.child.try_wait().expect("the workbench is our child")
        });
        status.expect("the workbench ends")
    }

    /// Ends stdin, waits for the end of the process and gives what is left of it.
    pub(crate) fn finish(&mut self) -> Finished {
        self.close_stdin();
        let status = self.wait_exit();
        let mut stdout: Vec<String> = self.waiting.drain(..).map(|it| it.line).collect();
        while let Some(line) = self.reading.next_within(TIMEOUT) {
            stdout.push(line);
        }
        poll(TIMEOUT, || self.stderr_reader.is_finished().then_some(()));
        Finished {
            status,
            stdout,
            stderr: self.stderr(),
        }
    }

    /// Waits until no process of this test's servers is left.
    pub(crate) fn wait_no_survivors(&self, within: Duration) {
        let gone = poll(within, || {
            survivors(&self.setup.mark).is_empty().then_some(())
        });
        let left = survivors(&self.setup.mark);
        assert!(gone.is_some(), "still there after {within:?}: {left:?}");
    }
}

impl Drop for Workbench {
    #[expect(clippy::print_stderr, reason = "a failed test shows what was said")]
    fn drop(&mut self) {
        let _ended = self.child.kill();
        let _ended = self.child.wait();
        for pid in survivors(&self.setup.mark) {
            kill(pid, Signal::KILL);
        }
        if thread::panicking() {
            let (stderr, wire) = (self.stderr.text(), self.wire.text());
            eprintln!("--- stderr of the workbench\n{stderr}--- wire\n{wire}");
        }
    }
}

/// As much of a line as a reader can use.
fn shortened(line: &str) -> String {
    match line.char_indices().nth(SHOWN_CHARACTERS) {
        Some((at, _)) => format!("{}… ({} bytes)", &line[..at], line.len()),
        None => line.to_owned(),
    }
}

/// The raw parameters of `initialize`.
pub(crate) fn initialize_params(version: &str) -> String {
    let client = json!({"name": "it", "version": "1"});
    json!({"protocolVersion": version, "capabilities": {}, "clientInfo": client}).to_string()
}

/// The raw parameters of `tools/call`.
pub(crate) fn call_params(tool: &str, arguments: &str) -> String {
    format!(r#"{{"name":{},"arguments":{arguments}}}"#, raw_string(tool))
}

/// The raw arguments of `use_tool`.
pub(crate) fn use_arguments(identifier: [&str; 3], arguments: Option<&str>) -> String {
    let [toolbox, server, tool] = identifier;
    let identifier = json!({"toolbox": toolbox, "server": server, "tool": tool});
    match arguments {
        Some(arguments) => format!(r#"{{"tool":{identifier},"arguments":{arguments}}}"#),
        None => format!(r#"{{"tool":{identifier}}}"#),
    }
}
