//! What is measured: how each target is started in front of some echo servers, and how a tool is called
//! through it.

use std::{fs, io, path::PathBuf, process::Command};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    era::{Era, RequestMeta},
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

/// The kind of a target.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    /// The echo server itself.
    Direct,
    /// The relay.
    Relay,
    /// The workbench, with `use_tool`.
    Workbench,
    /// The workbench in native mode.
    Native,
    /// Another program that does this job.
    Peer(&'static Peer),
}

/// The transport of one side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// Pipes.
    Stdio,
    /// Streamable HTTP.
    Http,
}

/// An addition to a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extra {
    /// None.
    None,
    /// The workbench writes the audit log.
    Audit,
    /// The client asks for progress in every call.
    ProgressToken,
}

/// The table that a target belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Group {
    /// Compared with peers, over pipes.
    Stdio,
    /// Compared with peers, over HTTP.
    Http,
    /// The era pairs over pipes.
    StdioPairs,
    /// The era pairs over HTTP.
    HttpPairs,
}

/// Something between a client and servers, or nothing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Target {
    name: &'static str,
    kind: Kind,
    group: Group,
    /// The transport of the client, and of the server.
    transports: (Transport, Transport),
    /// The era of the client, and of the server.
    eras: (Era, Era),
    extra: Extra,
}

/// Where the programs are.
#[derive(Debug, Clone)]
pub struct Programs {
    /// The folder of our own programs.
    pub own: PathBuf,
    /// The folder that peers are installed in.
    pub peers: PathBuf,
    /// The workbench.
    pub workbench: PathBuf,
}

impl Programs {
    /// One of our own programs.
    pub fn own(&self, name: &str) -> String {
        self.own.join(name).to_string_lossy().into_owned()
    }

    fn workbench(&self) -> String {
        self.workbench.to_string_lossy().into_owned()
    }
}

/// The name of a server.
pub fn server_name(number: usize) -> String {
    format!("s{number}")
}

/// The name of the tool that is called.
pub const TOOL: &str = "s0_echo_0";

/// The command that starts an echo server.
pub fn echo_command(programs: &Programs, number: usize, layout: Layout, era: Era) -> Vec<String> {
    let mut command = vec![programs.own("bench-echo")];
    let options = [
        ("--prefix", format!("s{number}_")),
        ("--tools", layout.tools.to_string()),
        ("--start-delay", layout.start_delay.to_string()),
    ];
    for (option, value) in options {
        command.extend([option.to_owned(), value]);
    }
    if era == Era::Modern {
        command.extend(["--era", "modern"].map(str::to_owned));
    }
    command
}

/// The entries of the servers, in the form that all clients share.
pub fn mcp_servers(programs: &Programs, layout: Layout, era: Era) -> Value {
    let entries = (0..layout.servers).map(|number| {
        let command = echo_command(programs, number, layout, era);
        let entry = json!({ "command": command[0], "args": command[1..] });
        (server_name(number), entry)
    });
    Value::Object(entries.collect())
}

impl Target {
    /// No gateway, over pipes.
    pub const DIRECT: Self = Self::stdio("direct", Kind::Direct);
    /// The workbench over pipes.
    pub const WORKBENCH: Self = Self::stdio("workbench", Kind::Workbench);
    /// The targets over pipes that need nothing from elsewhere.
    pub const OWN: [Self; 4] = [
        Self::DIRECT,
        Self::stdio("relay", Kind::Relay),
        Self::WORKBENCH,
        Self::stdio("native", Kind::Native),
    ];
    /// Those over HTTP.
    pub const HTTP: [Self; 6] = [
        Self::http("direct-http", Kind::Direct, BOTH),
        Self::http("relay-http", Kind::Relay, BOTH),
        Self::http("workbench-http", Kind::Workbench, BOTH),
        Self::http("native-http", Kind::Native, BOTH),
        Self::http(
            "workbench-http-stdio",
            Kind::Workbench,
            (Transport::Http, Transport::Stdio),
        ),
        Self::http(
            "workbench-stdio-http",
            Kind::Workbench,
            (Transport::Stdio, Transport::Http),
        ),
    ];

    const fn stdio(name: &'static str, kind: Kind) -> Self {
        Self {
            name,
            kind,
            group: Group::Stdio,
            transports: (Transport::Stdio, Transport::Stdio),
            eras: (Era::Legacy, Era::Legacy),
            extra: Extra::None,
        }
    }

    const fn http(name: &'static str, kind: Kind, transports: (Transport, Transport)) -> Self {
        Self {
            group: Group::Http,
            transports,
            ..Self::stdio(name, kind)
        }
    }

    /// A target of the era pairs. The eras are those of the client and of the server.
    pub const fn pair(
        name: &'static str,
        kind: Kind,
        transport: Transport,
        eras: (Era, Era),
    ) -> Self {
        Self {
            group: match transport {
                Transport::Stdio => Group::StdioPairs,
                Transport::Http => Group::HttpPairs,
            },
            transports: (transport, transport),
            eras,
            ..Self::stdio(name, kind)
        }
    }

    /// The target with an addition.
    #[must_use]
    pub const fn with(self, extra: Extra) -> Self {
        Self { extra, ..self }
    }

    /// The target of a peer.
    pub const fn peer(peer: &'static Peer) -> Self {
        Self {
            group: if peer.has_http() {
                Group::Http
            } else {
                Group::Stdio
            },
            ..Self::stdio(peer.name, Kind::Peer(peer))
        }
    }

    /// The name in results.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The kind of target.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The names of the direct connection and of the relay that it is compared with. A pair of two eras is compared
    /// with the legacy ones: their messages are shorter, so that is the stricter comparison.
    pub fn baselines(&self) -> (&'static str, &'static str) {
        let is_modern = self.eras == (Era::Modern, Era::Modern);
        match (self.group, is_modern) {
            (Group::Stdio, _) => ("direct", "relay"),
            (Group::Http, _) => ("direct-http", "relay-http"),
            (Group::StdioPairs, false) => ("direct-legacy", "relay-legacy"),
            (Group::StdioPairs, true) => ("direct-modern", "relay-modern"),
            (Group::HttpPairs, false) => ("http-direct-legacy", "http-relay-legacy"),
            (Group::HttpPairs, true) => ("http-direct-modern", "http-relay-modern"),
        }
    }

    /// Whether it is the direct connection or the relay.
    pub fn is_baseline(&self) -> bool {
        matches!(self.kind, Kind::Direct | Kind::Relay)
    }

    /// Whether it is the workbench.
    pub fn is_workbench(&self) -> bool {
        matches!(self.kind, Kind::Workbench | Kind::Native)
    }

    /// Whether it belongs to the era pairs.
    pub fn is_pair(&self) -> bool {
        matches!(self.group, Group::StdioPairs | Group::HttpPairs)
    }

    /// Whether its two sides have different transports.
    pub fn is_mixed_transport(&self) -> bool {
        self.transports.0 != self.transports.1
    }

    /// The registry, package and version of a peer.
    pub fn package(&self) -> Option<&'static str> {
        match self.kind {
            Kind::Peer(peer) => Some(peer.package),
            _ => None,
        }
    }

    /// Whether servers stand behind it, so that there can be many.
    pub fn is_gateway(&self) -> bool {
        match self.kind {
            Kind::Workbench | Kind::Native => self.group == Group::Stdio,
            Kind::Peer(peer) => peer.is_gateway(),
            _ => false,
        }
    }

    /// Writes its configuration, and starts what must run beside it.
    pub fn prepare(&self, programs: &Programs, layout: Layout) -> Result<Prepared, PeerError> {
        let folder = tempfile::tempdir()?;
        let echo = echo_command(programs, 0, layout, self.eras.1);
        let relay = programs.own("bench-relay");
        let is_http = self.transports.0 == Transport::Http;
        let plain = |arguments| Prepared::plain(arguments, layout);
        let mut prepared = match (self.kind, is_http) {
            (Kind::Direct, false) => plain(echo)(folder),
            (Kind::Direct, true) => plain(with_http(echo))(folder),
            (Kind::Relay, false) => plain([vec![relay], echo].concat())(folder),
            (Kind::Relay, true) => {
                let (companion, address) = Companion::start(&with_http(echo))?;
                let arguments = [&relay, "--listen", "127.0.0.1:0", "--to", &address];
                let mut prepared = plain(arguments.map(str::to_owned).to_vec())(folder);
                prepared.companion = Some(companion);
                prepared
            }
            (Kind::Peer(peer), _) => return peer.prepare(programs, layout, folder),
            (Kind::Workbench | Kind::Native, _) => self.workbench(programs, layout, folder)?,
        };
        prepared.is_http = is_http;
        prepared.meta = match (self.eras.0, self.extra) {
            (Era::Modern, _) => RequestMeta::Modern,
            (Era::Legacy, Extra::ProgressToken) => RequestMeta::ProgressToken,
            (Era::Legacy, _) => RequestMeta::None,
        };
        Ok(prepared)
    }

    /// The echo server with this number, as a client starts it that has no gateway.
    pub fn direct(programs: &Programs, number: usize, layout: Layout) -> io::Result<Prepared> {
        let one = Layout {
            servers: 1,
            ..layout
        };
        let echo = echo_command(programs, number, layout, Era::Legacy);
        Ok(Prepared::plain(echo, one)(tempfile::tempdir()?))
    }

    fn workbench(
        &self,
        programs: &Programs,
        layout: Layout,
        folder: TempDir,
    ) -> io::Result<Prepared> {
        let (companion, entries) = self.workbench_servers(programs, layout)?;
        let mut config = json!({ "toolboxes": { "bench": {
            "description": "Everything that is measured", "mcpServers": entries } } });
        if self.extra == Extra::Audit {
            config["audit"] = json!({ "file": "audit.jsonl" });
        }
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
        let program = programs.workbench();
        let mut arguments = vec![program.as_str(), "--config", &path, "serve"];
        let is_native = self.kind == Kind::Native;
        if is_native {
            arguments.extend(["--native", "bench"]);
        }
        if self.transports.0 == Transport::Http {
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
        let mut prepared = Self::WORKBENCH.workbench(programs, layout, tempfile::tempdir()?)?;
        let cache = prepared.folder.path().join("cache");
        let cache = cache.to_string_lossy().into_owned();
        prepared.environment = vec![("XDG_CACHE_HOME".to_owned(), cache)];
        let config = json!({ "connect": "on-use", "toolboxes": { "bench": {
            "description": "Everything that is measured", "mcpServers": mcp_servers(programs, layout, Era::Legacy) } } });
        let path = write(
            &prepared.folder,
            "workbench-config.json",
            &config.to_string(),
        )?;
        let program = programs.workbench();
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
        let era = self.eras.1;
        if self.transports.1 == Transport::Stdio {
            return Ok((None, mcp_servers(programs, layout, era)));
        }
        let echo = with_http(echo_command(programs, 0, layout, era));
        let (companion, address) = Companion::start(&echo)?;
        let entry = json!({ "type": "http", "url": format!("http://{address}/mcp") });
        Ok((Some(companion), json!({ "s0": entry })))
    }
}

const BOTH: (Transport, Transport) = (Transport::Http, Transport::Http);

/// The same server over HTTP, at a port of its choice.
pub(crate) fn with_http(mut echo: Vec<String>) -> Vec<String> {
    echo.extend(["--http", "127.0.0.1:0"].map(str::to_owned));
    echo
}
