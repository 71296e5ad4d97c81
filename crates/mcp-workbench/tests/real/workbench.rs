//! The workbench as a child process, with a configuration of the test's own.

use std::path::PathBuf;
use std::process::Command;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::packages::Entry;
use crate::session::{Answer, Session};
use crate::steps::Era;

/// The one toolbox that `Workbench::start` configures.
pub(crate) const TOOLBOX: &str = "real";

pub(crate) struct Workbench {
    pub(crate) session: Session,
    // Kept for its file.
    _config: ConfigFile,
}

/// A configuration file in a folder that goes away with it.
pub(crate) struct ConfigFile {
    folder: TempDir,
}

/// The result of `open_toolbox`, with the tools as they were written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Opened {
    pub(crate) toolbox: String,
    pub(crate) description: String,
    pub(crate) servers_connected: usize,
    pub(crate) tools: Vec<Box<RawValue>>,
    #[serde(default)]
    pub(crate) instructions: Value,
}

impl Workbench {
    /// Starts a workbench with these servers in one toolbox.
    pub(crate) fn start(servers: &[(&str, Value)]) -> Self {
        Self::start_in(Era::Legacy, servers)
    }

    /// Starts one that is talked to in this era.
    pub(crate) fn start_in(era: Era, servers: &[(&str, Value)]) -> Self {
        let servers: serde_json::Map<_, _> = servers
            .iter()
            .map(|(name, entry)| ((*name).to_owned(), entry.clone()))
            .collect();
        let config = ConfigFile::new(&json!({
            "toolboxes": { TOOLBOX: { "description": "Published servers", "mcpServers": servers } }
        }));
        Self {
            session: Session::start_in(era, config.command()),
            _config: config,
        }
    }

    /// Opens the toolbox, in which nothing may fail or be held back.
    pub(crate) fn open(&mut self) -> Opened {
        let answer = self
            .session
            .call("open_toolbox", &json!({ "toolbox": TOOLBOX }))
            .value();
        assert_ne!(answer["isError"], true, "{answer}");
        let text = answer["content"][0]["text"].as_str().unwrap();
        serde_json::from_str(text).unwrap_or_else(|error| panic!("{error} in {text}"))
    }

    pub(crate) fn use_tool(&mut self, server: &str, tool: &str, arguments: &Value) -> Answer {
        self.session
            .call("use_tool", &use_tool(server, tool, arguments))
    }
}

impl ConfigFile {
    pub(crate) fn new(config: &Value) -> Self {
        let file = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        std::fs::write(file.path(), config.to_string()).unwrap();
        file
    }

    /// The configuration that all clients are tried with: one toolbox with a server, one without.
    pub(crate) fn for_clients() -> Self {
        Self::new(&json!({ "toolboxes": {
            "dev": {
                "description": "Development environment tools",
                "mcpServers": { "everything": Entry::everything().config() },
            },
            "spare": { "description": "Nothing in it yet", "mcpServers": {} },
        } }))
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("workbench-config.json")
    }

    /// Returns the cache folder of the workbench.
    pub(crate) fn cache(&self) -> PathBuf {
        self.folder.path().join("cache")
    }

    /// Returns the state folder of the workbench.
    #[cfg(feature = "otel")]
    pub(crate) fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    /// The command that serves this configuration.
    pub(crate) fn command(&self) -> Command {
        self.command_with(&[])
    }

    /// A command of the workbench with this configuration.
    pub(crate) fn command_with(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(PROGRAM);
        command
            .args(arguments)
            .arg("--config")
            .arg(self.path())
            .env("XDG_CACHE_HOME", self.cache())
            .env("XDG_STATE_HOME", self.folder.path().join("state"))
            .current_dir(self.folder.path());
        command
    }
}

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_mcp-workbench");

/// The arguments of a `use_tool` call in the one toolbox.
pub(crate) fn use_tool(server: &str, tool: &str, arguments: &Value) -> Value {
    json!({
        "tool": { "toolbox": TOOLBOX, "server": server, "tool": tool },
        "arguments": arguments,
    })
}
