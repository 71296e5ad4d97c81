//! The parts of a team on this machine: the store, the balancer, the identity provider, the replicas, and the directory with their
//! files.

use std::{
    fs::{self, File},
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use tempfile::TempDir;

use super::{TeamError, TeamOptions};
use crate::waiting::poll_until;

pub(super) const REPLICAS: usize = 3;
pub(super) const USERS: usize = 6;
/// The key of all replicas.
const SEAL_KEY: &str = "the key of the ledger, which is long enough";
/// The token of load that needs no user.
pub(super) const TOKEN: &str = "the-token-of-the-ledger";
/// How long a part may take to start.
const UP_WITHIN: Duration = Duration::from_secs(30);
/// How long a replica may take to end after SIGTERM.
const END_WITHIN: Duration = Duration::from_secs(30);
const DRAIN_SECONDS: &str = "15";

/// The parts of a team.
pub(super) struct Place {
    directory: TempDir,
    options: TeamOptions,
    balancer: String,
    redis: Service,
    /// `None` for load that needs no users.
    issuer: Option<Issuer>,
    replicas: Vec<Service>,
    haproxy: Option<Service>,
}

/// The identity provider.
struct Issuer {
    url: String,
    _process: Running,
}

/// A program that can be started again at its address.
pub(super) struct Service {
    name: String,
    pub(super) address: String,
    program: PathBuf,
    arguments: Vec<String>,
    folder: PathBuf,
    process: Option<Running>,
}

/// A process that ends with the value.
pub(super) struct Running(pub(super) Child);

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

impl Place {
    /// Creates the directory, and starts the store and the identity provider.
    pub(super) fn new(options: &TeamOptions) -> Result<Self, TeamError> {
        let mut place = Self::without_users(options)?;
        let resource = place.resource();
        let mut command = place.node("crates/mcp-workbench/tests/real/servers/issuer.mjs")?;
        command.args(["jwt", &resource]).args((0..USERS).map(name));
        command.stdout(Stdio::piped());
        let mut process = spawn("the identity provider", &mut command)?;
        let stdout = process.0.stdout.take().expect("stdout is a pipe");
        let mut url = String::new();
        BufReader::new(stdout).read_line(&mut url)?;
        place.issuer = Some(Issuer {
            url: url.trim().to_owned(),
            _process: process,
        });
        Ok(place)
    }

    /// Creates the directory, and starts the store.
    pub(super) fn without_users(options: &TeamOptions) -> Result<Self, TeamError> {
        let directory = TempDir::with_prefix("ledger-team-")?;
        File::create(directory.path().join("executions"))?;
        let address = free_address()?;
        let port = address.rsplit(':').next().unwrap_or_default();
        // Nothing is written to disk, so a restart loses everything.
        let arguments = ["--bind", "127.0.0.1", "--port", port, "--save", ""];
        let mut redis = Service {
            name: "redis".to_owned(),
            program: find("redis-server", "redis-server", &options.root)?,
            arguments: arguments.map(str::to_owned).to_vec(),
            folder: directory.path().to_owned(),
            address,
            process: None,
        };
        redis.start()?;
        Ok(Self {
            directory,
            options: options.clone(),
            balancer: free_address()?,
            redis,
            issuer: None,
            replicas: Vec::new(),
            haproxy: None,
        })
    }

    /// Returns the address for clients.
    pub(super) fn resource(&self) -> String {
        format!("http://{}/mcp", self.balancer)
    }

    pub(super) fn balancer(&self) -> &str {
        &self.balancer
    }

    pub(super) fn redis(&mut self) -> &mut Service {
        &mut self.redis
    }

    pub(super) fn replica(&mut self, index: usize) -> &mut Service {
        &mut self.replicas[index]
    }

    pub(super) fn start_replicas(&mut self) -> Result<(), TeamError> {
        self.start_some(REPLICAS)
    }

    pub(super) fn start_some(&mut self, replicas: usize) -> Result<(), TeamError> {
        let config = self.directory.path().join("workbench.json");
        fs::write(&config, self.config())?;
        for index in 0..replicas {
            let address = free_address()?;
            let arguments = [
                "--config",
                &config.to_string_lossy(),
                "serve",
                "--http",
                &address,
                "--allow-host",
                &self.balancer,
                "--allow-host",
                "localhost",
                "--drain-timeout",
                DRAIN_SECONDS,
            ]
            .map(str::to_owned);
            let mut replica = Service {
                name: format!("replica{index}"),
                program: self.options.workbench.clone(),
                arguments: arguments.to_vec(),
                folder: self.directory.path().to_owned(),
                address,
                process: None,
            };
            replica.start()?;
            self.replicas.push(replica);
        }
        Ok(())
    }

    /// Starts the balancer in front of the replicas, with a pause between its checks.
    pub(super) fn start_balancer(&mut self, pause: &str) -> Result<(), TeamError> {
        let shipped = self.options.root.join("packaging/compose/haproxy.cfg");
        let shipped = fs::read_to_string(shipped)?;
        let mut lines = Vec::new();
        for line in shipped.lines() {
            // The shipped file finds its replicas by name. Here they are listed.
            if line.contains("server-template") {
                let replicas = self.replicas.iter();
                lines.extend(replicas.map(|it| format!("  server {} {}", it.name, it.address)));
            } else {
                let line = line.replace("bind :8080", &format!("bind {}", self.balancer));
                let line = line.replace("Host localhost:8080", "Host localhost");
                lines.push(line.replace("inter 1s", &format!("inter {pause}")));
            }
        }
        let file = self.directory.path().join("haproxy.cfg");
        fs::write(&file, lines.join("\n") + "\n")?;
        let file = file.to_string_lossy();
        let mut haproxy = Service {
            name: "haproxy".to_owned(),
            program: find("haproxy", "haproxy", &self.options.root)?,
            arguments: ["-db", "-q", "-f", &file].map(str::to_owned).to_vec(),
            folder: self.directory.path().to_owned(),
            address: self.balancer.clone(),
            process: None,
        };
        haproxy.start()?;
        let deadline = Instant::now() + UP_WITHIN;
        let ready = || (get(&self.balancer, "/ready") == Some(200)).then_some(());
        poll_until(deadline, ready).ok_or_else(|| TeamError::NotUp("a replica".to_owned()))?;
        self.haproxy = Some(haproxy);
        Ok(())
    }

    /// Returns the command that runs a script with Node.js and the packages of the tests.
    pub(super) fn node(&self, script: &str) -> Result<Command, TeamError> {
        let packages = self.options.root.join("target/test-packages");
        let modules = packages.join("node_modules/oidc-provider");
        if !modules.is_dir() {
            return Err(TeamError::NoPackages(modules));
        }
        // The issuer needs a newer Node.js than some systems have; it comes with the packages.
        let newer = fs::read_dir(packages.join("conformance/node_modules"));
        let newer = newer.into_iter().flatten().flatten();
        let mut newer = newer.map(|entry| entry.path().join("bin/node"));
        let node = newer.find(|program| program.is_file());
        let node = node.unwrap_or_else(|| "node".into());
        let mut command = Command::new(node);
        command.arg(self.options.root.join(script)).arg(packages);
        command.current_dir(self.directory.path());
        Ok(command)
    }

    /// Returns the nonces of all calls that servers have taken up.
    pub(super) fn executions(&self) -> Result<Vec<u64>, TeamError> {
        let text = fs::read_to_string(self.directory.path().join("executions"))?;
        let nonces = text.lines().filter_map(|line| line.split(' ').nth(1));
        Ok(nonces.filter_map(|nonce| nonce.parse().ok()).collect())
    }

    /// Returns the process of a replica.
    pub(super) fn pid(&self, index: usize) -> u32 {
        let process = self.replicas[index].process.as_ref();
        process.map_or(0, |it| it.0.id())
    }

    /// Keeps the directory on disk, and ends everything.
    pub(super) fn keep(self) -> PathBuf {
        self.directory.keep()
    }

    fn config(&self) -> String {
        let script = self.directory.path().join("server.json");
        let executions = self.directory.path().join("executions");
        drop(fs::write(&script, server_script(&executions)));
        let mut config = json!({
            "seal": {"key": "${SEAL_KEY}"},
            "replicaAddress": "http://127.0.0.1:0",
            "store": format!("redis://{}", self.redis.address),
            "maxResultChars": 4000,
            "watch": false,
            "toolboxes": {"team": {
                "description": "Servers of the ledger",
                "mcpServers": {"ledger": {"command": self.options.fixture_server, "args": [script]}},
            }},
        });
        if let Some(issuer) = &self.issuer {
            config["auth"] = json!({
                "issuer": issuer.url, "audience": self.resource(), "scopes": ["tools"],
            });
        }
        config.to_string()
    }
}

impl Service {
    /// Starts the program, and waits until it accepts connections.
    pub(super) fn start(&mut self) -> Result<(), TeamError> {
        let log = self.folder.join(format!("{}.log", self.name));
        let log = File::options().create(true).append(true).open(log)?;
        let mut command = Command::new(&self.program);
        command
            .args(&self.arguments)
            .current_dir(&self.folder)
            .env("HOME", &self.folder)
            .env("SEAL_KEY", SEAL_KEY)
            .env("WORKBENCH_TOKEN", TOKEN)
            .stdout(log.try_clone()?)
            .stderr(log);
        let mut process = spawn(&self.name, &mut command)?;
        let deadline = Instant::now() + UP_WITHIN;
        let up = poll_until(deadline, || {
            let is_over = process.0.try_wait().ok().flatten().is_some();
            (is_over || TcpStream::connect(&self.address).is_ok()).then_some(!is_over)
        });
        self.process = Some(process);
        up.filter(|up| *up)
            .map(|_| ())
            .ok_or_else(|| TeamError::NotUp(self.name.clone()))
    }

    pub(super) fn kill(&mut self) {
        self.process = None;
    }

    /// Asks the process to end, and waits until it has.
    pub(super) fn end(&mut self) -> Result<(), TeamError> {
        let Some(mut process) = self.process.take() else {
            return Ok(());
        };
        let pid = i32::try_from(process.0.id()).ok().and_then(Pid::from_raw);
        let _ = pid.map(|pid| kill_process(pid, Signal::TERM));
        let deadline = Instant::now() + END_WITHIN;
        poll_until(deadline, || process.0.try_wait().ok().flatten())
            .map(|_| ())
            .ok_or_else(|| TeamError::NotUp(format!("the end of {}", self.name)))
    }
}

/// Returns the name of a user.
pub(super) fn name(user: usize) -> String {
    format!("user{user}")
}

/// Returns the script of the servers, whose results have the call in them.
fn server_script(executions: &Path) -> String {
    let tool = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}});
    let question = json!({"method": "elicitation/create", "params": {
        "message": "who?",
        "requestedSchema": {"type": "object", "properties": {"user": {"type": "string"}}},
    }});
    let line = r#"{"jsonrpc":"2.0","id":$ID,"result":{"content":[],"structuredContent":{"call":$PARAMS,"reply":$REPLY}}}"#;
    json!({
        "executions": executions,
        "tools": [tool("echo"), tool("sleep"), tool("ask")],
        "onCall": {
            "echo": ["builtIn"],
            "sleep": ["builtIn"],
            "ask": [{"request": question}, {"line": line}],
        },
    })
    .to_string()
}

/// Returns a program of the system, or the one that `./scripts/test-services` has unpacked.
fn find(program: &'static str, package: &'static str, root: &Path) -> Result<PathBuf, TeamError> {
    let unpacked = root.join("target/test-services/bin");
    let folders = ["/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin"];
    let mut folders = folders.iter().map(PathBuf::from).chain([unpacked]);
    let found = folders.find_map(|it| Some(it.join(program)).filter(|it| it.is_file()));
    found.ok_or(TeamError::NotInstalled { program, package })
}

pub(super) fn spawn(name: &str, command: &mut Command) -> Result<Running, TeamError> {
    let spawned = command.spawn();
    let process = spawned.map_err(|error| TeamError::Start(name.to_owned(), error))?;
    Ok(Running(process))
}

fn free_address() -> Result<String, TeamError> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    Ok(listener.local_addr()?.to_string())
}

/// Returns the status of a GET request.
fn get(address: &str, path: &str) -> Option<u16> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(2))).ok()?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).ok()?;
    let mut response = String::new();
    stream.read_to_string(&mut response).ok()?;
    response.split(' ').nth(1)?.parse().ok()
}
