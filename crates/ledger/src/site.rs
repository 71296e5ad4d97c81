//! The place of a run: a directory with the configuration, the scripts of the servers, the log of the
//! workbench and the execution journals.
//!
//! ```text
//! workbench.json         the configuration
//! workbench.log          the workbench's stderr
//! N.json, N.executions   the script and the execution journal of server N
//! ```

use std::{
    fs::{self, File, OpenOptions},
    io,
    path::{Path, PathBuf},
};

use serde_json::{Map, Value, json};
use tempfile::TempDir;

use crate::{
    history::Execution,
    identity::{Nonce, ServerIndex},
    processes::{MARK, Mark},
    tool,
};

/// The toolboxes. Both have servers of the same names, so that only the full address distinguishes them.
pub(crate) const TOOLBOXES: [&str; 2] = ["left", "right"];

/// The place of a run.
#[derive(Debug)]
pub(crate) struct Site {
    directory: TempDir,
    servers: usize,
    /// The marker in the environment of the servers of this run.
    pub mark: Mark,
}

/// The toolbox and the name of a server.
pub(crate) fn address(server: ServerIndex) -> (&'static str, String) {
    let toolbox = TOOLBOXES[server.0 % TOOLBOXES.len()];
    (toolbox, format!("server-{}", server.0 / TOOLBOXES.len()))
}

impl Site {
    /// Creates a directory with everything that a run with so many servers needs.
    pub(crate) fn new(servers: usize, fixture_server: &Path) -> io::Result<Self> {
        let directory = TempDir::with_prefix("ledger-")?;
        let mark = Mark::new(directory.path());
        let site = Self {
            directory,
            servers,
            mark,
        };
        fs::write(site.config(), site.config_text(fixture_server)?)?;
        Ok(site)
    }

    pub(crate) fn config(&self) -> PathBuf {
        self.path("workbench.json")
    }

    pub(crate) fn folder(&self) -> &Path {
        self.directory.path()
    }

    /// A new file for the workbench's stderr.
    pub(crate) fn create_log(&self) -> io::Result<File> {
        File::create(self.path("workbench.log"))
    }

    /// Returns the stderr of the workbench.
    pub(crate) fn read_log(&self) -> io::Result<String> {
        let bytes = fs::read(self.path("workbench.log"))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Returns the executions of all servers since the last call.
    pub(crate) fn take_executions(&self) -> io::Result<Vec<Execution>> {
        let mut executions = Vec::new();
        for server in self.servers() {
            let file = self.executions_file(server);
            let text = fs::read_to_string(&file)?;
            // Every line is appended, so writing goes on at the new end.
            OpenOptions::new().write(true).open(&file)?.set_len(0)?;
            for line in text.lines() {
                executions.push(execution(server, line)?);
            }
        }
        Ok(executions)
    }

    pub(crate) fn servers(&self) -> impl Iterator<Item = ServerIndex> + use<> {
        (0..self.servers).map(ServerIndex)
    }

    /// Keeps the directory on disk.
    pub(crate) fn keep(self) -> PathBuf {
        self.directory.keep()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn executions_file(&self, server: ServerIndex) -> PathBuf {
        self.path(&format!("{}.executions", server.0))
    }

    fn config_text(&self, fixture_server: &Path) -> io::Result<String> {
        let mut toolboxes: Vec<Map<String, Value>> = vec![Map::new(); TOOLBOXES.len()];
        for server in self.servers() {
            let executions = self.executions_file(server);
            File::create(&executions)?;
            let script = self.path(&format!("{}.json", server.0));
            fs::write(&script, tool::script(&executions.to_string_lossy()))?;
            let entry = json!({
                "command": fixture_server,
                "args": [script],
                "env": { MARK: self.mark.value() },
            });
            toolboxes[server.0 % TOOLBOXES.len()].insert(address(server).1, entry);
        }
        let toolboxes: Map<String, Value> = TOOLBOXES
            .iter()
            .zip(toolboxes)
            .map(|(name, servers)| {
                let toolbox =
                    json!({ "description": "Servers of the ledger", "mcpServers": servers });
                ((*name).to_owned(), toolbox)
            })
            .collect();
        // The file does not change, and a watch would disturb the count of descriptors.
        Ok(json!({ "toolboxes": toolboxes, "watch": false }).to_string())
    }
}

fn execution(server: ServerIndex, line: &str) -> io::Result<Execution> {
    let parts = line.split_once(' ');
    let parsed = parts.and_then(|(pid, nonce)| {
        Some(Execution {
            server,
            pid: pid.parse().ok()?,
            nonce: Nonce(nonce.parse().ok()?),
        })
    });
    parsed.ok_or_else(|| io::Error::other(format!("no line of an execution journal: {line}")))
}
