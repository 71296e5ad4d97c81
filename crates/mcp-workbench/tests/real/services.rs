//! Redis and `HAProxy` as processes of a test, on loopback. `./scripts/test` provides the programs where it can.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{fmt, fs, thread};

use pretty_assertions::assert_eq;
use serde_json::json;
use tempfile::TempDir;

use crate::process::{LIMIT, Process};
use crate::workbench::ConfigFile;

/// A Redis without persistence; it ends with the value.
pub(crate) struct Redis {
    program: PathBuf,
    address: String,
    // Its working folder.
    folder: TempDir,
    child: Option<Child>,
}

/// A `HAProxy` in front of HTTP servers, without stickiness; it ends with the value.
pub(crate) struct Haproxy {
    address: String,
    // Kept for its configuration.
    _folder: TempDir,
    child: Child,
}

/// Starts Redis on a free port. Without the program, says how to install it and returns nothing.
pub(crate) fn redis() -> Option<Redis> {
    let mut redis = Redis {
        program: program("redis-server", "redis-server")?,
        address: free_address(),
        folder: tempfile::tempdir().unwrap(),
        child: None,
    };
    redis.start();
    Some(redis)
}

/// Starts `HAProxy` on a free port in front of these addresses. Without the program, says how to install it and returns
/// nothing.
pub(crate) fn haproxy(servers: &[String]) -> Option<Haproxy> {
    haproxy_at(&free_address(), servers)
}

/// Starts `HAProxy` at an address that clients have to know before.
pub(crate) fn haproxy_at(address: &str, servers: &[String]) -> Option<Haproxy> {
    let program = program("haproxy", "haproxy")?;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("haproxy.cfg");
    fs::write(&file, balanced(address, servers)).unwrap();
    let mut command = Command::new(program);
    command.args(["-db", "-q", "-f"]).arg(&file);
    let child = spawn(command);
    wait_for("HAProxy", || TcpStream::connect(address).ok());
    Some(Haproxy {
        address: address.to_owned(),
        _folder: folder,
        child,
    })
}

impl Redis {
    /// Returns the address as a value of `"store"`.
    pub(crate) fn url(&self) -> String {
        format!("redis://{}", self.address)
    }

    /// Starts the process again, on the same port and without data.
    pub(crate) fn start(&mut self) {
        let port = self.address.rsplit(':').next().unwrap();
        let mut command = Command::new(&self.program);
        command
            .args(["--bind", "127.0.0.1", "--port", port])
            .args(["--save", "", "--appendonly", "no"])
            .current_dir(self.folder.path());
        self.child = Some(spawn(command));
        wait_for("Redis", || {
            (self.command("PING").ok()? == "+PONG").then_some(())
        });
    }

    pub(crate) fn stop(&mut self) {
        if let Some(mut child) = self.child.take() {
            end(&mut child);
        }
    }

    /// Sends a command and returns the first line of the reply.
    pub(crate) fn command(&self, words: &str) -> std::io::Result<String> {
        let mut stream = TcpStream::connect(&self.address)?;
        stream.set_read_timeout(Some(LIMIT))?;
        stream.write_all(format!("{words}\r\nQUIT\r\n").as_bytes())?;
        let mut reply = String::new();
        stream.read_to_string(&mut reply)?;
        Ok(reply.lines().next().unwrap_or_default().to_owned())
    }
}

impl Haproxy {
    pub(crate) fn address(&self) -> &str {
        &self.address
    }
}

impl fmt::Debug for Redis {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.url())
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Drop for Haproxy {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}

/// Returns an address that nothing listens at.
pub(crate) fn free_address() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().to_string()
}

/// Returns a program of the system, or the one that `./scripts/test-services` has unpacked. Without it, says how to
/// install its package, past the capture of what tests print.
pub(crate) fn program(name: &str, package: &str) -> Option<PathBuf> {
    let unpacked = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/test-services/bin");
    // Distributions have servers where a user's PATH may not lead.
    let search = format!(
        "PATH=$PATH:/usr/sbin:{} command -v {name}",
        unpacked.display()
    );
    let output = Command::new("sh").args(["-c", &search]).output().unwrap();
    let path = String::from_utf8(output.stdout).unwrap();
    let found = output.status.success().then(|| path.trim_end().into());
    if found.is_none() {
        let words = format!("NOT TESTED, because there is no {name}: apt-get install {package}\n");
        std::io::stderr().write_all(words.as_bytes()).unwrap();
    }
    found
}

/// Returns the configuration of packaging/compose for these servers at this address.
fn balanced(address: &str, servers: &[String]) -> String {
    let text = include_str!("../../../../packaging/compose/haproxy.cfg");
    let mut lines = Vec::new();
    for line in text.lines() {
        let changed = line
            .replace("bind :8080", &format!("bind {address}"))
            .replace("Host localhost:8080", "Host localhost")
            .replace("inter 1s", "inter 200ms");
        if line.contains("server-template") {
            let servers = servers.iter().enumerate();
            lines.extend(servers.map(|(index, it)| format!("  server replica{index} {it}")));
        } else {
            lines.push(changed);
        }
    }
    lines.join("\n") + "\n"
}

/// Returns the status of a GET request.
pub(crate) fn get(address: &str, host: &str, path: &str) -> u16 {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    let status = response.split(' ').nth(1).unwrap_or_default();
    status.parse().unwrap_or_default()
}

fn spawn(mut command: Command) -> Child {
    let name = format!("{command:?}");
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap_or_else(|error| panic!("cannot start {name}: {error}"))
}

fn end(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}

pub(crate) fn wait_for<T>(what: &str, is_there: impl Fn() -> Option<T>) {
    let deadline = Instant::now() + LIMIT;
    while is_there().is_none() {
        assert!(Instant::now() < deadline, "{what} does not answer");
        thread::park_timeout(Duration::from_millis(20));
    }
}

#[test]
fn redis_starts_again_at_the_same_address() {
    let Some(mut redis) = redis() else { return };
    assert_eq!(redis.command("SET key value").unwrap(), "+OK");
    assert_eq!(redis.command("STRLEN key").unwrap(), ":5");
    redis.stop();
    redis.command("PING").unwrap_err();
    redis.start();
    assert_eq!(redis.command("EXISTS key").unwrap(), ":0", "{redis:?}");
}

#[test]
fn haproxy_sends_requests_to_the_workbench_that_is_left() {
    let config = ConfigFile::new(&json!({"toolboxes": {}}));
    let start = || {
        let address = free_address();
        let mut command = config.command();
        command.args(["serve", "--http", &address, "--no-auth"]);
        command.args(["--allow-host", "localhost"]);
        let process = Process::start(command);
        wait_for("the workbench", || TcpStream::connect(&address).ok());
        (address, process)
    };
    let (first, process) = start();
    let (second, _second) = start();
    let Some(haproxy) = haproxy(&[first, second]) else {
        return;
    };
    let healthy = || get(haproxy.address(), "localhost", "/healthz") == 200;
    assert!((0..4).all(|_| healthy()));
    drop(process);
    assert!((0..4).all(|_| healthy()));
}
