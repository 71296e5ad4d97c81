//! `bench-sharing`: what several clients of one configuration cost, shared and alone: processes, private memory, the time to
//! the first call, and the round trip of a call.

use std::{
    collections::HashMap,
    error::Error,
    fs,
    io::{self, BufRead, BufReader, Write},
    os::{fd::OwnedFd, unix::net::UnixStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use bench::stats::percentile;
use clap::Parser;
use serde_json::{Value, json};

/// The number of clients in each row.
const CLIENTS: [usize; 3] = [1, 4, 16];
/// How often a start and an attach are timed.
const STARTS: usize = 41;
/// The round trips of one block; the clients take turns, block by block.
const BLOCK: usize = 100;
const BLOCKS: usize = 300;

/// Measures clients that share servers beside clients that do not
#[derive(Parser)]
struct Arguments {
    /// The workbench, if not the one in the folder of this program
    #[arg(long, value_name = "PROGRAM")]
    workbench: Option<PathBuf>,
    /// The servers of the toolbox: an object as in `mcpServers`. Each is opened; the first tool of the first is not called
    #[arg(long, value_name = "FILE", required_unless_present = "round_trips")]
    servers: Option<PathBuf>,
    /// Measure the round trips of a small call instead
    #[arg(long, conflicts_with = "servers")]
    round_trips: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Alone,
    Shared,
}

impl Mode {
    fn option(self) -> &'static str {
        match self {
            Self::Alone => "--alone",
            Self::Shared => "--shared",
        }
    }
}

/// What stdin and stdout of a workbench are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Streams {
    Pipes,
    /// As of clients on Node.js.
    Sockets,
}

impl Streams {
    /// Returns two ends: the first writes to the second.
    fn pair(self) -> io::Result<(OwnedFd, OwnedFd)> {
        match self {
            Self::Pipes => io::pipe().map(|(reader, writer)| (writer.into(), reader.into())),
            Self::Sockets => UnixStream::pair().map(|(one, other)| (one.into(), other.into())),
        }
    }
}

/// A client and its workbench.
struct Client {
    child: Child,
    stdin: fs::File,
    stdout: BufReader<fs::File>,
    ids: u64,
    line: Vec<u8>,
}

/// The folder of a run.
struct World {
    folder: tempfile::TempDir,
    workbench: PathBuf,
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse();
    let own = std::env::current_exe()?;
    let folder = own.parent().ok_or("a folder")?;
    let workbench = arguments
        .workbench
        .unwrap_or_else(|| folder.join("mcp-workbench"));
    let echo = json!({"echo": {"command": folder.join("bench-echo"), "cwd": "/"}});
    match &arguments.servers {
        Some(file) => {
            let servers = serde_json::from_str(&fs::read_to_string(file)?)?;
            print_clients(&workbench, &servers)?;
            print_starts(&World::new(&workbench, &echo)?)
        }
        None => print_round_trips(&workbench, &echo),
    }
}

fn print_clients(workbench: &Path, servers: &Value) -> Result<(), Box<dyn Error>> {
    let count = servers.as_object().map_or(0, serde_json::Map::len);
    let mut out = io::stdout();
    writeln!(
        out,
        "| clients × {count} servers | processes | private memory, MB | first call of the last client, ms |\n| --- | --- | --- | --- |"
    )?;
    for clients in CLIENTS {
        for mode in [Mode::Alone, Mode::Shared] {
            let row = World::new(workbench, servers)?.fill(clients, mode)?;
            writeln!(out, "| {clients}, {mode:?} | {row}")?;
        }
    }
    Ok(())
}

fn print_starts(world: &World) -> Result<(), Box<dyn Error>> {
    let [alone, shared] = world.starts()?;
    writeln!(
        io::stdout(),
        "\n| | alone | shared | ratio |\n| --- | --- | --- | --- |\n\
         | start to the answer of `initialize`, ms | {alone:.2} | {shared:.2} | {:.2} |",
        shared / alone
    )?;
    Ok(())
}

fn print_round_trips(workbench: &Path, echo: &Value) -> Result<(), Box<dyn Error>> {
    let mut out = io::stdout();
    writeln!(
        out,
        "| round trip, µs | alone | shared | ratio |\n| --- | --- | --- | --- |"
    )?;
    for streams in [Streams::Pipes, Streams::Sockets] {
        let (world, elsewhere) = (World::new(workbench, echo)?, World::new(workbench, echo)?);
        let [alone, shared, across] = world.round_trips(&elsewhere, streams)?;
        for (what, shared) in [("", shared), (", host in another session", across)] {
            writeln!(
                out,
                "| {streams:?}{what} | {alone:.2} | {shared:.2} | {:.3} |",
                shared / alone
            )?;
        }
    }
    Ok(())
}

impl World {
    fn new(workbench: &Path, servers: &Value) -> Result<Self, Box<dyn Error>> {
        let folder = tempfile::tempdir()?;
        fs::create_dir(folder.path().join("run"))?;
        let toolbox = json!({"description": "d", "mcpServers": servers});
        let config = json!({"pin": "off", "toolboxes": {"dev": toolbox}});
        fs::write(folder.path().join("config.json"), config.to_string())?;
        Ok(Self {
            folder,
            workbench: workbench.into(),
        })
    }

    fn command(&self) -> Command {
        self.prepared(Command::new(&self.workbench))
    }

    fn prepared(&self, mut command: Command) -> Command {
        command
            .arg("--config")
            .arg(self.folder.path().join("config.json"))
            .args(["--log-level", "off"])
            .env("HOME", self.folder.path())
            .env("XDG_CACHE_HOME", self.folder.path().join("cache"))
            .env("XDG_STATE_HOME", self.folder.path().join("state"))
            .env("XDG_RUNTIME_DIR", self.folder.path().join("run"))
            .current_dir(self.folder.path())
            .stderr(Stdio::null());
        command
    }

    fn start(&self, mode: Mode, streams: Streams) -> Result<Client, Box<dyn Error>> {
        Self::connect(self.command(), mode, streams)
    }

    /// Starts a client in a session of its own.
    fn start_in_session(&self, mode: Mode) -> Result<Client, Box<dyn Error>> {
        let mut command = Command::new("setsid");
        command.arg(&self.workbench);
        Self::connect(self.prepared(command), mode, Streams::Pipes)
    }

    fn connect(
        mut command: Command,
        mode: Mode,
        streams: Streams,
    ) -> Result<Client, Box<dyn Error>> {
        let (to_it, stdin) = streams.pair()?;
        let (stdout, from_it) = streams.pair()?;
        let child = command
            .args(["serve", mode.option()])
            .stdin(stdin)
            .stdout(stdout)
            .spawn()?;
        // The command has our ends of its streams, without which they would never end.
        drop(command);
        let mut client = Client {
            child,
            stdin: to_it.into(),
            stdout: BufReader::new(from_it.into()),
            ids: 0,
            line: Vec::new(),
        };
        client.ask(
            "initialize",
            &json!({"protocolVersion": "2025-11-25", "capabilities": {},
                "clientInfo": {"name": "bench", "version": "1"}})
            .to_string(),
        )?;
        Ok(client)
    }

    /// Starts so many clients, one after the other, and measures them together.
    fn fill(&self, count: usize, mode: Mode) -> Result<String, Box<dyn Error>> {
        let mut clients = Vec::new();
        let mut last = Duration::ZERO;
        for _ in 0..count {
            let began = Instant::now();
            let mut client = self.start(mode, Streams::Pipes)?;
            client.call("open_toolbox", &json!({"toolbox": "dev"}))?;
            last = began.elapsed();
            clients.push(client);
        }
        let (processes, private) = measure(self.folder.path());
        let row = format!(
            "{processes} | {} | {:.0} |",
            private / 1_000_000,
            last.as_secs_f64() * 1e3
        );
        self.end(clients)?;
        Ok(row)
    }

    fn end(&self, clients: Vec<Client>) -> Result<(), Box<dyn Error>> {
        for client in clients {
            let Client {
                mut child, stdin, ..
            } = client;
            drop(stdin);
            child.wait()?;
        }
        self.command().arg("stop").stdout(Stdio::null()).status()?;
        Ok(())
    }

    /// Returns the median times from the start of a process to the answer of `initialize`, alone and with a running host.
    fn starts(&self) -> Result<[f64; 2], Box<dyn Error>> {
        let holder = self.start(Mode::Shared, Streams::Pipes)?;
        let mut times = [Vec::new(), Vec::new()];
        // In turn, so that a change of the machine's speed meets both.
        for _ in 0..STARTS {
            for (mode, times) in [Mode::Alone, Mode::Shared].into_iter().zip(&mut times) {
                let began = Instant::now();
                let mut client = self.start(mode, Streams::Pipes)?;
                times.push(began.elapsed().as_secs_f64() * 1e3);
                let _ = client.child.kill();
                client.child.wait()?;
            }
        }
        self.end(vec![holder])?;
        Ok(times.map(|times| percentile(&times, 0.5).unwrap_or_default()))
    }

    /// Returns the round trips of a small call, as the median of the medians of blocks that take turns: alone, shared, and shared
    /// with a host in another session, as a client in a terminal starts it. Linux schedules sessions as groups, which costs time
    /// whenever two of them talk.
    fn round_trips(&self, elsewhere: &Self, streams: Streams) -> Result<[f64; 3], Box<dyn Error>> {
        let holder = elsewhere.start_in_session(Mode::Shared)?;
        let mut clients = [
            self.start(Mode::Alone, streams)?,
            self.start(Mode::Shared, streams)?,
            elsewhere.start(Mode::Shared, streams)?,
        ];
        let arguments = json!({
            "tool": {"toolbox": "dev", "server": "echo", "tool": "echo_0"}, "arguments": {"bytes": 10}});
        for client in &mut clients {
            client.call("open_toolbox", &json!({"toolbox": "dev"}))?;
            client.call("use_tool", &arguments)?;
        }
        let call = json!({"name": "use_tool", "arguments": arguments}).to_string();
        let mut medians = [const { Vec::new() }; 3];
        for _ in 0..BLOCKS {
            for (client, medians) in clients.iter_mut().zip(&mut medians) {
                let mut times = Vec::with_capacity(BLOCK);
                for _ in 0..BLOCK {
                    let began = Instant::now();
                    client.ask("tools/call", &call)?;
                    times.push(began.elapsed().as_secs_f64() * 1e6);
                }
                medians.push(percentile(&times, 0.5).unwrap_or_default());
            }
        }
        self.end(clients.into())?;
        elsewhere.end(vec![holder])?;
        Ok(medians.map(|medians| percentile(&medians, 0.5).unwrap_or_default()))
    }
}

impl Client {
    /// Sends a request and waits for the answer, which it returns.
    fn ask(&mut self, method: &str, params: &str) -> Result<&[u8], Box<dyn Error>> {
        self.ids += 1;
        let id = self.ids;
        let request =
            format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#);
        self.stdin.write_all((request + "\n").as_bytes())?;
        let head = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},");
        loop {
            self.line.clear();
            if self.stdout.read_until(b'\n', &mut self.line)? == 0 {
                return Err("the workbench has ended".into());
            }
            if self.line.starts_with(head.as_bytes()) {
                return Ok(&self.line);
            }
        }
    }

    fn call(&mut self, tool: &str, arguments: &Value) -> Result<(), Box<dyn Error>> {
        let params = json!({"name": tool, "arguments": arguments});
        let answer = self.ask("tools/call", &params.to_string())?;
        let answer = String::from_utf8_lossy(answer);
        if answer.contains("\"isError\":true") {
            return Err(answer.into());
        }
        Ok(())
    }
}

/// Returns the number and the private memory of the processes that have a folder in their environment.
fn measure(folder: &Path) -> (usize, u64) {
    let needle = folder.to_string_lossy().into_owned();
    let mut private = HashMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.parse::<u32>().is_err() {
            continue;
        }
        let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let text =
            String::from_utf8_lossy(&environment).into_owned() + &String::from_utf8_lossy(&line);
        if text.contains(&needle) {
            private.insert(name, private_bytes(&entry.path()));
        }
    }
    (private.len(), private.values().sum())
}

fn private_bytes(process: &Path) -> u64 {
    let rollup = fs::read_to_string(process.join("smaps_rollup")).unwrap_or_default();
    let lines = rollup.lines().filter(|line| line.starts_with("Private_"));
    let sizes = lines.filter_map(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
    sizes.sum::<u64>() * 1024
}
