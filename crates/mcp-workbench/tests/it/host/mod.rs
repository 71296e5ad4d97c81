//! One host for all clients of a configuration.

mod clients;
mod command_line;
mod commands;
mod death;
mod detached;
mod guide;
mod instances;
mod page;
mod rendezvous;
mod soak;
#[cfg(feature = "otel")]
mod telemetry;
mod upgrades;

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    os::{fd::OwnedFd, unix::net::UnixStream},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::mpsc::{self, Receiver},
    thread,
};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::harness::{
    Journal, Message, Script, Setup, TIMEOUT, ToolResult, alive, call_params, kill, poll,
    survivors, use_arguments,
};

/// A machine with one shared configuration. Dropping it kills its hosts and servers.
struct Machine {
    setup: Setup,
}

/// A client of the machine.
struct Client {
    child: Child,
    stdin: Option<Box<dyn Write + Send>>,
    lines: Receiver<String>,
    stderr: Receiver<String>,
    ids: u64,
}

impl Machine {
    /// A machine with this configuration, which is shared.
    fn new(setup: Setup) -> Self {
        Self::not_shared(setup.top("shared", json!(true)))
    }

    /// A machine with this configuration as it is.
    fn not_shared(setup: Setup) -> Self {
        let runtime = setup.path("run");
        fs::create_dir(&runtime).unwrap();
        let setup = setup.env("XDG_RUNTIME_DIR", runtime.to_str().unwrap());
        setup.write_config();
        Self { setup }
    }

    /// A machine with the server `fs` in the toolbox `dev`, which names its working directory.
    fn one(script: &Script) -> Self {
        let setup = Setup::new().toolbox("dev", "Development tools");
        Self::new(setup.server_with("fs", script, &json!({"cwd": "."})))
    }

    fn path(&self, relative: &str) -> PathBuf {
        self.setup.path(relative)
    }

    /// Copies the program. Another process does it: a program that is open for writing cannot be started, and processes that
    /// tests start meanwhile inherit the open files of this one for a moment.
    fn copy_of_program(&self, name: &str) -> PathBuf {
        let copy = self.path(name);
        let mut copying = Command::new("cp");
        copying.arg(self.setup.command().get_program()).arg(&copy);
        assert!(copying.status().unwrap().success());
        copy
    }

    fn journal(&self) -> Journal {
        self.setup.journal("dev", "fs")
    }

    /// Waits until the server has received so many messages of a method.
    fn wait_received(&self, method: &str, count: usize) {
        let journal = self.journal();
        let seen = poll(TIMEOUT, || {
            (journal.received(method).len() >= count).then_some(())
        });
        assert!(seen.is_some(), "{count} {method}: {:?}", journal.lines());
    }

    /// The command that a client runs.
    fn command(&self) -> Command {
        let mut command = self.setup.command();
        command.arg("--config").arg(self.setup.config());
        command
    }

    fn start(&self) -> Client {
        Client::spawn(self.command())
    }

    /// Starts a client and goes through the handshake.
    fn connect(&self) -> Client {
        let mut client = self.start();
        client.initialize();
        client
    }

    /// Starts a client with a variable in its environment, and opens the toolbox.
    fn open_with(&self, variable: &str, value: &str) -> Client {
        let mut command = self.command();
        command.env(variable, value);
        let mut client = Client::spawn(command);
        client.initialize();
        client.open();
        client
    }

    /// Runs a command of the program and returns its stdout.
    fn run(&self, arguments: &[&str]) -> String {
        let mut command = self.command();
        let done = command.args(arguments).output().unwrap();
        let stderr = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{arguments:?}: {stderr}");
        String::from_utf8(done.stdout).unwrap()
    }

    /// The hosts that run, as `ps` shows them.
    fn hosts(&self) -> Vec<Value> {
        let document: Value = serde_json::from_str(&self.run(&["ps", "--json"])).unwrap();
        document["hosts"].as_array().unwrap().clone()
    }

    /// The only host. One that is busy may not answer `ps` at once.
    fn host(&self) -> Value {
        let host = poll(TIMEOUT, || match &self.hosts()[..] {
            [host] => Some(host.clone()),
            _ => None,
        });
        host.unwrap_or_else(|| panic!("one host: {:?}", self.hosts()))
    }

    fn host_pid(&self) -> u32 {
        pid(&self.host())
    }

    /// The folder of the host.
    fn place(&self) -> PathBuf {
        let root = self.path("run/mcp-workbench");
        let mut places = fs::read_dir(root).unwrap();
        places.next().unwrap().unwrap().path()
    }

    /// The log of the host.
    fn log(&self) -> String {
        fs::read_to_string(self.place().join("host.log")).unwrap_or_default()
    }

    /// Waits until no server and no host is left.
    fn wait_clean(&self) {
        let gone = poll(TIMEOUT, || {
            let clean = survivors(&self.setup.mark).is_empty() && host_processes(self).is_empty();
            clean.then_some(())
        });
        let servers = survivors(&self.setup.mark);
        assert!(
            gone.is_some(),
            "left: {servers:?} {:?}",
            host_processes(self)
        );
    }
}

impl Drop for Machine {
    #[expect(
        clippy::print_stderr,
        reason = "a failed test shows what the host said"
    )]
    fn drop(&mut self) {
        if thread::panicking() && self.path("run/mcp-workbench").exists() {
            eprintln!("--- log of the host\n{}", self.log());
        }
        for pid in host_processes(self) {
            kill(pid, Signal::KILL);
        }
        for pid in survivors(&self.setup.mark) {
            kill(pid, Signal::KILL);
        }
    }
}

/// Returns the processes that are hosts of a machine.
fn host_processes(machine: &Machine) -> Vec<u32> {
    let folder = machine.path("run/mcp-workbench");
    let needle = folder.to_str().unwrap().as_bytes().to_vec();
    let pids = fs::read_dir("/proc").unwrap().flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        alive(*pid) && line.windows(needle.len()).any(|window| window == needle)
    })
    .collect()
}

fn pid(status: &Value) -> u32 {
    status["pid"].as_u64().unwrap().try_into().unwrap()
}

/// The raw parameters of `initialize`, with capabilities.
fn initialize_params(capabilities: &Value) -> String {
    json!({
        "protocolVersion": "2025-11-25",
        "capabilities": capabilities,
        "clientInfo": {"name": "it", "version": "1"},
    })
    .to_string()
}

impl Client {
    fn spawn(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stdin = child.stdin.take().unwrap();
        let stdout = child.stdout.take().unwrap();
        Self::new(child, stdin, stdout)
    }

    /// Starts a client that passes sockets, as all on Node.js do.
    fn spawn_with_sockets(mut command: Command) -> Self {
        let (stdin, its_stdin) = UnixStream::pair().unwrap();
        let (stdout, its_stdout) = UnixStream::pair().unwrap();
        let child = command
            .stdin(OwnedFd::from(its_stdin))
            .stdout(OwnedFd::from(its_stdout))
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // The command holds the sockets of the child.
        drop(command);
        Self::new(child, stdin, stdout)
    }

    fn new(
        mut child: Child,
        stdin: impl Write + Send + 'static,
        stdout: impl Read + Send + 'static,
    ) -> Self {
        let stderr = lines_of(child.stderr.take().unwrap());
        Self {
            stdin: Some(Box::new(stdin)),
            lines: lines_of(stdout),
            stderr,
            child,
            ids: 0,
        }
    }

    fn pid(&self) -> u32 {
        self.child.id()
    }

    fn send(&mut self, line: &str) {
        self.send_part(&format!("{line}\n"));
    }

    /// Writes a part of a line.
    fn send_part(&mut self, part: &str) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(part.as_bytes()).unwrap();
    }

    fn request(&mut self, method: &str, params: &str) -> String {
        self.ids += 1;
        let id = self.ids.to_string();
        self.send(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#
        ));
        id
    }

    /// Waits for the next message.
    fn next(&mut self) -> Message {
        Message::parse(self.next_line())
    }

    /// Waits for the next line. Empty lines are skipped, as clients do.
    fn next_line(&mut self) -> String {
        loop {
            let line = self.lines.recv_timeout(TIMEOUT).expect("a message");
            if !line.is_empty() {
                return line;
            }
        }
    }

    fn response(&mut self, id: &str) -> Message {
        loop {
            let message = self.next();
            if message.answers(id) {
                return message;
            }
        }
    }

    fn ask(&mut self, method: &str, params: &str) -> Message {
        let id = self.request(method, params);
        self.response(&id)
    }

    fn initialize(&mut self) -> Value {
        self.initialize_with(&json!({}))
    }

    fn initialize_with(&mut self, capabilities: &Value) -> Value {
        let result = self.ask("initialize", &initialize_params(capabilities));
        self.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        result.result()
    }

    fn send_call(&mut self, tool: &str, arguments: &str) -> String {
        self.request("tools/call", &call_params(tool, arguments))
    }

    fn call(&mut self, tool: &str, arguments: &str) -> ToolResult {
        let id = self.send_call(tool, arguments);
        ToolResult::of(&self.response(&id))
    }

    fn open(&mut self) -> ToolResult {
        self.call("open_toolbox", r#"{"toolbox":"dev"}"#)
    }

    fn send_use(&mut self, tool: &str, arguments: &str) -> String {
        let arguments = use_arguments(["dev", "fs", tool], Some(arguments));
        self.send_call("use_tool", &arguments)
    }

    /// Uses a tool of the server `fs`.
    fn use_tool(&mut self, tool: &str, arguments: &str) -> ToolResult {
        let id = self.send_use(tool, arguments);
        ToolResult::of(&self.response(&id))
    }

    /// Ends stdin and waits for the end of the process.
    fn finish(mut self) -> ExitStatus {
        self.stdin = None;
        let child = &mut self.child;
        let status = poll(TIMEOUT, || child.try_wait().unwrap());
        status.expect("the process of the client ends")
    }

    /// Waits until stderr has a text, and returns all of it.
    fn wait_stderr(&self, text: &str) -> String {
        let said = poll(TIMEOUT, || {
            Some(self.stderr()).filter(|said| said.contains(text))
        });
        said.unwrap_or_else(|| panic!("{text:?} is not in stderr: {}", self.stderr()))
    }

    /// Everything on stderr so far.
    fn stderr(&self) -> String {
        let lines: Vec<String> = self.stderr.try_iter().collect();
        lines.join("\n")
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ended = self.child.kill();
        let _ended = self.child.wait();
    }
}

/// Reads the lines of a stream in a thread of its own.
fn lines_of(stream: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, lines) = mpsc::channel();
    thread::spawn(move || {
        let mut read = BufReader::new(stream).split(b'\n');
        while let Some(Ok(line)) = read.next() {
            let line = String::from_utf8_lossy(&line).into_owned();
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    lines
}

/// The sockets in a folder.
fn sockets(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap().flatten();
    let paths = entries.map(|entry| entry.path());
    let sockets = paths.filter(|path| path.extension().is_some_and(|it| it == "sock"));
    let names = sockets.map(|path| path.file_name().unwrap().to_str().unwrap().to_owned());
    let mut sockets: Vec<String> = names.collect();
    sockets.sort();
    sockets
}
