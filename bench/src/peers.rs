//! Other programs that do this job, as far as they install from a public registry: how each is started in front
//! of the echo servers, and under which name it shows their tools.

use std::{io, net::TcpListener, path::Path};

use serde_json::json;
use tempfile::TempDir;
use thiserror::Error;

use crate::{
    era::Era,
    launch::{TOOL, echo_command, mcp_servers, with_http},
    prepared::{Companion, Prepared, call, write},
    target::{Layout, Programs},
};

/// A reason why a target could not be prepared.
#[derive(Debug, Error)]
pub enum PeerError {
    /// Its program is not there.
    #[error("it is not installed")]
    NotInstalled,
    /// A file could not be written, or a server not started.
    #[error("{0}")]
    Io(#[from] io::Error),
}

#[derive(Debug, PartialEq)]
pub struct Peer {
    /// The name in results.
    pub name: &'static str,
    /// The registry, the package and the version that was chosen.
    pub package: &'static str,
    /// Its program below the folder of the peers.
    program: &'static str,
    /// How it is started and called.
    way: Way,
}

/// The ways to start a peer and to call a tool through it.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
enum Way {
    /// A Python program of three lines.
    FastMcp,
    /// Meta-tools, among them `call_tool`.
    Multiplexer,
    /// Two tools for each server, among them `invoke_tool`.
    Compressor,
    /// All tools, with the server's name in front.
    Gateway,
    /// All tools under their own names.
    Hub,
    /// One server over HTTP, given to a client over pipes.
    StdioToHttp,
    /// One server over pipes, given to clients over HTTP.
    HttpToStdio,
}

const fn peer(name: &'static str, package: &'static str, program: &'static str, way: Way) -> Peer {
    Peer {
        name,
        package,
        program,
        way,
    }
}

/// All of them. `scripts/bench` installs these versions.
pub const PEERS: &[Peer] = &[
    peer(
        "mcp-hub",
        "crate mcp-hub 0.3.0",
        "cargo/bin/mcp-hub",
        Way::Hub,
    ),
    peer(
        "mcp-multiplexer",
        "crate mcp-multiplexer 0.5.0",
        "cargo/bin/mcp-multiplexer",
        Way::Multiplexer,
    ),
    peer(
        "mcp-compressor",
        "PyPI mcp-compressor 0.38.2",
        "compressor/bin/mcp-compressor",
        Way::Compressor,
    ),
    peer(
        "fastmcp",
        "PyPI fastmcp 4.1.2",
        "fastmcp/bin/python",
        Way::FastMcp,
    ),
    peer(
        "mcp-gateway",
        "PyPI mcp-gateway 1.2.1",
        "gateway/bin/mcp-gateway",
        Way::Gateway,
    ),
    peer(
        "mcp-proxy-py-stdio-http",
        "PyPI mcp-proxy 0.13.0",
        "proxy/bin/mcp-proxy",
        Way::StdioToHttp,
    ),
    peer(
        "mcp-proxy-npm-http-stdio",
        "npm mcp-proxy 6.7.19",
        "node/node_modules/.bin/mcp-proxy",
        Way::HttpToStdio,
    ),
];

impl Peer {
    /// Returns true if it serves many servers.
    pub fn is_gateway(&self) -> bool {
        !self.has_http()
    }

    /// Returns true if one of its sides is HTTP.
    pub const fn has_http(&self) -> bool {
        matches!(self.way, Way::StdioToHttp | Way::HttpToStdio)
    }

    pub fn prepare(
        &self,
        programs: &Programs,
        layout: Layout,
        folder: TempDir,
    ) -> Result<Prepared, PeerError> {
        let program = programs.peers.join(self.program);
        if !program.exists() {
            return Err(PeerError::NotInstalled);
        }
        // What it keeps between runs would make the second run another one.
        let home = text(folder.path());
        let place = Place {
            program: text(&program),
            programs,
            layout,
            folder,
        };
        let prepared = match self.way {
            Way::FastMcp => place.fastmcp(),
            Way::Multiplexer => place.multiplexer(),
            Way::Compressor => place.compressor(),
            Way::Gateway => place.gateway(),
            Way::Hub => place.hub(),
            Way::StdioToHttp => place.stdio_to_http(),
            Way::HttpToStdio => place.http_to_stdio(),
        }?;
        let environment = ["HOME", "XDG_CACHE_HOME"].map(|name| (name.to_owned(), home.clone()));
        Ok(prepared.with_environment(environment.to_vec()))
    }
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn named(name: &str) -> String {
    format!(r#"{{"name":"{name}","arguments":"#)
}

/// The setup of a peer.
struct Place<'a> {
    program: String,
    programs: &'a Programs,
    layout: Layout,
    folder: TempDir,
}

impl Place<'_> {
    /// The configuration that all clients share.
    fn config(&self) -> io::Result<String> {
        let config = json!({ "mcpServers": mcp_servers(self.programs, self.layout, Era::Legacy) });
        write(&self.folder, "mcp.json", &config.to_string())
    }

    fn start(self, arguments: &[&str]) -> Prepared {
        let arguments = arguments.iter().map(|&it| it.to_owned());
        let arguments = [self.program].into_iter().chain(arguments).collect();
        Prepared::plain(arguments, self.layout)(self.folder)
    }

    fn fastmcp(self) -> io::Result<Prepared> {
        let config = self.config()?;
        let script = format!(
            "import json\nfrom fastmcp.server import create_proxy\n\
             create_proxy(json.load(open({config:?}))).run(show_banner=False)\n"
        );
        let script = write(&self.folder, "proxy.py", &script)?;
        let is_one = self.layout.servers == 1;
        let name = if is_one {
            TOOL.to_owned()
        } else {
            format!("s0_{TOOL}")
        };
        Ok(self.start(&[&script]).called(&named(&name), "}"))
    }

    fn multiplexer(self) -> io::Result<Prepared> {
        let config = self.config()?;
        // It connects when a server is needed; this is how all of them are.
        let open = match self.layout.servers {
            1 => call("list_tools", &json!({ "server": "s0" })),
            _ => call("refresh_tools", &json!({})),
        };
        let before = format!(
            r#"{}{{"server":"s0","tool":"{TOOL}","arguments":"#,
            named("call_tool")
        );
        Ok(self
            .start(&["--config", &config])
            .called(&before, "}}")
            .opened_by(open))
    }

    fn compressor(self) -> io::Result<Prepared> {
        let config = self.config()?;
        let is_one = self.layout.servers == 1;
        let name = if is_one {
            "invoke_tool"
        } else {
            "s0_invoke_tool"
        };
        let before = format!(r#"{}{{"tool_name":"{TOOL}","tool_input":"#, named(name));
        let list = ("tools/list".to_owned(), "{}".to_owned());
        Ok(self
            .start(&["--config", &config])
            .called(&before, "}}")
            .opened_by(list))
    }

    fn gateway(self) -> io::Result<Prepared> {
        let servers = mcp_servers(self.programs, self.layout, Era::Legacy);
        let entry = json!({ "command": "mcp-gateway", "args": [], "servers": servers });
        let config = json!({ "mcpServers": { "mcp-gateway": entry } });
        let config = write(&self.folder, "mcp.json", &config.to_string())?;
        let name = named(&format!("s0_{TOOL}"));
        Ok(self.start(&["--mcp-json-path", &config]).called(&name, "}"))
    }

    fn hub(self) -> io::Result<Prepared> {
        let mut config = String::new();
        for number in 0..self.layout.servers {
            let command = echo_command(self.programs, number, self.layout, Era::Legacy);
            let (program, arguments) = (&command[0], &command[1..]);
            config +=
                &format!("[servers.s{number}]\ncommand = {program:?}\nargs = {arguments:?}\n");
        }
        let config = write(&self.folder, "hub.toml", &config)?;
        Ok(self.start(&[&config]))
    }

    fn stdio_to_http(self) -> io::Result<Prepared> {
        let echo = with_http(echo_command(self.programs, 0, self.layout, Era::Legacy));
        let (companion, address) = Companion::start(&echo)?;
        let address = format!("http://{address}/mcp");
        let mut prepared = self.start(&["--transport", "streamablehttp", &address]);
        prepared.companion = Some(companion);
        Ok(prepared)
    }

    fn http_to_stdio(self) -> io::Result<Prepared> {
        // The port is free again when the peer takes it.
        let port = TcpListener::bind("127.0.0.1:0")?
            .local_addr()?
            .port()
            .to_string();
        let echo = echo_command(self.programs, 0, self.layout, Era::Legacy);
        let options = [
            "--host",
            "127.0.0.1",
            "--port",
            &port,
            "--server",
            "stream",
            "--",
        ];
        let echo = echo.iter().map(String::as_str);
        let arguments: Vec<_> = options.into_iter().chain(echo).collect();
        let mut prepared = self.start(&arguments);
        prepared.is_http = true;
        prepared.address = Some(format!("127.0.0.1:{port}"));
        Ok(prepared)
    }
}
