//! The folders of the published packages, and the commands that start their servers.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

/// How a server is started, by the workbench or by the test itself.
#[derive(Clone)]
pub(crate) struct Entry {
    program: PathBuf,
    args: Vec<String>,
    env: Vec<(&'static str, String)>,
}

impl Entry {
    pub(crate) fn everything() -> Self {
        Self::new(node_program("mcp-server-everything"))
    }

    /// The filesystem server, which may touch nothing outside `folder`.
    pub(crate) fn filesystem(folder: &Path) -> Self {
        let mut entry = Self::new(node_program("mcp-server-filesystem"));
        entry.args.push(text(folder));
        entry
    }

    /// The memory server, which keeps its graph in `file`.
    pub(crate) fn memory(file: &Path) -> Self {
        let mut entry = Self::new(node_program("mcp-server-memory"));
        entry.env.push(("MEMORY_FILE_PATH", text(file)));
        entry
    }

    /// An example server of MCP Apps, by the name of its program.
    pub(crate) fn app(program: &str) -> Self {
        let mut entry = Self::new(node_program(program));
        entry.args.push("--stdio".to_owned());
        entry
    }

    pub(crate) fn time() -> Self {
        Self::new(python_program("mcp-server-time"))
    }

    pub(crate) fn git() -> Self {
        Self::new(python_program("mcp-server-git"))
    }

    /// All of them with their names, as they appear in a configuration. Their files are in `folder`.
    pub(crate) fn one_of_each(folder: &Path) -> [(&'static str, Value); 5] {
        [
            ("time", Self::time().config()),
            ("everything", Self::everything().config()),
            ("git", Self::git().config()),
            ("memory", Self::memory(&folder.join("memory.json")).config()),
            ("filesystem", Self::filesystem(folder).config()),
        ]
    }

    fn new(program: PathBuf) -> Self {
        Self {
            program,
            args: Vec::new(),
            env: Vec::new(),
        }
    }

    /// Returns the entry under `mcpServers` in a configuration.
    pub(crate) fn config(&self) -> Value {
        let env: serde_json::Map<_, _> = self
            .env
            .iter()
            .map(|(name, value)| ((*name).into(), json!(value)))
            .collect();
        json!({ "command": text(&self.program), "args": self.args, "env": env })
    }

    /// The command that starts the same server without the workbench.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(&self.args)
            .envs(self.env.iter().map(|(name, value)| (name, value)));
        command
    }
}

/// The folder in which `./scripts/test` installs the packages.
pub(crate) fn folder() -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/test-packages");
    // The script writes this file last, so that a broken installation is not taken for a whole one.
    assert!(
        folder.join("installed").exists(),
        "run ./scripts/test once, it installs the packages"
    );
    folder.canonicalize().unwrap()
}

/// A file that lies beside these tests.
pub(crate) fn beside(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/real")
        .join(path)
}

/// The interpreter that has the official Python SDK.
pub(crate) fn python() -> PathBuf {
    python_program("python")
}

/// The Node.js that comes with the conformance suite, for what does not promise to run on an older one.
/// On a system that npm has none for, the one on the path must be new enough.
pub(crate) fn newer_node() -> PathBuf {
    let packages = folder().join("conformance/node_modules");
    let found = std::fs::read_dir(packages)
        .unwrap()
        .map(|entry| entry.unwrap().path().join("bin/node"))
        .find(|program| program.is_file());
    found.unwrap_or_else(|| "node".into())
}

/// The collector for OpenTelemetry, which lies in its Python package.
#[cfg(feature = "otel")]
pub(crate) fn collector() -> PathBuf {
    let libraries = folder().join("python/lib");
    let mut versions = std::fs::read_dir(libraries).unwrap();
    let version = versions.next().unwrap().unwrap().path();
    version.join("site-packages/rotel/rotel-agent")
}

fn node_program(name: &str) -> PathBuf {
    folder().join("node_modules/.bin").join(name)
}

/// A program of the Python packages.
pub(crate) fn python_program(name: &str) -> PathBuf {
    folder().join("python/bin").join(name)
}

fn text(path: &Path) -> String {
    path.to_str()
        .expect("paths of the tests are UTF-8")
        .to_owned()
}
