//! Other programs that do this job, as far as they install from a public registry: how each is started in front
//! of the echo servers, and under which name it shows their tools.

use std::{io, path::Path};

use serde_json::json;
use tempfile::TempDir;
use thiserror::Error;

use crate::target::{Layout, Prepared, Programs, TOOL, mcp_servers, write};

/// Why a target could not be prepared.
#[derive(Debug, Error)]
pub enum PeerError {
    /// Its program is not there.
    #[error("it is not installed")]
    NotInstalled,
    /// A file could not be written, or a server not started.
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// A peer.
#[derive(Debug, PartialEq)]
pub struct Peer {
    /// What it is called in results.
    pub name: &'static str,
    /// The registry, the package and the version that was chosen.
    pub package: &'static str,
    /// Its program below the folder of the peers.
    program: &'static str,
    /// Whether it stands before many servers.
    pub is_gateway: bool,
    /// How it is started and called.
    way: Way,
}

/// The ways to start a peer and to call a tool through it.
#[derive(Debug, PartialEq)]
enum Way {
    /// A Python program of three lines.
    FastMcp,
}

/// All of them.
pub const PEERS: &[Peer] = &[Peer {
    name: "fastmcp",
    package: "PyPI fastmcp 4.1.2",
    program: "fastmcp/bin/python",
    is_gateway: true,
    way: Way::FastMcp,
}];

impl Peer {
    /// Writes its configuration.
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
        match self.way {
            Way::FastMcp => fastmcp(&program, programs, layout, folder),
        }
    }
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn fastmcp(
    program: &Path,
    programs: &Programs,
    layout: Layout,
    folder: TempDir,
) -> Result<Prepared, PeerError> {
    let config = json!({ "mcpServers": mcp_servers(programs, layout) });
    let script = format!(
        "import json\nfrom fastmcp.server import create_proxy\n\
         create_proxy(json.loads({:?})).run(show_banner=False)\n",
        config.to_string()
    );
    let script = write(&folder, "proxy.py", &script)?;
    let prepared = Prepared::plain(vec![text(program), script], layout)(folder);
    let name = if layout.servers == 1 {
        TOOL.to_owned()
    } else {
        format!("s0_{TOOL}")
    };
    Ok(prepared.called(&format!(r#"{{"name":"{name}","arguments":"#), "}"))
}
