//! `bench-sharing`: what several clients of one configuration cost, shared and alone: processes, private memory, the time to
//! the first call, and the round trip of a call.

use std::{
    collections::HashMap,
    error::Error,
    fs,
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};

use bench::stats::percentile;
use clap::Parser;
use serde_json::{Value, json};

/// The number of clients in each row.
const CLIENTS: [usize; 3] = [1, 4, 16];
/// How often a start and an attach are timed.
const STARTS: usize = 41;
/// The round trips of one block; blocks of both kinds take turns.
const BLOCK: usize = 400;
const BLOCKS: usize = 25;

/// Measures clients that share servers beside clients that do not
#[derive(Parser)]
struct Arguments {
    /// The workbench, if not the one in the folder of this program
    #[arg(long, value_name = "PROGRAM")]
    workbench: Option<PathBuf>,
    /// The servers of the toolbox: an object as in `mcpServers`. Each is opened; the first tool of the first is not called
    #[arg(long, value_name = "FILE")]
    servers: PathBuf,
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

/// A client and its workbench.
struct Client {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    ids: u64,
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
    let servers: Value = serde_json::from_str(&fs::read_to_string(&arguments.servers)?)?;
    let count = servers.as_object().map_or(0, serde_json::Map::len);
    let mut out = std::io::stdout();
    writeln!(
        out,
        "| clients × {count} servers | processes | private memory, MB | first call of the last client, ms |\n| --- | --- | --- | --- |"
    )?;
    for clients in CLIENTS {
        for mode in [Mode::Alone, Mode::Shared] {
            let world = World::new(&workbench, &servers)?;
            let row = world.fill(clients, mode)?;
            writeln!(out, "| {clients}, {mode:?} | {row}")?;
        }
    }
    let echo = json!({"echo": {"command": folder.join("bench-echo"), "cwd": "/"}});
    let world = World::new(&workbench, &echo)?;
    let starts = world.starts()?;
    writeln!(
        out,
        "\n| | alone | shared | ratio |\n| --- | --- | --- | --- |"
    )?;
    let [alone, shared] = starts;
    writeln!(
        out,
        "| start to the answer of `initialize`, ms | {alone:.2} | {shared:.2} | {:.2} |",
        shared / alone
    )?;
    let elsewhere = World::new(&workbench, &echo)?;
    let [alone, shared, across] = world.round_trips(&elsewhere)?;
    for (what, shared) in [("", shared), (", host in another session", across)] {
        writeln!(
            out,
            "| round trip p50{what}, µs | {alone:.1} | {shared:.1} | {:.3} |",
            shared / alone
        )?;
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

    fn start(&self, mode: Mode) -> Result<Client, Box<dyn Error>> {
        Self::connect(self.command(), mode)
    }

    /// Starts a client in a session of its own.
    fn start_in_session(&self, mode: Mode) -> Result<Client, Box<dyn Error>> {
        let mut command = Command::new("setsid");
        command.arg(&self.workbench);
        Self::connect(self.prepared(command), mode)
    }

    fn connect(mut command: Command, mode: Mode) -> Result<Client, Box<dyn Error>> {
        let mut child = command
            .args(["serve", mode.option()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let stdin = child.stdin.take().ok_or("stdin")?;
        let stdout = BufReader::new(child.stdout.take().ok_or("stdout")?);
        let mut client = Client {
            child,
            stdin,
            stdout,
            ids: 0,
        };
        client.ask(
            "initialize",
            &json!({"protocolVersion": "2025-11-25", "capabilities": {},
                "clientInfo": {"name": "bench", "version": "1"}}),
        )?;
        Ok(client)
    }

    /// Starts so many clients, one after the other, and measures them together.
    fn fill(&self, count: usize, mode: Mode) -> Result<String, Box<dyn Error>> {
        let mut clients = Vec::new();
        let mut last = Duration::ZERO;
        for _ in 0..count {
            let began = Instant::now();
            let mut client = self.start(mode)?;
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
        let holder = self.start(Mode::Shared)?;
        let mut times = [Vec::new(), Vec::new()];
        // In turn, so that a change of the machine's speed meets both.
        for _ in 0..STARTS {
            for (mode, times) in [Mode::Alone, Mode::Shared].into_iter().zip(&mut times) {
                let began = Instant::now();
                let mut client = self.start(mode)?;
                times.push(began.elapsed().as_secs_f64() * 1e3);
                let _ = client.child.kill();
                client.child.wait()?;
            }
        }
        self.end(vec![holder])?;
        Ok(times.map(|times| percentile(&times, 0.5).unwrap_or_default()))
    }

    /// Returns the median round trips of a small call in blocks that take turns: alone, shared, and shared with a host in another
    /// session, as a client in a terminal starts it. Linux schedules sessions as groups, which costs time whenever two of them
    /// talk.
    fn round_trips(&self, elsewhere: &Self) -> Result<[f64; 3], Box<dyn Error>> {
        let holder = elsewhere.start_in_session(Mode::Shared)?;
        let mut clients = [
            self.start(Mode::Alone)?,
            self.start(Mode::Shared)?,
            elsewhere.start(Mode::Shared)?,
        ];
        for client in &mut clients {
            client.call("open_toolbox", &json!({"toolbox": "dev"}))?;
        }
        let call = json!({"tool": {"toolbox": "dev", "server": "echo", "tool": "echo_0"}, "arguments": {"bytes": 10}});
        let mut times = [const { Vec::new() }; 3];
        for _ in 0..BLOCKS {
            for (client, times) in clients.iter_mut().zip(&mut times) {
                for _ in 0..BLOCK {
                    let began = Instant::now();
                    client.call("use_tool", &call)?;
                    times.push(began.elapsed().as_secs_f64() * 1e6);
                }
            }
        }
        self.end(clients.into())?;
        elsewhere.end(vec![holder])?;
        Ok(times.map(|times| percentile(&times, 0.5).unwrap_or_default()))
    }
}

impl Client {
    fn ask(&mut self, method: &str, params: &Value) -> Result<String, Box<dyn Error>> {
        self.ids += 1;
        let request = json!({"jsonrpc": "2.0", "id": self.ids, "method": method, "params": params});
        self.stdin.write_all(format!("{request}\n").as_bytes())?;
        let head = format!("{{\"jsonrpc\":\"2.0\",\"id\":{},", self.ids);
        loop {
            let mut line = String::new();
            if self.stdout.read_line(&mut line)? == 0 {
                return Err("the workbench has ended".into());
            }
            if line.starts_with(&head) {
                return Ok(line);
            }
        }
    }

    fn call(&mut self, tool: &str, arguments: &Value) -> Result<(), Box<dyn Error>> {
        let answer = self.ask("tools/call", &json!({"name": tool, "arguments": arguments}))?;
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
