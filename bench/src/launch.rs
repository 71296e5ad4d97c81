//! Starting a target in front of some echo servers, and calling a tool through it.

use std::{fs, io, path::PathBuf, process::Command};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    era::{Era, RequestMeta},
    peers::PeerError,
    prepared::{Companion, Prepared, call, write},
    target::{Extra, Kind, Layout, Programs, Target, Transport},
};

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
    /// Writes its configuration, and starts what must run beside it.
    pub fn prepare(&self, programs: &Programs, layout: Layout) -> Result<Prepared, PeerError> {
        let folder = tempfile::tempdir()?;
        let echo = echo_command(programs, 0, layout, self.eras.1);
        let relay = programs.own("bench-relay");
        let is_http = self.transports.0 == Transport::Http;
        let plain = |arguments| Prepared::plain(arguments, layout);
        let mut prepared = match (self.kind(), is_http) {
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
        let is_native = self.kind() == Kind::Native;
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
    pub fn from_cache(programs: &Programs, layout: Layout) -> io::Result<Prepared> {
        let mut prepared = Self::WORKBENCH.workbench(programs, layout, tempfile::tempdir()?)?;
        let cache = prepared
            .folder
            .path()
            .join("cache")
            .to_string_lossy()
            .into_owned();
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

/// The same server over HTTP, at a port of its choice.
pub(crate) fn with_http(mut echo: Vec<String>) -> Vec<String> {
    echo.extend(["--http", "127.0.0.1:0"].map(str::to_owned));
    echo
}
