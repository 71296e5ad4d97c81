//! Runs commands of this program for the page, so that the page shows exactly what they print.

use std::{ffi::OsString, io, path::PathBuf, process::Stdio, time::Duration};

use serde_json::{Value, json};
use tokio::{
    io::AsyncReadExt,
    process::{Child, Command},
};

use crate::{alarm::timeout, config::Environment};

/// How long a command may take. Some start every server.
const TIMEOUT: Duration = Duration::from_mins(3);
/// The most output that is read.
const MAX_OUTPUT: u64 = 8 * 1024 * 1024;

/// Runs commands on the configuration that is served.
pub(super) struct Commands {
    program: PathBuf,
    config: PathBuf,
    environment: Vec<(OsString, OsString)>,
    directory: PathBuf,
}

/// The output of a command.
pub(super) struct Output {
    pub(super) stdout: String,
    pub(super) stderr: String,
    pub(super) is_success: bool,
}

impl Commands {
    /// Returns `None` if the program does not know its own path.
    pub(super) fn new(config: PathBuf, environment: &Environment) -> Option<Self> {
        let variables = environment.variables();
        Some(Self {
            program: std::env::current_exe().ok()?,
            config,
            environment: variables
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect(),
            directory: environment.start_directory().to_owned(),
        })
    }

    /// Starts a command. Dropping it ends it.
    pub(super) fn start(&self, arguments: &[&str]) -> io::Result<Child> {
        Command::new(&self.program)
            .arg("--config")
            .arg(&self.config)
            .args(arguments)
            // The environment of the configuration, which is not that of this process if a host serves the page.
            .env_clear()
            .envs(self.environment.iter().cloned())
            .env("NO_COLOR", "1")
            .current_dir(&self.directory)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
    }

    /// Runs a command; returns `None` if it cannot be run or takes too long.
    pub(super) async fn run(&self, arguments: &[&str]) -> Option<Output> {
        let mut child = self.start(arguments).ok()?;
        let (mut stdout, mut stderr) = (String::new(), String::new());
        // A command that prints more blocks, and is killed at the time limit.
        let mut output = child.stdout.take()?.take(MAX_OUTPUT);
        let mut errors = child.stderr.take()?.take(MAX_OUTPUT);
        let ended = timeout(TIMEOUT, async {
            // Both at once: a command that fills one pipe while the other is read would wait forever.
            let read = tokio::try_join!(
                output.read_to_string(&mut stdout),
                errors.read_to_string(&mut stderr)
            );
            read.and(child.wait().await)
        });
        let status = ended.await.ok()?.ok()?;
        Some(Output {
            stdout,
            stderr,
            is_success: status.success(),
        })
    }

    /// Returns the JSON document that a command prints, or the reason why there is none.
    pub(super) async fn document(&self, arguments: &[&str]) -> Result<Value, Value> {
        let Some(output) = self.run(arguments).await else {
            return Err(json!({ "error": "the command timed out or could not be run" }));
        };
        let document = serde_json::from_str(&output.stdout);
        document.map_err(|_| json!({ "error": output.stderr.trim() }))
    }
}
