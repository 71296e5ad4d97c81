//! What is measured: how each target is started in front of some echo servers, and how a tool is called
//! through it.

use std::{fs, io, path::PathBuf, process::Command};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    peers::{Peer, PeerError},
    prepared::{Companion, Prepared, call, write},
};

/// What stands behind a target.
#[derive(Debug, Clone, Copy)]
pub struct Layout {
    /// How many servers.
    pub servers: usize,
    /// How many tools each of them has.
    pub tools: usize,
    /// How many milliseconds each takes to start.
    pub start_delay: u64,
}

impl Layout {
    /// One server with one tool.
    pub const SMALL: Self = Self {
        servers: 1,
        tools: 1,
        start_delay: 0,
    };
}

/// Something that stands between a client and servers, or nothing.
#[derive(Debug, Clone, PartialEq)]
pub enum Target {
    /// The echo server itself.
    Direct,
    /// The relay.
    Relay,
    /// The workbench, with `use_tool`.
    Workbench,
    /// The workbench in native mode.
    Native,
    /// The echo server over HTTP.
    DirectHttp,
    /// The relay between connections.
    RelayHttp,
    /// The workbench, HTTP on both sides.
    WorkbenchHttp,
    /// The workbench in native mode, HTTP on both sides.
    NativeHttp,
    /// The workbench, HTTP to the client and pipes to the server.
    WorkbenchHttpToStdio,
    /// The workbench, pipes to the client and HTTP to the server.
    WorkbenchStdioToHttp,
    /// Another program that does this job.
    Peer(&'static Peer),
}

/// Where the programs are.
#[derive(Debug, Clone)]
pub struct Programs {
    /// The folder of our own programs.
    pub own: PathBuf,
    /// The folder that peers are installed in.
    pub peers: PathBuf,
}

impl Programs {
    /// One of our own programs.
    pub fn own(&self, name: &str) -> String {
        self.own.join(name).to_string_lossy().into_owned()
    }
}

/// The name of a server.
pub fn server_name(number: usize) -> String {
    format!("s{number}")
}

/// The name of the tool that is called.
pub const TOOL: &str = "s0_echo_0";

/// How a server is started.
pub fn echo_command(programs: &Programs, number: usize, layout: Layout) -> Vec<String> {
    let mut command = vec![programs.own("bench-echo")];
    let options = [
        ("--prefix", format!("s{number}_")),
        ("--tools", layout.tools.to_string()),
        ("--start-delay", layout.start_delay.to_string()),
    ];
    for (option, value) in options {
        command.extend([option.to_owned(), value]);
    }
    command
}

/// The entries of the servers, in the form that all clients share.
pub fn mcp_servers(programs: &Programs, layout: Layout) -> Value {
    let entries = (0..layout.servers).map(|number| {
        let command = echo_command(programs, number, layout);
        let entry = json!({ "command": command[0], "args": command[1..] });
        (server_name(number), entry)
    });
    Value::Object(entries.collect())
}

impl Target {
    /// The targets that need nothing from elsewhere.
    pub const OWN: [Self; 4] = [Self::Direct, Self::Relay, Self::Workbench, Self::Native];
    /// Those over HTTP.
    pub const HTTP: [Self; 6] = [
        Self::DirectHttp,
        Self::RelayHttp,
        Self::WorkbenchHttp,
        Self::NativeHttp,
        Self::WorkbenchHttpToStdio,
        Self::WorkbenchStdioToHttp,
    ];

    /// What it is called in results.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Relay => "relay",
            Self::Workbench => "workbench",
            Self::Native => "native",
            Self::DirectHttp => "direct-http",
            Self::RelayHttp => "relay-http",
            Self::WorkbenchHttp => "workbench-http",
            Self::NativeHttp => "native-http",
            Self::WorkbenchHttpToStdio => "workbench-http-stdio",
            Self::WorkbenchStdioToHttp => "workbench-stdio-http",
            Self::Peer(peer) => peer.name,
        }
    }

    /// Where a peer comes from, with its version.
    pub fn package(&self) -> Option<&'static str> {
        match self {
            Self::Peer(peer) => Some(peer.package),
            _ => None,
        }
    }

    /// Whether servers stand behind it, so that there can be many.
    pub fn is_gateway(&self) -> bool {
        match self {
            Self::Workbench | Self::Native => true,
            Self::Peer(peer) => peer.is_gateway(),
            _ => false,
        }
    }

    /// Writes its configuration, and starts what must run beside it.
    pub fn prepare(&self, programs: &Programs, layout: Layout) -> Result<Prepared, PeerError> {
        let folder = tempfile::tempdir()?;
        let echo = echo_command(programs, 0, layout);
        let relay = programs.own("bench-relay");
        let plain = |arguments| Prepared::plain(arguments, layout);
        let mut prepared = match self {
            Self::Direct => plain(echo)(folder),
            Self::Relay => plain([vec![relay], echo].concat())(folder),
            Self::DirectHttp => plain(with_http(echo))(folder),
            Self::RelayHttp => {
                let (companion, address) = Companion::start(&with_http(echo))?;
                let arguments = [&relay, "--listen", "127.0.0.1:0", "--to", &address];
                let mut prepared = plain(arguments.map(str::to_owned).to_vec())(folder);
                prepared.companion = Some(companion);
                prepared
            }
            Self::Peer(peer) => return peer.prepare(programs, layout, folder),
            _ => self.workbench(programs, layout, folder)?,
        };
        prepared.is_http = self.has_http_client();
        Ok(prepared)
    }

    /// The echo server with this number, as a client starts it that has no gateway.
    pub fn direct(programs: &Programs, number: usize, layout: Layout) -> io::Result<Prepared> {
        let one = Layout {
            servers: 1,
            ..layout
        };
        Ok(Prepared::plain(echo_command(programs, number, layout), one)(tempfile::tempdir()?))
    }

    fn workbench(
        &self,
        programs: &Programs,
        layout: Layout,
        folder: TempDir,
    ) -> io::Result<Prepared> {
        let (companion, entries) = self.workbench_servers(programs, layout)?;
        let config = json!({ "toolboxes": { "bench": {
            "description": "Everything that is measured", "mcpServers": entries } } });
        // Nobody meets their servers for the first time at every start, so configuration, lock file and cache last. Not
        // those of a server over HTTP, which has another port each time.
        let lasting = match companion {
            None => PathBuf::from(programs.own("bench-workbench")),
            Some(_) => folder.path().to_owned(),
        };
        let Layout {
            servers,
            tools,
            start_delay,
        } = layout;
        let place = format!("{}-{servers}-{tools}-{start_delay}", self.name());
        let place = lasting.join(place);
        fs::create_dir_all(&place)?;
        let path = place.join("workbench-config.json");
        fs::write(&path, config.to_string())?;
        let path = path.to_string_lossy().into_owned();
        let program = programs.own("mcp-workbench");
        let mut arguments = vec![program.as_str(), "--config", &path, "serve"];
        let is_native = matches!(self, Self::Native | Self::NativeHttp);
        if is_native {
            arguments.extend(["--native", "bench"]);
        }
        if self.has_http_client() {
            arguments.extend(["--http", "127.0.0.1:0", "--no-auth"]);
        }
        let arguments = arguments.into_iter().map(str::to_owned).collect();
        let mut prepared = Prepared::plain(arguments, layout)(folder);
        prepared.companion = companion;
        // Not the user's, in which there may be a thousand other servers.
        let cache = lasting.join("cache").to_string_lossy().into_owned();
        prepared.environment = vec![("XDG_CACHE_HOME".to_owned(), cache)];
        if is_native {
            return Ok(prepared);
        }
        prepared.open = Some(call("open_toolbox", &json!({ "toolbox": "bench" })));
        let tool = json!({ "toolbox": "bench", "server": "s0", "tool": TOOL });
        let before = format!(r#"{{"name":"use_tool","arguments":{{"tool":{tool},"arguments":"#);
        Ok(prepared.called(&before, "}}"))
    }

    /// The workbench with a catalogue of its own, which knows all servers and starts them when they are used.
    pub fn recalling(programs: &Programs, layout: Layout) -> io::Result<Prepared> {
        let mut prepared = Self::Workbench.workbench(programs, layout, tempfile::tempdir()?)?;
        let cache = prepared.folder.path().join("cache");
        let cache = cache.to_string_lossy().into_owned();
        prepared.environment = vec![("XDG_CACHE_HOME".to_owned(), cache)];
        let config = json!({ "connect": "on-use", "toolboxes": { "bench": {
            "description": "Everything that is measured", "mcpServers": mcp_servers(programs, layout) } } });
        let path = write(
            &prepared.folder,
            "workbench-config.json",
            &config.to_string(),
        )?;
        let program = programs.own("mcp-workbench");
        prepared.arguments = [&program, "--config", &path, "serve"]
            .map(str::to_owned)
            .into();
        let warm = Command::new(program)
            .args(["--config", &path, "warm"])
            .envs(prepared.environment.iter().map(|(key, value)| (key, value)))
            .output()?;
        if !warm.status.success() {
            let said = String::from_utf8_lossy(&warm.stdout).into_owned();
            return Err(io::Error::other(said));
        }
        Ok(prepared)
    }

    /// The entries of the servers, and the one that must be started for them.
    fn workbench_servers(
        &self,
        programs: &Programs,
        layout: Layout,
    ) -> io::Result<(Option<Companion>, Value)> {
        if !matches!(
            self,
            Self::WorkbenchHttp | Self::NativeHttp | Self::WorkbenchStdioToHttp
        ) {
            return Ok((None, mcp_servers(programs, layout)));
        }
        let echo = with_http(echo_command(programs, 0, layout));
        let (companion, address) = Companion::start(&echo)?;
        let entry = json!({ "type": "http", "url": format!("http://{address}/mcp") });
        Ok((Some(companion), json!({ "s0": entry })))
    }

    /// Whether its client comes over HTTP.
    fn has_http_client(&self) -> bool {
        matches!(
            self,
            Self::DirectHttp
                | Self::RelayHttp
                | Self::WorkbenchHttp
                | Self::NativeHttp
                | Self::WorkbenchHttpToStdio
        )
    }
}

/// The same server over HTTP, at a port of its choice.
pub(crate) fn with_http(mut echo: Vec<String>) -> Vec<String> {
    echo.extend(["--http", "127.0.0.1:0"].map(str::to_owned));
    echo
}
