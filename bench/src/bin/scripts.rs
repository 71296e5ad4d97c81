//! `bench-scripts`: what code mode costs. It measures a run on a waiting worker beside a plain call, a call inside a run, many
//! calls at once and the memory of idle workers. It needs `mcp-workbench`, `bench-echo` and `fixture-server` beside it.

use std::{
    error::Error,
    fs,
    io::{self, BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};

use serde_json::json;

/// How often everything is measured.
const ROUNDS: usize = 300;
/// The number of calls in a run that is compared with plain calls.
const CALLS: usize = 90;
/// The number of calls at once, over two servers: one server gets 64 at a time.
const AT_ONCE: usize = 100;
const PLAIN: &str = r#"{"tool":{"toolbox":"t","server":"echo","tool":"echo_0"},"arguments":{}}"#;

/// A workbench and its client.
struct Workbench {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    id: u64,
}

impl Workbench {
    fn start(program: &Path, config: &Path) -> io::Result<Self> {
        let mut child = Command::new(program)
            .args(["--log-level", "error", "--config"])
            .arg(config)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let missing = || io::Error::from(io::ErrorKind::BrokenPipe);
        let stdin = child.stdin.take().ok_or_else(missing)?;
        let stdout = BufReader::new(child.stdout.take().ok_or_else(missing)?);
        Ok(Self {
            child,
            stdin,
            stdout,
            id: 0,
        })
    }

    /// Sends a request and waits for its answer.
    fn ask(&mut self, method: &str, params: &str) -> io::Result<String> {
        self.id += 1;
        let id = self.id;
        let line =
            format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#);
        writeln!(self.stdin, "{line}")?;
        let mut answer = String::new();
        self.stdout.read_line(&mut answer)?;
        Ok(answer)
    }

    fn call(&mut self, tool: &str, arguments: &str) -> io::Result<Duration> {
        let params = format!(r#"{{"name":"{tool}","arguments":{arguments}}}"#);
        let began = Instant::now();
        let answer = self.ask("tools/call", &params)?;
        let took = began.elapsed();
        if answer.contains(r#""isError":true"#) || !answer.contains(r#""result""#) {
            return Err(io::Error::other(answer));
        }
        Ok(took)
    }

    fn run(&mut self, code: &str) -> io::Result<Duration> {
        self.call("run_code", &json!({ "code": code }).to_string())
    }

    /// Returns the private memory of the workers in kB.
    fn workers(&self) -> io::Result<Vec<u64>> {
        let parent = format!("PPid:\t{}\n", self.child.id());
        let mut found = Vec::new();
        for entry in fs::read_dir("/proc")? {
            let folder = entry?.path();
            let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap_or_default();
            if read("status").contains(&parent) && read("cmdline").contains("run-script-worker") {
                found.push(private_kilobytes(&read("smaps_rollup")));
            }
        }
        Ok(found)
    }
}

/// Returns the private memory in the text of `smaps_rollup`.
fn private_kilobytes(text: &str) -> u64 {
    let lines = text.lines().filter(|line| line.starts_with("Private_"));
    let numbers = lines.filter_map(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
    numbers.sum()
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64() * 1e6
}

/// The medians of what is compared, in microseconds.
struct Medians {
    plain: f64,
    plain_many: f64,
    empty: f64,
    one: f64,
    many: f64,
}

fn loop_of(calls: usize) -> String {
    format!("for (let i = 0; i < {calls}; i++) await tools.echo.echo_0({{}}); return 1")
}

/// The pool is refilled after a run; a model does not write scripts faster than that either.
fn pause() {
    std::thread::park_timeout(Duration::from_millis(10));
}

fn compare(workbench: &mut Workbench) -> io::Result<Medians> {
    let (mut plain, mut plain_many) = (vec![], vec![]);
    let (mut empty, mut one, mut many) = (vec![], vec![], vec![]);
    for _ in 0..ROUNDS {
        plain.push(workbench.call("use_tool", PLAIN)?);
        pause();
        let began = Instant::now();
        // One call more, so that the difference from a single call is the cost of `CALLS` of them.
        for _ in 0..=CALLS {
            workbench.call("use_tool", PLAIN)?;
        }
        plain_many.push(began.elapsed());
        pause();
        empty.push(workbench.run("return 1")?);
        pause();
        one.push(workbench.run(&loop_of(1))?);
        pause();
        many.push(workbench.run(&loop_of(CALLS + 1))?);
        pause();
    }
    Ok(Medians {
        plain: median(plain),
        plain_many: median(plain_many),
        empty: median(empty),
        one: median(one),
        many: median(many),
    })
}

/// Returns the median time of many calls at once, in microseconds.
fn at_once(workbench: &mut Workbench) -> io::Result<f64> {
    let parallel = format!(
        "await Promise.all(Array.from({{length: {AT_ONCE}}}, (_, i) => tools['s' + (i % 2 + 1)].sleep({{ms: 50}}))); return 1"
    );
    let mut times = vec![];
    for _ in 0..15 {
        times.push(workbench.run(&parallel)?);
        pause();
    }
    Ok(median(times))
}

/// Writes a configuration with an echo server and two servers that sleep. Returns its file.
fn write_config(folder: &Path, beside: impl Fn(&str) -> PathBuf) -> io::Result<PathBuf> {
    let script = folder.join("sleep.json");
    fs::write(
        &script,
        r#"{"tools":[{"name":"sleep","inputSchema":{"type":"object"}}]}"#,
    )?;
    let sleeper = json!({ "command": beside("fixture-server"), "args": [script] });
    let config = json!({
        "metaTools": ["open_toolbox", "use_tool", "run_code"],
        "toolboxes": { "t": { "description": "t", "mcpServers": {
            "echo": { "command": beside("bench-echo") }, "s1": sleeper, "s2": sleeper,
        } } },
    });
    let file = folder.join("config.json");
    fs::write(&file, config.to_string())?;
    Ok(file)
}

fn main() -> Result<(), Box<dyn Error>> {
    let own = std::env::current_exe()?;
    let beside = |name: &str| own.with_file_name(name);
    let folder = tempfile::tempdir()?;
    let config = write_config(folder.path(), beside)?;
    let mut workbench = Workbench::start(&beside("mcp-workbench"), &config)?;
    workbench.ask("initialize", bench::session::INITIALIZE)?;
    workbench.ask("tools/list", "{}")?;
    workbench.call("open_toolbox", r#"{"toolbox":"t"}"#)?;
    let medians = compare(&mut workbench)?;
    let at_once = at_once(&mut workbench)?;
    pause();
    let workers = workbench.workers()?;
    #[expect(clippy::cast_precision_loss, reason = "a small number")]
    let each = |many: f64, one: f64| ((many - one) / CALLS as f64 * 10.0).round() / 10.0;
    let table = json!({
        "plain use_tool, us": medians.plain.round(),
        "further plain use_tool, us": each(medians.plain_many, medians.plain),
        "run_code that returns 1, us": medians.empty.round(),
        "run_code with one call, us": medians.one.round(),
        "further call inside a run, us": each(medians.many, medians.one),
        "100 calls of 50 ms at once, ms": (at_once / 100.0).round() / 10.0,
        "private memory of idle workers, kB": workers,
    });
    writeln!(io::stdout(), "{}", serde_json::to_string_pretty(&table)?)?;
    drop(workbench.stdin);
    workbench.child.wait()?;
    Ok(())
}
