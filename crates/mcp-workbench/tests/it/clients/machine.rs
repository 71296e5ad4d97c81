//! The machine of a person: a home directory with the files of clients, and a directory of work.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use mcp_workbench::internal::{
    clients::{CLIENTS, Client, Format, Scope, System, client_paths},
    config::Environment,
};
use serde_json::Value;
use tempfile::TempDir;

const WORKBENCH: &str = env!("CARGO_BIN_EXE_mcp-workbench");

pub(super) struct Machine {
    directory: TempDir,
}

pub(super) struct Ran {
    pub(super) code: i32,
    pub(super) stdout: String,
    pub(super) stderr: String,
}

impl Machine {
    /// A machine on which nothing is installed.
    pub(super) fn new() -> Self {
        let directory = TempDir::new().expect("a directory for the test");
        for name in ["home", "work"] {
            fs::create_dir(directory.path().join(name)).expect("a directory");
        }
        Self { directory }
    }

    /// A machine with all known clients, each with the servers of its file in `files/`.
    pub(super) fn with_all_clients() -> Self {
        let machine = Self::new();
        for client in CLIENTS {
            write(&machine.client_file(client), &sample(client));
        }
        machine
    }

    /// The first file of a client of the user.
    pub(super) fn client_file(&self, client: &Client) -> PathBuf {
        self.client_file_for(client, Scope::User)
    }

    /// The first file of a client for the user or the directory of work.
    pub(super) fn client_file_for(&self, client: &Client, scope: Scope) -> PathBuf {
        let environment = Environment::new([], self.path("work"), Some(self.path("home")));
        let paths = client_paths(client, System::CURRENT, &environment);
        let mut paths = paths.into_iter().filter(|it| it.scope == scope);
        paths.next().expect("a file of the client").path
    }

    /// A path on the machine.
    pub(super) fn path(&self, relative: &str) -> PathBuf {
        // Temporary directories lie behind a link on some systems.
        let root = fs::canonicalize(self.directory.path()).expect("the directory is there");
        root.join(relative)
    }

    /// Our file, where `import` makes it.
    pub(super) fn config(&self) -> PathBuf {
        self.path("home/.config/mcp-workbench/workbench-config.json")
    }

    /// Our file as a value, without its comments.
    pub(super) fn config_value(&self) -> Value {
        let text = read(&self.config());
        let lines = text
            .lines()
            .filter(|line| !line.trim_start().starts_with("//"));
        serde_json::from_str(&lines.collect::<String>()).expect("JSON below its comments")
    }

    /// Runs the workbench in the directory of work, without a terminal.
    pub(super) fn run(&self, arguments: &[&str]) -> Ran {
        let path = std::env::vars_os().find(|(name, _)| name == "PATH");
        let output = Command::new(WORKBENCH)
            .args(arguments)
            .current_dir(self.path("work"))
            .env_clear()
            .envs(path)
            .env("HOME", self.path("home"))
            .env("APPDATA", self.path("home/AppData/Roaming"))
            .stdin(Stdio::null())
            .output()
            .expect("the workbench runs");
        Ran {
            code: output.status.code().expect("it ends by itself"),
            stdout: String::from_utf8(output.stdout).expect("UTF-8"),
            stderr: String::from_utf8(output.stderr).expect("UTF-8"),
        }
    }

    /// All files below the home directory and the directory of work, with their texts.
    pub(super) fn files(&self) -> Vec<(PathBuf, String)> {
        let mut files = Vec::new();
        let mut folders = vec![self.path("home"), self.path("work")];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).expect("a folder") {
                let path = entry.expect("an entry").path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    let text = read(&path);
                    files.push((path, text));
                }
            }
        }
        files.sort();
        files
    }
}

impl Ran {
    /// Both outputs, for messages of tests.
    pub(super) fn all(&self) -> String {
        format!("exit code {}\n{}\n{}", self.code, self.stdout, self.stderr)
    }

    #[track_caller]
    pub(super) fn ends_with(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{}", self.all());
        self
    }

    /// Checks that it says all of some words.
    #[track_caller]
    pub(super) fn says(self, words: &[&str]) -> Self {
        for word in words {
            assert!(self.all().contains(word), "no {word:?} in {}", self.all());
        }
        self
    }
}

/// The sample file of a client.
pub(super) fn sample(client: &Client) -> String {
    let ending = match client.format {
        Format::Json => "json",
        Format::Toml => "toml",
        Format::Yaml => "yaml",
    };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/clients/files");
    read(&folder.join(format!("{}.{ending}", client.word())))
}

/// The text of a file.
#[track_caller]
pub(super) fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Writes a file, with its folders.
pub(super) fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().expect("a folder")).expect("folders can be made");
    fs::write(path, text).expect("files can be written");
}
