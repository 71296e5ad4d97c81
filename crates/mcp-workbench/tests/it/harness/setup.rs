//! The directory of a test and the configuration in it.
//!
//! ```text
//! config/workbench.json   the configuration
//! work/                   where the workbench is started
//! home/                   HOME
//! cache/                  XDG_CACHE_HOME
//! fixtures/N.json, N.log  the script and the journal of each fixture server
//! ```

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::{AtomicU32, Ordering},
};

use serde_json::{Map, Value, json};
use tempfile::TempDir;

use super::{Journal, Script, Workbench, processes::MARK};

const WORKBENCH: &str = env!("CARGO_BIN_EXE_mcp-workbench");

static SETUPS: AtomicU32 = AtomicU32::new(0);

/// Everything that a workbench is started with.
#[derive(Debug)]
pub(crate) struct Setup {
    directory: TempDir,
    /// The value of the marker variable of this test's servers.
    pub(crate) mark: String,
    top: Map<String, Value>,
    toolboxes: Map<String, Value>,
    text: Option<String>,
    fixtures: Vec<Fixture>,
    environment: Vec<(String, String)>,
    arguments: Vec<String>,
    shell: Option<&'static str>,
    working_directory: Option<PathBuf>,
}

#[derive(Debug)]
struct Fixture {
    toolbox: String,
    server: String,
    journal: Journal,
}

impl Setup {
    /// A directory with an empty configuration.
    pub(crate) fn new() -> Self {
        let directory = TempDir::new().expect("a directory for the test");
        for name in ["config", "work", "home", "fixtures"] {
            fs::create_dir(directory.path().join(name)).expect("a directory");
        }
        let number = SETUPS.fetch_add(1, Ordering::Relaxed);
        Self {
            directory,
            mark: format!("{}-{number}", std::process::id()),
            top: Map::new(),
            toolboxes: Map::new(),
            text: None,
            fixtures: Vec::new(),
            environment: Vec::new(),
            arguments: Vec::new(),
            shell: None,
            working_directory: None,
        }
    }

    /// One toolbox `dev` with one server `fs`.
    pub(crate) fn one(script: &Script) -> Self {
        Self::new()
            .toolbox("dev", "Development tools")
            .server("fs", script)
    }

    pub(crate) fn toolbox(mut self, name: &str, description: &str) -> Self {
        let toolbox = json!({"description": description, "mcpServers": {}});
        self.toolboxes.insert(name.to_owned(), toolbox);
        self
    }

    /// Adds a fixture server to the last toolbox.
    pub(crate) fn server(self, name: &str, script: &Script) -> Self {
        self.server_with(name, script, &json!({}))
    }

    /// Adds a fixture server with more keys in its entry; `env` and `args` are added to.
    pub(crate) fn server_with(mut self, name: &str, script: &Script, keys: &Value) -> Self {
        let script_file = self.add_fixture(name, script);
        let mut entry = json!({
            "command": fixture_server(),
            "args": [script_file],
            "env": {MARK: self.mark},
        });
        for (key, value) in keys.as_object().expect("keys of an entry") {
            match (&mut entry[key], value) {
                (Value::Object(old), Value::Object(new)) => old.extend(new.clone()),
                (Value::Array(old), Value::Array(new)) => old.extend(new.clone()),
                (old, new) => *old = new.clone(),
            }
        }
        self.entry(name, entry)
    }

    /// Adds an entry to the last toolbox as it is.
    pub(crate) fn entry(mut self, name: &str, entry: Value) -> Self {
        let (_, toolbox) = self
            .toolboxes
            .iter_mut()
            .next_back()
            .expect("a toolbox first");
        toolbox["mcpServers"][name] = entry;
        self
    }

    /// A key at the top of the configuration.
    pub(crate) fn top(mut self, key: &str, value: Value) -> Self {
        self.top.insert(key.to_owned(), value);
        self
    }

    /// The text of the configuration, instead of what was put together.
    pub(crate) fn text(mut self, text: &str) -> Self {
        self.text = Some(text.to_owned());
        self
    }

    /// A variable of the workbench's own environment.
    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// One more argument of the workbench's command line.
    pub(crate) fn argument(mut self, argument: &str) -> Self {
        self.arguments.push(argument.to_owned());
        self
    }

    /// Starts the workbench through `sh`, which runs this and must `exec "$0" "$@"` in the end.
    pub(crate) fn through(mut self, shell: &'static str) -> Self {
        self.shell = Some(shell);
        self
    }

    /// Starts the workbench in this directory.
    pub(crate) fn working_in(mut self, directory: &Path) -> Self {
        self.working_directory = Some(directory.to_owned());
        self
    }

    /// A path in the directory of the test.
    pub(crate) fn path(&self, relative: &str) -> PathBuf {
        self.directory.path().join(relative)
    }

    pub(crate) fn config(&self) -> PathBuf {
        self.path("config/workbench.json")
    }

    /// Writes a file into the directory of the test.
    pub(crate) fn write(&self, relative: &str, text: &str) -> PathBuf {
        let path = self.path(relative);
        let folder = path.parent().expect("a file has a folder");
        fs::create_dir_all(folder).expect("a folder can be made");
        fs::write(&path, text).expect("a file can be written");
        path
    }

    /// The journal of a fixture server.
    pub(crate) fn journal(&self, toolbox: &str, server: &str) -> Journal {
        let mut fixtures = self.fixtures.iter();
        fixtures
            .find(|it| it.toolbox == toolbox && it.server == server)
            .expect("a fixture server of this name")
            .journal
            .clone()
    }

    /// Starts the workbench on the configuration.
    pub(crate) fn start(self) -> Workbench {
        self.write_config();
        let config = self.config();
        let config = config.to_str().expect("a readable path");
        self.start_with(&["--config", config])
    }

    /// Starts the workbench with exactly these arguments.
    pub(crate) fn start_with(self, arguments: &[&str]) -> Workbench {
        let mut command = self.command();
        command.args(arguments);
        Workbench::spawn(command, self)
    }

    /// Starts the workbench on the configuration and goes through the handshake.
    pub(crate) fn connect(self) -> Workbench {
        let mut workbench = self.start();
        workbench.initialize();
        workbench
    }

    pub(crate) fn write_config(&self) {
        let text = self.text.clone().unwrap_or_else(|| self.config_text());
        fs::write(self.config(), text).expect("the configuration can be written");
    }

    /// The configuration that was put together.
    pub(crate) fn config_text(&self) -> String {
        let mut config = self.top.clone();
        config.insert("toolboxes".to_owned(), self.toolboxes.clone().into());
        serde_json::to_string_pretty(&config).expect("a configuration is JSON")
    }

    /// The command that starts the workbench, without arguments of its own.
    pub(crate) fn command(&self) -> Command {
        let mut command = match self.shell {
            Some(shell) => {
                let mut command = Command::new("sh");
                command.args(["-c", shell, WORKBENCH]);
                command
            }
            None => Command::new(WORKBENCH),
        };
        let path = std::env::vars_os().find(|(name, _)| name == "PATH");
        let directory = self.working_directory.clone();
        command
            .args(&self.arguments)
            .current_dir(directory.unwrap_or_else(|| self.path("work")))
            .env_clear()
            .envs(path)
            .env("HOME", self.path("home"))
            .env("XDG_CACHE_HOME", self.path("cache"))
            .envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }

    fn add_fixture(&mut self, server: &str, script: &Script) -> PathBuf {
        let number = self.fixtures.len();
        let journal = self.path(&format!("fixtures/{number}.log"));
        let raw_path = super::raw_string(journal.to_str().expect("a readable path"));
        let text = script.clone().set("journal", &raw_path).text();
        let script_file = self.write(&format!("fixtures/{number}.json"), &text);
        let toolbox = self.toolboxes.keys().next_back().expect("a toolbox first");
        self.fixtures.push(Fixture {
            toolbox: toolbox.clone(),
            server: server.to_owned(),
            journal: Journal { file: journal },
        });
        script_file
    }
}

/// The fixture server, which lies next to the workbench.
pub(crate) fn fixture_server() -> PathBuf {
    let path = Path::new(WORKBENCH).with_file_name("fixture-server");
    assert!(
        path.exists(),
        "{} is missing: build it with `cargo build --workspace`",
        path.display()
    );
    path
}
